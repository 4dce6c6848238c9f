/*
 * vfs_dir.c - names of the host's folder: looked up, listed, made, removed (v9fs.h). vfs_lock is
 * held, but for listings, so nobody in the guest changes names; the host may at any time.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/9p/v9fs.h"
#include "kernel/fs/cache/pagecache.h"
#include "kernel/lib/string.h"
#include "kernel/proc/task.h"
#include "ktr/ktr.h"

#define LIST_SIZE     4000 /* bytes of a listing at a time */
#define LIST_TRIES    64   /* replies in a row without a name, after which the listing ends */
#define NAMES_FOR_ONE 2    /* when there are many names: so many are forgotten for each new one */

/* Finds a name on the host. The fid, and what it leads to; NULL and *err. */
static struct p9_fid *
find_name(struct vnode *dir, const char *name, struct p9_stat_dotl *st, int *err)
{
	struct v9fs_session_info *ses = v9fs_inode(dir)->ses;
	struct p9_fid *from = v9fs_fid_get(v9fs_inode(dir));
	struct p9_fid *fid = p9_client_walk(from, name, err);

	p9_fid_put(from);
	ses->asked = v9fs_clock_tick(ses);
	if (fid != NULL)
		*err = p9_client_getattr_dotl(fid, st);
	return p9_fid_unless(*err, fid);
}

/* Is dir in the directory vn, or vn itself? */
static bool
is_inside(const struct vnode *dir, const struct vnode *vn)
{
	while (dir != vn && dir->parent != NULL && dir->parent != dir && dir->dev == vn->dev)
		dir = dir->parent;
	return dir == vn;
}

/* Before the directory vn gets a name in dir: a directory has one name at most. If vn has one
 * already, the host has moved it since, and the old name goes. */
static int
forget_old_name(struct vnode *dir, struct vnode *vn)
{
	if (!S_ISDIR(vn->mode))
		return 0;
	if (is_inside(dir, vn))
		return -ELOOP;
	if (vn->links > 0 && vnode_keeps_names(vn))
		return -EBUSY;
	if (vn->links > 0)
		vnode_forget_dir(vn);
	return 0;
}

/* Gives a name to a vnode, whose reference this takes over. */
static int
enter_name(struct vnode *dir, const char *name, struct vnode *vn)
{
	int error = forget_old_name(dir, vn);

	if (error == 0)
		error = vnode_enter(dir, name, vn);
	if (error != 0)
		vnode_unref(vn);
	return error;
}

/* As vnode_ops.revalidate. What something is mounted on stays, whatever the host says. */
static int
v9fs_revalidate(struct vnode *dir, const char *name)
{
	struct v9fs_session_info *ses = v9fs_inode(dir)->ses;
	struct vnode *vn = vnode_child(dir, name);
	struct p9_stat_dotl st;
	struct p9_fid *fid;
	int error = dir->parent == NULL ? -ENOENT : 0; /* it was removed */

	if (error != 0)
		return error;
	if (vn == NULL && __atomic_load_n(&ses->nodes, __ATOMIC_RELAXED) > V9FS_CROWDED) {
		vnode_forget_idle(dir, NAMES_FOR_ONE);
		writeback_trim(); /* this forgets idle names of other directories, too, and more */
	}
	fid = find_name(dir, name, &st, &error);
	if (error == 0 && vn != NULL && v9fs_is_same(vn, &st)) {
		v9fs_fid_set(v9fs_inode(vn), fid);
		v9fs_learn(vn, &st, v9fs_inode(vn)->ses->asked);
		return 0;
	}
	if (vn != NULL && S_ISDIR(vn->mode) && vnode_keeps_names(vn)) {
		p9_fid_put(fid);
		return 0;
	}
	if (vn != NULL && (error == 0 || error == -ENOENT))
		vnode_forget(dir, name);
	if (error != 0)
		return error;
	vn = v9fs_get_inode(ses, fid, &st, &error);
	return vn != NULL ? enter_name(dir, name, vn) : error;
}

