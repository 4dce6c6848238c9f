/*
 * vfs.c - the tree of names: finding, making, linking, removing and renaming.
 *
 * vfs_lock is held while a path is walked part by part, so a walk sees the tree before or after a
 * change, never in between. Invariant: a vnode that a user removes is released after the lock,
 * since freeing may take long. Locking: vfs.h.
 */
#include "kernel/fs/vfs.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/statfs.h"
#include "kernel/fs/cache/pagecache.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/fsnotify.h"
#include "kernel/fs/pipe/pipe.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"
#include "ktr/sdt.h"

#define NO_VNODE ((struct vnode *)NULL) /* what a probe gets after an error: there is no vnode */

SDT_PROVIDER_DECLARE(vfs);
SDT_PROBE_DEFINE_TEXT(vfs, , , lookup, "lookup", ": vnode %p name %s error %d", 3, "struct vnode *",
		      "char *", "int");
SDT_PROBE_DEFINE_TEXT(vfs, , , create, "create", ": vnode %p name %s error %d", 3, "struct vnode *",
		      "char *", "int");

struct mutex vfs_lock = MUTEX_INIT("vfs");
struct vnode *vfs_root;

/* Frees the kernel's data of a directory that the kernel fills. */
static void
dir_destroy(struct vnode *vn)
{
	kfree(vn->data);
}

static const struct vnode_ops dir_ops = {.destroy = dir_destroy, .tmpfile = tmpfs_make_unnamed};

static void
link_destroy(struct vnode *vn)
{
	uidinfo_free(vn->ui, vn->data);
}

static const struct vnode_ops link_ops = {.destroy = link_destroy};

static struct vnode *
vfs_lookup(struct vnode *cwd, const char *path, bool follow, int *err)
{
	struct vnode *vn = NULL;
	struct walk w = {0};

	mutex_lock(&vfs_lock);
	*err = path_walk(cwd, path, &w);
	if (*err == 0)
		*err = walk_end(&w, follow, &vn);
	if (*err == 0)
		vnode_ref(vn);
	mutex_unlock(&vfs_lock);
	walk_done(&w);
	if (*err == 0)
		SDT_CTR2(vfs, , , lookup, SDT_ARGS3(vn, vfs_trace_name(path), 0), KTR_VFS,
			 "lookup hit: name %s ino %lu", vfs_trace_name(path), vn->ino);
	else
		SDT_CTR2(vfs, , , lookup, SDT_ARGS3(NO_VNODE, vfs_trace_name(path), -*err), KTR_VFS,
			 "lookup miss: name %s error %d", vfs_trace_name(path), -*err);
	return *err == 0 ? vn : NULL;
}

struct vnode *
vnode_lookup(struct vnode *cwd, const char *path, int *err)
{
	return vfs_lookup(cwd, path, true, err);
}

struct vnode *
vnode_lookup_link(struct vnode *cwd, const char *path, int *err)
{
	return vfs_lookup(cwd, path, false, err);
}

struct vnode *
vnode_dir(const struct vnode *vn)
{
	struct vnode *dir;

	mutex_lock(&vfs_lock);
	dir = vn->name != NULL ? vnode_ref(vn->name->dir) : NULL;
	mutex_unlock(&vfs_lock);
	return dir;
}

int
vfs_may_change(const struct walk *w)
{
	if (!S_ISDIR(w->dir->mode))
		return -ENOTDIR;
	if (w->dir->fixed)
		return -EPERM;
	if (w->dir->parent == NULL)
		return -ENOENT;
	return vnode_access(w->dir, VNODE_WRITE | VNODE_EXEC);
}

/* May the user give a name that w leads to? vfs_lock held. */
static int
may_create(const struct walk *w)
{
	int error = vfs_may_change(w), filled;

	/* The ".." of a removed directory names nothing. */
	if (name_is_dot(w->name) && w->dir->parent == NULL)
		return -ENOENT;
	if (w->name[0] == '\0' || name_is_dot(w->name))
		return -EEXIST;
	if (error == -ENOTDIR || error == -ENOENT)
		return error;
	filled = dir_look(w->dir, w->name);
	if (filled != 0)
		return filled;
	return dir_find(w->dir, w->name) != NULL ? -EEXIST : error;
}

