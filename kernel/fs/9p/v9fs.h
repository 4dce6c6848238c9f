/*
 * v9fs.h - a mounted folder of the host, and its files as vnodes.
 *
 * The host changes files, too. So each look-up of a name asks the host what is there now: the tree
 * of names only keeps what somebody uses, or has used. Sizes, times and rights are those of the
 * last stat(), or of the last look-up during which nobody here changed the file, or had its lock.
 * read() and write() go to the host. Only pages that programs map, or execute, are kept. They go
 * when a look-up finds that the file has changed, and nobody maps it.
 *
 * Locking: the spin lock of a session guards its table, and which fids a node has. vfs_lock is held
 * where names are looked up and changed; a vnode's lock, where its size and its times are. Requests
 * are made with them held, but for the spin lock. Reading order: vfs_super.c, vfs_inode.c,
 * vfs_dir.c, vfs_file.c.
 */
#pragma once

#include "kernel/fs/9p/client.h"
#include "kernel/fs/vfs.h"

#define V9FS_BUCKETS 256 /* a power of two */
#define V9FS_MAGIC   0x01021997
#define V9FS_CROWDED (P9_FIDS / 4) /* nodes; each has a fid, or two, or three */

struct v9fs_inode;

struct v9fs_session_info {
	struct p9_client *clnt;
	struct spinlock lock;
	struct v9fs_inode *bucket[V9FS_BUCKETS];
	uint32_t nodes; /* in the table; the session ends with the last one */
	bool read_only; /* atomic */
	uint64_t clock; /* atomic: counts questions to the host, and changes that are made here */
	uint64_t asked; /* `clock` when the last look-up asked the host. vfs_lock */
};

struct v9fs_inode {
	struct v9fs_session_info *ses; /* constant */
	struct vnode *vn;              /* constant */
	struct v9fs_inode *next;       /* in its bucket */
	bool hashed;
	struct p9_fid *fid;        /* the newest by which it was found */
	struct p9_fid *reader;     /* open for reading, for mapped pages and listings; or NULL */
	struct p9_fid *created;    /* for the program that made the file, and opens it; or NULL */
	struct p9_stat_dotl known; /* the host said last. vn->lock, and ses->lock */
	bool stale;                /* its pages are of an older version. vn->lock */
	uint64_t
	    newest; /* atomic: the session's clock at its last change from here, or of `known` */
	char *text; /* constant; of a symbolic link */
};

static inline struct v9fs_inode *
v9fs_inode(const struct vnode *vn)
{
	return vn->node;
}

/* ---- vfs_inode.c ---- */

/* The vnode of what a fid leads to, which this takes over, with a reference. NULL and *err. */
struct vnode *v9fs_get_inode(struct v9fs_session_info *ses, struct p9_fid *fid,
			     const struct p9_stat_dotl *st, int *err);
/* Is the file that st describes the one that the vnode was made for? */
bool v9fs_is_same(const struct vnode *vn, const struct p9_stat_dotl *st);
/* The vnode gets what the host says of it. vn->lock held. */
void v9fs_stat2inode(struct vnode *vn, const struct p9_stat_dotl *st);
/* The session's clock, one later. */
uint64_t v9fs_clock_tick(struct v9fs_session_info *ses);
/*
 * As v9fs_stat2inode(), for an answer to a question that was asked at the time `asked`. The answer
 * is dropped if it is older than what is known, since the file was changed here meanwhile; or if
 * somebody has vn->lock, for which this does not wait.
 */
void v9fs_learn(struct vnode *vn, const struct p9_stat_dotl *st, uint64_t asked);
/* The file was changed from here. vn->lock held. */
void v9fs_note_change(struct vnode *vn);
/* A file's newest fid, and the one that is open for reading, with a reference. NULL: *err. */
struct p9_fid *v9fs_fid_get(struct v9fs_inode *node);
struct p9_fid *v9fs_reader_get(struct v9fs_inode *node, int *err);
/*
 * Where a fid is not open, the host follows its path, which may lead to another file by now.
 * v9fs_fid_open() returns a new fid that is open. v9fs_fid_check() returns the newest one, with a
 * reference, which led to the vnode a moment ago; vn->lock held. NULL, and *err: -ENOENT if the
 * path leads to another file.
 */
struct p9_fid *v9fs_fid_open(struct v9fs_inode *node, unsigned flags, int *err);
struct p9_fid *v9fs_fid_check(struct vnode *vn, int *err);
/* The node is found by this fid from now on. Takes the fid over. */
void v9fs_fid_set(struct v9fs_inode *node, struct p9_fid *fid);
/* Sets the fid that is open for the program that made the file. Returns the old one, or NULL. */
struct p9_fid *v9fs_created_set(struct v9fs_inode *node, struct p9_fid *fid);

/* ---- vfs_super.c ---- */

/* The last node has gone. */
void v9fs_session_close(struct v9fs_session_info *ses);

extern const struct vnode_ops v9fs_dir_ops, v9fs_file_ops; /* vfs_dir.c, vfs_file.c */
