/*
 * file.c - open files: opening, reading, writing, closing; and who writes or executes a file.
 * Invariant: no lock of an open pipe, terminal or socket is held while its user waits for data or
 * room. Otherwise a second user would wait for the lock, and no signal could interrupt it. Files
 * and disks are read and written with locks held. Locking: file.h.
 */
#include "kernel/fs/file.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/statfs.h"
#include "kernel/fs/cache/pagecache.h"
#include "kernel/fs/fsnotify.h"
#include "kernel/fs/vfs.h"
#include "kernel/fs/wait/epoll.h"
#include "kernel/fs/wait/fasync.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(sysinfo);
SDT_PROBE_DEFINE_TEXT(sysinfo, , , readch, "readch", ": bytes %lu", 1, "uint64_t");
SDT_PROBE_DEFINE_TEXT(sysinfo, , , writech, "writech", ": bytes %lu", 1, "uint64_t");
SDT_PROVIDER_DECLARE(vfs);
SDT_PROBE_DEFINE_TEXT(vfs, , , read, "read", ": vnode %p uio %p result %ld", 3, "struct vnode *",
		      "struct uio *", "ssize_t");
SDT_PROBE_DEFINE_TEXT(vfs, , , write, "write", ": vnode %p uio %p result %ld", 3, "struct vnode *",
		      "struct uio *", "ssize_t");

#define READAHEAD_PAGES 256 /* at most, by one call: the cache is also others' */

#define SEEKABLE (1u << (S_IFREG >> 12) | 1u << (S_IFDIR >> 12) | 1u << (S_IFBLK >> 12))

/* Has the file an offset, which its reads and writes move? */
static bool
is_seekable(const struct file *f)
{
	return (SEEKABLE >> (f->vn->mode >> 12 & 15) & 1) && !f->vn->stream;
}

/* May the user open vn with these flags? */
static int
check_open(const struct vnode *vn, int flags)
{
	int how = flags & O_ACCMODE;
	unsigned want = how == O_RDONLY   ? VNODE_READ
			: how == O_WRONLY ? VNODE_WRITE
					  : VNODE_READ | VNODE_WRITE;

	if (flags & O_TRUNC)
		want |= VNODE_WRITE;
	if (S_ISLNK(vn->mode))
		return -ELOOP; /* O_NOFOLLOW */
	if ((vn->mode & S_IFMT) == 0 || S_ISSOCK(vn->mode))
		return -ENXIO; /* what has one file only, by /proc/PID/fd; or a socket's name */
	if (S_ISDIR(vn->mode) && (want & VNODE_WRITE))
		return -EISDIR;
	if ((flags & O_DIRECTORY) && !S_ISDIR(vn->mode))
		return -ENOTDIR;
	if ((S_ISCHR(vn->mode) || S_ISBLK(vn->mode)) && (vfs_mount_flags(vn) & MS_NODEV))
		return -EACCES;
	if ((flags & O_NOATIME) && !vnode_is_own(vn))
		return -EPERM;
	return vnode_access(vn, want);
}

/* A file without a name is made in a directory, to be written to. */
static bool
check_unnamed(int flags)
{
	return !(flags & O_UNNAMED) ||
	       ((flags & (O_TMPFILE | O_CREAT)) == O_TMPFILE && (flags & O_ACCMODE) != O_RDONLY);
}

static void
file_free(struct file *f)
{
	struct uidinfo *ui = f->ui;

	uidinfo_release(ui, UIDINFO_FILE, 1);
	uidinfo_free(ui, f);
}

/* An open file, of no vnode yet. NULL: *err is -ENFILE or -ENOMEM. */
static struct file *
file_alloc(int flags, int *err)
{
	struct uidinfo *ui = proc_uidinfo();
	struct file *f;

	*err = -ENFILE;
	if (!uidinfo_charge(ui, UIDINFO_FILE, 1))
		return NULL;
	*err = -ENOMEM;
	f = uidinfo_alloc(ui, sizeof(*f));
	if (f == NULL) {
		uidinfo_release(ui, UIDINFO_FILE, 1);
		return NULL;
	}
	f->refs = 1;
	f->flags =
	    flags & (O_ACCMODE | O_APPEND | O_NONBLOCK | O_NOCTTY | O_TRUNC | O_SYNC | O_PATH);
	f->ui = ui;
	list_init(&f->watches);
	mutex_init(&f->lock, "file");
	return f;
}

