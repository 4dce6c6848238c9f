/*
 * caps.c - the list of capabilities of a device (PCI Local Bus 3.0, 6.7). Each byte of it may be
 * wrong: the list ends after as many steps as fit into the space.
 */
#include "kernel/dev/virtio/caps.h"

#include <stddef.h>

#include "kernel/lib/string.h"

#define CONFIG_SIZE  256
#define LIST_AT      0x34
#define FIRST        0x40 /* capabilities come after the header */
#define STEPS        48   /* (CONFIG_SIZE - FIRST) / 4 */
#define CAP_VENDOR   0x09
#define CAP_MSIX     0x11
#define VIRTIO_BYTES 16
#define NOTIFY_BYTES 20
#define MSIX_BYTES   12
#define BARS         6

/* The least that each part of the registers must have: 4.1.4.3 to 4.1.4.6. */
static const uint32_t least[VIRTIO_CFGS] = {
    [VIRTIO_COMMON] = 56, [VIRTIO_NOTIFY] = 2, [VIRTIO_ISR] = 1, [VIRTIO_DEVICE] = 6};

static uint32_t
read_word(const uint8_t *p)
{
	return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

static void
read_virtio(const uint8_t *p, unsigned room, struct virtio_caps *caps)
{
	struct virtio_place place;
	unsigned type;

	if (room < VIRTIO_BYTES)
		return;
	type = p[3];
	place = (struct virtio_place){true, p[4], read_word(p + 8), read_word(p + 12)};
	/* The first one of a kind is the one that the device prefers. */
	if (type < VIRTIO_COMMON || type >= VIRTIO_CFGS || caps->cfg[type].found ||
	    place.bar >= BARS || place.length < least[type] ||
	    place.offset > UINT32_MAX - place.length)
		return;
	if (type == VIRTIO_NOTIFY && room < NOTIFY_BYTES)
		return;
	if (type == VIRTIO_NOTIFY)
		caps->notify_multiplier = read_word(p + 16);
	caps->cfg[type] = place;
}

/* PCI Local Bus 3.0, 6.8.2. */
static void
read_msix(const uint8_t *p, unsigned at, unsigned room, struct virtio_caps *caps)
{
	uint32_t table;

	if (room < MSIX_BYTES || caps->msix_control != 0)
		return;
	table = read_word(p + 4);
	if ((table & 7) >= BARS)
		return;
	caps->msix_control = at;
	caps->msix_vectors = ((read_word(p) >> 16) & 0x7ff) + 1;
	caps->msix = (struct virtio_place){true, table & 7, table & ~7u, caps->msix_vectors * 16};
	caps->msix.found = caps->msix.offset <= UINT32_MAX - caps->msix.length;
}

bool
virtio_caps_parse(const uint8_t config[256], struct virtio_caps *caps)
{
	unsigned at = config[LIST_AT] & ~3u;
	bool all = true;

	memset(caps, 0, sizeof(*caps));
	for (unsigned i = 0; i < STEPS && at >= FIRST; i++) {
		unsigned room = CONFIG_SIZE - at;

		if (config[at] == CAP_VENDOR)
			read_virtio(config + at, room, caps);
		else if (config[at] == CAP_MSIX)
			read_msix(config + at, at, room, caps);
		at = config[at + 1] & ~3u;
	}
	for (unsigned i = VIRTIO_COMMON; i < VIRTIO_CFGS; i++)
		all &= caps->cfg[i].found;
	return all;
}
