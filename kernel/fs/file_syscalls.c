/*
 * file_syscalls.c - system calls on descriptors, with the semantics of Linux. Locking: none here.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/ioctl.h"
#include "kernel/fs/file.h"
#include "kernel/fs/fsnotify.h"
#include "kernel/fs/memfd.h"
#include "kernel/fs/pipe/pipe.h"
#include "kernel/fs/vfs.h"
#include "kernel/fs/wait/fasync.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/task.h"
#include "kernel/syscall.h"
#include "ktr/ktr.h"

static struct file *
fd_get_file(uint64_t fd)
{
	return filetable_get(proc_files(), (uint32_t)fd);
}

static void
user_uio(struct uio *u, struct uio_vec *v, uint64_t addr, uint64_t len)
{
	uio_init(u, v, UIO_USER, (const void *)addr, len < UIO_MAX ? len : UIO_MAX);
}

static int64_t
syscall_move_bytes(const uint64_t a[6], int64_t (*move)(struct file *f, struct uio *u))
{
	struct file *f = fd_get_file(a[0]);
	struct uio_vec v;
	struct uio u;

	if (f == NULL)
		return -EBADF;
	user_uio(&u, &v, a[1], a[2]);
	return move(f, &u);
}

/* Moves bytes at an offset that is given, and leaves the file's own alone. */
static int64_t
move_at(const uint64_t a[6], int64_t (*move)(struct file *f, struct uio *u, uint64_t off))
{
	struct file *f = fd_get_file(a[0]);
	struct uio_vec v;
	struct uio u;

	if (f == NULL)
		return -EBADF;
	if ((int64_t)a[3] < 0)
		return -EINVAL;
	user_uio(&u, &v, a[1], a[2]);
	return move(f, &u, a[3]);
}

int64_t
sys_pread64(const uint64_t a[6])
{
	int64_t n = move_at(a, file_read_at);

	CTR4(KTR_VFS, "pread: fd %d size %lu offset %lu result %ld", (int)a[0], a[2], a[3], n);
	return n;
}

int64_t
sys_pwrite64(const uint64_t a[6])
{
	int64_t n = move_at(a, file_write_at);

	CTR4(KTR_VFS, "pwrite: fd %d size %lu offset %lu result %ld", (int)a[0], a[2], a[3], n);
	return n;
}

int64_t
sys_read(const uint64_t a[6])
{
	int64_t n = syscall_move_bytes(a, file_read_uio);

	CTR3(KTR_VFS, "read: fd %d size %lu result %ld", (int)a[0], a[2], n);
	return n;
}

int64_t
sys_write(const uint64_t a[6])
{
	int64_t n = syscall_move_bytes(a, file_write_uio);

	CTR3(KTR_VFS, "write: fd %d size %lu result %ld", (int)a[0], a[2], n);
	return n;
}

#define RWF_PART (1 << 30) /* not Linux's: a pipe takes what it has room for */

/* Reads or writes pieces, at *off if off is not NULL. flags: RWF_… */
static int64_t
syscall_move_pieces(struct file *f, uint64_t uvec, uint64_t count, bool write, int flags,
		    const uint64_t *off)
{
	struct uio_vec few[UIO_FEW];
	struct uio u;
	int64_t n;

	if (f == NULL)
		return -EBADF;
	if ((flags & RWF_NOWAIT) && !f->vn->ops->nowait)
		return -EOPNOTSUPP;
	n = uio_import(&u, few, uvec, count);
	if (n != 0)
		return n;
	u.nowait = (flags & RWF_NOWAIT) != 0;
	u.part = (flags & RWF_PART) != 0;
	u.sync = (flags & (RWF_DSYNC | RWF_SYNC)) != 0;
	if (off != NULL)
		n = write ? file_write_at(f, &u, *off) : file_read_at(f, &u, *off);
	else
		n = write ? file_write_uio(f, &u) : file_read_uio(f, &u);
	uio_release(&u, few);
	return n;
}

