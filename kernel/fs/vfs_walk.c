/*
 * vfs_walk.c - walks a path part by part, through symbolic links.
 *
 * A link in the middle of a path is replaced by its text: the walk goes on with that text and what
 * is left of the path. Only a link that was found by its name is followed: one of /proc may lead to
 * a link that is open as a place (O_PATH), and the walk ends there.
 *
 * Locking: vfs_lock is held for the whole walk. Vnodes of the tree stay meanwhile, but for those in
 * a directory that is filled (dir_fill()): what is not there any more goes, or what nobody uses,
 * since memory is short. The walk holds references to those that are not in the tree.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/statfs.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/proc/task.h"

#define LINKS_MAX 40 /* links that a path may lead through: Linux's limit */

/* Takes the next part off *path. Returns its length, 0 at the end, or -ENAMETOOLONG. */
static int
next_part(const char **path, char *name)
{
	size_t n = 0;

	while (**path == '/')
		(*path)++;
	while ((*path)[n] != '\0' && (*path)[n] != '/')
		n++;
	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, *path, n);
	name[n] = '\0';
	*path += n;
	return (int)n;
}

/* The root of the current process's paths. */
static struct vnode *
walk_user_root(void)
{
	struct vnode *root = proc_root();

	return root != NULL ? root : vfs_root;
}

/* Is dir that directory, or the root of what is mounted there? */
static bool
walk_is_at(const struct vnode *dir, const struct vnode *place)
{
	while (place != dir && place->cover != NULL)
		place = place->cover;
	return place == dir;
}

bool
vfs_is_user_root(const struct vnode *dir)
{
	return walk_is_at(dir, walk_user_root());
}

struct vnode *
vfs_change_root(struct vnode *vn)
{
	struct vnode *old;

	mutex_lock(&vfs_lock);
	old = proc_change_root(vn);
	mutex_unlock(&vfs_lock);
	return old;
}

/* Where an absolute path begins. */
static struct vnode *
walk_root(struct walk *w)
{
	return w->resolve & RESOLVE_IN_ROOT ? w->start : walk_user_root();
}

void
walk_hold(struct walk *w, struct vnode *vn)
{
	unsigned i = w->held[0] == w->dir;

	vnode_unref(w->held[i]);
	w->held[i] = vn;
}

void
walk_done(struct walk *w)
{
	vnode_unref(w->held[0]);
	vnode_unref(w->held[1]);
}

/* Finds name in w->dir, which the user must be allowed to search. */
static int
walk_step(struct walk *w, const char *name, struct vnode **to)
{
	struct vnode *dir = w->dir;
	int error = !S_ISDIR(dir->mode) ? -ENOTDIR : vnode_access(dir, VNODE_EXEC);

	if (error < 0)
		return error;
	if (strcmp(name, ".") == 0) {
		*to = dir; /* also if something is mounted there: the walk goes on below that */
		return 0;
	}
	if (strcmp(name, "..") == 0) {
		bool start = w->resolve != 0 && walk_is_at(dir, w->start);

		if (start && (w->resolve & RESOLVE_BENEATH))
			return -EXDEV;
		*to = vfs_is_user_root(dir) || (start && (w->resolve & RESOLVE_IN_ROOT))
			  ? dir
			  : dir->parent;
		if (dir->nameless)
			walk_hold(w, vnode_ref(*to));
	} else if (dir->ops->lookup != NULL) {
		*to = dir->ops->lookup(dir, name, &error);
		if (*to == NULL)
			return error;
		walk_hold(w, *to);
	} else {
		const struct vname *n;

		error = dir_look(dir, name);
		n = dir_find(dir, name);
		*to = n != NULL ? n->vn : NULL;
		if (error != 0 && (n == NULL || dir->ops->revalidate != NULL))
			return error;
	}
	while (*to != NULL && (*to)->cover != NULL)
		*to = (*to)->cover;
	if (*to != NULL && (w->resolve & RESOLVE_NO_XDEV) && (*to)->dev != dir->dev)
		return -EXDEV;
	return *to != NULL ? 0 : -ENOENT;
}

