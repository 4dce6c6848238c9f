/*
 * attr_syscalls.c - system calls that change a file's size, rights, owner and time. Locking: none.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/time.h"
#include "kernel/fs/file.h"
#include "kernel/fs/fsnotify.h"
#include "kernel/fs/vfs.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/clock.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/task.h"
#include "kernel/syscall.h"

#define CWD ((uint64_t)AT_FDCWD)

struct vnode *
vnode_of_fd(uint64_t fd, int *error)
{
	const struct file *f = filetable_get(proc_files(), (uint32_t)fd);

	*error = f != NULL ? 0 : -EBADF;
	return f != NULL ? vnode_ref(f->vn) : NULL;
}

/* Does change to vn, whose reference this drops. NULL: *error says why there is none. */
static int
attr_change(struct vnode *vn, int error, int (*fn)(struct vnode *vn, uint64_t v), uint64_t v)
{
	if (vn == NULL)
		return error;
	error = fn(vn, v);
	vnode_unref(vn);
	return error;
}

static int
chmod_vnode(struct vnode *vn, uint64_t mode)
{
	return vnode_chmod(vn, (uint32_t)mode);
}

static int
chown_vnode(struct vnode *vn, uint64_t ids)
{
	return vnode_chown(vn, (uint32_t)ids, (uint32_t)(ids >> 32));
}

static int
truncate_vnode(struct vnode *vn, uint64_t size)
{
	int error;

	if ((int64_t)size < 0 || vn->ops->truncate == NULL)
		return S_ISDIR(vn->mode) ? -EISDIR : -EINVAL;
	error = vnode_truncate(vn, size);
	if (error == 0)
		fsnotify(vn, IN_MODIFY);
	return error;
}

int64_t
sys_fchmod(const uint64_t a[6])
{
	int error;
	struct vnode *vn = vnode_of_fd(a[0], &error);

	return attr_change(vn, error, chmod_vnode, a[1]);
}

int64_t
sys_fchmodat(const uint64_t a[6])
{
	int error;
	struct vnode *vn = vnode_of_user(a[0], a[1], 0, &error);

	return attr_change(vn, error, chmod_vnode, a[2]);
}

SYSCALL_IS(chmod, sys_fchmodat((const uint64_t[6]){CWD, a[0], a[1]}))

int64_t
sys_fchown(const uint64_t a[6])
{
	int error;
	struct vnode *vn = vnode_of_fd(a[0], &error);

	return attr_change(vn, error, chown_vnode, (uint32_t)a[1] | a[2] << 32);
}