int64_t
file_move_pieces(struct file *f, uint64_t uvec, uint64_t count, bool write, bool nowait)
{
	return syscall_move_pieces(f, uvec, count, write, RWF_PART | (nowait ? RWF_NOWAIT : 0),
				   NULL);
}

int64_t
sys_readv(const uint64_t a[6])
{
	int64_t n = syscall_move_pieces(fd_get_file(a[0]), a[1], a[2], false, 0, NULL);

	CTR3(KTR_VFS, "readv: fd %d pieces %lu result %ld", (int)a[0], a[2], n);
	return n;
}

int64_t
sys_writev(const uint64_t a[6])
{
	int64_t n = syscall_move_pieces(fd_get_file(a[0]), a[1], a[2], true, 0, NULL);

	CTR3(KTR_VFS, "writev: fd %d pieces %lu result %ld", (int)a[0], a[2], n);
	return n;
}

/* a[3] is the offset; of preadv2 and pwritev2, a[5] has flags, and offset -1 is the file's own. */
static int64_t
move_pieces_at(const uint64_t a[6], bool write, bool has_flags)
{
	int flags = has_flags ? (int)a[5] : 0;
	bool own = has_flags && a[3] == UINT64_MAX;

	if (!own && (int64_t)a[3] < 0)
		return -EINVAL;
	if (flags & ~(RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT))
		return -EOPNOTSUPP;
	return syscall_move_pieces(fd_get_file(a[0]), a[1], a[2], write, flags, own ? NULL : &a[3]);
}

SYSCALL_IS(preadv, move_pieces_at(a, false, false))
SYSCALL_IS(pwritev, move_pieces_at(a, true, false))
SYSCALL_IS(preadv2, move_pieces_at(a, false, true))
SYSCALL_IS(pwritev2, move_pieces_at(a, true, true))

int64_t
sys_fsync(const uint64_t a[6])
{
	struct file *f = fd_get_file(a[0]);

	if (f == NULL)
		return -EBADF;
	if (!S_ISREG(f->vn->mode) && !S_ISDIR(f->vn->mode) && !S_ISBLK(f->vn->mode))
		return -EINVAL;
	return file_sync(f);
}

SYSCALL_IS(fdatasync, sys_fsync(a))

int64_t
sys_sync(const uint64_t a[6])
{
	vfs_sync();
	return 0;
}

SYSCALL_IS(close, close_fd((uint32_t)a[0], proc_files()))

int64_t
sys_close_range(const uint64_t a[6])
{
	uint32_t first = (uint32_t)a[0], last = (uint32_t)a[1], flags = (uint32_t)a[2];
	struct filetable *ft;
	int error = 0;

	if (first > last || (flags & ~(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC)))
		return -EINVAL;
	if (flags & CLOSE_RANGE_UNSHARE)
		error = proc_unshare_files();
	if (error != 0)
		return error;
	ft = proc_files();
	for (uint32_t fd = first; fd <= last && fd < ft->size; fd++) {
		if (flags & CLOSE_RANGE_CLOEXEC)
			filetable_set_cloexec(ft, fd, true);
		else
			close_fd(fd, ft);
	}
	return 0;
}