/* Tells the entries of a reply. False: the listener wants no more, or *error. */
static bool
list_reply(struct p9_fcall *rc, uint64_t *from, vnode_list_fn *add, void *arg, int *error,
	   bool *some)
{
	struct p9_dirent d;

	while (rc->offset < rc->size) {
		if (!p9dirent_read(rc, &d) || d.name[0] == '\0' || strchr(d.name, '/') != NULL) {
			*error = -EPROTO;
			return false;
		}
		if (p9_good_name(d.name)) {
			uint64_t cookie = d.off < INT64_MAX - 2 ? d.off : INT64_MAX - 2;

			*some = true;
			if (!add(arg, d.name, (uint32_t)(d.type & 15) << 12, d.qid.path, cookie))
				return false;
		}
		*from = d.off;
	}
	return true;
}

/* As vnode_ops.readdir. Cookies are the host's offsets. */
static int
v9fs_readdir(struct vnode *dir, uint64_t from, vnode_list_fn *add, void *arg)
{
	struct p9_req_t *req = p9_req_alloc(proc_uidinfo(), P9_IOHDRSZ, P9_HDRSZ + 4 + LIST_SIZE);
	struct p9_fid *fid;
	int error = req == NULL ? -ENOMEM : 0;
	bool more = error == 0;
	unsigned nameless = 0;

	fid = more ? v9fs_reader_get(v9fs_inode(dir), &error) : NULL;
	while (error == 0 && more) {
		bool some = false;

		error = p9_client_readdir(fid, from, LIST_SIZE, req);
		if (error != 0 || req->rc.offset == req->rc.size)
			break;
		more = list_reply(&req->rc, &from, add, arg, &error, &some);
		nameless = some ? 0 : nameless + 1;
		if (more && nameless > LIST_TRIES)
			error = -EPROTO;
		else if (more && proc_signal_kills())
			error = -EINTR;
	}
	p9_fid_put(fid);
	p9_req_free(req);
	return error;
}

/* Makes a regular file. The fid by which it is open; NULL and *err. */
static struct p9_fid *
create_file(struct p9_fid *dir, const char *name, uint32_t mode, uint32_t gid, int *err)
{
	struct p9_fid *fid = p9_client_walk(dir, NULL, err);

	if (fid != NULL)
		*err = p9_client_create_dotl(fid, name, mode, gid);
	return p9_fid_unless(*err, fid);
}

static int
v9fs_make_name(struct p9_fid *dir, const char *name, const struct vnode_kind *kind, uint32_t gid,
	       struct p9_fid **created)
{
	uint32_t mode = kind->mode & 07777;
	int error;

	if (S_ISDIR(kind->mode))
		return p9_client_mkdir_dotl(dir, name, mode, gid);
	if (S_ISLNK(kind->mode))
		return p9_client_symlink(dir, name, kind->to, gid);
	if (!S_ISREG(kind->mode))
		return p9_client_mknod_dotl(dir, name, kind->mode, kind->rdev, gid);
	*created = create_file(dir, name, mode, gid, &error);
	return error;
}

