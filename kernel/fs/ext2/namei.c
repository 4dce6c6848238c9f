/*
 * namei.c - names of ext2 as the tree of names has them (node.h). The tree is a cache: the names of
 * a directory come to it when somebody looks for one, and all changes are made on the disk first.
 * Locking: vfs_lock is held, so nobody else changes names; then the mount's lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/ext2/node.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/proc/task.h"
#include "kernel/sched/thread.h"
#include "ktr/ktr.h"

#define RETRY_NS 1000000

struct load {
	struct vnode *dir;
	struct vnode *drop; /* a reference that nobody wants */
};

/* As ext2_dir_fn. A name that leads nowhere is left out. */
static int
load_name(void *arg, const char *text, size_t len, uint32_t ino)
{
	struct load *l = arg;
	struct ext2_mount *m = ext2_node(l->dir)->m;
	char name[EXT2_NAME_MAX + 1];
	struct vnode *vn;
	int error;

	memcpy(name, text, len);
	name[len] = '\0';
	if (vnode_has(l->dir, name))
		return 0;
	vn = ext2_iget(m, ino, &error);
	if (vn == NULL)
		return error == -EUCLEAN ? 0 : error;
	if (S_ISDIR(vn->mode) && (vn->links > 0 || ino == EXT2_ROOT_INO)) {
		l->drop = vn;
		return ext2_error(&m->fs, "a directory with two names", ino);
	}
	error = vnode_enter(l->dir, name, vn);
	if (error != 0)
		l->drop = vn;
	return error;
}

static int
ext2_load(struct vnode *dir)
{
	struct ext2_node *node = ext2_node(dir);
	struct load l = {dir, NULL};
	int error;

	if (dir->parent == NULL)
		return -ENOENT; /* it was removed */
	do { /* once more when a file is about to go, which may have to be written first */
		mutex_lock(&node->m->lock);
		error = ext2_dir_walk(&node->m->fs, &node->i, load_name, &l);
		mutex_unlock(&node->m->lock);
	} while (error == -EAGAIN && thread_sleep_ns(RETRY_NS, 0, "ext2") == 0);
	vnode_unref(l.drop);
	CTR2(KTR_VOP, "ext2 load: ino %lu error %d", dir->ino, -error);
	return error;
}

/* The node has changed. */
static void
ext2_touch(struct ext2_node *node)
{
	node->i.ctime = ext2_seconds();
	node->i.dirty = true;
	ext2_note_dirty(node);
}

/* The directory's names have changed. Its time is set before a pass can write it. */
static void
touch_dir(struct ext2_node *node)
{
	__atomic_store_n(&node->vn->mtime_ns, clock_real_now_ns(), __ATOMIC_RELAXED);
	ext2_touch(node);
}

/* Counts a name more (step 1) or less (-1) of the node's file. A directory counts its own entry,
 * too. */
static void
count_link(struct ext2_node *node, int step)
{
	if (step < 0 && node->i.links == 0)
		ext2_error(&node->m->fs, "a file with more names than it counts", node->i.ino);
	else
		node->i.links =
		    (uint16_t)(S_ISDIR(node->i.mode) && step < 0 ? 0 : node->i.links + step);
	ext2_touch(node);
}

/* A directory was added to the directory, or removed from it. */
static void
count_subdir(struct ext2_node *dir, int step)
{
	if (step < 0 && dir->i.links <= 2) /* its name, and its own entry */
		ext2_error(&dir->m->fs, "a directory with more directories than it counts",
			   dir->i.ino);
	else
		dir->i.links = (uint16_t)(dir->i.links + step);
	ext2_touch(dir);
}

/* Writes the text of a new symbolic link. */
static int
write_text(struct ext2_fs *fs, struct ext2_inode *i, const char *text)
{
	uint32_t block;
	int error;
	char *p;

	i->size = strlen(text);
	if (i->size < sizeof(i->block)) {
		memcpy(i->block, text, i->size);
		return 0;
	}
	if (i->size >= fs->block_size)
		return -ENAMETOOLONG;
	error = ext2_bmap(fs, i, 0, true, &block);
	p = error == 0 ? ext2_getblk(fs, block, &error) : NULL;
	if (p == NULL)
		return error;
	memcpy(p, text, i->size);
	ext2_bdirty(fs, p, fs->block_size);
	ext2_brelse(p);
	return 0;
}

