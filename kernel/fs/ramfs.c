/*
 * ramfs.c - regular files, in pages.
 *
 * vn->data is a growing array of page pointers. NULL is a hole, which reads as zeroes. In the last
 * page, the bytes after the size are zero, so that growing the file need not clear them.
 *
 * Locking: vn->lock guards everything. It is held for a whole read or write, which makes each
 * atomic, also while bytes move to and from user memory: a page fault there needs no file.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/signal.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc.h"
#include "ktr/ktr.h"

#define RAMFS_SIZE_MAX  (1ull << 30)
#define RAMFS_SIG_PAGES 16 /* pages moved before the next check for a signal */

struct ramfs_file {
	size_t count; /* elements of pages[] */
	void *pages[];
};

static void
ramfs_free_pages(struct uidinfo *ui, struct ramfs_file *rf)
{
	for (size_t i = 0; rf != NULL && i < rf->count; i++) {
		if (rf->pages[i] == NULL)
			continue;
		page_free(rf->pages[i], 0);
		uidinfo_release(ui, UIDINFO_DATA, 1);
	}
	uidinfo_free(ui, rf);
}

static void *
ramfs_page(const struct vnode *vn, uint64_t index)
{
	const struct ramfs_file *rf = vn->data;

	return rf != NULL && index < rf->count ? rf->pages[index] : NULL;
}

/* Grows the array to hold a pointer for page `index`. */
static int
ramfs_reserve(struct vnode *vn, uint64_t index)
{
	struct ramfs_file *old = vn->data, *rf;
	size_t count = old != NULL ? old->count : 4;

	if (old != NULL && index < old->count)
		return 0;
	while (count <= index)
		count *= 2;
	rf = uidinfo_alloc(vn->ui, sizeof(*rf) + count * sizeof(rf->pages[0]));
	if (rf == NULL)
		return -ENOSPC;
	rf->count = count;
	if (old != NULL)
		memcpy(rf->pages, old->pages, old->count * sizeof(rf->pages[0]));
	uidinfo_free(vn->ui, old);
	vn->data = rf;
	CTR3(KTR_VOP, "ramfs grow: ino %lu size %lu pages %lu", vn->ino, vn->size, count);
	return 0;
}

/* Finds or allocates the page to write to. */
static int
ramfs_get_page(struct vnode *vn, uint64_t index, char **page)
{
	struct ramfs_file *rf;
	int error;

	*page = ramfs_page(vn, index);
	if (*page != NULL)
		return 0;
	/* A file stays until it is removed. So keep some memory free, even from user 0. */
	if (uidinfo_memory_short())
		return -ENOSPC;
	error = ramfs_reserve(vn, index);
	if (error < 0)
		return error;
	if (!uidinfo_charge(vn->ui, UIDINFO_DATA, 1))
		return -ENOSPC;
	*page = page_alloc_zero();
	if (*page == NULL) {
		uidinfo_release(vn->ui, UIDINFO_DATA, 1);
		return -ENOSPC;
	}
	rf = vn->data;
	rf->pages[index] = *page;
	return 0;
}

/* Is a signal pending? Checks once in RAMFS_SIG_PAGES pages. */
static bool
ramfs_interrupted(unsigned pages)
{
	return pages % RAMFS_SIG_PAGES == 0 && pages > 0 && proc_signal_pending();
}

static int64_t
ramfs_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	size_t start = u->resid;
	int error = 0;

	mutex_lock(&vn->lock);
	for (unsigned n = 0; u->resid > 0 && *off < vn->size && error == 0; n++) {
		uint64_t in_page = *off % PAGE_SIZE, left = vn->size - *off;
		size_t piece = PAGE_SIZE - in_page, before = u->resid;
		const char *page = ramfs_page(vn, *off / PAGE_SIZE);

		if (ramfs_interrupted(n)) {
			error = -EINTR;
			break;
		}
		piece = piece < left ? piece : left;
		error = page != NULL ? uio_put(u, page + in_page, piece) : uio_put_zero(u, piece);
		*off += before - u->resid;
	}
	mutex_unlock(&vn->lock);
	return start != u->resid ? (int64_t)(start - u->resid) : error;
}