int64_t
sys_fchownat(const uint64_t a[6])
{
	int error;
	struct vnode *vn;

	if ((uint32_t)a[4] & ~(uint32_t)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	vn = vnode_of_user(a[0], a[1], a[4], &error);
	return attr_change(vn, error, chown_vnode, (uint32_t)a[2] | a[3] << 32);
}

SYSCALL_IS(chown, sys_fchownat((const uint64_t[6]){CWD, a[0], a[1], a[2]}))
SYSCALL_IS(lchown, sys_fchownat((const uint64_t[6]){CWD, a[0], a[1], a[2], AT_SYMLINK_NOFOLLOW}))

int64_t
sys_ftruncate(const uint64_t a[6])
{
	const struct file *f = filetable_get(proc_files(), (uint32_t)a[0]);

	if (f == NULL)
		return -EBADF;
	return (f->flags & O_ACCMODE) != O_RDONLY ? truncate_vnode(f->vn, a[1]) : -EINVAL;
}

int64_t
sys_truncate(const uint64_t a[6])
{
	int error;
	struct vnode *vn = vnode_of_user(CWD, a[0], 0, &error);

	if (vn != NULL && (error = vnode_access(vn, VNODE_WRITE)) != 0) {
		vnode_unref(vn);
		return error;
	}
	return attr_change(vn, error, truncate_vnode, a[1]);
}

static bool
nsec_is_valid(int64_t ns)
{
	return ns == UTIME_NOW || ns == UTIME_OMIT || (ns >= 0 && ns < 1000000000);
}

/* The time as a vnode has it: the nearest one that it can have. */
static uint64_t
attr_time(const struct timespec *t)
{
	const int64_t max = UINT64_MAX / 1000000000 - 1;

	if (t->tv_nsec == UTIME_OMIT)
		return VNODE_TIME_OMIT;
	if (t->tv_nsec == UTIME_NOW)
		return clock_real_now_ns();
	if (t->tv_sec < 0)
		return 0;
	return (uint64_t)(t->tv_sec < max ? t->tv_sec : max) * 1000000000 + (uint64_t)t->tv_nsec;
}

/* Gives a file its times. t NULL: both are now, for which the right to write is enough. */
static int
attr_set_times(struct vnode *vn, const struct timespec *t)
{
	uint32_t event = IN_ATTRIB;
	int error = 0;

	if (t != NULL && (!nsec_is_valid(t[0].tv_nsec) || !nsec_is_valid(t[1].tv_nsec)))
		return -EINVAL;
	if (t != NULL && t[0].tv_nsec == UTIME_NOW && t[1].tv_nsec == UTIME_NOW)
		t = NULL;
	if (t != NULL && t[0].tv_nsec == UTIME_OMIT)
		event = IN_MODIFY;
	else if (t != NULL && t[1].tv_nsec == UTIME_OMIT)
		event = IN_ACCESS;
	if (vnode_read_only(vn))
		error = -EROFS;
	else if (!vnode_is_own(vn))
		error = t != NULL ? -EPERM : vnode_access(vn, VNODE_WRITE);
	if (error == 0)
		error = t != NULL ? vnode_set_times(vn, attr_time(&t[0]), attr_time(&t[1]))
				  : vnode_touch(vn);
	if (error == 0)
		fsnotify(vn, event);
	return error;
}

/* Changes the file of that path, or without a path that of a descriptor. 0 or -errno. */
static int
attr_set_times_at(uint64_t dirfd, uint64_t upath, uint64_t flags, const struct timespec *t)
{
	bool by_fd = upath == 0 && (int)dirfd != AT_FDCWD;
	int error;
	struct vnode *vn =
	    by_fd ? vnode_of_fd(dirfd, &error) : vnode_of_user(dirfd, upath, flags, &error);

	if (vn == NULL)
		return error;
	error = attr_set_times(vn, t);
	vnode_unref(vn);
	return error;
}

int64_t
sys_utimensat(const uint64_t a[6])
{
	struct timespec t[2];

	if (a[2] != 0 && copy_in(t, a[2], sizeof(t)) != 0)
		return -EFAULT;
	if (a[2] != 0 && t[0].tv_nsec == UTIME_OMIT && t[1].tv_nsec == UTIME_OMIT)
		return 0; /* whatever the path is */
	if ((uint32_t)a[3] &
	    ~(uint32_t)(a[1] != 0 || (int)a[0] == AT_FDCWD ? AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH
							   : 0))
		return -EINVAL;
	return attr_set_times_at(a[0], a[1], a[3], a[2] != 0 ? t : NULL);
}

/* For the older calls, whose times are in microseconds. */
static int64_t
attr_set_timevals(uint64_t dirfd, uint64_t upath, uint64_t utimes)
{
	struct timeval tv[2];
	struct timespec t[2];

	if (utimes == 0)
		return attr_set_times_at(dirfd, upath, 0, NULL);
	if (copy_in(tv, utimes, sizeof(tv)) != 0)
		return -EFAULT;
	for (unsigned i = 0; i < 2; i++) {
		if (tv[i].tv_usec < 0 || tv[i].tv_usec >= 1000000)
			return -EINVAL;
		t[i] = (struct timespec){tv[i].tv_sec, tv[i].tv_usec * 1000};
	}
	return attr_set_times_at(dirfd, upath, 0, t);
}

SYSCALL_IS(utimes, attr_set_timevals((uint64_t)AT_FDCWD, a[0], a[1]))
SYSCALL_IS(futimesat, attr_set_timevals(a[0], a[1], a[2]))

/* The oldest call, whose times are in seconds. */
int64_t
sys_utime(const uint64_t a[6])
{
	int64_t seconds[2];

	if (a[1] != 0 && copy_in(seconds, a[1], sizeof(seconds)) != 0)
		return -EFAULT;
	return attr_set_times_at((uint64_t)AT_FDCWD, a[0], 0,
				 a[1] == 0
				     ? NULL
				     : (struct timespec[2]){{seconds[0], 0}, {seconds[1], 0}});
}