/* Moves vn->writers by `step`, away from 0. -ETXTBSY: it is on the other side. */
static int
use_text(struct vnode *vn, int32_t step)
{
	int32_t n = __atomic_load_n(&vn->writers, __ATOMIC_RELAXED);

	do
		if (step > 0 ? n < 0 : n > 0)
			return -ETXTBSY;
	while (!__atomic_compare_exchange_n(&vn->writers, &n, n + step, true, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED));
	return 0;
}

int
vnode_write_begin(struct vnode *vn)
{
	int error = use_text(vn, 1);

	/* pairs with that in vfs_stop_writing(): one of the two sees what the other has done */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return error;
}

void
vnode_write_end(struct vnode *vn)
{
	__atomic_fetch_sub(&vn->writers, 1, __ATOMIC_ACQ_REL);
}

int
vnode_execute_begin(struct vnode *vn)
{
	return use_text(vn, -1);
}

void
vnode_execute_end(struct vnode *vn)
{
	__atomic_fetch_add(&vn->writers, 1, __ATOMIC_ACQ_REL);
}

/* Makes f an open file of that vnode. 0; or the driver's error. */
static int
vfs_open(struct vnode *vn, struct file *f, int flags)
{
	int error = 0;

	f->vn = vn;
	f->priv = vn->data;
	f->io_heard = writeback_sample(vn);
	if (S_ISREG(vn->mode) && (flags & O_ACCMODE) != O_RDONLY) {
		error = vnode_write_begin(vn);
		if (error == 0 && vnode_read_only(vn)) { /* it became so just now */
			vnode_write_end(vn);
			error = -EROFS;
		}
		f->writes = error == 0;
	}
	if (error == 0 && vn->ops->open != NULL)
		error = vn->ops->open(f);
	f->flags &= ~(O_NOCTTY | O_TRUNC);
	if (error < 0 && f->writes)
		vnode_write_end(vn);
	return error;
}

/* O_PATH: f is a place in the tree of names, whatever is there; nothing happens to that. */
static int
open_place(struct vnode *vn, struct file *f, int flags)
{
	if ((flags & O_DIRECTORY) && !S_ISDIR(vn->mode))
		return -ENOTDIR;
	f->vn = vn;
	f->priv = vn->data;
	return 0;
}

int
file_open_vnode(struct vnode *vn, int flags, struct file **out)
{
	int error;
	struct file *f = file_alloc(flags, &error);

	if (f == NULL)
		return error;
	error = flags & O_PATH ? open_place(vn, f, flags) : vfs_open(vn, f, flags);
	if (error < 0)
		file_free(f);
	else
		*out = f;
	return error;
}

struct file *
file_open_unnamed(const struct vnode_ops *ops, size_t size, int flags, int *err)
{
	struct vnode *vn = vnode_alloc(0600, ops, NULL);
	struct file *f;

	*err = -ENOMEM;
	if (vn == NULL)
		return NULL;
	vn->data = uidinfo_alloc(vn->ui, size);
	if (vn->data != NULL)
		*err = file_open_vnode(vn, O_RDWR | flags, &f);
	if (*err == 0)
		return f;
	vnode_unref(vn);
	return NULL;
}

void
file_unnamed_destroy(struct vnode *vn)
{
	uidinfo_free(vn->ui, vn->data);
}

/* Finds or makes the vnode to open. If *made, it is new: then its mode does not limit this open. */
static struct vnode *
open_vnode(struct vnode *cwd, const char *path, int flags, uint32_t mode, bool *made, int *err)
{
	struct vnode *vn;

	mode = S_IFREG | (mode & 07777 & ~proc_umask());
	*made = (flags & O_UNNAMED) != 0;
	if (*made)
		return vnode_create_unnamed(cwd, path, flags, mode, err);
	if (!(flags & O_CREAT))
		return flags & O_NOFOLLOW ? vnode_lookup_link(cwd, path, err)
					  : vnode_lookup(cwd, path, err);
	if (!(flags & O_EXCL))
		return vnode_lookup_or_create(cwd, path, mode, !(flags & O_NOFOLLOW), made, err);
	vn = vnode_create(cwd, path, mode, err);
	*made = vn != NULL;
	return vn;
}

