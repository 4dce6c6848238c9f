/* vfs_inode.c - the host's files as vnodes: what they are, and what they say of themselves
 * (v9fs.h). */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/stat.h"
#include "kernel/fs/9p/v9fs.h"
#include "kernel/fs/cache/pagecache.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/pipe/pipe.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uidinfo.h"
#include "ktr/ktr.h"

#define NS       1000000000ull
#define LINK_MAX 4097 /* bytes of a link's text, with NUL, as Linux has it */

static struct v9fs_inode **
v9fs_bucket(struct v9fs_session_info *ses, uint64_t path)
{
	return &ses->bucket[(path * 0x9e3779b97f4a7c15ull >> 32) % V9FS_BUCKETS];
}

struct p9_fid *
v9fs_fid_get(struct v9fs_inode *node)
{
	struct p9_fid *fid;

	spin_lock(&node->ses->lock);
	fid = p9_fid_get(node->fid);
	spin_unlock(&node->ses->lock);
	return fid;
}

/* Puts a fid where a node has one. Returns the one that was there. */
static struct p9_fid *
fid_exchange(struct v9fs_inode *node, struct p9_fid **at, struct p9_fid *fid)
{
	struct p9_fid *old;

	spin_lock(&node->ses->lock);
	old = *at;
	*at = fid;
	spin_unlock(&node->ses->lock);
	return old;
}

void
v9fs_fid_set(struct v9fs_inode *node, struct p9_fid *fid)
{
	p9_fid_put(fid_exchange(node, &node->fid, fid));
}

struct p9_fid *
v9fs_created_set(struct v9fs_inode *node, struct p9_fid *fid)
{
	return fid_exchange(node, &node->created, fid);
}

struct p9_fid *
v9fs_fid_open(struct v9fs_inode *node, unsigned flags, int *err)
{
	struct p9_fid *from = v9fs_fid_get(node), *fid = p9_client_walk(from, NULL, err);
	struct p9_qid qid = {0};

	p9_fid_put(from);
	if (fid != NULL)
		*err = p9_client_open(fid, flags, &qid);
	if (*err == 0 && qid.path != node->vn->ino)
		*err = -ENOENT;
	return p9_fid_unless(*err, fid);
}

struct p9_fid *
v9fs_fid_check(struct vnode *vn, int *err)
{
	struct p9_fid *fid = v9fs_fid_get(v9fs_inode(vn));
	struct p9_stat_dotl now;

	*err = p9_client_getattr_dotl(fid, &now);
	if (*err == 0 && !v9fs_is_same(vn, &now))
		*err = -ENOENT;
	return p9_fid_unless(*err, fid);
}

struct p9_fid *
v9fs_reader_get(struct v9fs_inode *node, int *err)
{
	struct p9_fid *fid = NULL, *extra;

	spin_lock(&node->ses->lock);
	if (node->reader != NULL)
		fid = p9_fid_get(node->reader);
	spin_unlock(&node->ses->lock);
	*err = 0;
	if (fid != NULL)
		return fid;
	fid = v9fs_fid_open(node, O_RDONLY, err);
	if (fid == NULL)
		return NULL;
	spin_lock(&node->ses->lock);
	extra = node->reader;
	if (extra == NULL)
		node->reader = p9_fid_get(fid);
	else
		p9_fid_get(extra);
	spin_unlock(&node->ses->lock);
	if (extra == NULL)
		return fid;
	p9_fid_put(fid); /* somebody else was faster */
	return extra;
}

bool
v9fs_is_same(const struct vnode *vn, const struct p9_stat_dotl *st)
{
	const struct p9_stat_dotl *k = &v9fs_inode(vn)->known;

	if (k->qid.path != st->qid.path || (vn->mode & S_IFMT) != (st->mode & S_IFMT))
		return false;
	/* The host uses numbers again: what does not change in a vnode must be the same. */
	return k->rdev == st->rdev && (!S_ISLNK(st->mode) || (k->mtime_sec == st->mtime_sec &&
							      k->mtime_nsec == st->mtime_nsec));
}

