/*
 * xattr.c - extended attributes: values that programs keep with a file, by name.
 *
 * Files in memory have them as a list, in an order that depends on the names alone. A name begins
 * with a space of names: user. is for everybody who may read and write the file, trusted. for
 * CAP_SYS_ADMIN, security. is read by everybody. Locking: vn->lock guards the list. Values are
 * copied to and from the program without it.
 */
#include "kernel/abi/xattr.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/statfs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/fsnotify.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"
#include "kernel/syscall.h"
#include "ktr/ktr.h"

#define CWD ((uint64_t)AT_FDCWD)

struct xattr {
	struct xattr *next;
	size_t size; /* of the value */
	const char *value;
	char name[]; /* with NUL; then the value */
};

enum space { SPACE_USER, SPACE_TRUSTED, SPACE_SECURITY, SPACE_NONE };

static const char *const spaces[] = {
    [SPACE_USER] = "user.", [SPACE_TRUSTED] = "trusted.", [SPACE_SECURITY] = "security."};

static enum space
xattr_space(const char *name)
{
	enum space s = SPACE_USER;

	while (s < SPACE_NONE && strncmp(name, spaces[s], strlen(spaces[s])) != 0)
		s++;
	return s;
}

/* May the user read, or write, what has that name? */
static int
xattr_permission(const struct vnode *vn, const char *name, bool write)
{
	int hidden = write ? -EPERM : -ENODATA;

	if (write && vnode_read_only(vn))
		return -EROFS;
	switch (xattr_space(name)) {
	case SPACE_TRUSTED:
		return capable(CAP_SYS_ADMIN) ? 0 : hidden;
	case SPACE_SECURITY:
		return write && !capable(CAP_SYS_ADMIN) ? -EPERM : 0;
	case SPACE_USER:
		if (!S_ISREG(vn->mode) && !S_ISDIR(vn->mode))
			return hidden;
		if (write && S_ISDIR(vn->mode) && (vn->mode & STICKY) && !vnode_is_own(vn))
			return -EPERM;
		break;
	case SPACE_NONE:
		if (strncmp(name, "system.", 7) == 0)
			return 0;
	}
	return vnode_access(vn, write ? VNODE_WRITE : VNODE_READ);
}

/* Has the vnode attributes of that name's kind? 0 or -errno. */
static int
xattr_supported(const struct vnode *vn, const char *name)
{
	enum space s = xattr_space(name);
	const struct vfs_type *type = vfs_type_of(vn);
	bool in_memory = vn->disk == NULL &&
			 (type != NULL ? type->magic == TMPFS_MAGIC : vn->ops == &ramfs_file_ops);

	if (!in_memory || s == SPACE_NONE)
		return -EOPNOTSUPP;
	return name[strlen(spaces[s])] == '\0' ? -EINVAL : 0;
}

/* Where the attribute is in the list, or has its place. vn->lock held. */
static struct xattr **
xattr_find(struct vnode *vn, const char *name, bool *found)
{
	struct xattr **at = &vn->xattrs;
	int order = 1;

	while (*at != NULL && (order = strcmp((*at)->name, name)) < 0)
		at = &(*at)->next;
	*found = *at != NULL && order == 0;
	return at;
}

void
xattr_free_all(struct vnode *vn)
{
	while (vn->xattrs != NULL) {
		struct xattr *x = vn->xattrs;

		vn->xattrs = x->next;
		uidinfo_free(vn->ui, x);
	}
}

/* Sets an attribute, or removes it if value is NULL. 0 or -errno. */
static int
xattr_set(struct vnode *vn, const char *name, const void *value, size_t size, int flags)
{
	struct xattr *x = NULL, *old = NULL, **at;
	int error = xattr_permission(vn, name, true);
	size_t room = strlen(name) + 1;
	bool found;

	if (error == 0)
		error = xattr_supported(vn, name);
	if (error == 0 && strcmp(name, "security.capability") == 0)
		error = -EOPNOTSUPP; /* a program would not get them */
	if (error == 0 && value != NULL) {
		x = uidinfo_memory_short() ? NULL : uidinfo_alloc(vn->ui, sizeof(*x) + room + size);
		if (x == NULL)
			return -ENOSPC; /* as for other contents of a file */
		memcpy(x->name, name, room);
		memcpy(x->name + room, value, size);
		x->value = x->name + room;
		x->size = size;
	}
	if (error != 0)
		return error;
	mutex_lock(&vn->lock);
	at = xattr_find(vn, name, &found);
	if (found && (flags & XATTR_CREATE)) {
		error = -EEXIST;
	} else if (!found && (value == NULL || (flags & XATTR_REPLACE))) {
		error = -ENODATA;
	} else {
		old = found ? *at : NULL;
		if (found)
			*at = old->next;
		if (x != NULL) {
			x->next = *at;
			*at = x;
		}
		vn->ctime_ns = clock_real_now_ns();
	}
	mutex_unlock(&vn->lock);
	uidinfo_free(vn->ui, error == 0 ? old : x);
	CTR3(KTR_VFS, "xattr set: ino %lu size %lu error %d", vn->ino, size, -error);
	if (error == 0)
		fsnotify(vn, IN_ATTRIB);
	return error;
}