int
file_open_at(struct vnode *cwd, const char *path, int flags, uint32_t mode, struct file **out)
{
	bool made, cut;
	int error;
	struct file *f;
	struct vnode *vn;

	if (flags & O_PATH)
		flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW;
	else if ((flags & O_ACCMODE) == O_ACCMODE || !check_unnamed(flags))
		return -EINVAL;
	f = file_alloc(flags, &error); /* first: no file is made in vain */
	vn = f != NULL ? open_vnode(cwd, path, flags, mode, &made, &error) : NULL;
	if (vn == NULL) {
		if (f != NULL)
			file_free(f);
		return error;
	}
	error = made || (flags & O_PATH) ? 0 : check_open(vn, flags);
	if (error == 0 && (flags & O_CREAT) && S_ISDIR(vn->mode))
		error = -EISDIR;
	if (error == 0 && (flags & O_DIRECT))
		error = -EINVAL; /* all files are read and written through the cache */
	cut = error == 0 && !made && (flags & O_TRUNC) && vn->ops->truncate != NULL;
	if (cut)
		error = vnode_truncate(vn, 0);
	if (error == 0)
		error = flags & O_PATH ? open_place(vn, f, flags) : vfs_open(vn, f, flags);
	CTR3(KTR_VFS, "open: path %s flags %#x error %d", vfs_trace_name(path), flags, -error);
	if (error < 0) {
		file_free(f);
		vnode_unref(vn);
	} else {
		*out = f;
		if (!(flags & O_PATH))
			fsnotify(vn, IN_OPEN);
		if (cut)
			fsnotify(vn, IN_MODIFY);
	}
	return error;
}

int
file_open(const char *path, int flags, uint32_t mode, struct file **out)
{
	return file_open_at(proc_cwd(), path, flags, mode, out);
}

struct file *
file_ref(struct file *f)
{
	__atomic_fetch_add(&f->refs, 1, __ATOMIC_RELAXED);
	return f;
}

