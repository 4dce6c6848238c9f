/*
 * ring.h - a split virtqueue (Virtio 1.2, 2.7): descriptor i is buffer i, for ever. A buffer is one
 * piece, or a table of pieces (2.7.5.3). Either the driver has a buffer, or the device has it.
 *
 * Nothing that the device writes is believed: a number of a buffer that it does not have, or more
 * of them than there are, means that the device is broken. Locking: the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define VIRTIO_RING_MAX 128 /* buffers of a ring at most; a power of two */

#define VIRTIO_F_INDIRECT (1ul << 28) /* the device takes tables */

#define VIRTIO_DESC_NEXT     1
#define VIRTIO_DESC_WRITE    2 /* the device does */
#define VIRTIO_DESC_INDIRECT 4

struct virtio_desc {
	uint64_t address;
	uint32_t length;
	uint16_t flags, next;
};

struct virtio_avail {
	uint16_t flags, index, ring[VIRTIO_RING_MAX];
};

struct virtio_used {
	uint16_t flags, index;
	struct {
		uint32_t id, length;
	} ring[VIRTIO_RING_MAX];
};

struct virtio_ring {
	unsigned size;                  /* a power of two */
	struct virtio_desc *desc;       /* read by the device */
	struct virtio_avail *avail;     /* the same */
	struct virtio_used *used;       /* written by the device */
	uint16_t next, seen;            /* of avail and used */
	uint32_t most[VIRTIO_RING_MAX]; /* bytes that the device may have written */
	bool device_has[VIRTIO_RING_MAX];
	bool broken;
};

/* Describes buffer i: its physical address. writes: the device writes to it. */
void virtio_ring_describe(struct virtio_ring *r, unsigned i, uint64_t address, uint32_t length,
			  bool writes);
/*
 * Gives buffer i, which the driver has, to the device: length bytes of it. The device is to be
 * notified then. Its flag that it needs none (2.7.10) is not believed: where the guest has one CPU,
 * QEMU before 8.1 leaves out the barrier between the index and the flag, though the device runs
 * beside that CPU. Then both sides may wait for ever.
 */
void virtio_ring_give(struct virtio_ring *r, unsigned i, uint32_t length);
/* Gives the device a buffer that is a table of n pieces; it writes at most `most` bytes of them. */
void virtio_ring_give_table(struct virtio_ring *r, unsigned i, uint64_t table, unsigned n,
			    uint32_t most);
/* Buffer i, which the device has, is the driver's: the device has forgotten it. */
void virtio_ring_forget(struct virtio_ring *r, unsigned i);
/* Whether the device is to raise interrupts when it returns buffers of the ring. */
void virtio_ring_listen(struct virtio_ring *r, bool on);
/* Takes back a buffer. Returns its number, and in *length how many bytes the device has written, at
 * most the size of the buffer. -1 if there is none; -2 if the device is broken, which it stays. */
int virtio_ring_take(struct virtio_ring *r, uint32_t *length);