static struct vnode *
make_vnode(const struct vnode_kind *kind)
{
	uint32_t mode = kind->mode;
	const char *to = kind->to;
	struct vnode *vn = vnode_alloc(mode,
				       S_ISDIR(mode)    ? &dir_ops
				       : S_ISLNK(mode)  ? &link_ops
				       : S_ISFIFO(mode) ? &fifo_ops
							: &ramfs_file_ops,
				       NULL);

	if (vn != NULL && (S_ISCHR(mode) || S_ISBLK(mode) || S_ISSOCK(mode))) {
		vn->rdev = kind->rdev;
		devfs_make_node(vn);
	}
	if (vn == NULL || !S_ISLNK(mode))
		return vn;
	vn->size = strlen(to);
	vn->data = uidinfo_alloc(vn->ui, vn->size + 1);
	if (vn->data == NULL) {
		vnode_unref(vn);
		return NULL;
	}
	memcpy(vn->data, to, vn->size + 1);
	return vn;
}

/* Makes a vnode with a reference for its name and one for the caller. vfs_lock held. */
static int
create_locked(const struct walk *w, const struct vnode_kind *kind, struct vnode **vn)
{
	uint32_t mode = kind->mode;
	int error = may_create(w);
	struct vname *n;

	if (error < 0)
		return error;
	if (w->want_dir && !S_ISDIR(mode))
		return kind->to_open ? -EISDIR : -ENOENT;
	if ((S_ISCHR(mode) || S_ISBLK(mode)) && !capable(CAP_MKNOD))
		return -EPERM;
	error = -ENOSPC;
	n = vname_alloc(w->dir, w->name); /* first: what is on a disk then, the tree has, too */
	if (n == NULL)
		return error;
	*vn = w->dir->ops->create != NULL ? w->dir->ops->create(w->dir, w->name, kind, &error)
					  : make_vnode(kind);
	if (*vn == NULL) {
		vname_free(n);
		return error;
	}
	if (w->dir->ops->create == NULL)
		vnode_inherit(*vn, w->dir);
	vname_enter(n, vnode_ref(*vn));
	fsnotify_name(w->dir, w->name, mode, IN_CREATE);
	return 0;
}

int
vfs_change_by(const struct walk *w, int (*op)(struct vnode *dir, const char *name), uint32_t event)
{
	struct vnode *dir = vnode_ref(w->dir);
	int error = vnode_access(dir, VNODE_WRITE | VNODE_EXEC);

	if (error == 0 && (w->name[0] == '\0' || name_is_dot(w->name)))
		error = -EEXIST;
	mutex_unlock(&vfs_lock);
	if (error == 0)
		error = op(dir, w->name);
	if (error == 0)
		fsnotify_name(dir, w->name, S_IFDIR, event);
	vnode_unref(dir);
	mutex_lock(&vfs_lock);
	return error;
}

static struct vnode *
vfs_create(struct vnode *cwd, const char *path, const struct vnode_kind *kind, int *err)
{
	uint32_t mode = kind->mode;
	struct vnode *vn = NULL;
	struct walk w = {0};

	mutex_lock(&vfs_lock);
	*err = path_walk(cwd, path, &w);
	if (*err == 0 && S_ISDIR(mode) && w.dir->ops->mkdir != NULL) {
		*err = vfs_change_by(&w, w.dir->ops->mkdir, IN_CREATE);
		if (*err == 0)
			*err = path_walk(cwd, path, &w);
		if (*err == 0)
			*err = walk_end(&w, false, &vn);
		if (*err == 0)
			vnode_ref(vn);
	} else if (*err == 0) {
		*err = create_locked(&w, kind, &vn);
	}
	mutex_unlock(&vfs_lock);
	walk_done(&w);
	SDT_CTR3(vfs, , , create, SDT_ARGS3(*err == 0 ? vn : NO_VNODE, vfs_trace_name(path), -*err),
		 KTR_VOP, "create: name %s mode %#o error %d", vfs_trace_name(path), mode, -*err);
	return *err == 0 ? vn : NULL;
}

struct vnode *
vnode_create(struct vnode *cwd, const char *path, uint32_t mode, int *err)
{
	return vfs_create(cwd, path, &(struct vnode_kind){.mode = mode, .to_open = true}, err);
}

struct vnode *
vnode_mknod(struct vnode *cwd, const char *path, uint32_t mode, uint64_t rdev, int *err)
{
	return vfs_create(cwd, path, &(struct vnode_kind){.mode = mode, .rdev = rdev}, err);
}

struct vnode *
vfs_symlink(struct vnode *cwd, const char *path, const char *to, int *err)
{
	return vfs_create(cwd, path, &(struct vnode_kind){.mode = S_IFLNK | 0777, .to = to}, err);
}

