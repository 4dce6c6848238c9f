/*
 * vfs.c - the tree of names: walking paths, making, removing and renaming.
 *
 * vfs_lock is held while a path is walked part by part, so a walk sees the tree before or after a
 * change, never in between. Invariant: a vnode that leaves the tree is released after the lock,
 * since freeing may take long. Locking: vfs.h.
 */
#include "kernel/fs/vfs.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "ktr/sdt.h"

#define NO_VNODE ((struct vnode *)NULL) /* for a probe: after an error there is none */

SDT_PROVIDER_DECLARE(vfs);
SDT_PROBE_DEFINE_TEXT(vfs, , , lookup, "lookup", ": vnode %p name %s error %d", 3, "struct vnode *",
		      "char *", "int");
SDT_PROBE_DEFINE_TEXT(vfs, , , create, "create", ": vnode %p name %s error %d", 3, "struct vnode *",
		      "char *", "int");
SDT_PROBE_DEFINE_TEXT(vfs, , , remove, "remove", ": vnode %p name %s error %d", 3, "struct vnode *",
		      "char *", "int");

#define STICKY \
	01000 /* directory: names are removed by the owner of the file or of the directory only */

struct mutex vfs_lock = MUTEX_INIT("vfs");
struct vnode *vfs_root;

/* A directory that the kernel fills has data of its own. */
static void
dir_destroy(struct vnode *vn)
{
	kfree(vn->data);
}

static const struct vnode_ops dir_ops = {.destroy = dir_destroy};

/* The result of a walk: the directory of the path's last part, and that part. */
struct walk {
	struct vnode *dir;
	bool want_dir;           /* the path ends with a slash */
	char name[NAME_MAX + 1]; /* "" if the path is the root itself */
};

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

/* Finds name in dir, which the user must be allowed to search. */
static int
step(struct vnode *dir, const char *name, struct vnode **to)
{
	int error = !S_ISDIR(dir->mode) ? -ENOTDIR : vnode_access(dir, VNODE_EXEC);

	if (error < 0)
		return error;
	if (strcmp(name, ".") == 0)
		*to = dir;
	else if (strcmp(name, "..") == 0)
		*to = dir->parent;
	else {
		dir_fill(dir);
		*to = dir_find(dir, name);
	}
	return *to != NULL ? 0 : -ENOENT;
}

/* Walks all parts of the path but the last. vfs_lock held. */
static int
walk(struct vnode *cwd, const char *path, struct walk *w)
{
	char name[NAME_MAX + 1];
	int n;

	if (*path == '\0')
		return -ENOENT;
	w->dir = *path == '/' || cwd == NULL ? vfs_root : cwd;
	w->want_dir = false;
	w->name[0] = '\0';
	while ((n = next_part(&path, name)) > 0) {
		int error = w->name[0] != '\0' ? step(w->dir, w->name, &w->dir) : 0;

		if (error < 0)
			return error;
		memcpy(w->name, name, (size_t)n + 1);
		w->want_dir = *path == '/';
	}
	return n;
}

/* Finds the last part. vfs_lock held; no reference is taken. */
static int
walk_end(const struct walk *w, struct vnode **vn)
{
	int error = 0;

	*vn = w->dir;
	if (w->name[0] != '\0')
		error = step(w->dir, w->name, vn);
	if (error == 0 && w->want_dir && !S_ISDIR((*vn)->mode))
		error = -ENOTDIR;
	return error;
}

struct vnode *
vnode_lookup(struct vnode *cwd, const char *path, int *err)
{
	struct vnode *vn = NULL;
	struct walk w;

	mutex_lock(&vfs_lock);
	*err = walk(cwd, path, &w);
	if (*err == 0)
		*err = walk_end(&w, &vn);
	if (*err == 0)
		vnode_ref(vn);
	mutex_unlock(&vfs_lock);
	if (*err == 0)
		SDT_CTR2(vfs, , , lookup, SDT_ARGS3(vn, vfs_trace_name(path), 0), KTR_VFS,
			 "lookup hit: name %s ino %lu", vfs_trace_name(path), vn->ino);
	else
		SDT_CTR2(vfs, , , lookup, SDT_ARGS3(NO_VNODE, vfs_trace_name(path), -*err), KTR_VFS,
			 "lookup miss: name %s error %d", vfs_trace_name(path), -*err);
	return *err == 0 ? vn : NULL;
}

/* May the user add and remove names in w->dir? vfs_lock held. */
static int
may_change(const struct walk *w)
{
	if (!S_ISDIR(w->dir->mode))
		return -ENOTDIR;
	if (w->dir->fixed)
		return -EPERM;
	if (w->dir->parent == NULL)
		return -ENOENT;
	return vnode_access(w->dir, VNODE_WRITE | VNODE_EXEC);
}