void
v9fs_stat2inode(struct vnode *vn, const struct p9_stat_dotl *st)
{
	struct v9fs_inode *node = v9fs_inode(vn);
	struct p9_stat_dotl *k = &node->known;
	uint64_t size = st->size < INT64_MAX ? st->size : INT64_MAX;

	node->stale |= k->qid.version != st->qid.version || k->size != st->size ||
		       k->mtime_sec != st->mtime_sec || k->mtime_nsec != st->mtime_nsec;
	spin_lock(&node->ses->lock); /* v9fs_stat() */
	*k = *st;
	spin_unlock(&node->ses->lock);
	__atomic_store_n(&vn->mode, (vn->mode & S_IFMT) | (st->mode & 07777), __ATOMIC_RELAXED);
	__atomic_store_n(&vn->uid, st->uid, __ATOMIC_RELAXED);
	__atomic_store_n(&vn->gid, st->gid, __ATOMIC_RELAXED);
	vn->mtime_ns = st->mtime_sec * NS + st->mtime_nsec % NS;
	vn->atime_ns = st->atime_sec * NS + st->atime_nsec % NS;
	if (!S_ISREG(vn->mode)) {
		__atomic_store_n(&vn->size, size, __ATOMIC_RELAXED);
		return;
	}
	if (size < vn->size) {
		vnode_shrink(vn, size);
		pagecache_drop(vn, (size + PAGE_SIZE - 1) / PAGE_SIZE);
	}
	__atomic_store_n(&vn->size, size, __ATOMIC_SEQ_CST);
	if (node->stale && __atomic_load_n(&vn->maps, __ATOMIC_SEQ_CST) == 0) {
		pagecache_drop(vn, 0);
		node->stale = false;
	}
}

void
v9fs_note_change(struct vnode *vn)
{
	struct v9fs_inode *node = v9fs_inode(vn);

	__atomic_store_n(&node->newest, v9fs_clock_tick(node->ses), __ATOMIC_SEQ_CST);
}

uint64_t
v9fs_clock_tick(struct v9fs_session_info *ses)
{
	return __atomic_add_fetch(&ses->clock, 1, __ATOMIC_SEQ_CST);
}

void
v9fs_learn(struct vnode *vn, const struct p9_stat_dotl *st, uint64_t asked)
{
	struct v9fs_inode *node = v9fs_inode(vn);

	/* Who has the lock changes the file, perhaps for long, or has just asked the host. */
	if (!mutex_trylock(&vn->lock))
		return;
	if (__atomic_load_n(&node->newest, __ATOMIC_SEQ_CST) < asked) {
		v9fs_stat2inode(vn, st);
		__atomic_store_n(&node->newest, asked, __ATOMIC_SEQ_CST);
	}
	mutex_unlock(&vn->lock);
}

/* As vnode_disk_ops.stat. */
static void
v9fs_stat(struct vnode *vn, struct stat *st)
{
	struct v9fs_inode *node = v9fs_inode(vn);
	struct p9_fid *fid = v9fs_fid_get(node);
	struct p9_stat_dotl now;
	uint64_t asked = v9fs_clock_tick(node->ses);

	if (p9_client_getattr_dotl(fid, &now) == 0 && v9fs_is_same(vn, &now)) {
		v9fs_learn(vn, &now, asked);
		st->st_mode = (vn->mode & S_IFMT) | (now.mode & 07777);
		st->st_uid = now.uid;
		st->st_gid = now.gid;
		st->st_size = now.size < INT64_MAX ? (int64_t)now.size : INT64_MAX;
	} else { /* what is known is of one moment */
		spin_lock(&node->ses->lock);
		now = node->known;
		spin_unlock(&node->ses->lock);
	}
	p9_fid_put(fid);
	st->st_nlink = now.nlink;
	st->st_blocks = (int64_t)now.blocks;
	st->st_blksize = now.blksize;
	st->st_atime = now.atime_sec;
	st->st_atime_nsec = now.atime_nsec;
	st->st_mtime = now.mtime_sec;
	st->st_mtime_nsec = now.mtime_nsec;
	st->st_ctime = now.ctime_sec;
	st->st_ctime_nsec = now.ctime_nsec;
}

