/*
 * ramfs.c - regular files, in pages.
 *
 * vn->data is a growing array of page pointers. NULL is a hole, which reads as zeroes. In the last
 * page, the bytes after the size may be anything: whatever makes the file larger clears them first.
 *
 * Programs may map the pages: each has a count of references, one of which is the file's.
 *
 * Locking: vn->lock guards everything. It is held for a whole read or write, which makes each
 * atomic, also while bytes move to and from user memory. A page fault there may need a page of a
 * file, even of this one: pages_lock, a spin lock, guards the array and the pointers in it. Pages
 * are taken away with both locks held.
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
#include "kernel/proc/task.h"
#include "kernel/vm/vm.h"
#include "ktr/ktr.h"

#define RAMFS_SIZE_MAX  (1ull << 30)
#define RAMFS_SIG_PAGES 16 /* pages moved before the next check for a signal */

static struct spinlock pages_lock = SPINLOCK_INIT("ramfs");

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
		page_unref(rf->pages[i]);
		uidinfo_release(ui, UIDINFO_DATA, 1);
	}
	uidinfo_free(ui, rf);
}

/* pages_lock held. */
static void **
ramfs_slot(const struct vnode *vn, uint64_t index)
{
	struct ramfs_file *rf = vn->data;

	return rf != NULL && index < rf->count ? &rf->pages[index] : NULL;
}

/* The page; NULL: there is none. ref: with a reference. */
static void *
ramfs_page(const struct vnode *vn, uint64_t index, bool ref)
{
	void **slot, *page;

	spin_lock(&pages_lock);
	slot = ramfs_slot(vn, index);
	page = slot != NULL ? *slot : NULL;
	if (page != NULL && ref)
		page_ref(page);
	spin_unlock(&pages_lock);
	return page;
}

/* Grows the array to hold a pointer for page `index`. */
static int
ramfs_reserve(struct vnode *vn, uint64_t index)
{
	struct ramfs_file *old, *rf;
	size_t count = 4;

	while (count <= index)
		count *= 2;
	spin_lock(&pages_lock);
	old = ramfs_slot(vn, index) != NULL ? vn->data : NULL;
	spin_unlock(&pages_lock);
	if (old != NULL)
		return 0;
	rf = uidinfo_alloc(vn->ui, sizeof(*rf) + count * sizeof(rf->pages[0]));
	if (rf == NULL)
		return -ENOSPC;
	rf->count = count;
	spin_lock(&pages_lock);
	old = vn->data;
	if (ramfs_slot(vn, index) != NULL) {
		old = rf; /* a page fault was faster */
	} else {
		if (old != NULL)
			memcpy(rf->pages, old->pages, old->count * sizeof(rf->pages[0]));
		vn->data = rf;
	}
	spin_unlock(&pages_lock);
	uidinfo_free(vn->ui, old);
	CTR3(KTR_VOP, "ramfs grow: ino %lu size %lu pages %lu", vn->ino, vn->size, count);
	return 0;
}

/* Finds or allocates a page. */
static int
ramfs_get_page(struct vnode *vn, uint64_t index, bool ref, char **page)
{
	void **slot, *new;
	int error;

	*page = ramfs_page(vn, index, ref);
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
	new = page_alloc_zero();
	if (new != NULL) {
		spin_lock(&pages_lock);
		slot = ramfs_slot(vn, index); /* NULL: the file was cut off meanwhile */
		if (slot != NULL && *slot == NULL) {
			*slot = new;
			new = NULL;
		}
		*page = slot != NULL ? *slot : NULL;
		if (*page != NULL && ref)
			page_ref(*page);
		spin_unlock(&pages_lock);
		if (new == NULL)
			return 0;
		page_free(new, 0);
	}
	uidinfo_release(vn->ui, UIDINFO_DATA, 1);
	return *page != NULL ? 0 : -ENOSPC;
}

