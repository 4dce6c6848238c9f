/*
 * vfs_remove.c - names are removed, and move. Locking: vfs.h.
 */
#include "kernel/fs/vfs.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/fsnotify.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/string.h"
#include "kernel/proc/task.h"
#include "ktr/sdt.h"

#define NO_VNODE ((struct vnode *)NULL) /* for a probe: after an error there is none */

SDT_PROVIDER_DECLARE(vfs);
SDT_PROBE_DEFINE_TEXT(vfs, , , remove, "remove", ": vnode %p name %s error %d", 3, "struct vnode *",
		      "char *", "int");

/*
 * The order of checks decides the error. That of unlink() and rmdir() is Linux's. That of rename()
 * is, but for these: a name is looked up before EXDEV and RENAME_NOREPLACE's EEXIST; two names of
 * one file give 0 after the checks of both directories; ENOTEMPTY, where the target is above the
 * source, is found as any other.
 */
static int
may_remove(const struct walk *w, const struct vnode *vn)
{
	uint32_t user = proc_user();

	if ((w->dir->mode & STICKY) && user != vn->uid && user != w->dir->uid &&
	    !capable(CAP_FOWNER))
		return -EPERM;
	return 0;
}

static int
must_be_idle(const struct vnode *dir, const struct vnode *vn)
{
	return vn->fixed || vn->cover != NULL || vn->dev != dir->dev ? -EBUSY : 0;
}

/* Finds the name to which w leads, if it may be removed. `dot` is the error for "." and "..".
 * vfs_lock held. */
static int
find_removable(struct walk *w, int dot, struct vname **n)
{
	bool want_dir = w->want_dir;
	struct vnode *vn;
	int error;

	if (w->name[0] == '\0')
		return -EBUSY; /* the root */
	if (name_is_dot(w->name))
		return dot;
	if (vnode_read_only(w->dir)) /* -EROFS whether there is such a name or not, as on Linux */
		return -EROFS;
	w->want_dir = false; /* a symbolic link is itself removed, also if a slash follows */
	error = walk_end(w, false, &vn);
	if (error == 0 && want_dir && !S_ISDIR(vn->mode))
		error = -ENOTDIR;
	if (error == 0)
		error = vfs_may_change(w);
	if (error < 0)
		return error;
	*n = dir_find(w->dir, w->name);
	return may_remove(w, vn);
}

/* May a directory be removed? 0; -ENOTEMPTY, or that cannot be known. vfs_lock held. */
static int
must_be_empty(struct vnode *vn)
{
	int error = dir_fill(vn);

	if (vn->ops->revalidate != NULL)
		return 0; /* the tree has only some of the names: the file system will know */
	return error == 0 && !list_empty(&vn->children) ? -ENOTEMPTY : error;
}

/* Removes a name of the directory. vfs_lock held. */
static int
remove_name(struct vnode *dir, struct vname *n)
{
	struct vnode *vn = n->vn;
	int error = must_be_idle(dir, vn);

	if (error == 0)
		error = must_be_empty(vn);
	if (error == 0 && dir->ops->leave != NULL)
		error = dir->ops->leave(dir, n->text, vn);
	if (error == 0)
		dir_unlink(n);
	return error;
}

/* Not inline: probes look for Linux's name. */
static __attribute__((noinline)) int
vfs_unlink(struct vnode *dir, struct vname *n)
{
	return S_ISDIR(n->vn->mode) ? -EISDIR : remove_name(dir, n);
}

