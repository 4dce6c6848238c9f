/*
 * blk.c - a disk of virtio (Virtio 1.2, 5.2): the first one becomes /dev/vda.
 *
 * A request is one buffer of the ring: a table of a header, which the device reads, the pieces of
 * memory, and a byte of status, which the device writes. Requests have the numbers of the buffers.
 * Locking: the lock of the disk's queue guards the ring.
 */
#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/block/bio.h"
#include "kernel/dev/virtio/virtio.h"
#include "kernel/fs/devfs.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"

#define F_SEG_MAX  (1ul << 2)
#define F_RO       (1ul << 5)
#define F_BLK_SIZE (1ul << 6)
#define F_FLUSH    (1ul << 9)
#define CAPACITY   0 /* of the device's registers (5.2.4): sectors */
#define SEG_MAX    12
#define REGISTERS  16
#define BLK_SIZE   20
#define MAJOR      254 /* as Linux has it when nobody else is there */

enum { VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT, VIRTIO_BLK_T_FLUSH = 4 };

struct blk_request {
	struct virtio_desc desc[REQUEST_BIOS + 2];
	struct {
		uint32_t type, reserved;
		uint64_t sector;
	} header;
	uint8_t status; /* 0: done */
};

_Static_assert(sizeof(struct blk_request) <= PAGE_SIZE / 2, "two in a page");

static struct {
	struct virtio dev;
	struct virtio_ring ring;
	struct gendisk disk;
	struct blk_request *request[REQUESTS_MAX];
} blk;

/* Adds a piece to the table of a request. */
static void
add_piece(struct blk_request *r, unsigned n, void *at, uint32_t size, unsigned flags)
{
	r->desc[n] =
	    (struct virtio_desc){virt_to_phys(at), size, (uint16_t)flags, (uint16_t)(n + 1)};
}

/* As blk_mq_ops.queue_rq. */
static void
virtio_queue_rq(struct gendisk *disk, struct request *rq)
{
	static const uint32_t type[] = {[BIO_READ] = VIRTIO_BLK_T_IN,
					[BIO_WRITE] = VIRTIO_BLK_T_OUT,
					[BIO_FLUSH] = VIRTIO_BLK_T_FLUSH};
	unsigned n = 1, reads = rq->op == BIO_READ;
	struct blk_request *r = blk.request[rq->tag];

	blk_mq_start_request(disk, rq);
	r->header.type = type[rq->op];
	r->header.sector = rq->op == BIO_FLUSH ? 0 : rq->sector;
	r->status = 0xff;
	add_piece(r, 0, &r->header, sizeof(r->header), VIRTIO_DESC_NEXT);
	if (rq->op != BIO_FLUSH)
		list_for_each_entry (const struct bio, bio, &rq->bios, link)
			add_piece(r, n++, bio->data, bio->size,
				  VIRTIO_DESC_NEXT | (reads ? VIRTIO_DESC_WRITE : 0));
	add_piece(r, n++, &r->status, 1, VIRTIO_DESC_WRITE);
	virtio_ring_give_table(&blk.ring, rq->tag, virt_to_phys(r->desc), n,
			       (reads ? rq->size : 0) + 1);
	virtio_notify(&blk.dev, 0);
}

/* The disk is not used any more. */
static void
blk_break(const char *why)
{
	virtio_stop(&blk.dev, why);
	blk_mark_disk_dead(&blk.disk, virtio_await_reset(&blk.dev));
}

/* Takes what the device has done. NULL: nothing. */
static struct request *
take_request(int *error)
{
	struct request_queue *q = &blk.disk.queue;
	struct request *rq = NULL;
	uint32_t length;
	int tag;

	spin_lock(&q->lock);
	tag = virtio_ring_take(&blk.ring, &length);
	if (tag >= 0) {
		rq = &q->requests[tag];
		*error = 0;
		if (*(volatile uint8_t *)&blk.request[tag]->status != 0 ||
		    (rq->op == BIO_READ && length != rq->size + 1))
			*error = -EIO;
	}
	spin_unlock(&q->lock);
	if (tag == -2 && !q->dead)
		blk_break("it broke its ring");
	return rq;
}

