/*
 * ktrdev.c - /dev/ktr: a stream of what is in the rings.
 *
 * Each open file has its own stream, which begins with the oldest event in the rings, and says how
 * many were overwritten before. It does not affect the flush thread or other readers. A read
 * returns 0 at the end of a pass, when all events that had been recorded when the pass began have
 * been read. The next read begins another pass. Locking: the reader's mutex, around its stream.
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/uio.h"
#include "kernel/mm/kmap.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/mutex.h"
#include "kernel/trace/trace_private.h"
#include "ktr/ktr.h"
#include "ktr/stream.h"

struct ktr_reader {
	struct mutex lock;
	uint64_t bytes; /* read */
	bool pass_over; /* the next read returns 0 */
	struct ktr_stream stream;
};

static int
ktrdev_open(struct file *f)
{
	struct ktr_reader *r = kmap_alloc(sizeof(*r));

	if (r == NULL)
		return -ENOMEM;
	mutex_init(&r->lock, "ktr reader");
	ktr_stream_open(&r->stream, KTR_STREAM_LIVE);
	f->priv = r;
	CTR1(KTR_SUBSYS, "ktrdev open: reader %p", r);
	return 0;
}

static void
ktrdev_release(struct file *f)
{
	struct ktr_reader *r = f->priv;

	CTR2(KTR_SUBSYS, "ktrdev release: reader %p bytes %lu", r, r->bytes);
	kmap_free(r);
}

static int64_t
ktrdev_read(struct file *f, struct uio *u)
{
	struct ktr_reader *r = f->priv;
	size_t start = u->resid, before, n;
	const uint8_t *bytes;
	int error = 0;

	mutex_lock(&r->lock);
	if (r->pass_over) {
		r->pass_over = false;
		mutex_unlock(&r->lock);
		return 0;
	}
	while (u->resid > 0 && error == 0 && !proc_signal_pending()) {
		n = ktr_stream_peek(&r->stream, &bytes);
		if (n == 0) {
			r->pass_over = start != u->resid; /* else this read returns 0 */
			break;
		}
		n = n < u->resid ? n : u->resid;
		before = u->resid;
		error = uio_put(u, bytes, n);
		ktr_stream_taken(&r->stream, before - u->resid); /* also if a page is missing */
	}
	r->bytes += start - u->resid;
	mutex_unlock(&r->lock);
	if (start != u->resid)
		return (int64_t)(start - u->resid);
	return error < 0 ? error : proc_signal_pending() ? -EINTR : 0;
}

int
ktrdev_init(void)
{
	static const struct dev_ops ops = {
	    .open = ktrdev_open,
	    .release = ktrdev_release,
	    .read = ktrdev_read,
	    .mode = 0400,
	    .root_only = true,
	};

	return devfs_register("ktr", &ops, NULL);
}
