/*
 * net.c - the card (net.h). Each frame is copied, in and out of buffers of the rings, which are
 * half a page each: so the device reaches no other memory.
 */
#include "kernel/dev/virtio/net.h"

#include "arch/mmu.h"
#include "kernel/dev/virtio/virtio.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"

#define F_MAC  (1ul << 5)
#define HEADER 12 /* struct virtio_net_hdr (5.1.6); zeroes: nothing is offloaded */
#define BUFFER 2048
#define RX     0
#define TX     1

_Static_assert(HEADER + VIRTIO_NET_FRAME <= BUFFER, "a frame and its header are one buffer");

static struct {
	struct virtio dev;
	struct virtio_ring rx, tx;
	char *rx_buffer[VIRTIO_RING_MAX], *tx_buffer[VIRTIO_RING_MAX];
	int room; /* the buffer of tx that virtio_net_room() has given; -1: none */
	uint16_t free[VIRTIO_RING_MAX]; /* buffers of tx that the driver has */
	unsigned nfree;
	bool told; /* that it is broken */
} card;

static bool
make_buffers(struct virtio_ring *r, char **buffer, bool writes)
{
	char *page = NULL;

	for (unsigned i = 0; i < r->size; i++) {
		if (i % 2 == 0)
			page = page_alloc_zero(PAGE_OTHER);
		if (page == NULL)
			return false;
		buffer[i] = page + i % 2 * BUFFER;
		virtio_ring_describe(r, i, virt_to_phys(buffer[i]), BUFFER, writes);
	}
	return true;
}

bool
virtio_net_open(uint8_t mac[6], void (*arrived)(void *))
{
	struct virtio *v = &card.dev;

	if (!virtio_open(v, VIRTIO_NET, "virtio-net", F_MAC))
		return false;
	if (!(v->features & F_MAC))
		return virtio_stop(v, "it has no address");
	for (unsigned i = 0; i < 6; i++)
		mac[i] = v->cfg[VIRTIO_DEVICE][i];
	if (!virtio_ring_open(v, RX, &card.rx, true) || !virtio_ring_open(v, TX, &card.tx, false) ||
	    !virtio_interrupt(v, arrived, NULL))
		return false;
	if (!make_buffers(&card.rx, card.rx_buffer, true) ||
	    !make_buffers(&card.tx, card.tx_buffer, false))
		return virtio_stop(v, "no memory for its buffers");
	card.room = -1;
	for (unsigned i = 0; i < card.tx.size; i++)
		card.free[card.nfree++] = (uint16_t)i;
	virtio_start(v);
	for (unsigned i = 0; i < card.rx.size; i++)
		virtio_ring_give(&card.rx, i, BUFFER);
	virtio_notify(v, RX);
	printk("virtio-net: %02x:%02x:%02x:%02x:%02x:%02x, line %d\n", mac[0], mac[1], mac[2],
	       mac[3], mac[4], mac[5], v->line);
	return true;
}

/* Says once that the card is broken. */
static void
complain_broken(void)
{
	if (!card.told)
		virtio_stop(&card.dev, "it broke a ring");
	card.told = true;
	card.rx.broken = card.tx.broken = true;
}

void *
virtio_net_room(void)
{
	uint32_t length;
	int i;

	while ((i = virtio_ring_take(&card.tx, &length)) >= 0)
		card.free[card.nfree++] = (uint16_t)i;
	if (i == -2)
		complain_broken();
	if (card.tx.broken || (card.room < 0 && card.nfree == 0))
		return NULL;
	if (card.room < 0)
		card.room = card.free[--card.nfree];
	return card.tx_buffer[card.room] + HEADER;
}

void
virtio_net_send(uint32_t length)
{
	virtio_ring_give(&card.tx, (unsigned)card.room, HEADER + length);
	virtio_notify(&card.dev, TX);
	card.room = -1;
}

bool
virtio_net_receive(void (*take)(void *arg, const void *frame, uint32_t length), void *arg)
{
	unsigned n = 0;
	uint32_t length;
	int i = -1;

	for (; n < card.rx.size && (i = virtio_ring_take(&card.rx, &length)) >= 0; n++) {
		if (length > HEADER && length <= HEADER + VIRTIO_NET_FRAME)
			take(arg, card.rx_buffer[i] + HEADER, length - HEADER);
		virtio_ring_give(&card.rx, (unsigned)i, BUFFER);
	}
	if (i == -2)
		complain_broken();
	else if (n > 0)
		virtio_notify(&card.dev, RX);
	return n == card.rx.size;
}
