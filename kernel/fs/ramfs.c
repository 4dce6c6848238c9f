/*
 * ramfs.c - regular files in memory.
 *
 * A page that is not there is a hole, which reads as zeroes. In the last page, the bytes after the
 * size may be anything: whatever makes the file larger clears them first.
 *
 * Programs may map the pages: each has a count of references, one of which is the file's.
 *
 * Locking: vn->lock guards everything. It is held for a whole read or write, which makes each
 * atomic, also while bytes move to and from user memory. A page fault there may need a page of a
 * file, even of this one: pages_lock (pagecache.h), a spin lock, guards the pages of all files.
 * Pages are taken away with both locks held. So ramfs_seek(), which only looks which pages are
 * there, needs no more than pages_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/cache/pagecache.h"
#include "kernel/fs/file.h"
#include "kernel/fs/memfd.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"
#include "kernel/vm/vm.h"
#include "ktr/ktr.h"

#define RAMFS_SIG_PAGES 16 /* pages moved before the next check for a signal */

/* What a page is counted for. */
static void
ramfs_uncharge(const struct vnode *vn)
{
	uidinfo_release(vn->ui, UIDINFO_DATA, 1);
	tmpfs_release(vn);
}

uint64_t
ramfs_blocks(const struct vnode *vn)
{
	uint64_t pages = __atomic_load_n(&vn->page_count, __ATOMIC_RELAXED);

	return vn->ops == &ramfs_file_ops ? pages * (PAGE_SIZE / 512) : (vn->size + 511) / 512;
}

/* Finds or allocates a page. */
static int
ramfs_get_page(struct vnode *vn, uint64_t index, bool ref, void **page)
{
	void *new;
	int error = -ENOSPC;

	*page = pagecache_find(vn, index, ref);
	if (*page != NULL)
		return 0;
	/* A file stays until it is removed. So keep some memory free, even from user 0. */
	if (uidinfo_memory_short() || !tmpfs_charge(vn))
		return -ENOSPC;
	if (!uidinfo_charge(vn->ui, UIDINFO_DATA, 1)) {
		tmpfs_release(vn);
		return -ENOSPC;
	}
	new = page_alloc_zero(PAGE_FILE);
	if (new != NULL)
		error = pagecache_insert(vn, index, new, ref, page);
	if (new != NULL && (error != 0 || *page != new))
		page_free(new, 0);
	if (error != 0 || *page != new)
		ramfs_uncharge(vn);
	return error;
}

/* For programs that map the file. */
static void *
ramfs_map_page(struct vnode *vn, uint64_t index, bool make, int *err)
{
	uint64_t size = __atomic_load_n(&vn->size, __ATOMIC_SEQ_CST);
	void *page;

	*err = index >= (size + PAGE_SIZE - 1) / PAGE_SIZE ? -EFAULT : 0;
	if (*err != 0)
		return NULL;
	if (!make)
		return pagecache_find(vn, index, true);
	*err = ramfs_get_page(vn, index, true, &page);
	if (*err == -ENOSPC && !uidinfo_memory_short()) /* it may have been, until now */
		*err = ramfs_get_page(vn, index, true, &page);
	/*
	 * If only a limit of the owner or of the file system is reached, killing a process would
	 * free nothing: so it is SIGBUS (-EFAULT). User 0 has no limit.
	 */
	if (*err == -ENOSPC)
		*err = !tmpfs_is_full(vn) && (vn->ui == &uidinfo_root || uidinfo_memory_short())
			   ? -ENOMEM
			   : -EFAULT;
	return page;
}

/* Is it time to see whether a signal has come? */
static bool
ramfs_looks(uint64_t pages)
{
	return pages % RAMFS_SIG_PAGES == 0 && pages > 0;
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
		const char *page = pagecache_find(vn, *off / PAGE_SIZE, false);

		if (ramfs_looks(n) && proc_signal_kills()) {
			error = -EINTR;
			break;
		}
		piece = piece < left ? piece : left;
		error =
		    page != NULL ? uio_put_most(u, page + in_page, piece) : uio_put_zero(u, piece);
		*off += before - u->resid;
	}
	mutex_unlock(&vn->lock);
	return start != u->resid ? (int64_t)(start - u->resid) : error;
}