/* Makes a new inode, without a name. */
static int
new_inode(struct ext2_node *dir, const struct vnode_kind *kind, struct ext2_inode *i)
{
	struct ext2_fs *fs = &dir->m->fs;
	bool is_dir = S_ISDIR(kind->mode);
	int error = ext2_new_inode(fs, dir->i.ino, is_dir, &i->ino);

	if (error == 0 && ext2_find_node(dir->m, i->ino) != NULL)
		error = ext2_error(fs, "an inode in use that is said to be free", i->ino);
	if (error != 0)
		return error;
	i->mode = (uint16_t)kind->mode;
	i->links = is_dir ? 2 : 1;
	i->uid = proc_user();
	i->gid = proc_group();
	i->atime = i->ctime = i->mtime = ext2_seconds();
	i->rdev = (uint32_t)kind->rdev;
	if (i->rdev != 0)
		i->block[i->rdev > 0xffff] = i->rdev;
	if (is_dir)
		error = ext2_dir_make(fs, i, dir->i.ino);
	else if (S_ISLNK(kind->mode))
		error = write_text(fs, i, kind->to);
	if (error == 0)
		error = ext2_clear_inode(fs, i->ino);
	if (error != 0)
		ext2_delete_inode(fs, i);
	return error;
}

/* name NULL: it gets none, and goes with its vnode unless it has got one. */
static struct ext2_node *
make_file(struct ext2_node *dir, const char *name, const struct vnode_kind *kind, int *err)
{
	struct ext2_inode i = {0};
	struct ext2_node *node;

	*err = S_ISDIR(kind->mode) && dir->i.links >= EXT2_LINK_MAX ? -EMLINK
								    : new_inode(dir, kind, &i);
	if (*err != 0)
		return NULL;
	node = ext2_make_node(dir->m, &i, err);
	if (node == NULL) {
		ext2_delete_inode(&dir->m->fs, &i);
		return NULL;
	}
	vnode_inherit(node->vn, dir->vn);
	if (name == NULL) {
		node->i.links = 0;
		ext2_touch(node);
		return node;
	}
	*err = ext2_dir_add(&dir->m->fs, &dir->i, name, i.ino, kind->mode);
	if (*err != 0)
		node->i.links = 0; /* it goes with its vnode */
	else if (S_ISDIR(kind->mode))
		count_subdir(dir, 1);
	ext2_touch(node);
	if (*err == 0)
		touch_dir(dir);
	else
		ext2_touch(dir);
	return node;
}

static struct vnode *
ext2_create(struct vnode *dir, const char *name, const struct vnode_kind *kind, int *err)
{
	struct ext2_node *d = ext2_node(dir), *node;

	mutex_lock(&d->m->lock);
	node = make_file(d, name, kind, err);
	mutex_unlock(&d->m->lock);
	if (node == NULL)
		return NULL;
	if (*err == 0) {
		node->vn->missing = false; /* a new directory is empty */
		return node->vn;
	}
	vnode_unref(node->vn);
	return NULL;
}

static struct vnode *
ext2_tmpfile(struct vnode *dir, const struct vnode_kind *kind, int *err)
{
	struct ext2_node *d = ext2_node(dir), *node;

	mutex_lock(&d->m->lock);
	node = make_file(d, NULL, kind, err);
	mutex_unlock(&d->m->lock);
	return node != NULL ? node->vn : NULL;
}

static int
ext2_enter(struct vnode *dir, const char *name, struct vnode *vn)
{
	struct ext2_node *d = ext2_node(dir), *node = ext2_node(vn);
	int error;

	mutex_lock(&d->m->lock);
	error = d->m->fs.read_only ? -EROFS : node->i.links < EXT2_LINK_MAX ? 0 : -EMLINK;
	if (error == 0)
		error = ext2_dir_add(&d->m->fs, &d->i, name, node->i.ino, vn->mode);
	if (error == 0) {
		count_link(node, 1);
		touch_dir(d);
	}
	mutex_unlock(&d->m->lock);
	return error;
}

static int
ext2_leave(struct vnode *dir, const char *name, struct vnode *vn)
{
	struct ext2_node *d = ext2_node(dir), *node = ext2_node(vn);
	struct ext2_walk at;
	int error;

	mutex_lock(&d->m->lock);
	error = d->m->fs.read_only ? -EROFS : ext2_dir_find(&d->m->fs, &d->i, name, &at);
	if (error == 0) {
		ext2_dir_remove(&d->m->fs, &at);
		ext2_brelse(at.block);
		if (S_ISDIR(vn->mode))
			count_subdir(d, -1);
		count_link(node, -1);
		touch_dir(d);
	}
	mutex_unlock(&d->m->lock);
	return error;
}