/* May the walk follow a link with that text, or one that leads to a file itself? */
static int
resolve_link(const struct walk *w, const char *text, const struct vnode *to)
{
	if ((w->resolve & RESOLVE_NO_SYMLINKS) ||
	    (to != NULL && (w->resolve & RESOLVE_NO_MAGICLINKS)))
		return -ELOOP;
	return (to != NULL && (w->resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT))) ||
		       (to == NULL && *text == '/' && (w->resolve & RESOLVE_BENEATH))
		   ? -EXDEV
		   : 0;
}

/*
 * Goes on at a symbolic link: *buf becomes the link's text, followed by `rest`, which is "" or
 * begins with a slash. `rest` may lie in the old *buf.
 */
static int
enter_link(struct walk *w, const struct vnode *link, const char *rest, char **buf)
{
	struct vnode *to = NULL;
	const char *text;
	int error =
	    mount_flags_of(link) & MS_NOSYMFOLLOW ? -ELOOP : vnode_link_text(link, &text, &to);
	size_t len, rest_len = strlen(rest);
	char *path;

	if (error < 0)
		return error;
	if (w->resolve != 0) {
		error = resolve_link(w, text, to);
		if (error < 0) {
			vnode_unref(to);
			return error;
		}
	}
	if ((w->resolve & RESOLVE_NO_XDEV) && (to != NULL || *text == '/') &&
	    (to != NULL ? to : walk_root(w))->dev != w->dir->dev) {
		vnode_unref(to);
		return -EXDEV;
	}
	if (to != NULL) {
		walk_hold(w, to);
		w->dir = to;
		text = "";
	}
	len = strlen(text);
	if (++w->links > LINKS_MAX)
		return -ELOOP;
	if (len + rest_len >= PATH_MAX)
		return -ENAMETOOLONG;
	path = kmalloc(len + rest_len + 1);
	if (path == NULL)
		return -ENOMEM;
	memcpy(path, text, len);
	memcpy(path + len, rest, rest_len + 1);
	kfree(*buf);
	*buf = path;
	if (*path == '/' && to == NULL)
		w->dir = walk_root(w);
	w->name[0] = '\0';
	w->want_dir = *path == '/' && to != NULL;
	return 0;
}

/* Walks all parts of the path but the last. Frees buf, in which the path may lie. */
static int
walk_on(struct walk *w, const char *path, char *buf)
{
	char name[NAME_MAX + 1];
	int n, error = 0;

	while (error == 0 && (n = next_part(&path, name)) != 0) {
		struct vnode *to = w->dir;

		if (n > 0 && w->name[0] != '\0')
			error = walk_step(w, w->name, &to);
		if (n < 0 || error < 0) {
			error = n < 0 ? n : error;
		} else if (S_ISLNK(to->mode) && w->name[0] != '\0') {
			error = enter_link(w, to, path - n - 1, &buf);
			path = buf;
		} else {
			w->dir = to;
			memcpy(w->name, name, (size_t)n + 1);
			w->want_dir = *path == '/';
		}
	}
	kfree(buf);
	return error;
}

int
path_walk(struct vnode *cwd, const char *path, struct walk *w)
{
	w->start = cwd != NULL ? cwd : walk_user_root();
	w->resolve = proc_resolve();
	w->dir = *path == '/' ? walk_root(w) : w->start;
	if (*path == '/' && (w->resolve & RESOLVE_BENEATH))
		return -EXDEV;
	w->want_dir = false;
	w->links = 0;
	w->last = false;
	w->name[0] = '\0';
	return *path != '\0' ? walk_on(w, path, NULL) : -ENOENT;
}

int
walk_end(struct walk *w, bool follow, struct vnode **vn)
{
	for (;;) {
		char *buf = NULL;
		int error = 0;

		*vn = w->dir;
		w->last = true;
		if (w->name[0] != '\0')
			error = walk_step(w, w->name, vn);
		if (error == 0 && S_ISLNK((*vn)->mode) && w->name[0] != '\0' &&
		    (follow || w->want_dir)) {
			w->last = false;
			error = enter_link(w, *vn, w->want_dir ? "/" : "", &buf);
			if (error == 0)
				error = walk_on(w, buf, buf);
			if (error == 0)
				continue;
		}
		if (error == 0 && w->want_dir && !S_ISDIR((*vn)->mode))
			error = -ENOTDIR;
		return error;
	}
}
