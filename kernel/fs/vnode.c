/*
 * vnode.c - vnodes: creation, references, access rights, and links of the tree.
 * Invariant: the tree has a reference to each vnode in it, so a vnode with a name is never freed.
 * Locking: vfs.h.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/stat.h"
#include "kernel/abi/statfs.h"
#include "kernel/fs/fsnotify.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/string.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"
#include "ktr/intern.h"
#include "ktr/ktr.h"

#define TRACE_NAME_MAX 64

static uint64_t vnode_last_ino; /* atomic */

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
	return vnode_alloc_for(proc_uidinfo(), mode, ops, data);
}

/* As vnode_alloc_for(), with so many bytes after the vnode. */
static struct vnode *
alloc_with_room(struct uidinfo *ui, size_t room, uint32_t mode, const struct vnode_ops *ops,
		void *data)
{
	struct vnode *vn = uidinfo_alloc(ui, sizeof(*vn) + room);

	if (vn == NULL)
		return NULL;
	vn->refs = 1;
	vn->mode = mode & (S_IFMT | 07777);
	vn->uid = proc_user();
	vn->gid = proc_group();
	vn->ui = ui;
	vn->ino = __atomic_add_fetch(&vnode_last_ino, 1, __ATOMIC_RELAXED);
	vn->ops = ops;
	vn->data = data;
	vn->mtime_ns = vn->ctime_ns = vn->atime_ns = clock_real_now_ns();
	list_init(&vn->children);
	list_init(&vn->names);
	mutex_init(&vn->lock, "vnode");
	return vn;
}

struct vnode *
vnode_alloc_for(struct uidinfo *ui, uint32_t mode, const struct vnode_ops *ops, void *data)
{
	return alloc_with_room(ui, 0, mode, ops, data);
}

struct vnode *
vnode_ref(struct vnode *vn)
{
	__atomic_fetch_add(&vn->refs, 1, __ATOMIC_RELAXED);
	return vn;
}

void
vnode_free(struct vnode *vn)
{
	uidinfo_free(vn->ui, vn);
}

uint64_t
vnode_nameless_ino(const struct vnode *dir, const char *name)
{
	uint64_t h = dir->ino;

	for (; *name != '\0'; name++)
		h = (h ^ h >> 29 ^ (uint8_t)*name) * 0x9e3779b97f4a7c15ul;
	return h >> 2 | 1ul << 62; /* not those of vnode_alloc(), and positive */
}

struct vnode *
vnode_make_nameless(struct vnode *dir, const char *name, uint32_t mode, const struct vnode_ops *ops,
		    const void *data, size_t size)
{
	size_t len = strlen(name) + 1;
	struct vnode *vn; /* and its name, and data: one allocation for all, at each look-up */
	struct vname *n;

	vn = alloc_with_room(proc_uidinfo(), sizeof(*n) + len + size, mode, ops, NULL);
	if (vn == NULL)
		return NULL;
	vn->data = memcpy(vn + 1, data, size);
	n = (struct vname *)((char *)(vn + 1) + size);
	memcpy(n->text, name, len);
	n->dir = dir;
	n->vn = vn;
	n->ui = vn->ui;
	vn->name = n;
	vn->parent = vnode_ref(dir);
	vn->nameless = vn->fixed = true;
	vn->ino = vnode_nameless_ino(dir, name);
	vn->dev = dir->dev;
	return vn;
}

struct vnode *
vnode_create_unnamed(struct vnode *cwd, const char *path, int flags, uint32_t mode, int *err)
{
	struct vnode *dir =
	    flags & O_NOFOLLOW ? vnode_lookup_link(cwd, path, err) : vnode_lookup(cwd, path, err);
	struct vnode *vn = NULL;

	if (dir == NULL)
		return NULL;
	mutex_lock(&vfs_lock);
	*err = S_ISDIR(dir->mode) ? vnode_access(dir, VNODE_WRITE | VNODE_EXEC) : -ENOTDIR;
	if (*err == 0 && dir->ops->tmpfile == NULL)
		*err = -EOPNOTSUPP;
	if (*err == 0)
		vn = dir->ops->tmpfile(dir, &(struct vnode_kind){.mode = mode}, err);
	if (vn != NULL) {
		vn->dev = dir->dev;
		vn->linkable = !(flags & O_EXCL);
	}
	mutex_unlock(&vfs_lock);
	vnode_unref(dir);
	CTR2(KTR_VOP, "create unnamed: mode %#o error %d", mode, -*err);
	return vn;
}

