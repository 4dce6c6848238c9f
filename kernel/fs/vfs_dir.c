/*
 * vfs_dir.c - lists directories, and finds a directory's path.
 *
 * Each child gets a cookie from a counter of its directory, and the list of children is ordered by
 * it. A listing continues after the last cookie that it returned, so added and removed names do not
 * disturb it. It ends at what was the last name when it began: who renames each name that he reads
 * comes to an end. Locking: vfs_lock. Records are made under the lock, and copied to the user
 * without it.
 */
#include "arch/uaccess.h"
#include "kernel/abi/dirent.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/fsnotify.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/string.h"
#include "kernel/proc/task.h"
#include "ktr/ktr.h"

#define PEEK_DEPTH  16 /* names of a path that is read without the lock */
#define DIR_NAME_AT offsetof(struct linux_dirent64, d_name)

static uint8_t
dir_type(uint32_t mode)
{
	return (uint8_t)((mode & S_IFMT) >> 12); /* DT_ values are the type bits of the mode */
}

_Static_assert(S_IFDIR >> 12 == DT_DIR && S_IFREG >> 12 == DT_REG && S_IFCHR >> 12 == DT_CHR &&
		   S_IFIFO >> 12 == DT_FIFO && S_IFLNK >> 12 == DT_LNK,
	       "d_type");

/* A buffer for a part of a listing. */
struct dir_piece {
	char buf[2048] __attribute__((aligned(8)));
	size_t len, room; /* bytes used; bytes that the reader's buffer holds */
	uint64_t cookie;  /* cookie of the last record in buf */
	uint64_t end;     /* names from this cookie on are not listed; 0: not known yet */
	bool full;        /* the next record does not fit */
};

/* A vnode_list_fn. */
static bool
dir_piece_add(void *arg, const char *name, uint32_t mode, uint64_t ino, uint64_t cookie)
{
	struct dir_piece *p = arg;
	size_t len = strlen(name) + 1, n = (DIR_NAME_AT + len + 7) & ~7ul;
	struct linux_dirent64 *r = (struct linux_dirent64 *)(p->buf + p->len);

	if (n > p->room - p->len) {
		p->full = true;
		return false;
	}
	*(uint64_t *)(p->buf + p->len + n - 8) = 0; /* after the name */
	r->d_ino = ino;
	r->d_off = (int64_t)cookie;
	r->d_reclen = (uint16_t)n;
	r->d_type = dir_type(mode);
	memcpy(r->d_name, name, len);
	p->len += n;
	p->cookie = cookie;
	return true;
}

/* dir_piece_add() for a directory that lists itself: its cookies begin after `.` and `..`. */
static bool
piece_add_listed(void *arg, const char *name, uint32_t mode, uint64_t ino, uint64_t cookie)
{
	return dir_piece_add(arg, name, mode, ino, cookie + 2);
}

/*
 * Adds as many records as fit, from p->cookie on. If the last listing of the directory ended there,
 * it begins at the name at which that one ended, without a search.
 */
static int
piece_fill(struct dir_piece *p, struct vnode *dir)
{
	const struct vnode *up;
	const struct list *l = &dir->children;
	bool more;
	int error;

	mutex_lock(&vfs_lock);
	if (dir->parent == NULL && !dir->detached && vnode_is_gone(dir)) {
		mutex_unlock(&vfs_lock);
		return -ENOENT; /* it was removed */
	}
	up = dir->parent != NULL ? dir->parent : dir;
	more = dir->missing; /* names that are loaded only now were there before */
	error = dir_fill(dir);
	if (p->cookie == 0 || p->end == 0 || more)
		p->end = DIR_COOKIE_FIRST + dir->next_cookie;
	if (p->cookie < 1)
		dir_piece_add(p, ".", dir->mode, dir->ino, 1);
	if (p->cookie == 1)
		dir_piece_add(p, "..", up->mode, up->ino, 2);
	if (dir->ops->list != NULL && !p->full)
		dir->ops->list(dir, p->cookie < DIR_COOKIE_FIRST ? 0 : p->cookie - 2,
			       piece_add_listed, p);
	if (dir->ops->readdir != NULL)
		l = dir->children.prev; /* it tells them itself, without the lock */
	else if (dir->listed != NULL && dir->listed->cookie == p->cookie)
		l = &dir->listed->sibling;
	while (!p->full && (l = l->next) != &dir->children) {
		struct vname *n = list_entry(l, struct vname, sibling);

		if (n->cookie >= p->end)
			break;
		if (n->cookie > p->cookie &&
		    dir_piece_add(p, n->text, n->vn->mode, n->vn->ino, n->cookie))
			dir->listed = n;
	}
	mutex_unlock(&vfs_lock);
	if (dir->ops->readdir != NULL && !p->full)
		error = dir->ops->readdir(dir, p->cookie < DIR_COOKIE_FIRST ? 0 : p->cookie - 2,
					  piece_add_listed, p);
	return error;
}