int64_t
sys_fallocate(const uint64_t a[6])
{
	const struct file *f = fd_get_file(a[0]);
	int64_t off = (int64_t)a[2], len = (int64_t)a[3], end;
	uint32_t mode = (uint32_t)a[1];

	if (f == NULL)
		return -EBADF;
	if (off < 0 || len <= 0)
		return -EINVAL;
	if (mode != 0 && mode != FALLOC_FL_KEEP_SIZE &&
	    mode != (FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE))
		return -EOPNOTSUPP;
	if ((f->flags & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	if (f->vn->ops->allocate == NULL)
		return S_ISFIFO(f->vn->mode) ? -ESPIPE : -ENODEV;
	if (__builtin_add_overflow(off, len, &end))
		return -EFBIG;
	if ((mode & FALLOC_FL_PUNCH_HOLE) && f->vn->ops->punch == NULL)
		return -EOPNOTSUPP;
	return vnode_allocate(f->vn, a[2], a[3], mode);
}

int64_t
sys_lseek(const uint64_t a[6])
{
	struct file *f = fd_get_file(a[0]);
	int64_t to;

	if (f == NULL)
		return -EBADF;
	to = file_seek(f, (int64_t)a[1], (int)a[2]);
	CTR4(KTR_VFS, "lseek: fd %d offset %ld whence %d result %ld", (int)a[0], (int64_t)a[1],
	     (int)a[2], to);
	return to;
}

int64_t
sys_getdents64(const uint64_t a[6])
{
	struct file *f = fd_get_file(a[0]);
	struct uio_vec v;
	struct uio u;
	int64_t n;

	if (f == NULL)
		return -EBADF;
	user_uio(&u, &v, a[1], (uint32_t)a[2]);
	mutex_lock(&f->lock);
	n = vnode_read_dir(f->vn, &u, &f->off, &f->list_end);
	mutex_unlock(&f->lock);
	return n;
}

static int64_t
pipe_to_user(uint64_t ufds, int flags)
{
	struct file *end[2];
	int fd[2], error;

	if (flags & ~(O_CLOEXEC | O_NONBLOCK))
		return -EINVAL;
	error = pipe_create(flags & O_NONBLOCK, end);
	if (error < 0)
		return error;
	error = filetable_give_pair(end, fd, ufds, flags);
	CTR3(KTR_VFS, "pipe: reader %d writer %d flags %#x", fd[0], fd[1], flags);
	return error;
}

SYSCALL_IS(pipe, pipe_to_user(a[0], 0))
SYSCALL_IS(pipe2, pipe_to_user(a[0], (int)a[1]))

static int64_t
dup_from(uint64_t old, unsigned min, int flags)
{
	struct file *f = filetable_get_any(proc_files(), (uint32_t)old);
	int fd;

	if (f == NULL)
		return -EBADF;
	fd = filetable_add(proc_files(), file_ref(f), min, flags);
	if (fd < 0)
		file_unref(f);
	CTR2(KTR_VFS, "dup: fd %d to %d", (int)old, fd);
	return fd;
}

static int64_t
dup_to(uint64_t old, uint64_t to, int flags)
{
	struct file *f = filetable_get_any(proc_files(), (uint32_t)old);
	int error;

	if (f == NULL || (uint32_t)to >= filetable_limit())
		return -EBADF;
	error = filetable_put(proc_files(), file_ref(f), (unsigned)to, flags);
	if (error != 0) {
		file_unref(f);
		return error;
	}
	CTR3(KTR_VFS, "dup: fd %d to %d flags %#x", (int)old, (int)to, flags);
	return (int64_t)(uint32_t)to;
}

SYSCALL_IS(dup, dup_from(a[0], 0, 0))

int64_t
sys_dup2(const uint64_t a[6])
{
	if ((uint32_t)a[0] == (uint32_t)a[1])
		return filetable_get_any(proc_files(), (uint32_t)a[0]) != NULL
			   ? (int64_t)(uint32_t)a[0]
			   : -EBADF;
	return dup_to(a[0], a[1], 0);
}

int64_t
sys_dup3(const uint64_t a[6])
{
	if ((uint32_t)a[0] == (uint32_t)a[1] || ((int)a[2] & ~O_CLOEXEC))
		return -EINVAL;
	return dup_to(a[0], a[1], (int)a[2]);
}

static int64_t
set_status(struct file *f, int fd, int flags)
{
	int change = O_APPEND | O_NONBLOCK;

	if (flags & O_DIRECT)
		return -EINVAL;
	__atomic_fetch_or(&f->flags, flags & change, __ATOMIC_RELAXED);
	__atomic_fetch_and(&f->flags, flags | ~change, __ATOMIC_RELAXED);
	if (((flags ^ f->flags) & O_ASYNC) && fasync_set(f, fd, flags & O_ASYNC) == -ENOMEM)
		return -ENOMEM; /* a file that cannot ignores the flag */
	return 0;
}

int64_t
sys_fcntl(const uint64_t a[6])
{
	struct filetable *ft = proc_files();
	struct file *f = filetable_get_any(ft, (uint32_t)a[0]);

	if (f == NULL)
		return -EBADF;
	if ((f->flags & O_PATH) && (int)a[1] > F_GETFL && (int)a[1] != F_DUPFD_CLOEXEC)
		return -EBADF;
	switch ((int)a[1]) {
	case F_DUPFD:
		return a[2] < filetable_limit() ? dup_from(a[0], (unsigned)a[2], 0) : -EINVAL;
	case F_DUPFD_CLOEXEC:
		return a[2] < filetable_limit() ? dup_from(a[0], (unsigned)a[2], O_CLOEXEC)
						: -EINVAL;
	case F_GETFD:
		return filetable_is_cloexec(ft, (unsigned)a[0]) ? FD_CLOEXEC : 0;
	case F_SETFD:
		filetable_set_cloexec(ft, (unsigned)a[0], a[2] & FD_CLOEXEC);
		return 0;
	case F_GETFL:
		return f->flags;
	case F_SETFL:
		return set_status(f, (int)a[0], (int)a[2]);
	case F_GETPIPE_SZ:
	case F_SETPIPE_SZ:
		return pipe_fcntl(f, (int)a[1] == F_SETPIPE_SZ, a[2]);
	case F_ADD_SEALS:
	case F_GET_SEALS:
		return memfd_fcntl(f, (int)a[1] == F_ADD_SEALS, a[2]);
	case F_NOTIFY:
		return dnotify_fcntl(ft, (uint32_t)a[0], f, (uint32_t)a[2]);
	case F_SETOWN:
	case F_GETOWN:
	case F_SETSIG:
	case F_GETSIG:
	case F_SETOWN_EX:
	case F_GETOWN_EX:
		return fasync_fcntl(f, (int)a[1], a[2]);
	case F_GETLK:
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_GETLK:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		return record_lock_fcntl(ft, (uint32_t)a[0], (int)a[1], a[2]);
	default:
		return -EINVAL;
	}
}

int64_t
sys_ioctl(const uint64_t a[6])
{
	struct file *f = fd_get_file(a[0]);
	int32_t on;

	if (f == NULL)
		return -EBADF;
	switch ((unsigned)a[1]) {
	case FIOCLEX:
	case FIONCLEX:
		filetable_set_cloexec(proc_files(), (unsigned)a[0], (unsigned)a[1] == FIOCLEX);
		return 0;
	case FIOASYNC:
		if (copy_in(&on, a[2], sizeof(on)) != 0)
			return -EFAULT;
		return fasync_set(f, (int)a[0], on != 0);
	case FIONBIO:
		if (copy_in(&on, a[2], sizeof(on)) != 0)
			return -EFAULT;
		if (on != 0)
			__atomic_fetch_or(&f->flags, O_NONBLOCK, __ATOMIC_RELAXED);
		else
			__atomic_fetch_and(&f->flags, ~O_NONBLOCK, __ATOMIC_RELAXED);
		return 0;
	case FIONREAD:
		if (!S_ISREG(f->vn->mode))
			break;
		on = (int32_t)(vnode_size(f->vn) - f->off);
		return copy_out(a[2], &on, sizeof(on));
	}
	return f->vn->ops->ioctl != NULL ? f->vn->ops->ioctl(f, (unsigned)a[1], a[2]) : -ENOTTY;
}