/*
 * Clears the bytes after the size, which must read as zeroes when the file grows. A failed copy, or
 * a program that maps the page, may have left something there. vn->lock held.
 */
static void
ramfs_clear_tail(const struct vnode *vn)
{
	uint64_t from = vn->size % PAGE_SIZE;
	char *page = from != 0 ? pagecache_find(vn, vn->size / PAGE_SIZE, false) : NULL;

	if (page != NULL)
		memset(page + from, 0, PAGE_SIZE - from);
}

/* Frees the pages from index on. */
static void
ramfs_free_pages(struct vnode *vn, uint64_t index)
{
	void *gone;

	while ((gone = pagecache_take(vn, &index)) != NULL) {
		page_unref(gone);
		ramfs_uncharge(vn);
	}
}

/* Frees one page, if it is there. vn->lock held. */
static void
ramfs_free_page(struct vnode *vn, uint64_t index)
{
	void *gone = pagecache_find(vn, index, false) != NULL ? pagecache_take(vn, &index) : NULL;

	if (gone == NULL)
		return;
	page_unref(gone);
	ramfs_uncharge(vn);
}

/* The first page that has no byte of the file. */
static uint64_t
ramfs_end(const struct vnode *vn)
{
	return (vn->size + PAGE_SIZE - 1) / PAGE_SIZE;
}

/*
 * Writes at *off, at most to the end of that page. If the copy fails, the file has the same pages
 * after its end as before, and zeroes in them. vn->lock held.
 */
static int
ramfs_write_page(struct vnode *vn, struct uio *u, uint64_t *off)
{
	uint64_t index = *off / PAGE_SIZE, in_page = *off % PAGE_SIZE, start = *off - in_page;
	bool had = index < ramfs_end(vn) || pagecache_find(vn, index, false) != NULL;
	size_t before = u->resid;
	void *page;
	int error = ramfs_get_page(vn, index, false, &page);

	if (error < 0)
		return error;
	error = uio_take_most(u, (char *)page + in_page, PAGE_SIZE - in_page);
	*off += before - u->resid;
	if (before != u->resid && *off > vn->size)
		vn->size = *off;
	if (error == 0)
		return 0;
	if (!had && index >= ramfs_end(vn)) /* nothing was copied */
		ramfs_free_page(vn, index);
	else if (start >= vn->size)
		memset(page, 0, PAGE_SIZE);
	else if (start + PAGE_SIZE > vn->size)
		ramfs_clear_tail(vn);
	return error;
}

/* A write beyond the end, which a seal forbids, moves the whole pages before it, as on Linux. */
static void
ramfs_shorten(const struct vnode *vn, struct uio *u, uint64_t off)
{
	uint64_t whole = page_round_down(vn->size);

	if ((vn->seals & F_SEAL_GROW) && off < whole && off + u->resid > vn->size)
		u->resid = whole - off;
}

static int64_t
ramfs_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	size_t start;
	int error;

	if (u->resid == 0)
		return 0;
	mutex_lock(&vn->lock);
	if (f != NULL && (f->flags & O_APPEND))
		*off = vn->size;
	error = vnode_check_write(vn, u, *off, FILE_SIZE_MAX);
	ramfs_shorten(vn, u, *off);
	start = u->resid;
	if (error == 0)
		error = memfd_check(vn, *off + start, true);
	if (error == 0 && *off + start > vn->size)
		ramfs_clear_tail(vn);
	for (unsigned n = 0; u->resid > 0 && error == 0; n++)
		error =
		    ramfs_looks(n) && proc_signal_kills() ? -EINTR : ramfs_write_page(vn, u, off);
	mutex_unlock(&vn->lock);
	return start != u->resid ? (int64_t)(start - u->resid) : error;
}

static int
ramfs_truncate(struct vnode *vn, uint64_t size)
{
	int error = memfd_check(vn, size, false);

	if (error != 0)
		return error;
	ramfs_clear_tail(vn);
	if (size < vn->size)
		vnode_shrink(vn, size);
	else
		__atomic_store_n(&vn->size, size, __ATOMIC_SEQ_CST);
	ramfs_free_pages(vn, ramfs_end(vn));
	ramfs_clear_tail(vn);
	return 0;
}