static struct vnode *
v9fs_create(struct vnode *dir, const char *name, const struct vnode_kind *kind, int *err)
{
	struct v9fs_inode *d = v9fs_inode(dir);
	struct p9_fid *parent = v9fs_fid_get(d), *created = NULL, *fid = NULL;
	struct p9_iattr_dotl owner = {.valid = P9_ATTR_UID, .uid = proc_user()};
	struct p9_stat_dotl st;
	struct vnode *vn = NULL;

	*err = v9fs_make_name(parent, name, kind, dir->mode & S_ISGID ? dir->gid : proc_group(),
			      &created);
	p9_fid_put(parent);
	if (*err == 0)
		fid = find_name(dir, name, &st, err);
	/* The session is user 0's: the host says whether user 0 can give files away. */
	if (fid != NULL && owner.uid != 0 && p9_client_setattr(fid, &owner) == 0)
		p9_client_getattr_dotl(fid, &st);
	if (fid != NULL)
		vn = v9fs_get_inode(d->ses, fid, &st, err);
	if (vn != NULL)
		*err = forget_old_name(dir, vn);
	if (vn != NULL && *err != 0) {
		vnode_unref(vn);
		vn = NULL;
	}
	if (vn != NULL && created != NULL)
		created = v9fs_created_set(v9fs_inode(vn), created);
	p9_fid_put(created);
	CTR2(KTR_VOP, "9p create: mode %#o error %d", kind->mode, -*err);
	return vn;
}

static int
v9fs_link(struct vnode *dir, const char *name, struct vnode *vn)
{
	struct p9_fid *to = v9fs_fid_get(v9fs_inode(dir)), *fid = v9fs_fid_get(v9fs_inode(vn));
	int error = p9_client_link(to, fid, name);

	p9_fid_put(fid);
	p9_fid_put(to);
	if (error == 0) {
		mutex_lock(&vn->lock);
		v9fs_inode(vn)->known.nlink++;
		mutex_unlock(&vn->lock);
	}
	return error;
}

/* A name of vn is about to be removed: who has it open, and then maps it, needs a fid. */
static void
keep_reader(struct vnode *vn)
{
	int error;

	if (S_ISREG(vn->mode) && __atomic_load_n(&vn->refs, __ATOMIC_RELAXED) > vn->links)
		p9_fid_put(v9fs_reader_get(v9fs_inode(vn), &error));
}

/* The file has lost a name, which was removed. */
static void
lose_name(struct vnode *vn)
{
	struct v9fs_inode *node = v9fs_inode(vn);

	mutex_lock(&vn->lock);
	if (node->known.nlink > 0)
		node->known.nlink = S_ISDIR(vn->mode) ? 0 : node->known.nlink - 1;
	mutex_unlock(&vn->lock);
	if (S_ISDIR(vn->mode))
		vnode_forget(vn, NULL);
}

static int
v9fs_unlink(struct vnode *dir, const char *name, struct vnode *vn)
{
	bool is_dir = S_ISDIR(vn->mode);
	struct p9_fid *fid;
	int error = vnode_read_only(dir) ? -EROFS : 0;

	if (is_dir && vnode_keeps_names(vn))
		error = -EBUSY;
	if (error != 0)
		return error;
	keep_reader(vn);
	fid = v9fs_fid_get(v9fs_inode(dir));
	error = p9_client_unlinkat(fid, name, is_dir);
	p9_fid_put(fid);
	if (error == 0)
		lose_name(vn);
	return error;
}

static int
v9fs_rename(struct vnode *from, const char *name, struct vnode *vn, struct vnode *to,
	    const char *new, struct vnode *old, bool exchange)
{
	struct p9_fid *a, *b;
	int error = vnode_read_only(from) ? -EROFS : exchange ? -EINVAL : 0;

	if (old != NULL && S_ISDIR(old->mode) && vnode_keeps_names(old))
		error = -EBUSY;
	if (error != 0)
		return error;
	if (old != NULL)
		keep_reader(old);
	a = v9fs_fid_get(v9fs_inode(from));
	b = v9fs_fid_get(v9fs_inode(to));
	error = p9_client_renameat(a, name, b, new);
	p9_fid_put(a);
	p9_fid_put(b);
	if (error == 0 && old != NULL)
		lose_name(old);
	return error;
}

const struct vnode_ops v9fs_dir_ops = {
    .readdir = v9fs_readdir,
    .revalidate = v9fs_revalidate,
    .create = v9fs_create,
    .enter = v9fs_link,
    .leave = v9fs_unlink,
    .rename = v9fs_rename,
};