static bool
is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Makes a vnode with a reference for the tree and one for the caller. vfs_lock held. */
static int
create_locked(const struct walk *w, uint32_t mode, struct vnode **vn)
{
	int error = may_change(w);

	/* The ".." of a removed directory names nothing. */
	if (is_dot(w->name) && w->dir->parent == NULL)
		return -ENOENT;
	if (w->name[0] == '\0' || is_dot(w->name))
		return -EEXIST;
	if (error == -ENOTDIR || error == -ENOENT)
		return error;
	if (dir_find(w->dir, w->name) != NULL)
		return -EEXIST;
	if (error < 0)
		return error;
	if (w->want_dir && !S_ISDIR(mode))
		return -EISDIR;
	*vn = vnode_alloc(mode, S_ISDIR(mode) ? &dir_ops : &ramfs_file_ops, NULL);
	if (*vn == NULL)
		return -ENOSPC;
	error = dir_link(w->dir, *vn, w->name);
	if (error == 0)
		vnode_ref(*vn);
	else
		vnode_unref(*vn);
	return error;
}

struct vnode *
vnode_create(struct vnode *cwd, const char *path, uint32_t mode, int *err)
{
	struct vnode *vn = NULL;
	struct walk w;

	mutex_lock(&vfs_lock);
	*err = walk(cwd, path, &w);
	if (*err == 0)
		*err = create_locked(&w, mode, &vn);
	mutex_unlock(&vfs_lock);
	SDT_CTR3(vfs, , , create, SDT_ARGS3(*err == 0 ? vn : NO_VNODE, vfs_trace_name(path), -*err),
		 KTR_VOP, "create: name %s mode %#o error %d", vfs_trace_name(path), mode, -*err);
	return *err == 0 ? vn : NULL;
}

struct vnode *
vnode_lookup_or_create(struct vnode *cwd, const char *path, uint32_t mode, bool *made, int *err)
{
	struct vnode *vn = NULL;
	struct walk w;
	int error;

	*made = false;
	mutex_lock(&vfs_lock);
	error = walk(cwd, path, &w);
	if (error == 0) {
		error = walk_end(&w, &vn);
		if (error == 0)
			vnode_ref(vn);
		*made = error == -ENOENT;
	}
	if (*made)
		error = create_locked(&w, mode, &vn);
	mutex_unlock(&vfs_lock);
	CTR3(KTR_VOP, "lookup or create: name %s made %d error %d", vfs_trace_name(path), *made,
	     -error);
	if (*made)
		SDT_PROBE3(vfs, , , create, error == 0 ? vn : NO_VNODE, vfs_trace_name(path),
			   -error);
	else
		SDT_PROBE3(vfs, , , lookup, error == 0 ? vn : NO_VNODE, vfs_trace_name(path),
			   -error);
	*err = error;
	return error == 0 ? vn : NULL;
}

/* Makes a vnode with a name. vfs_lock held. */
static struct vnode *
add_locked(struct vnode *dir, const char *name, uint32_t mode, const struct vnode_ops *ops,
	   void *data, int *err)
{
	struct vnode *vn = vnode_alloc(mode, ops != NULL ? ops : &dir_ops, data);

	*err = -ENOMEM;
	if (vn == NULL)
		return NULL;
	*err = dir_find(dir, name) != NULL ? -EEXIST : dir_link(dir, vn, name);
	if (*err == 0)
		return vn;
	vnode_free(vn);
	return NULL;
}

struct vnode *
vnode_add(struct vnode *dir, const char *name, uint32_t mode, const struct vnode_ops *ops,
	  void *data, int *err)
{
	struct vnode *vn;

	mutex_lock(&vfs_lock);
	vn = add_locked(dir, name, mode, ops, data, err);
	if (vn != NULL)
		vnode_ref(vn);
	mutex_unlock(&vfs_lock);
	return vn;
}

struct vnode *
vnode_fill(struct vnode *dir, const char *name, uint32_t mode, const struct vnode_ops *ops,
	   void *data)
{
	int error;
	struct vnode *vn = add_locked(dir, name, mode, ops, data, &error);

	if (vn == NULL && error == -ENOMEM)
		dir->missing = true;
	return vn;
}

void
vnode_unfill(struct vnode *vn)
{
	while (!list_empty(&vn->children))
		vnode_unfill(list_entry(vn->children.next, struct vnode, sibling));
	vn->fill = NULL; /* somebody may still look into it */
	dir_unlink(vn);
	vnode_unref(vn);
}

void
dir_fill(struct vnode *dir)
{
	void (*fill)(struct vnode *) = dir->fill;

	if (fill == NULL || !dir->missing)
		return;
	dir->missing = false;
	fill(dir);
}