/* Frees a name that is not in the tree. Returns its directory, with the reference. */
static struct vnode *
free_name(struct vname *n)
{
	struct vnode *dir = n != NULL ? n->dir : NULL;

	vname_free(n);
	return dir;
}

int
vnode_link_text(const struct vnode *vn, const char **text, struct vnode **to)
{
	*to = NULL;
	*text = vn->data;
	return vn->ops->link != NULL ? vn->ops->link(vn, text, to) : 0;
}

bool
vnode_is_gone(const struct vnode *vn)
{
	return vn->links == 0 && (vn->disk == NULL || !vn->disk->linked(vn));
}

/* Frees a vnode without references. Returns the directory of a name that was its own, or NULL. */
static struct vnode *
vnode_evict(struct vnode *vn)
{
	struct vnode *dir;

	if (vn->links != 0 || !list_empty(&vn->children))
		panic("vnode %lu: its last reference is dropped, but it is in the tree", vn->ino);
	CTR2(KTR_VOP, "vnode free: ino %lu mode %#o", vn->ino, vn->mode);
	if (__atomic_load_n(&vn->marks, __ATOMIC_ACQUIRE) != NULL)
		fsnotify_end(vn, vnode_is_gone(vn) ? IN_DELETE_SELF : 0);
	if (vn->ops->destroy != NULL)
		vn->ops->destroy(vn);
	if (vn->disk != NULL)
		vn->disk->destroy(vn);
	xattr_free_all(vn);
	tmpfs_leave(vn);
	dir = vn->nameless ? vn->name->dir : free_name(vn->gone);
	vnode_free(vn);
	return dir;
}

void
vnode_unref(struct vnode *vn)
{
	/* release and acquire: all users' accesses come before the vnode is freed */
	while (vn != NULL && __atomic_sub_fetch(&vn->refs, 1, __ATOMIC_ACQ_REL) == 0)
		vn = vnode_evict(vn);
}

/* caps: the rights of who asks. in_group: is he in the file's group? */
static int
vnode_grants(const struct vnode *vn, uint32_t user, uint64_t caps, bool in_group, unsigned want)
{
	uint32_t bits = user == vn->uid ? vn->mode >> 6 : in_group ? vn->mode >> 3 : vn->mode;
	bool is_dir = S_ISDIR(vn->mode);

	if (vn->root_only && !(caps & 1ul << CAP_SYS_ADMIN))
		return -EPERM;
	if ((want & VNODE_WRITE) && vnode_read_only(vn) && (S_ISREG(vn->mode) || is_dir))
		return -EROFS;
	if ((bits & want) == want)
		return 0;
	/* Not even such a user executes a file that nobody may execute. */
	if ((caps & 1ul << CAP_DAC_OVERRIDE) &&
	    (!(want & VNODE_EXEC) || is_dir || (vn->mode & 0111) != 0))
		return 0;
	if ((caps & 1ul << CAP_DAC_READ_SEARCH) &&
	    (is_dir ? !(want & VNODE_WRITE) : want == VNODE_READ))
		return 0;
	return -EACCES;
}

int
vnode_access(const struct vnode *vn, unsigned want)
{
	return vnode_grants(vn, proc_user(), proc_caps(), proc_in_group(vn->gid), want);
}

int
vnode_access_real(const struct vnode *vn, unsigned want)
{
	return vnode_grants(vn, proc_real_user(), proc_real_caps(), proc_in_real_group(vn->gid),
			    want);
}

