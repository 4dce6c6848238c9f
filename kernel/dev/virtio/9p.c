/*
 * 9p.c - a folder of the host by virtio (Virtio 1.2, 5.15 is "reserved": Linux's and QEMU's
 * virtio-9p): what carries the messages of kernel/fs/9p/. The first device only.
 *
 * A request is one buffer of the ring: a table of its message, which the device reads, and of the
 * room for the reply, which the device writes. Buffers have the numbers of tags. Locking: the lock
 * of the transport guards the ring.
 */
#include "arch/mmu.h"
#include "kernel/dev/virtio/virtio.h"
#include "kernel/fs/9p/client.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/mm/page.h"
#include "kernel/sched/sleepq.h"

#define F_MOUNT_TAG (1ul << 0)
#define TAG_MAX     32 /* QEMU's limit */

static struct virtio_9p {
	struct virtio dev;
	struct virtio_ring ring;
	struct p9_trans_module trans;
	struct virtio_desc (*desc)[2];
	struct p9_req_t *request[P9_REQUESTS]; /* that the device has */
	char tag[TAG_MAX + 1];
	bool stopping; /* lock of trans */
} chan;

/* As p9_trans_module.request. */
static void
p9_virtio_request(struct p9_req_t *req)
{
	struct virtio_desc *d = chan.desc[req->tag];

	chan.request[req->tag] = req;
	d[0] = (struct virtio_desc){virt_to_phys(req->tc.sdata), req->tc.size, VIRTIO_DESC_NEXT, 1};
	d[1] = (struct virtio_desc){virt_to_phys(req->rc.sdata), req->rc.capacity,
				    VIRTIO_DESC_WRITE, 0};
	virtio_ring_give_table(&chan.ring, req->tag, virt_to_phys(d), 2, req->rc.capacity);
	virtio_notify(&chan.dev, 0);
}

/* The device is not used any more: who waits for it goes on. */
static void
p9_virtio_break(const char *why)
{
	bool reset;

	virtio_stop(&chan.dev, why);
	reset = virtio_await_reset(&chan.dev);
	if (!reset)
		pr_warn("virtio-9p: it may still use the memory of its requests, which is lost\n");
	spin_lock(&chan.trans.lock);
	chan.trans.broken = true;
	for (unsigned i = 0; i < P9_REQUESTS; i++) {
		if (chan.request[i] == NULL)
			continue;
		if (reset)
			chan.request[i]->status = REQ_STATUS_ERROR;
		wakeup(chan.request[i]);
	}
	spin_unlock(&chan.trans.lock);
}

static void
p9_virtio_interrupt(void *arg)
{
	uint32_t length;
	bool stop;
	int i;

	spin_lock(&chan.trans.lock);
	while ((i = virtio_ring_take(&chan.ring, &length)) >= 0) {
		p9_client_cb(chan.request[i], length);
		chan.request[i] = NULL;
	}
	stop = i == -2 && !chan.stopping;
	chan.stopping |= stop;
	spin_unlock(&chan.trans.lock);
	if (stop)
		p9_virtio_break("it broke its ring");
}

/* Reads the name of what is shared. False: it has none, or one that nobody could write. */
static bool
read_tag(const struct virtio *v)
{
	const volatile uint8_t *at = v->cfg[VIRTIO_DEVICE];
	unsigned n = v->device_length >= 2 ? at[0] | at[1] << 8 : 0;

	if (!(v->features & F_MOUNT_TAG) || n == 0 || n > TAG_MAX || n > v->device_length - 2)
		return false;
	for (unsigned i = 0; i < n; i++) {
		chan.tag[i] = (char)at[2 + i];
		if (chan.tag[i] <= ' ' || chan.tag[i] > '~')
			return false;
	}
	return true;
}

static bool
p9_virtio_open(struct virtio *v)
{
	if (!virtio_open(v, VIRTIO_9P, "virtio-9p", F_MOUNT_TAG | VIRTIO_F_INDIRECT))
		return false;
	if (!(v->features & VIRTIO_F_INDIRECT) || !read_tag(v))
		return virtio_stop(v, "it has no indirect descriptors, or no name");
	chan.desc = page_alloc_zero(PAGE_OTHER);
	if (chan.desc == NULL)
		return virtio_stop(v, "no memory for its requests");
	if (!virtio_ring_open(v, 0, &chan.ring, true))
		return false;
	if (chan.ring.size < 2)
		return virtio_stop(v, "its ring is too small");
	return virtio_interrupt(v, p9_virtio_interrupt, NULL);
}

static void
p9_virtio_probe(void)
{
	struct p9_trans_module *t = &chan.trans;

	if (!p9_virtio_open(&chan.dev))
		return;
	t->tag = chan.tag;
	t->requests = chan.ring.size < P9_REQUESTS ? chan.ring.size : P9_REQUESTS;
	t->request = p9_virtio_request;
	t->look = p9_virtio_interrupt;
	spin_init(&t->lock, "9p");
	virtio_start(&chan.dev);
	v9fs_register_trans(t);
	printk("virtio-9p: %s, line %d\n", chan.tag, chan.dev.line);
}

HOOK(unpacked, p9_virtio_probe);