/* For programs that map the file. */
static void *
ramfs_map_page(struct vnode *vn, uint64_t index, bool make, int *err)
{
	uint64_t size = __atomic_load_n(&vn->size, __ATOMIC_RELAXED);
	char *page;

	*err = index >= (size + PAGE_SIZE - 1) / PAGE_SIZE ? -EFAULT : 0;
	if (*err != 0)
		return NULL;
	if (!make)
		return ramfs_page(vn, index, true);
	*err = ramfs_get_page(vn, index, true, &page);
	return page;
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
		const char *page = ramfs_page(vn, *off / PAGE_SIZE, false);

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

/*
 * Clears bytes after the size, which a failed copy, or a program that maps the page, may have left:
 * they must read as zeroes when the file grows. vn->lock held.
 */
static void
ramfs_clear_tail(const struct vnode *vn)
{
	uint64_t from = vn->size % PAGE_SIZE;
	char *page = from != 0 ? ramfs_page(vn, vn->size / PAGE_SIZE, false) : NULL;

	if (page != NULL)
		memset(page + from, 0, PAGE_SIZE - from);
}

/* Writes up to the end of one page at *off. vn->lock held. */
static int
ramfs_write_page(struct vnode *vn, struct uio *u, uint64_t *off)
{
	uint64_t index = *off / PAGE_SIZE, in_page = *off % PAGE_SIZE;
	size_t before = u->resid;
	char *page;
	int error = ramfs_get_page(vn, index, false, &page);

	if (error < 0)
		return error;
	error = uio_take(u, page + in_page, PAGE_SIZE - in_page);
	*off += before - u->resid;
	if (before != u->resid && *off > vn->size)
		vn->size = *off;
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
	if (error == 0 && *off + start > vn->size)
		ramfs_clear_tail(vn);
	for (unsigned n = 0; u->resid > 0 && error == 0; n++)
		error = ramfs_interrupted(n) ? -EINTR : ramfs_write_page(vn, u, off);
	vn->mtime_ns = clock_real_now_ns();
	mutex_unlock(&vn->lock);
	return start != u->resid ? (int64_t)(start - u->resid) : error;
}

/* Takes the first page from *index on out of the file, and moves *index after it. NULL: none. */
static void *
ramfs_take(struct vnode *vn, uint64_t *index)
{
	void **slot, *page = NULL;

	spin_lock(&pages_lock);
	while (page == NULL && (slot = ramfs_slot(vn, *index)) != NULL) {
		page = *slot;
		*slot = NULL;
		(*index)++;
	}
	spin_unlock(&pages_lock);
	return page;
}

static int
ramfs_truncate(struct vnode *vn, uint64_t size)
{
	struct ramfs_file *rf;
	uint64_t was;
	void *gone;

	if (size > RAMFS_SIZE_MAX || size > proc_limit(RLIMIT_FSIZE))
		return -EFBIG;
	mutex_lock(&vn->lock);
	was = vn->size;
	CTR3(KTR_VOP, "ramfs truncate: ino %lu size %lu to %lu", vn->ino, vn->size, size);
	ramfs_clear_tail(vn);
	__atomic_store_n(&vn->size, size, __ATOMIC_RELAXED); /* faults make no pages after it */
	for (uint64_t i = (size + PAGE_SIZE - 1) / PAGE_SIZE;
	     (gone = ramfs_take(vn, &i)) != NULL;) {
		page_unref(gone);
		uidinfo_release(vn->ui, UIDINFO_DATA, 1);
	}
	if (size < was && __atomic_load_n(&vn->maps, __ATOMIC_RELAXED) > 0)
		vm_cut_object(vn, size);
	if (size == 0) {
		spin_lock(&pages_lock);
		rf = vn->data;
		vn->data = NULL;
		spin_unlock(&pages_lock);
		uidinfo_free(vn->ui, rf);
	}
	ramfs_clear_tail(vn);
	vn->mtime_ns = clock_real_now_ns();
	mutex_unlock(&vn->lock);
	return 0;
}

static int
ramfs_allocate(struct vnode *vn, uint64_t off, uint64_t len)
{
	uint64_t end = off + len;
	char *page;
	int error = 0;

	if (end > RAMFS_SIZE_MAX || end > proc_limit(RLIMIT_FSIZE))
		return -EFBIG;
	mutex_lock(&vn->lock);
	if (end > vn->size)
		ramfs_clear_tail(vn);
	for (uint64_t i = off / PAGE_SIZE, n = 0; i * PAGE_SIZE < end && error == 0; i++, n++)
		error =
		    ramfs_interrupted((unsigned)n) ? -EINTR : ramfs_get_page(vn, i, false, &page);
	if (error == 0 && end > vn->size)
		__atomic_store_n(&vn->size, end, __ATOMIC_RELAXED);
	vn->mtime_ns = clock_real_now_ns();
	mutex_unlock(&vn->lock);
	return error;
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
    .allocate = ramfs_allocate,
    .destroy = ramfs_destroy,
    .page = ramfs_map_page,
};
