/*
 * virtio_fuzz.c - a device of virtio that writes whatever it likes: configuration space, used
 * rings, and messages of a console's control queue. Promises: a place of registers is within 32
 * bits and its BAR one of six; a buffer that is taken was the device's, with no more bytes than it
 * has; a broken ring stays so; a message that is not about a new port is about one that there may
 * be, and a name is printable and ends.
 */
#include <string.h>

#include "kernel/dev/virtio/caps.h"
#include "kernel/dev/virtio/control.h"
#include "kernel/dev/virtio/ring.h"
#include "tests/fuzz/fuzz.h"

#define STEPS  64
#define BUFFER 2048

static void
check_place(const struct virtio_place *p)
{
	FUZZ_CHECK(!p->found || p->bar < 6, "BAR %u", p->bar);
	FUZZ_CHECK(!p->found || (uint64_t)p->offset + p->length <= 1ull << 32, "%#x + %#x",
		   p->offset, p->length);
}

static void
check_caps(const uint8_t *data, size_t size)
{
	uint8_t config[256] = {0};
	struct virtio_caps caps;

	memcpy(config, data, size < sizeof(config) ? size : sizeof(config));
	if (virtio_caps_parse(config, &caps))
		FUZZ_CHECK(caps.cfg[VIRTIO_COMMON].length >= 56, "%u bytes of common registers",
			   caps.cfg[VIRTIO_COMMON].length);
	for (unsigned i = VIRTIO_COMMON; i < VIRTIO_CFGS; i++)
		check_place(&caps.cfg[i]);
	check_place(&caps.msix);
	FUZZ_CHECK(caps.msix_vectors <= 2048 && caps.msix_control < 256, "%u vectors",
		   caps.msix_vectors);
}

/* The device writes an entry of the used ring, or its index. */
static void
device_acts(struct virtio_ring *r, struct fuzz_input *in)
{
	unsigned at = fuzz_byte(in) % VIRTIO_RING_MAX;

	r->used->ring[at].id = (uint32_t)fuzz_number(in);
	r->used->ring[at].length = (uint32_t)fuzz_number(in);
	r->used->index = (uint16_t)(r->used->index + fuzz_byte(in) % 4);
	if (fuzz_byte(in) == 255)
		r->used->index = (uint16_t)fuzz_number(in);
}

static void
check_ring(struct fuzz_input *in)
{
	static struct virtio_desc desc[VIRTIO_RING_MAX];
	static struct virtio_avail avail;
	static struct virtio_used used;
	struct virtio_ring r = {.size = 1u << fuzz_byte(in) % 8,
				.desc = desc,
				.avail = &avail,
				.used = &used};
	bool given[VIRTIO_RING_MAX] = {false}, broken = false;

	memset(&avail, 0, sizeof(avail));
	memset(&used, 0, sizeof(used));
	for (unsigned i = 0; i < r.size; i++)
		virtio_ring_describe(&r, i, i * BUFFER, BUFFER, true);
	for (unsigned step = 0; step < STEPS && in->left > 0; step++) {
		unsigned i = fuzz_byte(in) % r.size;
		uint32_t length = 0;
		int taken;

		if (!given[i])
			virtio_ring_give(&r, i, BUFFER);
		given[i] = true;
		device_acts(&r, in);
		taken = virtio_ring_take(&r, &length);
		FUZZ_CHECK(!broken || taken == -2, "a broken ring gives %d", taken);
		broken = taken == -2;
		if (taken < 0)
			continue;
		FUZZ_CHECK((unsigned)taken < r.size && given[taken] && length <= BUFFER,
			   "buffer %d of %u, %u bytes", taken, r.size, length);
		given[taken] = false;
	}
}

static void
check_control(const uint8_t *data, size_t size)
{
	struct virtio_control m = {0};
	char name[VIRTIO_PORT_NAME];
	unsigned ports = size > 0 ? data[size - 1] % 5 : 0;
	bool good = virtio_control_read(data, (uint32_t)size, ports, &m, name);

	FUZZ_CHECK(!good || size >= sizeof(m), "a message of %zu bytes", size);
	FUZZ_CHECK(!good || m.event == VIRTIO_CONSOLE_DEVICE_ADD || m.port < ports,
		   "event %u of port %u of %u", m.event, m.port, ports);
	FUZZ_CHECK(memchr(name, '\0', sizeof(name)) != NULL, "a name without an end");
	for (const char *c = name; *c != '\0'; c++)
		FUZZ_CHECK(*c >= ' ' && *c <= '~', "character %d of a name", *c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};

	check_caps(data, size);
	check_ring(&in);
	check_control(data, size);
	return 0;
}
