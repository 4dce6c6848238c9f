/*
 * filemap.c - files and devices whose pages are a cache of a disk: read, write, map (pagecache.h);
 * and the sizes of all files.
 *
 * Invariant: in the last page of a file, the bytes after the size are zeroes when it is read. A
 * program that maps the page may change them, also on the disk; they are zeroes again before the
 * file grows.
 *
 * Locking: vn->lock is held for a whole read, write or truncation, also while bytes move to and
 * from user memory. A page fault there takes what a file system takes to read a page, which is
 * inside of the lock of an address space (kernel/vm/vm.h), and never vn->lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/signal.h"
#include "kernel/fs/cache/pagecache.h"
#include "kernel/fs/file.h"
#include "kernel/fs/fsnotify.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"
#include "kernel/mm/page_descriptor.h"
#include "kernel/proc/task.h"
#include "kernel/vm/vm.h"
#include "ktr/ktr.h"

/* Shortens a write by the user's limit, and by the file's. */
static int
vnode_limit_write(struct uio *u, uint64_t off, uint64_t max)
{
	uint64_t limit = proc_limit(RLIMIT_FSIZE);

	if (off >= limit)
		proc_signal_self(SIGXFSZ);
	limit = limit < max ? limit : max;
	if (off >= limit)
		return -EFBIG;
	if (u->resid > limit - off)
		u->resid = limit - off; /* the part that is allowed */
	return 0;
}

/* A writer without CAP_FSETID takes the file's set-id bits: its bytes are not the owner's now. */
static void
filemap_disown(struct vnode *vn)
{
	if ((vn->mode & (S_ISUID | S_ISGID)) && !capable(CAP_FSETID))
		vnode_drop_set_ids(vn);
}

int
vnode_check_write(struct vnode *vn, struct uio *u, uint64_t off, uint64_t max)
{
	int error = vnode_read_only(vn) ? -EROFS : vnode_limit_write(u, off, max);

	if (error != 0)
		return error;
	filemap_disown(vn);
	vn->mtime_ns = vn->ctime_ns = clock_real_now_ns();
	return 0;
}

/* May a file of `was` bytes have `size`? If it becomes no larger, it may. 0 or -errno. */
static int
vnode_limit_size(uint64_t was, uint64_t size, uint64_t max)
{
	if (size > was && size > proc_limit(RLIMIT_FSIZE)) {
		proc_signal_self(SIGXFSZ);
		return -EFBIG;
	}
	return size > max ? -EFBIG : 0;
}

/* May the file have so many bytes? Takes vn->lock, and keeps it, whatever it returns. */
static int
resize_begin(struct vnode *vn, uint64_t size)
{
	mutex_lock(&vn->lock);
	return vnode_read_only(vn)
		   ? -EROFS
		   : vnode_limit_size(vn->size, size,
				      vn->size_max != 0 ? vn->size_max : FILE_SIZE_MAX);
}

static int
resize_end(struct vnode *vn, int error)
{
	if (error == 0)
		vn->mtime_ns = clock_real_now_ns();
	vnode_changed(vn, VNODE_DATA);
	return error;
}

void
vnode_shrink(struct vnode *vn, uint64_t size)
{
	__atomic_store_n(&vn->size, size, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&vn->maps, __ATOMIC_SEQ_CST) > 0)
		vm_cut_object(vn, size);
}

int
vnode_truncate(struct vnode *vn, uint64_t size)
{
	int error;
	uint64_t was;

	error = vnode_write_begin(vn);
	if (error != 0)
		return error;
	error = resize_begin(vn, size);
	was = vn->size;
	if (error == 0) {
		filemap_disown(vn);
		error = resize_end(vn, vn->ops->truncate(vn, size));
	}
	mutex_unlock(&vn->lock);
	CTR4(KTR_VOP, "truncate: ino %lu size %lu to %lu error %d", vn->ino, was, size, -error);
	vnode_write_end(vn);
	return error;
}

int
vnode_allocate(struct vnode *vn, uint64_t off, uint64_t len, uint32_t mode)
{
	bool punches = mode & FALLOC_FL_PUNCH_HOLE;
	int error = resize_begin(vn, punches ? 0 : off + len);

	if (error == 0) {
		filemap_disown(vn);
		error = resize_end(vn, punches ? vn->ops->punch(vn, off, len)
					       : vn->ops->allocate(vn, off, len, mode != 0));
	}
	mutex_unlock(&vn->lock);
	if (error == 0)
		fsnotify(vn, IN_MODIFY);
	return error;
}

int64_t
filemap_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	size_t start = u->resid;
	int error = 0;

	mutex_lock(&vn->lock);
	while (u->resid > 0 && *off < vn->size && error == 0) {
		uint64_t in_page = *off % PAGE_SIZE, left = vn->size - *off;
		size_t piece = PAGE_SIZE - in_page, before = u->resid;
		void *page;

		piece = piece < left ? piece : left;
		error = pagecache_get(vn, *off / PAGE_SIZE, ALL_SECTORS, &page);
		if (error != 0)
			break;
		error = uio_put_most(u, (char *)page + in_page, piece);
		page_unref(page);
		*off += before - u->resid;
		if (error == 0 && u->resid > 0 && proc_signal_kills())
			error = -EINTR;
	}
	mutex_unlock(&vn->lock);
	return start != u->resid ? (int64_t)(start - u->resid) : error;
}

