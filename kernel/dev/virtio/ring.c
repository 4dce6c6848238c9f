/* ring.c - split virtqueues (ring.h). */
#include "kernel/dev/virtio/ring.h"

void
virtio_ring_describe(struct virtio_ring *r, unsigned i, uint64_t address, uint32_t length,
		     bool writes)
{
	r->desc[i] = (struct virtio_desc){address, length, writes ? VIRTIO_DESC_WRITE : 0, 0};
}

/* Gives a buffer that is described. */
static void
ring_give(struct virtio_ring *r, unsigned i, uint32_t most)
{
	r->device_has[i] = true;
	r->most[i] = most;
	r->avail->ring[r->next % r->size] = (uint16_t)i;
	/* release: the device sees what the entry leads to */
	__atomic_store_n(&r->avail->index, ++r->next, __ATOMIC_RELEASE);
}

void
virtio_ring_give(struct virtio_ring *r, unsigned i, uint32_t length)
{
	r->desc[i].length = length;
	ring_give(r, i, length);
}

void
virtio_ring_give_table(struct virtio_ring *r, unsigned i, uint64_t table, unsigned n, uint32_t most)
{
	r->desc[i] = (struct virtio_desc){table, n * (uint32_t)sizeof(struct virtio_desc),
					  VIRTIO_DESC_INDIRECT, 0};
	ring_give(r, i, most);
}

void
virtio_ring_forget(struct virtio_ring *r, unsigned i)
{
	r->device_has[i] = false;
}

void
virtio_ring_listen(struct virtio_ring *r, bool on)
{
	__atomic_store_n(&r->avail->flags, !on, __ATOMIC_RELAXED);
	/* seq_cst: what the device returned before this is seen, or raises an interrupt */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

int
virtio_ring_take(struct virtio_ring *r, uint32_t *length)
{
	/* acquire: what the device has written before */
	uint16_t waiting = (uint16_t)(__atomic_load_n(&r->used->index, __ATOMIC_ACQUIRE) - r->seen);
	uint32_t id;

	if (r->broken || waiting == 0)
		return r->broken ? -2 : -1;
	id = __atomic_load_n(&r->used->ring[r->seen % r->size].id, __ATOMIC_RELAXED);
	*length = __atomic_load_n(&r->used->ring[r->seen % r->size].length, __ATOMIC_RELAXED);
	if (waiting > r->size || id >= r->size || !r->device_has[id] || *length > r->most[id]) {
		r->broken = true;
		return -2;
	}
	r->device_has[id] = false;
	r->seen++;
	return (int)id;
}