/* vfs_lock held. */
static int
link_locked(const struct walk *w, struct vnode *vn)
{
	bool ours = vn->ops == &ramfs_file_ops || vn->ops == &link_ops || !S_ISREG(vn->mode) ||
		    vn->ops->readpage != NULL;
	bool other = !ours || w->dir->fixed || w->dir->dev != vn->dev;
	int error = S_ISDIR(vn->mode) ? -EPERM : other ? -EXDEV : may_create(w);
	struct vname *n;

	if (error < 0)
		return error;
	if ((vnode_is_gone(vn) && !vn->linkable) || w->want_dir)
		return -ENOENT;
	n = vname_alloc(w->dir, w->name);
	if (n == NULL)
		return -ENOSPC;
	if (w->dir->ops->enter != NULL)
		error = w->dir->ops->enter(w->dir, w->name, vn);
	if (error < 0) {
		vname_free(n);
		return error;
	}
	vname_enter(n, vnode_ref(vn));
	vn->linkable = false;
	fsnotify_inode(vn, IN_ATTRIB);
	fsnotify_name(w->dir, w->name, vn->mode, IN_CREATE);
	return 0;
}

int
vnode_link(struct vnode *vn, struct vnode *cwd, const char *path)
{
	struct walk w = {0};
	int error;

	mutex_lock(&vfs_lock);
	error = path_walk(cwd, path, &w);
	if (error == 0)
		error = link_locked(&w, vn);
	mutex_unlock(&vfs_lock);
	walk_done(&w);
	CTR3(KTR_VOP, "link: name %s ino %lu error %d", vfs_trace_name(path), vn->ino, -error);
	return error;
}

