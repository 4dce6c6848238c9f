/*
 * mount_syscalls.c - system calls on file systems: mount, umount2, statfs. Locking: none here.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/statfs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/task.h"
#include "kernel/syscall.h"

#define CWD         ((uint64_t)AT_FDCWD)
#define TEXT_MAX    64
#define OPTIONS_MAX 256
#define MNT_FORCE   1

/* Are all words, between commas, options of the type? */
static int
mount_check_options(const struct vfs_type *type, char *at)
{
	while (at != NULL && *at != '\0') {
		char *comma = strchr(at, ',');

		if (comma != NULL)
			*comma = '\0';
		if (!type->option(at))
			return -EINVAL;
		at = comma != NULL ? comma + 1 : NULL;
	}
	return 0;
}

/* The mode in "mode=755,…", or what the type knows. Nothing else can be chosen. */
static int
take_options(uint64_t udata, const char *type_name, uint32_t *mode)
{
	char text[OPTIONS_MAX] = "", *at = text;
	int n = udata != 0 ? copy_in_str(text, udata, sizeof(text)) : 0;
	const struct vfs_type *type = vfs_find_type(type_name);

	if (n < 0)
		return n == -EFAULT ? n : -EINVAL;
	if (type != NULL && type->option != NULL)
		return mount_check_options(type, at);
	if (strncmp(at, "mode=", 5) == 0) {
		*mode = 0;
		for (at += 5; *at >= '0' && *at <= '7'; at++)
			*mode = (*mode << 3 | (uint32_t)(*at - '0')) & 07777;
	}
	return *at == '\0' ? 0 : -EINVAL;
}

int64_t
sys_mount(const uint64_t a[6])
{
	uint64_t flags = (a[3] & MS_MGC_MSK) == MS_MGC_VAL ? a[3] & ~MS_MGC_MSK : a[3];
	char source[TEXT_MAX] = "none", type[TEXT_MAX] = "";
	uint32_t mode = 01777;
	struct vnode *dir;
	int error = 0;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (a[0] != 0 && copy_in_str(source, a[0], sizeof(source)) == -EFAULT)
		return -EFAULT;
	source[sizeof(source) - 1] = '\0'; /* a longer one is cut */
	if (a[2] != 0 && copy_in_str(type, a[2], sizeof(type)) < 0)
		return -EINVAL;
	if (flags &
	    ~(uint64_t)(MS_HARMLESS | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC))
		return -EINVAL;
	error = take_options(a[4], type, &mode);
	if (error != 0)
		return error;
	dir = vnode_of_user(CWD, a[1], 0, &error);
	if (dir == NULL)
		return error;
	if (flags & MS_REMOUNT)
		error = vfs_remount(dir, (unsigned)flags);
	else
		error = vfs_mount(dir, type, source, mode, (unsigned)flags);
	vnode_unref(dir);
	return error;
}

int64_t
sys_umount2(const uint64_t a[6])
{
	struct vnode *dir;
	int error;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (a[1] & ~(uint64_t)(MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW))
		return -EINVAL;
	dir = vnode_of_user(CWD, a[0], a[1] & UMOUNT_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0, &error);
	if (dir == NULL)
		return error;
	error = vfs_unmount(dir, a[1] & MNT_DETACH);
	vnode_unref(dir);
	return error;
}

/* What statfs tells of the file system of vn, whose reference this drops. */
static int64_t
give_statfs(struct vnode *vn, uint64_t ustatfs)
{
	const struct vfs_type *type = vfs_type_of(vn);
	struct statfs s = {.f_type = (int64_t)(type != NULL ? type->magic : PIPEFS_MAGIC),
			   .f_bsize = PAGE_SIZE,
			   .f_frsize = PAGE_SIZE,
			   .f_namelen = NAME_MAX,
			   .f_fsid = {(int32_t)vn->dev, 0}};

	if (type != NULL && type->magic == TMPFS_MAGIC) {
		uint64_t left = page_count_free(), reserve = page_count_reserve();

		s.f_blocks = page_count_total();
		s.f_bfree = left;
		s.f_bavail = left > reserve ? left - reserve : 0;
	}
	vfs_statfs(vn, &s);
	vnode_unref(vn);
	return copy_out(ustatfs, &s, sizeof(s));
}

int64_t
sys_statfs(const uint64_t a[6])
{
	int error;
	struct vnode *vn = vnode_of_user(CWD, a[0], 0, &error);

	return vn != NULL ? give_statfs(vn, a[1]) : error;
}

int64_t
sys_fstatfs(const uint64_t a[6])
{
	const struct file *f = filetable_get_any(proc_files(), (uint32_t)a[0]);

	return f != NULL ? give_statfs(vnode_ref(f->vn), a[1]) : -EBADF;
}