int
vnode_may_execute(const struct vnode *vn)
{
	return S_ISREG(vn->mode) && !(vfs_mount_flags(vn) & MS_NOEXEC)
		   ? vnode_access(vn, VNODE_EXEC)
		   : -EACCES;
}

int64_t
vnode_read(struct vnode *vn, void *buf, size_t len, uint64_t off)
{
	struct uio_vec v;
	struct uio u;

	if (!S_ISREG(vn->mode) || vn->ops->read == NULL)
		return S_ISDIR(vn->mode) ? -EISDIR : -EINVAL;
	uio_init(&u, &v, UIO_KERNEL, buf, len);
	return vn->ops->read(vn, NULL, &u, &off);
}

void
vnode_execute_notify(struct vnode *vn)
{
	fsnotify(vn, IN_OPEN);
	fsnotify(vn, IN_ACCESS);
	fsnotify(vn, IN_CLOSE_NOWRITE);
}

uint64_t
vnode_size(struct vnode *vn)
{
	return __atomic_load_n(&vn->size, __ATOMIC_RELAXED);
}

bool
vnode_is_own(const struct vnode *vn)
{
	return proc_user() == __atomic_load_n(&vn->uid, __ATOMIC_RELAXED) || capable(CAP_FOWNER);
}

/* May the user change the file's attributes, and would they be kept? */
static bool
vnode_may_change(const struct vnode *vn)
{
	return !vn->nameless && vnode_is_own(vn);
}

/* mode without the bit that gives a group which is not the user's. */
static uint32_t
own_group_only(uint32_t mode, uint32_t gid)
{
	return proc_in_group(gid) || capable(CAP_FSETID) ? mode : mode & ~S_ISGID;
}

int
vnode_changed(struct vnode *vn, unsigned what)
{
	vn->ctime_ns = clock_real_now_ns();
	return vn->disk != NULL ? vn->disk->changed(vn, what) : 0;
}

/* The set-id bits that the file has. */
static uint32_t
set_ids(const struct vnode *vn)
{
	return vn->mode & (S_ISUID | (vn->mode & 010 ? S_ISGID : 0));
}

void
vnode_drop_set_ids(struct vnode *vn)
{
	uint32_t bits = set_ids(vn);

	if (bits == 0)
		return;
	__atomic_fetch_and(&vn->mode, ~bits, __ATOMIC_RELAXED);
	vnode_changed(vn, VNODE_MODE);
}

void
vnode_inherit(struct vnode *vn, const struct vnode *dir)
{
	if (!(dir->mode & S_ISGID))
		return;
	vn->gid = dir->gid;
	if (S_ISDIR(vn->mode))
		vn->mode |= S_ISGID;
	else if ((vn->mode | proc_umask()) & 010) /* set also if the umask has just taken it */
		vn->mode = own_group_only(vn->mode, vn->gid);
}

int
vnode_chmod(struct vnode *vn, uint32_t mode)
{
	int error = -EPERM;

	mutex_lock(&vn->lock); /* so that no chown() comes between question and change */
	if (vnode_read_only(vn)) {
		error = -EROFS;
	} else if (vnode_may_change(vn)) {
		mode = own_group_only(mode & 07777, vn->gid);
		CTR2(KTR_VFS, "chmod: ino %lu mode %#o", vn->ino, mode);
		__atomic_store_n(&vn->mode, (vn->mode & S_IFMT) | mode, __ATOMIC_RELAXED);
		error = vnode_changed(vn, VNODE_MODE);
	}
	mutex_unlock(&vn->lock);
	if (error == 0)
		fsnotify(vn, IN_ATTRIB);
	return error;
}

