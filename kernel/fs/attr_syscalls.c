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

	if ((int64_t)size < 0 || !vnode_can_truncate(vn))
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
	struct vnode *vn = vnode_of_user(a[0], a[1], a[4], &error);

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

/*
 * The file's time from two timespecs, of which the second counts. 0: leave it; or -errno. *event:
 * what watches are told, IN_… or 0.
 */
static int
take_mtime(uint64_t utimes, uint64_t *real_ns, uint32_t *event)
{
	struct timespec t[2];

	*real_ns = clock_real_now_ns();
	*event = IN_ATTRIB;
	if (utimes == 0)
		return 1;
	if (copy_in(t, utimes, sizeof(t)) != 0)
		return -EFAULT;
	if (t[0].tv_nsec == UTIME_OMIT)
		*event = t[1].tv_nsec == UTIME_OMIT ? 0 : IN_MODIFY;
	else if (t[1].tv_nsec == UTIME_OMIT)
		*event = IN_ACCESS;
	if (t[1].tv_nsec == UTIME_OMIT)
		return 0;
	if (t[1].tv_nsec == UTIME_NOW)
		return 1;
	if (t[1].tv_nsec < 0 || t[1].tv_nsec >= 1000000000)
		return -EINVAL;
	*real_ns = (uint64_t)t[1].tv_sec * 1000000000 + (uint64_t)t[1].tv_nsec;
	return 1;
}

int64_t
sys_utimensat(const uint64_t a[6])
{
	uint64_t time;
	uint32_t event;
	int wanted = take_mtime(a[2], &time, &event), error;
	struct vnode *vn;

	if (wanted < 0)
		return wanted;
	vn = a[1] == 0 ? vnode_of_fd(a[0], &error) : vnode_of_user(a[0], a[1], a[3], &error);
	if (vn == NULL)
		return error;
	/* Who may write to a file may also make it new. */
	if (wanted != 0)
		error = a[2] == 0 && vnode_access(vn, VNODE_WRITE) == 0 ? vnode_touch(vn)
									: vnode_set_mtime(vn, time);
	if (error == 0 && event != 0 && (wanted != 0 || vnode_is_own(vn)))
		fsnotify(vn, event);
	vnode_unref(vn);
	return error;
}