/* Makes the pages from first to end. made: a bit for each, set if it was not there. */
static int
ramfs_make_pages(struct vnode *vn, uint64_t first, uint64_t end, uint64_t *made)
{
	uint64_t i = first;
	int error = 0;
	void *page;

	for (; i < end && error == 0; i++) {
		uint64_t n = i - first;
		bool had = pagecache_find(vn, i, false) != NULL;

		error = ramfs_looks(n) && proc_signal_pending()
			    ? -EINTR
			    : ramfs_get_page(vn, i, false, &page);
		if (error == 0 && !had)
			made[n / 64] |= 1ul << n % 64;
	}
	/* A page of the file may be mapped already: it stays. */
	while (error != 0 && i-- > first)
		if (i >= ramfs_end(vn) && (made[(i - first) / 64] >> (i - first) % 64 & 1))
			ramfs_free_page(vn, i);
	return error;
}

static int
ramfs_allocate(struct vnode *vn, uint64_t off, uint64_t len, bool keeps_size)
{
	uint64_t end = off + len, first = off / PAGE_SIZE, last = page_round_up(end) / PAGE_SIZE;
	size_t words = (last - first + 63) / 64;
	int error = end > vn->size ? memfd_check(vn, end, false) : 0;
	uint64_t *made;

	if (error != 0)
		return error;
	/* What can never be there is refused before it takes memory and time. */
	if (last - first > tmpfs_page_limit(vn))
		return -ENOSPC;
	made = uidinfo_alloc(vn->ui, words * sizeof(*made));
	if (made == NULL)
		return -ENOSPC;
	if (end > vn->size)
		ramfs_clear_tail(vn);
	error = ramfs_make_pages(vn, first, last, made);
	uidinfo_free(vn->ui, made);
	if (error == 0 && end > vn->size && !keeps_size)
		__atomic_store_n(&vn->size, end, __ATOMIC_RELAXED);
	return error;
}

/* Clears a part of a page, if it is there. */
static void
ramfs_clear(const struct vnode *vn, uint64_t from, uint64_t end)
{
	char *page = from < end ? pagecache_find(vn, from / PAGE_SIZE, false) : NULL;

	if (page != NULL)
		memset(page + from % PAGE_SIZE, 0, end - from);
}

static int
ramfs_punch(struct vnode *vn, uint64_t off, uint64_t len)
{
	/* No page is after that. */
	uint64_t end = off + len < FILE_SIZE_MAX ? off + len : FILE_SIZE_MAX;
	uint64_t first = page_round_up(off), last = page_round_down(end);
	int error = memfd_check(vn, vn->size, true);

	if (error != 0 || off >= end)
		return error;
	ramfs_clear(vn, off, first < end ? first : end);
	if (last >= first)
		ramfs_clear(vn, last, end);
	for (uint64_t i = first / PAGE_SIZE; pagecache_next(vn, &i) && i < last / PAGE_SIZE; i++)
		ramfs_free_page(vn, i);
	/* Programs that map the pages meet the hole at the next access. */
	if (first < last && __atomic_load_n(&vn->maps, __ATOMIC_SEQ_CST) > 0)
		vm_punch_object(vn, first, last);
	return 0;
}

/* A page that is not there is a hole. */
static uint64_t
ramfs_seek(struct vnode *vn, uint64_t off, bool hole)
{
	uint64_t i = off / PAGE_SIZE;

	if (!hole && !pagecache_next(vn, &i))
		return UINT64_MAX;
	while (hole && pagecache_find(vn, i, false) != NULL)
		i++;
	return off > i * PAGE_SIZE ? off : i * PAGE_SIZE;
}

static void
ramfs_destroy(struct vnode *vn)
{
	CTR2(KTR_VOP, "ramfs free: ino %lu size %lu", vn->ino, vn->size);
	ramfs_free_pages(vn, 0);
}

const struct vnode_ops ramfs_file_ops = {
    .read = ramfs_read,
    .write = ramfs_write,
    .seek = ramfs_seek,
    .truncate = ramfs_truncate,
    .allocate = ramfs_allocate,
    .punch = ramfs_punch,
    .destroy = ramfs_destroy,
    .page = ramfs_map_page,
};