/* As vnode_chown(); vn->lock held. The bits go first: nobody executes them as the new owner's. */
static int
chown_locked(struct vnode *vn, uint32_t uid, uint32_t gid)
{
	bool own = proc_user() == vn->uid;
	bool give = uid != UINT32_MAX && !(own && uid == vn->uid);
	bool move = gid != UINT32_MAX && !(own && (gid == vn->gid || proc_in_group(gid)));

	bool drop = !S_ISDIR(vn->mode) && set_ids(vn) != 0;

	if (vnode_read_only(vn))
		return -EROFS;
	if (vn->nameless || ((give || move) && !capable(CAP_CHOWN)) ||
	    (drop && !vnode_may_change(vn)))
		return -EPERM;
	if (drop)
		vnode_drop_set_ids(vn);
	uid = uid != UINT32_MAX ? uid : vn->uid;
	gid = gid != UINT32_MAX ? gid : vn->gid;
	CTR3(KTR_VFS, "chown: ino %lu uid %u gid %u", vn->ino, uid, gid);
	__atomic_store_n(&vn->uid, uid, __ATOMIC_RELAXED);
	__atomic_store_n(&vn->gid, gid, __ATOMIC_RELAXED);
	return vnode_changed(vn, VNODE_OWNER);
}

int
vnode_chown(struct vnode *vn, uint32_t uid, uint32_t gid)
{
	int error;

	mutex_lock(&vn->lock);
	error = chown_locked(vn, uid, gid);
	mutex_unlock(&vn->lock);
	if (error == 0 && (uid != UINT32_MAX || gid != UINT32_MAX))
		fsnotify(vn, IN_ATTRIB);
	return error;
}

int
vnode_set_times(struct vnode *vn, uint64_t atime_ns, uint64_t mtime_ns)
{
	unsigned what = (atime_ns != VNODE_TIME_OMIT ? VNODE_ATIME : 0) |
			(mtime_ns != VNODE_TIME_OMIT ? VNODE_TIME : 0);
	int error;

	if (vnode_read_only(vn) || !vnode_may_change(vn))
		return vnode_read_only(vn) ? -EROFS : -EPERM;
	mutex_lock(&vn->lock);
	if (what & VNODE_ATIME)
		vn->atime_ns = atime_ns;
	if (what & VNODE_TIME)
		vn->mtime_ns = mtime_ns;
	error = vnode_changed(vn, what);
	mutex_unlock(&vn->lock);
	return error;
}

int
vnode_touch(struct vnode *vn)
{
	int error;

	mutex_lock(&vn->lock);
	vn->mtime_ns = vn->atime_ns = clock_real_now_ns();
	error = vnode_changed(vn, VNODE_TIME_NOW);
	mutex_unlock(&vn->lock);
	return error;
}

void
vnode_stat(struct vnode *vn, struct stat *st)
{
	uint64_t mtime = __atomic_load_n(&vn->mtime_ns, __ATOMIC_RELAXED);
	uint64_t ctime = __atomic_load_n(&vn->ctime_ns, __ATOMIC_RELAXED);
	uint64_t atime = __atomic_load_n(&vn->atime_ns, __ATOMIC_RELAXED);

	memset(st, 0, sizeof(*st));
	mutex_lock(&vfs_lock);
	st->st_nlink = S_ISDIR(vn->mode) ? 2 + vn->dirs : vn->nameless ? 1 : vn->links;
	mutex_unlock(&vfs_lock);
	st->st_dev = vn->dev;
	st->st_ino = vn->ino;
	st->st_mode = vn->mode;
	st->st_uid = vn->uid;
	st->st_gid = vn->gid;
	st->st_rdev = vn->rdev;
	st->st_blksize = 4096;
	/* Reads without the lock, which a write() may hold for long. */
	st->st_size = (int64_t)vnode_size(vn);
	st->st_blocks = (int64_t)ramfs_blocks(vn);
	st->st_mtime = mtime / 1000000000;
	st->st_mtime_nsec = mtime % 1000000000;
	st->st_ctime = ctime / 1000000000;
	st->st_ctime_nsec = ctime % 1000000000;
	st->st_atime = atime / 1000000000;
	st->st_atime_nsec = atime % 1000000000;
	if (vn->disk != NULL)
		vn->disk->stat(vn, st);
}