int
vnode_remove(struct vnode *cwd, const char *path, bool dir)
{
	struct vnode *vn = NULL;
	struct vname *n;
	struct walk w = {0};
	int error;

	mutex_lock(&vfs_lock);
	error = path_walk(cwd, path, &w);
	if (error == 0 && dir && w.dir->ops->rmdir != NULL && w.name[0] != '\0' &&
	    !name_is_dot(w.name)) {
		error = vfs_change_by(&w, w.dir->ops->rmdir, IN_DELETE);
		mutex_unlock(&vfs_lock);
		walk_done(&w);
		return error;
	}
	if (error == 0)
		error = find_removable(&w,
				       !dir                       ? -EISDIR
				       : strcmp(w.name, ".") == 0 ? -EINVAL
								  : -ENOTEMPTY,
				       &n);
	if (error == 0) {
		vn = n->vn;
		error = !dir                ? vfs_unlink(w.dir, n)
			: S_ISDIR(vn->mode) ? remove_name(w.dir, n)
					    : -ENOTDIR;
	}
	if (error == 0)
		fsnotify_delete(vn, w.dir, w.name);
	mutex_unlock(&vfs_lock);
	walk_done(&w);
	SDT_CTR2(vfs, , , remove,
		 SDT_ARGS3(error == 0 ? vn : NO_VNODE, vfs_trace_name(path), -error), KTR_VOP,
		 "remove: name %s error %d", vfs_trace_name(path), -error);
	if (error == 0)
		vnode_unref(vn);
	return error;
}

/* May vn replace `old`, which `to` leads to? If old is a directory, it must be empty. */
static int
may_replace(const struct vnode *vn, const struct walk *to, const struct vnode *old)
{
	int error = may_remove(to, old);

	if (error == 0 && S_ISDIR(vn->mode) != S_ISDIR(old->mode))
		error = S_ISDIR(old->mode) ? -EISDIR : -ENOTDIR;
	return error != 0 ? error : must_be_idle(to->dir, old);
}

/* Is dir the directory vn, or in it? vfs_lock held. */
static bool
is_below(const struct vnode *dir, const struct vnode *vn)
{
	while (dir != vfs_root && dir != vn)
		dir = dir->parent;
	return dir == vn;
}

/*
 * May a directory get another parent? Then its ".." is written, so the user must be allowed to
 * write to it. `old` exchanges its place with vn, or is NULL. vfs_lock held.
 */
static int
may_move(const struct vnode *vn, const struct vnode *old, const struct vnode *from,
	 const struct vnode *to)
{
	int error = 0;

	if (from != to && S_ISDIR(vn->mode))
		error = vnode_access(vn, VNODE_WRITE);
	if (error == 0 && from != to && old != NULL && S_ISDIR(old->mode))
		error = vnode_access(old, VNODE_WRITE);
	return error;
}

/* The vnodes of two names change places. vfs_lock held. */
static int
vname_exchange(struct vname *a, struct vname *b)
{
	struct vnode *vn = a->vn;
	int error;

	if (is_below(a->dir, b->vn) || is_below(b->dir, vn))
		return -EINVAL;
	error = may_move(vn, b->vn, a->dir, b->dir);
	if (error == 0 && a->dir->ops->rename != NULL)
		error = a->dir->ops->rename(a->dir, a->text, vn, b->dir, b->text, b->vn, true);
	if (error != 0)
		return error;
	vname_part(a);
	vname_part(b);
	vname_join(a, b->vn);
	vname_join(b, vn);
	if (S_ISDIR(a->vn->mode))
		a->vn->parent = a->dir;
	if (S_ISDIR(b->vn->mode))
		b->vn->parent = b->dir;
	dir_touch(a->dir);
	dir_touch(b->dir);
	fsnotify_move(vn, a->dir, a->text, b->dir, b->text, NULL);
	fsnotify_move(a->vn, b->dir, b->text, a->dir, a->text, NULL);
	return 0;
}

/* Who lists the directory finds new where old is, which is about to be removed. vfs_lock held. */
static void
vname_take_place(struct vname *new, struct vname *old)
{
	new->cookie = old->cookie;
	list_remove(&new->sibling);
	list_append(&old->sibling, &new->sibling);
	if (new->dir->listed == old)
		new->dir->listed = new;
}