/* Clears bytes after the size, which a failed copy may have left: they must read as zeroes. */
static void
ramfs_clear_tail(const struct vnode *vn, char *page, uint64_t index)
{
	uint64_t start = index * PAGE_SIZE, from = vn->size > start ? vn->size - start : 0;

	if (from < PAGE_SIZE)
		memset(page + from, 0, PAGE_SIZE - from);
}

/* Writes up to the end of one page at *off. vn->lock held. */
static int
ramfs_write_page(struct vnode *vn, struct uio *u, uint64_t *off)
{
	uint64_t index = *off / PAGE_SIZE, in_page = *off % PAGE_SIZE;
	size_t before = u->resid;
	char *page;
	int error = ramfs_get_page(vn, index, &page);

	if (error < 0)
		return error;
	error = uio_take(u, page + in_page, PAGE_SIZE - in_page);
	*off += before - u->resid;
	if (before != u->resid && *off > vn->size)
		vn->size = *off;
	if (error < 0)
		ramfs_clear_tail(vn, page, index);
	return error;
}

static int64_t
ramfs_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	uint64_t limit = proc_limit(RLIMIT_FSIZE);
	size_t start;
	int error = 0;

	mutex_lock(&vn->lock);
	if (f != NULL && (f->flags & O_APPEND))
		*off = vn->size;
	if (*off >= RAMFS_SIZE_MAX || u->resid > RAMFS_SIZE_MAX - *off) {
		error = -EFBIG;
	} else if (u->resid > 0 && *off >= limit) {
		error = -EFBIG;
		proc_signal_self(SIGXFSZ);
	} else if (u->resid > limit - *off) {
		u->resid = limit - *off; /* the part that the limit allows */
	}
	start = u->resid;
	for (unsigned n = 0; u->resid > 0 && error == 0; n++)
		error = ramfs_interrupted(n) ? -EINTR : ramfs_write_page(vn, u, off);
	vn->mtime_ns = clock_ns();
	mutex_unlock(&vn->lock);
	return start != u->resid ? (int64_t)(start - u->resid) : error;
}

static int
ramfs_truncate(struct vnode *vn, uint64_t size)
{
	struct ramfs_file *rf;
	char *last;

	if (size > RAMFS_SIZE_MAX || size > proc_limit(RLIMIT_FSIZE))
		return -EFBIG;
	mutex_lock(&vn->lock);
	CTR3(KTR_VOP, "ramfs truncate: ino %lu size %lu to %lu", vn->ino, vn->size, size);
	rf = vn->data;
	for (size_t i = (size + PAGE_SIZE - 1) / PAGE_SIZE; rf != NULL && i < rf->count; i++) {
		if (rf->pages[i] == NULL)
			continue;
		page_free(rf->pages[i], 0);
		uidinfo_release(vn->ui, UIDINFO_DATA, 1);
		rf->pages[i] = NULL;
	}
	if (size == 0) {
		uidinfo_free(vn->ui, rf);
		vn->data = NULL;
	}
	vn->size = size;
	last = ramfs_page(vn, size / PAGE_SIZE);
	if (last != NULL)
		ramfs_clear_tail(vn, last, size / PAGE_SIZE);
	vn->mtime_ns = clock_ns();
	mutex_unlock(&vn->lock);
	return 0;
}

static void
ramfs_destroy(struct vnode *vn)
{
	CTR2(KTR_VOP, "ramfs free: ino %lu size %lu", vn->ino, vn->size);
	ramfs_free_pages(vn->ui, vn->data);
}

const struct vnode_ops ramfs_file_ops = {
    .read = ramfs_read,
    .write = ramfs_write,
    .truncate = ramfs_truncate,
    .destroy = ramfs_destroy,
};
