/*
 * vfs_dir.c - listing directories, and finding a directory's path.
 *
 * Each child has a cookie, drawn from its directory's counter; the list is in that order. A listing
 * goes on after the last cookie that it told, so names that come and go meanwhile do not disturb
 * it. Locking: vfs_lock; records are made under it and moved to the user without it.
 */
#include "kernel/abi/dirent.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/string.h"
#include "kernel/proc/proc.h"
#include "ktr/ktr.h"

#define DIR_NAME_AT offsetof(struct linux_dirent64, d_name)

static uint8_t
dir_type(uint32_t mode)
{
	return (uint8_t)((mode & S_IFMT) >> 12); /* the DT_ values are the mode's */
}

_Static_assert(S_IFDIR >> 12 == DT_DIR && S_IFREG >> 12 == DT_REG && S_IFCHR >> 12 == DT_CHR &&
		   S_IFIFO >> 12 == DT_FIFO,
	       "d_type");

static size_t
record_length(const char *name)
{
	return (DIR_NAME_AT + strlen(name) + 1 + 7) & ~7ul;
}

/* Writes a record; returns its length. */
static size_t
record_fill(char *at, const struct vnode *vn, const char *name, uint64_t cookie)
{
	struct linux_dirent64 *r = (struct linux_dirent64 *)at;
	size_t n = record_length(name);

	memset(at, 0, n);
	r->d_ino = vn->ino;
	r->d_off = (int64_t)cookie;
	r->d_reclen = (uint16_t)n;
	r->d_type = dir_type(vn->mode);
	memcpy(at + DIR_NAME_AT, name, strlen(name) + 1);
	return n;
}

/* Where a piece of a listing is made. */
struct dir_piece {
	char buf[2048] __attribute__((aligned(8)));
	size_t len, room; /* bytes used; bytes that the reader takes */
	uint64_t cookie;  /* of the last record in it */
	bool full;        /* the next record does not fit */
};

static bool
piece_add(struct dir_piece *p, const struct vnode *vn, const char *name, uint64_t cookie)
{
	if (record_length(name) > p->room - p->len) {
		p->full = true;
		return false;
	}
	p->len += record_fill(p->buf + p->len, vn, name, cookie);
	p->cookie = cookie;
	return true;
}

/*
 * Fills the piece with what comes after p->cookie. Many records for one walk along the children: a
 * walk for each would take the square of their number.
 */
static void
piece_fill(struct dir_piece *p, struct vnode *dir)
{
	mutex_lock(&vfs_lock);
	if (p->cookie < 1)
		piece_add(p, dir, ".", 1);
	if (p->cookie == 1)
		piece_add(p, dir->parent != NULL ? dir->parent : dir, "..", 2);
	list_for_each (l, &dir->children) {
		const struct vnode *vn = list_entry(l, struct vnode, sibling);

		if (p->full || (vn->cookie > p->cookie && !piece_add(p, vn, vn->name, vn->cookie)))
			break;
	}
	mutex_unlock(&vfs_lock);
}

int64_t
vnode_read_dir(struct vnode *dir, struct uio *u, uint64_t *cookie)
{
	struct dir_piece p = {.cookie = *cookie};
	int64_t done = 0;
	int error = 0;

	if (!S_ISDIR(dir->mode))
		return -ENOTDIR;
	do {
		p.len = 0;
		p.full = false;
		p.room = u->resid < sizeof(p.buf) ? u->resid : sizeof(p.buf);
		piece_fill(&p, dir);
		if (p.len == 0 && p.full)
			error = -EINVAL;
		if (p.len > 0)
			error = uio_put(u, p.buf, p.len);
		if (error < 0)
			break;
		*cookie = p.cookie;
		done += (int64_t)p.len;
	} while (p.full && !proc_signal_pending());
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
