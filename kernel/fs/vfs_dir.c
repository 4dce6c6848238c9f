/*
 * vfs_dir.c - listing directories, and finding a directory's path.
 *
 * Each child has a cookie, drawn from its directory's counter; the list is in that order. A listing
 * goes on behind the cookie it came to, so what is added or removed meanwhile confuses nobody.
 * Locking: vfs_lock; a record is made under it and moved to the user outside.
 */
#include "kernel/abi/dirent.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/string.h"
#include "ktr/ktr.h"

struct dir_record {
	struct linux_dirent64 head;
	char name[NAME_MAX + 1 + 8];
} __attribute__((aligned(8)));

#define DIR_NAME_AT offsetof(struct linux_dirent64, d_name)

static uint8_t
dir_type(uint32_t mode)
{
	return (uint8_t)((mode & S_IFMT) >> 12); /* the DT_ values are the mode's */
}

_Static_assert(S_IFDIR >> 12 == DT_DIR && S_IFREG >> 12 == DT_REG && S_IFCHR >> 12 == DT_CHR &&
		   S_IFIFO >> 12 == DT_FIFO,
	       "d_type");

static void
record_fill(struct dir_record *r, const struct vnode *vn, const char *name, uint64_t cookie)
{
	size_t n = strlen(name);

	memset(r, 0, sizeof(*r));
	r->head.d_ino = vn->ino;
	r->head.d_off = (int64_t)cookie;
	r->head.d_reclen = (uint16_t)((DIR_NAME_AT + n + 1 + 7) & ~7ul);
	r->head.d_type = dir_type(vn->mode);
	memcpy((char *)r + DIR_NAME_AT, name, n + 1);
}

/* The first entry behind a cookie. False at the end. */
static bool
record_next(struct vnode *dir, uint64_t cookie, struct dir_record *r)
{
	bool found = false;

	mutex_lock(&vfs_lock);
	if (cookie < 1) {
		record_fill(r, dir, ".", 1);
		found = true;
	} else if (cookie < 2) {
		record_fill(r, dir->parent != NULL ? dir->parent : dir, "..", 2);
		found = true;
	} else {
		list_for_each (l, &dir->children) {
			const struct vnode *vn = list_entry(l, struct vnode, sibling);

			if (vn->cookie > cookie) {
				record_fill(r, vn, vn->name, vn->cookie);
				found = true;
				break;
			}
		}
	}
	mutex_unlock(&vfs_lock);
	return found;
}

int64_t
vnode_read_dir(struct vnode *dir, struct uio *u, uint64_t *cookie)
{
	struct dir_record r;
	int64_t done = 0;
	int error = 0;

	if (!S_ISDIR(dir->mode))
		return -ENOTDIR;
	while (record_next(dir, *cookie, &r)) {
		if (r.head.d_reclen > u->resid) {
			error = -EINVAL;
			break;
		}
		error = uio_put(u, &r, r.head.d_reclen);
		if (error < 0)
			break;
		*cookie = (uint64_t)r.head.d_off;
		done += r.head.d_reclen;
	}
	CTR3(KTR_VFS, "readdir: ino %lu bytes %ld cookie %lu", dir->ino, done, *cookie);
	return done > 0 ? done : error;
}

int
vnode_path(struct vnode *dir, char *buf, size_t size)
{
	size_t at = size;
	int error = size < 2 ? -ERANGE : 0;

	if (error == 0)
		buf[--at] = '\0';
	mutex_lock(&vfs_lock);
	/* From the end backwards. */
	for (struct vnode *d = dir; error == 0 && d != vfs_root; d = d->parent) {
		size_t n = d->parent != NULL ? strlen(d->name) : 0;

		if (d->parent == NULL) {
			error = -ENOENT;
		} else if (n + 1 > at) {
			error = -ERANGE;
		} else {
			at -= n;
			memcpy(buf + at, d->name, n);
			buf[--at] = '/';
		}
	}
	mutex_unlock(&vfs_lock);
	if (error < 0)
		return error;
	if (at == size - 1)
		buf[--at] = '/';
	memmove(buf, buf + at, size - at);
	return (int)(size - at - 1);
}