struct vnode *
vnode_lookup_or_create(struct vnode *cwd, const char *path, uint32_t mode, bool follow, bool *made,
		       int *err)
{
	struct vnode *vn = NULL;
	struct walk w = {0};
	int error;

	*made = false;
	mutex_lock(&vfs_lock);
	error = path_walk(cwd, path, &w);
	if (error == 0) {
		error = walk_end(&w, follow, &vn);
		if (error == 0)
			vnode_ref(vn);
		*made = error == -ENOENT && w.last;
	}
	if (*made)
		error = create_locked(&w, &(struct vnode_kind){.mode = mode, .to_open = true}, &vn);
	mutex_unlock(&vfs_lock);
	walk_done(&w);
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

int
vnode_enter(struct vnode *dir, const char *name, struct vnode *vn)
{
	struct vname *n = vname_alloc(dir, name);

	if (n == NULL)
		return -ENOMEM;
	vname_enter(n, vn);
	return 0;
}

/* Makes a vnode with a name. vfs_lock held. What a directory fills in is no debt of who looks. */
static struct vnode *
add_locked(struct vnode *dir, const char *name, uint32_t mode, const struct vnode_ops *ops,
	   void *data, int *err)
{
	struct vnode *vn = vnode_alloc_for(dir->fill != NULL ? dir->ui : proc_uidinfo(), mode,
					   ops != NULL ? ops : &dir_ops, data);

	*err = -ENOMEM;
	if (vn == NULL)
		return NULL;
	*err = dir_find(dir, name) != NULL ? -EEXIST : vnode_enter(dir, name, vn);
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
	if (vn != NULL) {
		vnode_ref(vn);
		fsnotify_name(dir, name, mode, IN_CREATE);
	}
	mutex_unlock(&vfs_lock);
	return vn;
}

void
vnode_remove_name(struct vnode *vn)
{
	bool named;

	mutex_lock(&vfs_lock);
	named = vn->name != NULL;
	if (named) {
		fsnotify_name(vn->name->dir, vn->name->text, vn->mode, IN_DELETE);
		dir_unlink(vn->name);
	}
	mutex_unlock(&vfs_lock);
	if (named)
		vnode_unref(vn);
}

void
vnode_fill_failed(struct vnode *dir)
{
	dir->missing = dir->no_memory = true;
}

struct vnode *
vnode_fill(struct vnode *dir, const char *name, uint32_t mode, const struct vnode_ops *ops,
	   void *data)
{
	int error;
	struct vnode *vn = add_locked(dir, name, mode, ops, data, &error);

	if (vn == NULL && error == -ENOMEM)
		vnode_fill_failed(dir);
	return vn;
}

struct vnode *
vnode_alloc_dir(uint32_t bits)
{
	return vnode_alloc(S_IFDIR | bits, &dir_ops, NULL);
}

bool
vnode_has(const struct vnode *dir, const char *name)
{
	return dir_find(dir, name) != NULL;
}

struct vnode *
vnode_child(const struct vnode *dir, const char *name)
{
	const struct vname *n = dir_find(dir, name);

	return n != NULL ? n->vn : NULL;
}

struct list names_leaving = LIST_INIT(names_leaving);

/* Removes a name, and all below it, what is deepest first. vfs_lock held. */
static void
remove_all(struct vname *top, struct list *gone)
{
	struct vname *n = top;
	bool last;

	do {
		struct vname *up;

		while (!list_empty(&n->vn->children))
			n = list_entry(n->vn->children.next, struct vname, sibling);
		up = n->dir->name;
		last = n == top;
		n->vn->fill = NULL; /* somebody may still look into it */
		dir_take(n);
		list_append(gone, &n->sibling);
		n = up;
	} while (!last);
}

void
names_free(struct list *gone)
{
	list_for_each_entry_safe (struct vname, n, gone, sibling) {
		vnode_unref(n->vn);
		vname_free(n);
	}
	list_init(gone);
}

void
dir_empty(struct vnode *dir, struct list *gone)
{
	while (!list_empty(&dir->children))
		remove_all(list_entry(dir->children.next, struct vname, sibling), gone);
}

void
vnode_sweep(struct vnode *dir, bool (*stale)(const struct vnode *vn, const char *name))
{
	struct list gone = LIST_INIT(gone);

	list_for_each_entry_safe (struct vname, n, &dir->children, sibling)
		if (stale(n->vn, n->text))
			remove_all(n, &gone);
	names_free(&gone);
}

bool
vnode_keeps_names(const struct vnode *dir)
{
	for (const struct vname *n = NULL; (n = dir_next_below(dir, n)) != NULL;)
		if (n->vn->cover != NULL)
			return true;
	return dir->cover != NULL;
}

void
vnode_forget(struct vnode *dir, const char *name)
{
	struct vname *n = name != NULL ? dir_find(dir, name) : NULL;

	if (name == NULL)
		dir_empty(dir, &names_leaving);
	else if (n != NULL)
		remove_all(n, &names_leaving);
	if (!writeback_trim())
		names_free(&names_leaving);
}

void
vnode_forget_dir(struct vnode *dir)
{
	vnode_forget(dir->name->dir, dir->name->text);
}

void
vnode_forget_idle(struct vnode *dir, unsigned most)
{
	struct list gone = LIST_INIT(gone);

	dir_forget(dir, &gone, most);
	names_free(&gone);
}

int
dir_look(struct vnode *dir, const char *name)
{
	int error = dir->ops->revalidate != NULL ? dir->ops->revalidate(dir, name) : dir_fill(dir);

	return error == -ENOENT && dir->ops->revalidate != NULL ? 0 : error;
}

int
dir_fill(struct vnode *dir)
{
	void (*fill)(struct vnode *) = dir->fill;
	int error;

	if (!dir->missing)
		return 0;
	if (dir->ops->load != NULL) {
		error = dir->ops->load(dir);
		dir->missing = error != 0;
		if (error == -ENOMEM)
			vnode_forget_idle(dir, UINT32_MAX); /* others need the memory */
		return error;
	}
	dir->missing = dir->no_memory = false;
	if (fill != NULL)
		fill(dir);
	return dir->no_memory ? -ENOMEM : 0;
}

/* Makes a directory with the kernel's choice of mode, before archives are unpacked. */
static struct vnode *
vfs_make_dir(struct vnode *in, const char *name, uint32_t mode)
{
	int error;
	struct vnode *vn = vnode_add(in, name, S_IFDIR | mode, NULL, NULL, &error);

	if (vn == NULL)
		panic("vfs: /%s: error %d", name, -error);
	return vn;
}

void
vfs_init(void)
{
	static const struct vfs_type devtmpfs = {.name = "devtmpfs", .magic = TMPFS_MAGIC};
	struct vnode *dev, *shm;

	vfs_root = vnode_alloc_dir(0755);
	if (vfs_root == NULL)
		panic("vfs: no memory for the root directory");
	vfs_root->parent = vfs_root;
	vfs_mount_at_boot(vfs_root, &tmpfs_type);
	vnode_unref(vfs_make_dir(vfs_root, "tmp", STICKY | 0777));
	dev = vfs_make_dir(vfs_root, "dev", 0755);
	dev->fixed = true;
	vfs_mount_at_boot(dev, &devtmpfs);
	devfs_init(dev);
	bdev_init(dev);
	shm = vfs_make_dir(dev, "shm", STICKY | 0777);
	vfs_mount_at_boot(shm, &tmpfs_type);
	vnode_unref(shm);
	vnode_unref(dev);
}