/* Makes the bytes from the size on, to `next`, zeroes, also on the disk. vn->lock held. */
static int
clear_tail(struct vnode *vn, uint64_t next)
{
	uint64_t from = vn->size % PAGE_SIZE;
	void *page;
	int error = from != 0 ? pagecache_get(vn, vn->size / PAGE_SIZE, ALL_SECTORS, &page) : 0;

	if (error != 0)
		return error;
	if (from != 0) {
		memset((char *)page + from, 0, PAGE_SIZE - from);
		pagecache_dirty(page, pagecache_sectors(from, 1));
		page_unref(page);
	}
	return next > vn->size && vn->ops->cut != NULL ? vn->ops->cut(vn, vn->size) : 0;
}

/*
 * Makes the file have at least `size` bytes. After this the caller makes the new bytes dirty, even
 * where write_begin() did so: a pass that came in between took them for bytes after the end of the
 * file, which are not written and count as clean. vn->lock held.
 */
static void
grow_to(struct vnode *vn, uint64_t size)
{
	if (size > vn->size)
		__atomic_store_n(&vn->size, size, __ATOMIC_SEQ_CST);
}

/* Makes the file have at most `size` bytes. From then on no byte after that is written; this waits
 * for those who write a page by the old size, and have it busy. vn->lock held. */
static int
shrink_to(struct vnode *vn, uint64_t size)
{
	int error;

	vnode_shrink(vn, size);
	pagecache_drop(vn, (size + PAGE_SIZE - 1) / PAGE_SIZE);
	pagecache_settle(vn, size / PAGE_SIZE);
	error = clear_tail(vn, size);
	return vn->ops->cut(vn, size) != 0 ? -EIO : error;
}

/* Writes up to the end of one page at *off. vn->lock held. */
static int
write_page(struct vnode *vn, struct uio *u, uint64_t *off)
{
	uint64_t in_page = *off % PAGE_SIZE;
	size_t before = u->resid, piece = PAGE_SIZE - in_page, done;
	void *page;
	int error = pagecache_get(vn, *off / PAGE_SIZE, ALL_SECTORS, &page);

	if (error != 0)
		return error;
	piece = piece < before ? piece : before;
	if (vn->ops->write_begin != NULL)
		error = vn->ops->write_begin(vn, page, *off, piece);
	if (error == 0) {
		error = uio_take_most(u, (char *)page + in_page, piece);
		done = before - u->resid;
		*off += done;
		grow_to(vn, done > 0 ? *off : 0);
		/* all of the piece: a copy that failed may have changed more than it has moved */
		pagecache_dirty(page, pagecache_sectors(in_page, piece));
	}
	page_unref(page);
	return error;
}

int64_t
filemap_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	size_t start;
	int error;

	if (u->resid == 0)
		return 0;
	mutex_lock(&vn->lock);
	if (f != NULL && (f->flags & O_APPEND))
		*off = vn->size;
	error = vnode_check_write(vn, u, *off, vn->size_max);
	start = u->resid;
	if (error != 0) {
		mutex_unlock(&vn->lock);
		return error;
	}
	if (*off + start > vn->size)
		error = clear_tail(vn, *off);
	while (u->resid > 0 && error == 0) {
		error = write_page(vn, u, off);
		writeback_throttle();
		if (error == 0 && u->resid > 0 && proc_signal_kills())
			error = -EINTR;
	}
	if (error != 0 && vn->ops->cut != NULL) { /* pages were made for bytes that did not come */
		pagecache_drop(vn, (vn->size + PAGE_SIZE - 1) / PAGE_SIZE);
		vn->ops->cut(vn, vn->size);
	}
	vnode_changed(vn, VNODE_DATA);
	mutex_unlock(&vn->lock);
	if (start != u->resid)
		error = f != NULL && (u->sync || (f->flags & O_DSYNC)) ? file_sync(f) : 0;
	return error == 0 ? (int64_t)(start - u->resid) : error;
}

int
filemap_truncate(struct vnode *vn, uint64_t size)
{
	int error = size > vn->size ? clear_tail(vn, size) : 0;

	if (error == 0 && size < vn->size)
		return shrink_to(vn, size);
	grow_to(vn, error == 0 ? size : 0);
	return error;
}

int
filemap_allocate(struct vnode *vn, uint64_t off, uint64_t len, bool keeps_size)
{
	uint64_t end = off + len, was = vn->size;
	int error = keeps_size ? -EOPNOTSUPP : end > was ? clear_tail(vn, end) : 0;

	while (off < end && error == 0) {
		uint64_t piece = PAGE_SIZE - off % PAGE_SIZE;
		void *page;

		piece = piece < end - off ? piece : end - off;
		error = proc_signal_pending()
			    ? -EINTR
			    : pagecache_get(vn, off / PAGE_SIZE, ALL_SECTORS, &page);
		if (error != 0)
			break;
		error = vn->ops->write_begin(vn, page, off, piece);
		off += piece;
		grow_to(vn, error == 0 ? off : 0);
		if (error == 0) /* if not, write_begin() has made dirty what it could make */
			pagecache_dirty(page, pagecache_sectors((off - piece) % PAGE_SIZE, piece));
		page_unref(page);
		writeback_throttle();
	}
	if (error != 0 && !keeps_size)
		shrink_to(vn, was);
	return error;
}

void *
filemap_fault(struct vnode *vn, uint64_t index, bool make, int *err)
{
	uint64_t size = __atomic_load_n(&vn->size, __ATOMIC_SEQ_CST);
	void *page = NULL;

	*err = index >= (size + PAGE_SIZE - 1) / PAGE_SIZE ? -EFAULT : 0;
	if (*err == 0)
		*err = pagecache_get(vn, index, ALL_SECTORS, &page);
	if (*err != 0 && *err != -ENOMEM)
		*err = -EFAULT; /* SIGBUS */
	return *err == 0 ? page : NULL;
}
