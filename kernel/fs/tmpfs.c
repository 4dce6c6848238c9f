/*
 * tmpfs.c - file systems in memory: whether one can be written to, how large its files may be, and
 * whether vnodes without a name are in use.
 *
 * All vnodes of one share that, and each has a reference to it: an open file may live longer than
 * the mount. Locking: vfs_lock for changes; readers need none.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/statfs.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"

struct tmpfs {
	uint32_t refs;     /* atomic */
	uint32_t nameless; /* atomic: vnodes that have no name, and the root */
	bool read_only;    /* atomic; vn->read_only points here */
	uint64_t pages;    /* atomic: of its files */
	uint64_t limit;    /* [c] so many pages at most; 0: any number */
};

static struct tmpfs *
tmpfs_of(const struct vnode *vn)
{
	return vn->disk == NULL && vn->read_only != NULL
		   ? (struct tmpfs *)((uintptr_t)vn->read_only - offsetof(struct tmpfs, read_only))
		   : NULL;
}

int
tmpfs_begin(struct vnode *root)
{
	struct tmpfs *t = kzalloc(sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->refs = t->nameless = 1;
	root->read_only = &t->read_only;
	return 0;
}

void
tmpfs_join(struct vnode *vn, const struct vnode *dir)
{
	struct tmpfs *t = tmpfs_of(dir);

	if (t != NULL && vn->read_only == NULL) {
		__atomic_fetch_add(&t->refs, 1, __ATOMIC_RELAXED);
		vn->read_only = &t->read_only;
	} else if (t != NULL && vn->links == 1) { /* its first name, after it was made without */
		__atomic_fetch_sub(&t->nameless, 1, __ATOMIC_RELAXED);
	}
}

struct vnode *
tmpfs_make_unnamed(struct vnode *dir, const struct vnode_kind *kind, int *err)
{
	struct vnode *vn = NULL;

	*err = -EOPNOTSUPP;
	if (dir->fixed || tmpfs_of(dir) == NULL)
		return NULL;
	*err = -ENOSPC;
	vn = vnode_alloc(kind->mode, &ramfs_file_ops, NULL);
	if (vn == NULL)
		return NULL;
	vnode_inherit(vn, dir);
	tmpfs_join(vn, dir);
	tmpfs_lose_name(vn);
	*err = 0;
	return vn;
}

void
tmpfs_lose_name(const struct vnode *vn)
{
	struct tmpfs *t = tmpfs_of(vn);

	if (t != NULL)
		__atomic_fetch_add(&t->nameless, 1, __ATOMIC_RELAXED);
}

void
tmpfs_leave(struct vnode *vn)
{
	struct tmpfs *t = tmpfs_of(vn);

	if (t == NULL)
		return;
	if (vn->links == 0)
		__atomic_fetch_sub(&t->nameless, 1, __ATOMIC_RELAXED);
	vn->read_only = NULL;
	if (__atomic_sub_fetch(&t->refs, 1, __ATOMIC_ACQ_REL) == 0)
		kfree(t);
}

static struct vnode *
tmpfs_make(const struct mount_options *options, int *err)
{
	struct vnode *vn = vnode_alloc_dir(options->mode);

	*err = vn != NULL ? tmpfs_begin(vn) : -ENOMEM;
	if (vn == NULL)
		return NULL;
	if (*err == 0) {
		tmpfs_of(vn)->limit = options->pages;
		return vn;
	}
	vnode_unref(vn);
	return NULL;
}

bool
tmpfs_charge(const struct vnode *vn)
{
	struct tmpfs *t = tmpfs_of(vn);

	if (t == NULL || __atomic_fetch_add(&t->pages, 1, __ATOMIC_RELAXED) < t->limit ||
	    t->limit == 0)
		return true;
	__atomic_fetch_sub(&t->pages, 1, __ATOMIC_RELAXED);
	return false;
}

void
tmpfs_release(const struct vnode *vn)
{
	struct tmpfs *t = tmpfs_of(vn);

	if (t != NULL)
		__atomic_fetch_sub(&t->pages, 1, __ATOMIC_RELAXED);
}

uint64_t
tmpfs_page_limit(const struct vnode *vn)
{
	const struct tmpfs *t = tmpfs_of(vn);
	uint64_t all = page_count_total();

	return t != NULL && t->limit != 0 && t->limit < all ? t->limit : all;
}

bool
tmpfs_is_full(const struct vnode *vn)
{
	const struct tmpfs *t = tmpfs_of(vn);

	return t != NULL && t->limit != 0 &&
	       __atomic_load_n(&t->pages, __ATOMIC_RELAXED) >= t->limit;
}

void
tmpfs_statfs(const struct vnode *vn, struct statfs *s)
{
	const struct tmpfs *t = tmpfs_of(vn);
	uint64_t pages;

	if (t == NULL || t->limit == 0)
		return;
	pages = __atomic_load_n(&t->pages, __ATOMIC_RELAXED);
	s->f_blocks = t->limit;
	s->f_bfree = s->f_bavail = pages < t->limit ? t->limit - pages : 0;
}

/* As vfs_type.in_use. */
static bool
tmpfs_in_use(const struct vnode *root)
{
	return __atomic_load_n(&tmpfs_of(root)->nameless, __ATOMIC_RELAXED) > 1;
}

/* For vfs_stop_writing(): is a file of it open for writing, or without a name? vfs_lock held. */
static bool
tmpfs_is_written(void *arg)
{
	const struct vnode *root = arg;

	for (const struct vname *n = NULL; (n = dir_next_below(root, n)) != NULL;)
		if (n->vn->dev == root->dev &&
		    __atomic_load_n(&n->vn->writers, __ATOMIC_RELAXED) > 0)
			return true;
	return tmpfs_in_use(root);
}

static int
tmpfs_remount(struct vnode *root, bool read_only)
{
	struct tmpfs *t = tmpfs_of(root);
	int error = 0;

	mutex_lock(&vfs_lock);
	if (!read_only)
		__atomic_store_n(&t->read_only, false, __ATOMIC_RELAXED);
	else if (!vfs_stop_writing(&t->read_only, tmpfs_is_written, root))
		error = -EBUSY;
	mutex_unlock(&vfs_lock);
	return error;
}

const struct vfs_type tmpfs_type = {.name = "tmpfs",
				    .magic = TMPFS_MAGIC,
				    .make = tmpfs_make,
				    .remount = tmpfs_remount,
				    .in_use = tmpfs_in_use};