/* As vnode_disk_ops.changed: what is the vnode's goes to the host, or comes back from there. */
static int
v9fs_changed(struct vnode *vn, unsigned what)
{
	struct v9fs_inode *node = v9fs_inode(vn);
	struct p9_iattr_dotl a = {.mode = vn->mode & 07777,
				  .uid = vn->uid,
				  .gid = vn->gid,
				  .atime_sec = vn->atime_ns / NS,
				  .atime_nsec = vn->atime_ns % NS,
				  .mtime_sec = vn->mtime_ns / NS,
				  .mtime_nsec = vn->mtime_ns % NS};
	struct p9_stat_dotl now;
	struct p9_fid *fid;
	int error;

	a.valid = (what & VNODE_MODE ? P9_ATTR_MODE : 0) |
		  (what & VNODE_OWNER ? P9_ATTR_UID | P9_ATTR_GID : 0) |
		  (what & VNODE_TIME ? P9_ATTR_MTIME | P9_ATTR_MTIME_SET : 0) |
		  (what & VNODE_ATIME ? P9_ATTR_ATIME | P9_ATTR_ATIME_SET : 0) |
		  (what & VNODE_TIME_NOW ? P9_ATTR_MTIME | P9_ATTR_ATIME : 0);
	if (a.valid == 0)
		return 0; /* the host knows of sizes */
	fid = v9fs_fid_check(vn, &error);
	if (fid != NULL)
		error = p9_client_setattr(fid, &a);
	if (error != 0 || p9_client_getattr_dotl(fid, &now) != 0 || !v9fs_is_same(vn, &now)) {
		now = node->known;
		now.size = vn->size; /* that of the last write */
	}
	v9fs_stat2inode(vn, &now);
	v9fs_note_change(vn);
	p9_fid_put(fid);
	return error;
}

static bool
v9fs_linked(const struct vnode *vn)
{
	return v9fs_inode(vn)->known.nlink != 0;
}

/*
 * As vnode_disk_ops.failed: makes the host put the file on its disk. An open file is synced by its
 * own fid, since it may have no name there any more.
 */
static int
v9fs_failed(struct vnode *vn, const struct file *f)
{
	struct p9_fid *fid;
	int error;

	if (!S_ISREG(vn->mode) && !S_ISDIR(vn->mode))
		return 0;
	fid = f != NULL && S_ISREG(vn->mode) ? p9_fid_get(f->priv)
					     : v9fs_reader_get(v9fs_inode(vn), &error);
	if (fid == NULL)
		return error;
	error = p9_client_fsync(fid);
	p9_fid_put(fid);
	return error;
}

static void
v9fs_destroy(struct vnode *vn)
{
	struct v9fs_inode *node = v9fs_inode(vn), **at;
	struct v9fs_session_info *ses = node->ses;

	pagecache_drop(vn, 0);
	spin_lock(&ses->lock);
	if (node->hashed) {
		for (at = v9fs_bucket(ses, node->known.qid.path); *at != node; at = &(*at)->next)
			;
		*at = node->next;
	}
	spin_unlock(&ses->lock);
	p9_fid_put(node->created);
	p9_fid_put(node->reader);
	p9_fid_put(node->fid);
	kfree(node->text);
	kfree(node);
	if (__atomic_sub_fetch(&ses->nodes, 1, __ATOMIC_ACQ_REL) == 0)
		v9fs_session_close(ses);
}

/* As vnode_ops.link. */
static int
v9fs_link_text(const struct vnode *vn, const char **text, struct vnode **to)
{
	*text = v9fs_inode(vn)->text;
	return 0;
}

static const struct vnode_ops v9fs_link_ops = {.link = v9fs_link_text};