static int
may_remove(const struct walk *w, const struct vnode *vn)
{
	uint32_t user = vfs_user();

	if ((w->dir->mode & STICKY) && user != 0 && user != vn->uid && user != w->dir->uid)
		return -EPERM;
	return vn->fixed ? -EBUSY : 0;
}

/* Finds what w leads to, if it may be removed. vfs_lock held. */
static int
find_removable(const struct walk *w, struct vnode **vn)
{
	int error;

	if (w->name[0] == '\0')
		return -EBUSY; /* the root */
	if (is_dot(w->name))
		return -EINVAL;
	error = walk_end(w, vn);
	if (error == 0)
		error = may_change(w);
	return error == 0 ? may_remove(w, *vn) : error;
}

int
vnode_remove(struct vnode *cwd, const char *path, bool dir)
{
	struct vnode *vn = NULL;
	struct walk w;
	int error;

	mutex_lock(&vfs_lock);
	error = walk(cwd, path, &w);
	if (error == 0)
		error = find_removable(&w, &vn);
	if (error == 0 && dir && !S_ISDIR(vn->mode))
		error = -ENOTDIR;
	else if (error == 0 && !dir && S_ISDIR(vn->mode))
		error = -EISDIR;
	else if (error == 0 && !list_empty(&vn->children))
		error = -ENOTEMPTY;
	if (error == 0)
		dir_unlink(vn);
	mutex_unlock(&vfs_lock);
	SDT_CTR2(vfs, , , remove,
		 SDT_ARGS3(error == 0 ? vn : NO_VNODE, vfs_trace_name(path), -error), KTR_VOP,
		 "remove: name %s error %d", vfs_trace_name(path), -error);
	if (error == 0)
		vnode_unref(vn);
	return error;
}

/* May `from` replace `to`? */
static int
may_replace(const struct vnode *from, const struct vnode *to)
{
	if (S_ISDIR(from->mode) != S_ISDIR(to->mode))
		return S_ISDIR(to->mode) ? -EISDIR : -ENOTDIR;
	return list_empty(&to->children) ? 0 : -ENOTEMPTY;
}

/* Renames. *gone: the vnode that lost its name, with a reference. vfs_lock held. */
static int
rename_locked(const struct walk *from, const struct walk *to, struct vnode **gone)
{
	struct vnode *vn, *old;
	int error = find_removable(from, &vn);

	if (error < 0)
		return error;
	if (to->name[0] == '\0' || is_dot(to->name))
		return -EBUSY;
	error = may_change(to);
	if (error < 0)
		return error;
	if (to->want_dir && !S_ISDIR(vn->mode))
		return -ENOTDIR;
	for (struct vnode *d = to->dir; d != vfs_root; d = d->parent) {
		if (d == vn)
			return -EINVAL; /* a directory cannot move into itself */
	}
	old = dir_find(to->dir, to->name);
	if (old == vn)
		return 0;
	if (old != NULL && (error = may_replace(vn, old)) == 0)
		error = may_remove(to, old);
	if (error < 0)
		return error;
	error = dir_link(to->dir, vn, to->name);
	if (error < 0)
		return -ENOSPC;
	if (old != NULL)
		dir_unlink(old);
	*gone = old;
	return 0;
}

int
vnode_rename(struct vnode *cwd_from, const char *from, struct vnode *cwd_to, const char *to)
{
	struct vnode *gone = NULL;
	struct walk a, b;
	int error;

	mutex_lock(&vfs_lock);
	error = walk(cwd_from, from, &a);
	if (error == 0)
		error = walk(cwd_to, to, &b);
	if (error == 0)
		error = rename_locked(&a, &b, &gone);
	mutex_unlock(&vfs_lock);
	CTR3(KTR_VOP, "rename: from %s to %s error %d", vfs_trace_name(from), vfs_trace_name(to),
	     -error);
	vnode_unref(gone);
	return error;
}

/* Makes a directory in the root with the kernel's choice of mode, before archives are unpacked. */
static struct vnode *
make_root_dir(const char *name, uint32_t mode)
{
	int error;
	struct vnode *vn = vnode_add(vfs_root, name, S_IFDIR | mode, NULL, NULL, &error);

	if (vn == NULL)
		panic("vfs: /%s: error %d", name, -error);
	return vn;
}

void
vfs_init(void)
{
	struct vnode *dev;

	vfs_root = vnode_alloc(S_IFDIR | 0755, &dir_ops, NULL);
	if (vfs_root == NULL)
		panic("vfs: no memory for the root directory");
	vfs_root->parent = vfs_root;
	vnode_unref(make_root_dir("tmp", STICKY | 0777));
	dev = make_root_dir("dev", 0755);
	dev->fixed = true;
	devfs_init(dev);
	vnode_unref(dev);
}