/* As blk_mq_ops.poll. */
static void
virtio_poll(struct gendisk *disk)
{
	struct request *rq;
	int error;

	for (unsigned n = 0; n < VIRTIO_RING_MAX && (rq = take_request(&error)) != NULL; n++)
		blk_mq_end_request(disk, rq, error);
}

static void
blk_interrupt(void *arg)
{
	virtio_poll(arg);
}

/* As blk_mq_ops.timeout. */
static void
virtio_timeout(struct gendisk *disk)
{
	blk_break("it has not done a request in time");
}

static uint64_t
read_register(unsigned reg, unsigned words)
{
	const volatile uint8_t *at = blk.dev.cfg[VIRTIO_DEVICE] + reg;
	uint64_t n = *(const volatile uint32_t *)at;

	return words == 2 ? n | (uint64_t) * (const volatile uint32_t *)(at + 4) << 32 : n;
}

/* Makes what each request has. False: no memory. */
static bool
make_requests(unsigned depth)
{
	char *page = NULL;

	for (unsigned i = 0; i < depth; i++) {
		if (i % 2 == 0)
			page = page_alloc_zero(PAGE_OTHER);
		if (page == NULL)
			return false;
		blk.request[i] = (struct blk_request *)(page + i % 2 * (PAGE_SIZE / 2));
	}
	return true;
}

static bool
blk_open(struct virtio *v)
{
	struct request_queue *q = &blk.disk.queue;
	uint64_t most = REQUEST_BIOS;

	if (!virtio_open(v, VIRTIO_BLK, "virtio-blk",
			 F_SEG_MAX | F_RO | F_BLK_SIZE | F_FLUSH | VIRTIO_F_INDIRECT))
		return false;
	if (!(v->features & VIRTIO_F_INDIRECT) || v->device_length < REGISTERS)
		return virtio_stop(v, "it has no indirect descriptors, or too few registers");
	if ((v->features & F_BLK_SIZE) && v->device_length >= BLK_SIZE + 4 &&
	    read_register(BLK_SIZE, 1) != SECTOR_SIZE)
		return virtio_stop(v, "its blocks are not of 512 bytes");
	if (!virtio_ring_open(v, 0, &blk.ring, true))
		return false;
	blk_mq_init_queue(&blk.disk, blk.ring.size < REQUESTS_MAX ? blk.ring.size : REQUESTS_MAX);
	if (!virtio_interrupt(v, blk_interrupt, &blk.disk))
		return false;
	if (!make_requests(q->depth))
		return virtio_stop(v, "no memory for its requests");
	if (v->features & F_SEG_MAX)
		most = read_register(SEG_MAX, 1);
	/* A table, with the header and the status, is not longer than the ring (2.7.5.3.1). */
	if (most + 2 > blk.ring.size)
		most = blk.ring.size > 2 ? blk.ring.size - 2u : 1;
	q->max_bios = most > REQUEST_BIOS ? REQUEST_BIOS : most > 0 ? (unsigned)most : 1;
	return true;
}

static void
blk_boot(void)
{
	static const struct blk_mq_ops ops = {virtio_queue_rq, virtio_poll, virtio_timeout};
	struct virtio *v = &blk.dev;
	struct gendisk *d = &blk.disk;

	if (!blk_open(v))
		return;
	d->ops = &ops;
	d->driver = "virtblk"; /* as Linux's /proc/devices has it */
	d->readonly = v->features & F_RO;
	d->has_flush = v->features & F_FLUSH;
	strlcpy(d->whole.name, "vda", sizeof(d->whole.name));
	d->whole.number = DEVICE(MAJOR, 0);
	d->whole.sectors = read_register(CAPACITY, 2);
	if (d->whole.sectors > DISK_SECTORS_MAX) {
		virtio_stop(v, "its capacity is not believed");
		return;
	}
	virtio_start(v);
	printk("virtio-blk: vda, %lu sectors%s, line %d\n", d->whole.sectors,
	       d->readonly ? ", read-only" : "", v->line);
	add_disk(d);
}

HOOK(unpacked, blk_boot);