static void
v9fs_fill_vnode(struct vnode *vn, struct v9fs_inode *node, const struct p9_stat_dotl *st)
{
	static const struct vnode_disk_ops disk_ops = {"9p",        v9fs_changed, v9fs_stat,
						       v9fs_linked, v9fs_failed,  v9fs_destroy,
						       true};

	vn->node = node;
	vn->ino = st->qid.path;
	vn->size_max = INT64_MAX;
	v9fs_stat2inode(vn, st); /* nobody else has it yet */
	vn->rdev = st->rdev;
	vn->read_only = &node->ses->read_only;
	vn->disk = &disk_ops;
	if (S_ISREG(st->mode))
		vn->ops = &v9fs_file_ops;
	else if (S_ISLNK(st->mode))
		vn->ops = &v9fs_link_ops;
	else if (S_ISFIFO(st->mode))
		vn->ops = &fifo_ops;
	else if (!S_ISDIR(st->mode))
		devfs_make_node(vn);
}

/* The vnode of a file, with a reference, if it is in memory, and not about to go. */
static struct vnode *
v9fs_find_node(struct v9fs_session_info *ses, const struct p9_stat_dotl *st)
{
	struct vnode *vn = NULL;

	spin_lock(&ses->lock);
	for (struct v9fs_inode **at = v9fs_bucket(ses, st->qid.path); *at != NULL && vn == NULL;) {
		struct v9fs_inode *node = *at;

		if (node->known.qid.path != st->qid.path) {
			at = &node->next;
		} else if (v9fs_is_same(node->vn, st) && vnode_ref_live(node->vn)) {
			vn = node->vn;
		} else { /* it was another file */
			*at = node->next;
			node->hashed = false;
		}
	}
	spin_unlock(&ses->lock);
	return vn;
}

/* The text of a symbolic link. NULL and *err. */
static char *
v9fs_read_text(struct p9_fid *fid, int *err)
{
	char *buf = kmalloc(LINK_MAX), *text = NULL;

	*err = buf != NULL ? p9_client_readlink(fid, buf, LINK_MAX) : -ENOMEM;
	if (*err == 0)
		text = kmalloc(strlen(buf) + 1);
	if (*err == 0 && text == NULL)
		*err = -ENOMEM;
	if (text != NULL)
		memcpy(text, buf, strlen(buf) + 1);
	kfree(buf);
	return text;
}

static struct vnode *
v9fs_make_node(struct v9fs_session_info *ses, struct p9_fid *fid, const struct p9_stat_dotl *st,
	       int *err)
{
	struct v9fs_inode *node = NULL, **bucket = v9fs_bucket(ses, st->qid.path);
	uint32_t kind = st->mode & S_IFMT;

	*err = kind == S_IFREG || kind == S_IFDIR || kind == S_IFLNK || kind == S_IFIFO ||
		       kind == S_IFCHR || kind == S_IFBLK || kind == S_IFSOCK
		   ? -ENOMEM
		   : -EPROTO;
	if (*err == -ENOMEM && !uidinfo_memory_short())
		node = kzalloc(sizeof(*node));
	if (node == NULL)
		return NULL;
	node->ses = ses;
	node->known = *st;
	*err = 0;
	if (S_ISLNK(st->mode))
		node->text = v9fs_read_text(fid, err);
	if (*err == 0) {
		node->vn = vnode_alloc_for(&uidinfo_root, st->mode, &v9fs_dir_ops, NULL);
		*err = node->vn != NULL ? 0 : -ENOMEM;
	}
	if (*err != 0) {
		kfree(node->text);
		kfree(node);
		return NULL;
	}
	v9fs_fill_vnode(node->vn, node, st);
	node->fid = fid;
	node->hashed = true;
	__atomic_fetch_add(&ses->nodes, 1, __ATOMIC_RELAXED);
	spin_lock(&ses->lock);
	node->next = *bucket;
	*bucket = node;
	spin_unlock(&ses->lock);
	return node->vn;
}

struct vnode *
v9fs_get_inode(struct v9fs_session_info *ses, struct p9_fid *fid, const struct p9_stat_dotl *st,
	       int *err)
{
	struct vnode *vn = v9fs_find_node(ses, st);

	*err = 0;
	if (vn != NULL) {
		v9fs_fid_set(v9fs_inode(vn), fid);
		v9fs_learn(vn, st, ses->asked);
		return vn;
	}
	vn = v9fs_make_node(ses, fid, st, err);
	if (vn == NULL)
		p9_fid_put(fid);
	return vn;
}