/* Copies a value to buf, if size is not 0. Returns the value's size. */
static int64_t
xattr_get(struct vnode *vn, const char *name, void *buf, size_t size)
{
	int64_t r = xattr_permission(vn, name, false);
	const struct xattr *x;
	bool found;

	if (r == 0)
		r = xattr_supported(vn, name);
	if (r != 0)
		return r;
	mutex_lock(&vn->lock);
	x = *xattr_find(vn, name, &found);
	if (!found)
		r = -ENODATA;
	else if (size != 0 && x->size > size)
		r = -ERANGE;
	else if (size != 0)
		memcpy(buf, x->value, x->size);
	if (r == 0)
		r = (int64_t)x->size;
	mutex_unlock(&vn->lock);
	return r;
}

/* Copies all names that the user may know, each with its NUL, to buf; otherwise as xattr_get(). */
static int64_t
xattr_list(struct vnode *vn, const char *none, void *buf, size_t size)
{
	bool all = capable(CAP_SYS_ADMIN);
	size_t length = 0;

	mutex_lock(&vn->lock);
	for (const struct xattr *x = vn->xattrs; x != NULL; x = x->next) {
		size_t n = strlen(x->name) + 1;

		if (!all && xattr_space(x->name) == SPACE_TRUSTED)
			continue;
		if (size != 0 && length + n <= size)
			memcpy((char *)buf + length, x->name, n);
		length += n;
	}
	mutex_unlock(&vn->lock);
	if (length > XATTR_LIST_MAX)
		return -E2BIG;
	return size != 0 && length > size ? -ERANGE : (int64_t)length;
}

/* ---- system calls: each has a vnode, whose reference is dropped. NULL: error says why ---- */

/* Copies a name. 0 or -errno. */
static int
xattr_take_name(char name[XATTR_NAME_MAX + 1], uint64_t uname)
{
	int n = copy_in_str(name, uname, XATTR_NAME_MAX + 1);

	return n == 0 || n == -ENAMETOOLONG ? -ERANGE : n < 0 ? n : 0;
}

static int64_t
do_setxattr(struct vnode *vn, int error, const uint64_t a[6])
{
	char name[XATTR_NAME_MAX + 1], *value = NULL;

	if (vn == NULL)
		return error;
	if ((int)a[4] & ~(XATTR_CREATE | XATTR_REPLACE))
		error = -EINVAL;
	if (error == 0)
		error = xattr_take_name(name, a[1]);
	if (error == 0 && a[3] > XATTR_SIZE_MAX)
		error = -E2BIG;
	if (error == 0) {
		value = kmalloc(a[3] + 1);
		error = value == NULL ? -ENOMEM : copy_in(value, a[2], a[3]);
	}
	if (error == 0)
		error = xattr_set(vn, name, value, a[3], (int)a[4]);
	kfree(value);
	vnode_unref(vn);
	return error;
}

/* What get makes of the name at uname (0: none) goes to the `size` bytes at ubuf. */
static int64_t
do_getxattr(struct vnode *vn, int error, uint64_t uname, uint64_t ubuf, size_t size,
	    int64_t (*get)(struct vnode *vn, const char *name, void *buf, size_t size))
{
	char name[XATTR_NAME_MAX + 1], *buf = NULL;
	int64_t r = error;

	if (vn == NULL)
		return error;
	if (size > XATTR_SIZE_MAX)
		size = XATTR_SIZE_MAX;
	if (uname != 0 || get == xattr_get)
		r = xattr_take_name(name, uname);
	if (r == 0 && size != 0) {
		buf = kmalloc(size);
		r = buf == NULL ? -ENOMEM : 0;
	}
	if (r == 0)
		r = get(vn, name, buf, size);
	if (r > 0 && size != 0 && copy_out(ubuf, buf, (size_t)r) != 0)
		r = -EFAULT;
	kfree(buf);
	vnode_unref(vn);
	return r;
}

static int64_t
do_removexattr(struct vnode *vn, int error, uint64_t uname)
{
	char name[XATTR_NAME_MAX + 1];

	if (vn == NULL)
		return error;
	error = xattr_take_name(name, uname);
	if (error == 0)
		error = xattr_set(vn, name, NULL, 0, 0);
	vnode_unref(vn);
	return error;
}

/* The three forms of a call: of a path, of a link itself, of an open file. */
#define XATTR_CALLS(call, ...)                                                            \
	int64_t sys_##call(const uint64_t a[6])                                           \
	{                                                                                 \
		int error;                                                                \
		struct vnode *vn = vnode_of_user(CWD, a[0], 0, &error);                   \
                                                                                          \
		return __VA_ARGS__;                                                       \
	}                                                                                 \
	int64_t sys_l##call(const uint64_t a[6])                                          \
	{                                                                                 \
		int error;                                                                \
		struct vnode *vn = vnode_of_user(CWD, a[0], AT_SYMLINK_NOFOLLOW, &error); \
                                                                                          \
		return __VA_ARGS__;                                                       \
	}                                                                                 \
	int64_t sys_f##call(const uint64_t a[6])                                          \
	{                                                                                 \
		int error;                                                                \
		struct vnode *vn = vnode_of_fd(a[0], &error);                             \
                                                                                          \
		return __VA_ARGS__;                                                       \
	}
XATTR_CALLS(setxattr, do_setxattr(vn, error, a))
XATTR_CALLS(getxattr, do_getxattr(vn, error, a[1], a[2], a[3], xattr_get))
XATTR_CALLS(listxattr, do_getxattr(vn, error, 0, a[1], a[2], xattr_list))
XATTR_CALLS(removexattr, do_removexattr(vn, error, a[1]))