void
file_unref(struct file *f)
{
	if (f == NULL || __atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	CTR2(KTR_VFS, "release: ino %lu flags %#x", f->vn->ino, f->flags);
	if (!(f->flags & O_PATH))
		fsnotify(f->vn,
			 (f->flags & O_ACCMODE) != O_RDONLY ? IN_CLOSE_WRITE : IN_CLOSE_NOWRITE);
	if (f->flock != 0)
		flock_end(f);
	if (f->vn->locks != NULL && !(f->flags & O_PATH))
		record_locks_end(f->vn, f);
	/* `watched`, and not `watches`: a set that ends may be about to take it out of its list. */
	if (f->watched)
		epoll_forget(f);
	if (f->async != NULL)
		fasync_end(f);
	if (f->vn->ops->release != NULL && !(f->flags & O_PATH))
		f->vn->ops->release(f);
	if (f->writes)
		vnode_write_end(f->vn);
	vnode_unref(f->vn);
	file_free(f);
}

/* Reads or writes at *off; NULL: at the open file's offset, if it has one. */
static int64_t
file_move_bytes(struct file *f, struct uio *u, uint64_t *off,
		int64_t (*move)(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off))
{
	uint64_t none = 0;
	int64_t n;

	if (off != NULL)
		return move(f->vn, f, u, off);
	if (!is_seekable(f))
		return move(f->vn, f, u, &none);
	mutex_lock(&f->lock);
	n = move(f->vn, f, u, &f->off);
	mutex_unlock(&f->lock);
	return n;
}

static int64_t
vfs_read(struct file *f, struct uio *u, uint64_t *off)
{
	struct vnode *vn = f->vn;
	int64_t n;

	if (off != NULL && !is_seekable(f) && !f->vn->any_off)
		return -ESPIPE;
	if ((f->flags & O_ACCMODE) == O_WRONLY)
		return -EBADF;
	if (vn->ops->read == NULL)
		return S_ISDIR(vn->mode) ? -EISDIR : -EINVAL;
	n = file_move_bytes(f, u, off, vn->ops->read);
	if (fsnotify_active() && n > 0)
		fsnotify_parent(vn, IN_ACCESS);
	SDT_FIRE(sysinfo, , , readch, if (n >= 0) SDT_ARGS1(n));
	SDT_CTR3(vfs, , , read, SDT_ARGS3(vn, u, n), KTR_VOP,
		 "vop read: ino %lu left %lu result %ld", vn->ino, u->resid, n);
	return n;
}

static int64_t
vfs_write(struct file *f, struct uio *u, uint64_t *off)
{
	struct vnode *vn = f->vn;
	int64_t n;

	if (off != NULL && !is_seekable(f) && !f->vn->any_off)
		return -ESPIPE;
	if ((f->flags & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	if (vn->ops->write == NULL)
		return -EINVAL;
	n = file_move_bytes(f, u, off, vn->ops->write);
	if (fsnotify_active() && n > 0 && !u->untold)
		fsnotify_parent(vn, IN_MODIFY);
	SDT_FIRE(sysinfo, , , writech, if (n >= 0) SDT_ARGS1(n));
	SDT_CTR3(vfs, , , write, SDT_ARGS3(vn, u, n), KTR_VOP,
		 "vop write: ino %lu left %lu result %ld", vn->ino, u->resid, n);
	return n;
}

int64_t
file_read_uio(struct file *f, struct uio *u)
{
	return vfs_read(f, u, NULL);
}

int64_t
file_write_uio(struct file *f, struct uio *u)
{
	return vfs_write(f, u, NULL);
}

int64_t
file_read_at(struct file *f, struct uio *u, uint64_t off)
{
	return vfs_read(f, u, &off);
}

int64_t
file_write_at(struct file *f, struct uio *u, uint64_t off)
{
	return vfs_write(f, u, &off);
}

int64_t
file_read(struct file *f, void *buf, size_t len)
{
	struct uio_vec v;
	struct uio u;

	uio_init(&u, &v, UIO_KERNEL, buf, len);
	return file_read_uio(f, &u);
}

int64_t
file_write(struct file *f, const void *buf, size_t len)
{
	struct uio_vec v;
	struct uio u;

	uio_init(&u, &v, UIO_KERNEL, buf, len);
	return file_write_uio(f, &u);
}

void
file_read_ahead(struct file *f, uint64_t off, uint64_t size)
{
	struct vnode *vn = f->vn;
	uint64_t in_page = off % PAGE_SIZE, index = off / PAGE_SIZE, pages = READAHEAD_PAGES;
	int error = vn->ops->read == filemap_read ? 0 : -EINVAL;
	void *page;

	if (size != 0 && size <= pages * PAGE_SIZE - in_page)
		pages = (in_page + size + PAGE_SIZE - 1) / PAGE_SIZE;
	for (uint64_t end = index + pages; index < end && error == 0; index++) {
		mutex_lock(&vn->lock); /* for each page: nobody waits long */
		error = index >= page_round_up(vn->size) / PAGE_SIZE || proc_signal_kills()
			    ? -EINTR
			    : pagecache_get(vn, index, ALL_SECTORS, &page);
		mutex_unlock(&vn->lock);
		if (error == 0)
			page_unref(page);
	}
}

/* SEEK_DATA, SEEK_HOLE: a file may say that it is all data, up to its end, where a hole is. */
static int64_t
seek_data(struct vnode *vn, int64_t off, bool hole)
{
	int64_t size = (int64_t)vnode_size(vn);
	uint64_t to = hole ? UINT64_MAX : (uint64_t)off;

	if (off < 0 || off >= size)
		return -ENXIO;
	if (vn->ops->seek != NULL)
		to = vn->ops->seek(vn, (uint64_t)off, hole);
	if (to < (uint64_t)size)
		return (int64_t)to;
	return hole ? size : -ENXIO;
}

int64_t
file_seek(struct file *f, int64_t off, int whence)
{
	int64_t to = 0, base = 0;

	if (f->vn->any_off)
		return whence < SEEK_SET || whence > SEEK_HOLE ? -EINVAL : 0;
	if (!is_seekable(f))
		return -ESPIPE;
	mutex_lock(&f->lock);
	if (whence == SEEK_CUR)
		base = (int64_t)f->off;
	else if (whence == SEEK_END)
		base = (int64_t)vnode_size(f->vn);
	if (whence == SEEK_DATA || whence == SEEK_HOLE)
		to = seek_data(f->vn, off, whence == SEEK_HOLE);
	else if (whence < SEEK_SET || whence > SEEK_HOLE ||
		 __builtin_add_overflow(base, off, &to) || to < 0)
		to = -EINVAL;
	if (to >= 0)
		f->off = (uint64_t)to;
	mutex_unlock(&f->lock);
	return to;
}