/*
 * Renames. gone[] gets the vnodes whose names were removed, with their references. vfs_lock held.
 */
static int
rename_locked(struct walk *from, struct walk *to, unsigned flags, struct vnode *gone[2])
{
	struct vname *n, *old, *new;
	struct vnode *vn;
	int error = find_removable(from, -EBUSY, &n);

	if (error < 0)
		return error;
	vn = n->vn;
	walk_hold(from, vnode_ref(vn)); /* nor is its name forgotten now */
	if (from->dir->dev != to->dir->dev)
		return -EXDEV;
	if (flags & RENAME_EXCHANGE) {
		error = find_removable(to, -EBUSY, &old);
		if (error == 0)
			error = must_be_idle(from->dir, vn);
		if (error == 0)
			error = must_be_idle(to->dir, old->vn);
		n = dir_find(from->dir, from->name);
		if (error == 0 && (n == NULL || n->vn != vn))
			error = -ENOENT;
		return error == 0 && n != old ? vname_exchange(n, old) : error;
	}
	if (to->name[0] == '\0' || name_is_dot(to->name))
		return -EBUSY;
	error = vfs_may_change(to);
	if (error < 0)
		return error;
	if (to->want_dir && !S_ISDIR(vn->mode))
		return -ENOTDIR;
	if (is_below(to->dir, vn))
		return -EINVAL; /* a directory cannot move into itself */
	error = dir_look(to->dir, to->name);
	n = dir_find(from->dir, from->name); /* it may have gone meanwhile */
	if (error == 0 && (n == NULL || n->vn != vn))
		error = -ENOENT;
	if (error < 0)
		return error;
	old = dir_find(to->dir, to->name);
	if (old != NULL && (flags & RENAME_NOREPLACE))
		return -EEXIST;
	if (old != NULL && old->vn == vn)
		return 0;
	if (old != NULL)
		error = may_replace(vn, to, old->vn);
	if (error == 0)
		error = may_move(vn, NULL, n->dir, to->dir);
	if (error == 0)
		error = must_be_idle(from->dir, vn);
	if (error == 0 && old != NULL)
		error = must_be_empty(old->vn);
	if (error < 0)
		return error;
	new = vname_alloc(to->dir, to->name);
	if (new == NULL)
		return -ENOSPC;
	if (n->dir->ops->rename != NULL)
		error = n->dir->ops->rename(n->dir, n->text, vn, to->dir, to->name,
					    old != NULL ? old->vn : NULL, false);
	if (error < 0) {
		vname_free(new);
		return error;
	}
	vname_enter(new, vnode_ref(vn));
	gone[0] = vn;
	dir_unlink(n);
	if (old != NULL) {
		gone[1] = old->vn;
		vname_take_place(new, old);
		dir_unlink(old);
	}
	fsnotify_move(vn, from->dir, from->name, to->dir, to->name, gone[1]);
	return 0;
}

int
vnode_rename(struct vnode *cwd_from, const char *from, struct vnode *cwd_to, const char *to,
	     unsigned flags)
{
	struct vnode *gone[2] = {NULL, NULL};
	struct walk a = {0}, b = {0};
	int error;

	mutex_lock(&vfs_lock);
	error = path_walk(cwd_from, from, &a);
	if (error == 0) {
		walk_hold(&a, vnode_ref(a.dir)); /* the second walk may make the kernel remove it */
		error = path_walk(cwd_to, to, &b);
	}
	if (error == 0) {
		walk_hold(&b,
			  vnode_ref(b.dir)); /* rename_locked() looks for the first name again */
		error = rename_locked(&a, &b, flags, gone);
	}
	mutex_unlock(&vfs_lock);
	walk_done(&a);
	walk_done(&b);
	CTR3(KTR_VOP, "rename: from %s to %s error %d", vfs_trace_name(from), vfs_trace_name(to),
	     -error);
	vnode_unref(gone[0]);
	vnode_unref(gone[1]);
	return error;
}