/* Finds the ".." of what moves from one directory to another, if it is a directory. */
static int
find_up(struct ext2_node *node, const struct ext2_node *from, const struct ext2_node *to,
	struct ext2_walk *up)
{
	return S_ISDIR(node->i.mode) && from != to ? ext2_dir_find(&node->m->fs, &node->i, "..", up)
						   : 0;
}

/*
 * Would `to` get more subdirectories than it may have? It gets `vn`, and loses `gone`, if that is
 * not NULL.
 */
static bool
is_full_of_dirs(const struct ext2_node *to, const struct ext2_node *vn,
		const struct ext2_node *gone)
{
	return S_ISDIR(vn->i.mode) && !(gone != NULL && S_ISDIR(gone->i.mode)) &&
	       to->i.links >= EXT2_LINK_MAX;
}

/* The directory whose ".." was found, if any, has moved from one directory to another. */
static void
move_dir(struct ext2_node *node, struct ext2_walk *up, struct ext2_node *from, struct ext2_node *to)
{
	if (up->entry == NULL)
		return;
	ext2_dir_set(&node->m->fs, up, to->i.ino, S_IFDIR);
	count_subdir(from, -1);
	count_subdir(to, 1);
	ext2_touch(node);
}

/*
 * Gives the node the name `new` in `to`, instead of `name` in `from`. `old` is the node that has
 * the new name, or NULL; with `exchange`, it gets `name`. All that may fail comes before the first
 * change.
 */
static int
rename_node(struct ext2_node *from, const char *name, struct ext2_node *node, struct ext2_node *to,
	    const char *new, struct ext2_node *old, bool exchange)
{
	struct ext2_fs *fs = &node->m->fs;
	struct ext2_walk at[2] = {0}, up[2] = {0}; /* of the node; of old */
	int error = ext2_dir_find(fs, &from->i, name, &at[0]);

	if (error == 0 && from != to &&
	    (is_full_of_dirs(to, node, old) || (exchange && is_full_of_dirs(from, old, node))))
		error = -EMLINK;
	if (error == 0)
		error = find_up(node, from, to, &up[0]);
	if (error == 0 && exchange)
		error = find_up(old, to, from, &up[1]);
	if (error == 0)
		error = old != NULL ? ext2_dir_find(fs, &to->i, new, &at[1])
				    : ext2_dir_add(fs, &to->i, new, node->i.ino, node->i.mode);
	if (error == 0) {
		if (old != NULL)
			ext2_dir_set(fs, &at[1], node->i.ino, node->i.mode);
		if (exchange)
			ext2_dir_set(fs, &at[0], old->i.ino, old->i.mode);
		else
			ext2_dir_remove(fs, &at[0]);
		move_dir(node, &up[0], from, to);
		if (exchange)
			move_dir(old, &up[1], to, from);
		else if (old != NULL && S_ISDIR(old->i.mode))
			count_subdir(to, -1);
		if (!exchange && old != NULL)
			count_link(old, -1);
	}
	for (unsigned i = 0; i < 2; i++) {
		ext2_brelse(at[i].block);
		ext2_brelse(up[i].block);
	}
	return error;
}

static int
ext2_rename(struct vnode *from, const char *name, struct vnode *vn, struct vnode *to,
	    const char *new, struct vnode *old, bool exchange)
{
	struct ext2_node *f = ext2_node(from), *t = ext2_node(to);
	struct ext2_node *o = old != NULL ? ext2_node(old) : NULL;
	int error;

	mutex_lock(&f->m->lock);
	if (f->m->fs.read_only) {
		mutex_unlock(&f->m->lock);
		return -EROFS;
	}
	error = rename_node(f, name, ext2_node(vn), t, new, o, exchange);
	if (error == 0) {
		touch_dir(f);
		touch_dir(t);
		ext2_touch(ext2_node(vn));
	}
	mutex_unlock(&f->m->lock);
	return error;
}

static int
ext2_link_text(const struct vnode *vn, const char **text, struct vnode **to)
{
	*text = ext2_node(vn)->text;
	return 0;
}

const struct vnode_ops ext2_dir_ops = {
    .load = ext2_load,
    .create = ext2_create,
    .tmpfile = ext2_tmpfile,
    .enter = ext2_enter,
    .leave = ext2_leave,
    .rename = ext2_rename,
};

const struct vnode_ops ext2_link_ops = {
    .link = ext2_link_text,
};
