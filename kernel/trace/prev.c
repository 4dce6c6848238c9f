/*
 * prev.c - /dev/ktr.prev, which gives the log of the boot before as a stream, and debug.ktr.prev.*,
 * which describe it.
 *
 * Locking: prev_lock guards everything here.
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/uio.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/page.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/mutex.h"
#include "kernel/trace/trace_private.h"
#include "ktr/image_read.h"
#include "ktr/persist.h"

#define READER_PIECE 4096u

static struct mutex prev_lock = MUTEX_INIT("ktr prev");
static struct ktr_persist *prev; /* NULL: no log was found */
static bool prev_own;            /* its memory may be given to the page allocator */
static unsigned readers;
static uint64_t prev_sound, prev_corrupt;
static char prev_build[KTR_IMAGE_BUILD];
static uint8_t prev_id[16];

struct prev_reader {
	struct ktr_persist_reader region;
	struct ktr_image image;
	uint8_t piece[READER_PIECE];
	size_t at, n; /* bytes of the piece: those that were read, and all */
};

/* Opens the log. prev_lock held, prev is not NULL. */
static int
prev_open_image(struct prev_reader *r, char *err, size_t errlen)
{
	ktr_persist_reader_init(&r->region, prev);
	return ktr_image_open(&r->image, ktr_persist_read, &r->region, ktr_persist_root(&r->region),
			      err, errlen);
}

static int
prevdev_open(struct file *f)
{
	struct prev_reader *r = kmap_alloc(sizeof(*r));
	char err[128];
	int error = r == NULL ? -ENOMEM : -ENXIO; /* cleared */

	mutex_lock(&prev_lock);
	if (r != NULL && prev != NULL && prev_open_image(r, err, sizeof(err)) == 0) {
		readers++;
		error = 0;
	}
	mutex_unlock(&prev_lock);
	if (error == 0)
		f->priv = r;
	else if (r != NULL)
		kmap_free(r);
	return error;
}

static void
prevdev_release(struct file *f)
{
	mutex_lock(&prev_lock);
	readers--;
	mutex_unlock(&prev_lock);
	kmap_free(f->priv);
}

static int64_t
prevdev_read(struct file *f, struct uio *u)
{
	struct prev_reader *r = f->priv;
	size_t start = u->resid, before, n;
	int error = 0;

	mutex_lock(&prev_lock); /* two threads may read one file */
	while (u->resid > 0 && error == 0 && !proc_signal_pending()) {
		if (r->at == r->n) {
			r->at = 0;
			r->n = ktr_image_stream(&r->image, r->piece, READER_PIECE);
		}
		if (r->n == 0)
			break;
		before = u->resid;
		n = r->n - r->at < before ? r->n - r->at : before;
		error = uio_put(u, r->piece + r->at, n);
		r->at += before - u->resid; /* also if a page is missing */
	}
	mutex_unlock(&prev_lock);
	if (start != u->resid)
		return (int64_t)(start - u->resid);
	return error < 0 ? error : proc_signal_pending() ? -EINTR : 0;
}

SYSCTL_U64(debug_ktr_prev_events, "debug.ktr.prev.events", 0, &prev_sound,
	   "events of the boot before in /dev/ktr.prev");
SYSCTL_U64(debug_ktr_prev_corrupt, "debug.ktr.prev.corrupt", 0, &prev_corrupt,
	   "... and entries of it that the reset damaged");

static void
boot_get(const struct sysctl *s, struct sbuf *out)
{
	mutex_lock(&prev_lock);
	for (unsigned i = 0; prev != NULL && i < sizeof(prev_id); i++)
		sbuf_printf(out, "%02x", prev_id[i]);
	mutex_unlock(&prev_lock);
}

SYSCTL_TEXT(debug_ktr_prev_boot, "debug.ktr.prev.boot_id", 0, boot_get, NULL,
	    "which boot it was, as in its stream's header; empty: none");

static void
prev_build_get(const struct sysctl *s, struct sbuf *out)
{
	mutex_lock(&prev_lock);
	sbuf_puts(out, prev != NULL ? prev_build : "");
	mutex_unlock(&prev_lock);
}

SYSCTL_TEXT(debug_ktr_prev_build, "debug.ktr.prev.build", 0, prev_build_get, NULL,
	    "the kernel that it was of; empty: none");

/* prev_lock held. */
static void
prev_forget(void)
{
	uint64_t start = prev->phys, size = prev->size;

	memset(prev, 0, KTR_PERSIST_HEAD);
	prev = NULL;
	prev_sound = prev_corrupt = 0;
	if (prev_own)
		page_add(start + PAGE_SIZE, start + size); /* but for the header's page */
}

static int
clear_set(int64_t clear, char *err, size_t errlen)
{
	int error = 0;

	mutex_lock(&prev_lock);
	if (clear == 1 && readers > 0) {
		snprintf(err, errlen, "/dev/ktr.prev is open %u times; expected it closed",
			 readers);
		error = -EBUSY;
	} else if (clear == 1 && prev != NULL) {
		prev_forget();
	}
	mutex_unlock(&prev_lock);
	return error;
}

SYSCTL_INT_CALL(debug_ktr_prev_clear, "debug.ktr.prev.clear", SYSCTL_WR, NULL, clear_set, 0, 1,
		"1: forget the log of the boot before, and use its memory");

int
trace_prev_init(void)
{
	static const struct dev_ops ops = {
	    .open = prevdev_open,
	    .release = prevdev_release,
	    .read = prevdev_read,
	    .mode = 0400,
	    .root_only = true,
	};
	struct prev_reader *r;
	char err[128];
	int error = 0;

	prev = trace_persist_prev(&prev_own);
	if (prev == NULL)
		return 0;
	r = kmap_alloc(sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	if (prev_open_image(r, err, sizeof(err)) == 0) {
		ktr_image_count(&r->image, &prev_sound, &prev_corrupt);
		memcpy(prev_id, r->image.info.boot_id, sizeof(prev_id));
		strlcpy(prev_build, r->image.info.build, sizeof(prev_build));
		printk("ktr: %lu events of the boot before in /dev/ktr.prev, %lu damaged\n",
		       prev_sound, prev_corrupt);
		for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
			if (r->image.cpu[cpu].fault[0] != '\0')
				pr_warn("ktr: the boot before's ring of cpu %u was damaged: %s\n",
					cpu, r->image.cpu[cpu].fault);
	} else {
		pr_warn("ktr: the log of the boot before is lost: %s\n", err);
		prev_forget();
	}
	if (prev != NULL)
		error = devfs_register("ktr.prev", &ops, NULL);
	kmap_free(r);
	return error;
}
