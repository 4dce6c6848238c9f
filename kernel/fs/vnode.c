/*
 * vnode.c - vnodes: making, counting, asking; the tree's links.
 * Invariant: a vnode in the tree has a reference from it, so the last one never goes while it has a
 * name. Locking: vfs.h.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/stat.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/proc/proc.h"
#include "ktr/intern.h"
#include "ktr/ktr.h"

#define TRACE_NAME_MAX 64

static uint64_t vnode_last_ino; /* atomic */

uint32_t
vfs_user(void)
{
	struct proc *p = curproc();

	return p != NULL ? p->uid : 0;
}

const char *
vfs_trace_name(const char *path)
{
	char name[TRACE_NAME_MAX];
	const char *slash = strrchr(path, '/');

	strlcpy(name, slash != NULL && slash[1] != '\0' ? slash + 1 : path, sizeof(name));
	return ktr_intern(name);
}

struct vnode *
vnode_alloc(uint32_t mode, const struct vnode_ops *ops, void *data)
{
	struct vnode *vn = kzalloc(sizeof(*vn));

	if (vn == NULL)
		return NULL;
	vn->refs = 1;
	vn->mode = mode;
	vn->uid = vfs_user();
	vn->ino = __atomic_add_fetch(&vnode_last_ino, 1, __ATOMIC_RELAXED);
	vn->ops = ops;
	vn->data = data;
	vn->mtime_ns = clock_ns();
	list_init(&vn->sibling);
	list_init(&vn->children);
	mutex_init(&vn->lock, "vnode");
	return vn;
}

struct vnode *
vnode_ref(struct vnode *vn)
{
	__atomic_fetch_add(&vn->refs, 1, __ATOMIC_RELAXED);
	return vn;
}

void
vnode_unref(struct vnode *vn)
{
	/* release, then acquire: what others did with it happened before it is freed. */
	if (vn == NULL || __atomic_sub_fetch(&vn->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	kassert(vn->parent == NULL && list_empty(&vn->children));
	CTR2(KTR_VOP, "vnode free: ino %lu mode %#o", vn->ino, vn->mode);
	if (vn->ops->destroy != NULL)
		vn->ops->destroy(vn);
	kfree(vn->name);
	kfree(vn);
}

struct vnode *
dir_find(const struct vnode *dir, const char *name)
{
	list_for_each (l, &dir->children) {
		struct vnode *vn = list_entry(l, struct vnode, sibling);

		if (strcmp(vn->name, name) == 0)
			return vn;
	}
	return NULL;
}

int
dir_link(struct vnode *dir, struct vnode *vn, const char *name)
{
	char *copy = kstrdup(name);

	if (copy == NULL)
		return -ENOMEM;
	if (vn->parent != NULL)
		dir_unlink(vn);
	kfree(vn->name);
	vn->name = copy;
	vn->parent = dir;
	vn->cookie = DIR_COOKIE_FIRST + dir->next_cookie++;
	list_append(&dir->children, &vn->sibling);
	dir->mtime_ns = clock_ns();
	return 0;
}

void
dir_unlink(struct vnode *vn)
{
	vn->parent->mtime_ns = clock_ns();
	vn->parent = NULL;
	list_remove(&vn->sibling);
}

int
vnode_access(const struct vnode *vn, unsigned want)
{
	uint32_t user = vfs_user(), bits = user == vn->uid ? vn->mode >> 6 : vn->mode;

	if (user == 0) {
		/* Anything, but no program is one that nobody may execute. */
		if (!(want & VNODE_EXEC) || S_ISDIR(vn->mode) || (vn->mode & 0111) != 0)
			return 0;
		return -EACCES;
	}
	if (vn->root_only)
		return -EPERM;
	return (bits & want) == want ? 0 : -EACCES;
}

int
vnode_may_execute(const struct vnode *vn)
{
	return S_ISREG(vn->mode) ? vnode_access(vn, VNODE_EXEC) : -EACCES;
}

int64_t
vnode_read(struct vnode *vn, void *buf, size_t len, uint64_t off)
{
	struct uio_vec v;
	struct uio u;

	if (!S_ISREG(vn->mode))
		return S_ISDIR(vn->mode) ? -EISDIR : -EINVAL;
	uio_init(&u, &v, UIO_KERNEL, buf, len);
	return vn->ops->read(vn, NULL, &u, &off);
}

uint64_t
vnode_size(struct vnode *vn)
{
	uint64_t size;

	mutex_lock(&vn->lock);
	size = vn->size;
	mutex_unlock(&vn->lock);
	return size;
}

static uint64_t
vnode_links(const struct vnode *dir)
{
	uint64_t n = 2;

	list_for_each (l, &dir->children)
		n += S_ISDIR(list_entry(l, struct vnode, sibling)->mode);
	return n;
}

void
vnode_stat(struct vnode *vn, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	mutex_lock(&vfs_lock);
	st->st_nlink = S_ISDIR(vn->mode) ? vnode_links(vn) : vn->parent != NULL ? 1 : 0;
	mutex_unlock(&vfs_lock);
	st->st_dev = 1;
	st->st_ino = vn->ino;
	st->st_mode = vn->mode;
	st->st_uid = vn->uid;
	st->st_rdev = vn->rdev;
	st->st_blksize = 4096;
	mutex_lock(&vn->lock);
	st->st_size = (int64_t)vn->size;
	st->st_blocks = (int64_t)((vn->size + 511) / 512);
	st->st_mtime = st->st_atime = st->st_ctime = vn->mtime_ns / 1000000000;
	st->st_mtime_nsec = st->st_atime_nsec = st->st_ctime_nsec = vn->mtime_ns % 1000000000;
	mutex_unlock(&vn->lock);
}