int64_t
vnode_read_dir(struct vnode *dir, struct uio *u, uint64_t *cookie, uint64_t *end)
{
	struct dir_piece p = {.cookie = *cookie, .end = *end};
	int64_t done = 0;
	int error = 0;

	if (!S_ISDIR(dir->mode))
		return -ENOTDIR;
	do {
		p.len = 0;
		p.full = false;
		p.room = u->resid < sizeof(p.buf) ? u->resid : sizeof(p.buf);
		error = piece_fill(&p, dir);
		*end = p.end;
		if (p.len == 0 && p.full)
			error = -EINVAL;
		if (p.len > 0 && error == 0)
			error = uio_put(u, p.buf, p.len);
		if (error < 0)
			break;
		*cookie = p.cookie;
		done += (int64_t)p.len;
	} while (p.full && !proc_signal_pending());
	fsnotify(dir, IN_ACCESS);
	CTR3(KTR_VFS, "readdir: ino %lu bytes %ld cookie %lu", dir->ino, done, *cookie);
	return done > 0 ? done : error;
}

int
vnode_path(struct vnode *vn, char *buf, size_t size, bool *outside)
{
	int n;

	mutex_lock(&vfs_lock);
	n = vnode_path_locked(vn, buf, size, outside);
	mutex_unlock(&vfs_lock);
	return n;
}

int
vnode_path_locked(struct vnode *vn, char *buf, size_t size, bool *outside)
{
	const struct vnode *d;
	size_t at = size;
	int error = size < 2 ? -ERANGE : 0;

	if (error == 0)
		buf[--at] = '\0';
	/* Build the path from its end. */
	for (d = vn; error == 0 && !vfs_is_user_root(d) && d != vfs_root; d = d->name->dir) {
		size_t n = d->name != NULL ? strlen(d->name->text) : 0;

		if (d->name == NULL) {
			error = -ENOENT;
			break;
		} else if (n + 1 > at) {
			error = -ERANGE;
		} else {
			at -= n;
			memcpy(buf + at, d->name->text, n);
			buf[--at] = '/';
		}
	}
	if (error < 0)
		return error;
	if (at == size - 1)
		buf[--at] = '/';
	if (outside != NULL)
		*outside = !vfs_is_user_root(d);
	memmove(buf, buf + at, size - at);
	return (int)(size - at - 1);
}

/* A pointer of the tree, which may change or be freed meanwhile. NULL: it cannot be read. */
static void *
peek_pointer(const void *at)
{
	void *p;

	return arch_probe_copy(&p, at, sizeof(p)) ? p : NULL;
}

/* Puts "/NAME" before buf + at. Returns where it begins; 0: it does not fit, or cannot be read. */
static size_t
peek_text(const struct vname *name, char *buf, size_t at)
{
	char text[NAME_MAX + 1];
	size_t n = 0;

	while (n < sizeof(text) && arch_probe_copy(&text[n], &name->text[n], 1) && text[n] != '\0')
		n++;
	if (n == sizeof(text) || n + 1 >= at)
		return 0;
	at -= n + 1;
	buf[at] = '/';
	memcpy(buf + at + 1, text, n);
	return at;
}

size_t
vnode_path_peek(const struct vnode *vn, char *buf, size_t size)
{
	const struct vname *seen[PEEK_DEPTH];
	const struct vnode *d = vn;
	size_t at = size - 1;
	unsigned n = 0;

	buf[at] = '\0';
	while (d != vfs_root) {
		if (d == NULL || n == PEEK_DEPTH || (seen[n] = peek_pointer(&d->name)) == NULL)
			return 0;
		at = peek_text(seen[n], buf, at);
		if (at == 0)
			return 0;
		d = peek_pointer(&seen[n++]->dir);
	}
	/* What is there still, was there all the time. */
	d = vn;
	for (unsigned i = 0; i < n; i++) {
		if (d == NULL || peek_pointer(&d->name) != seen[i])
			return 0;
		d = peek_pointer(&seen[i]->dir);
	}
	memmove(buf, buf + at, size - at);
	return size - at - 1;
}
