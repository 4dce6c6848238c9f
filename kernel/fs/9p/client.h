/*
 * client.h - the client of 9P2000.L: requests, of which several are under way, and fids, which are
 * the other side's names of files.
 *
 * Locking: the lock of the transport guards tags, fids' numbers and what the device has. Unless
 * said otherwise, all functions: thread context, no spin lock held; they wait for the host. A
 * signal that ends the process ends the wait, with -EINTR, once the host has given up the request.
 * 0 or -errno: the host's; -EIO: the device is broken; -EPROTO: a reply is wrong; -ENOMEM.
 */
#pragma once

#include "kernel/fs/9p/9p.h"
#include "kernel/lib/list.h"
#include "kernel/sync/spinlock.h"

#define P9_REQUESTS 32    /* under way at once at most */
#define P9_FIDS     32768 /* a multiple of 64 */
#define P9_KEPT     4096  /* of them, for CAP_SYS_ADMIN only */

enum p9_req_status { REQ_STATUS_ALLOC, REQ_STATUS_SENT, REQ_STATUS_RCVD, REQ_STATUS_ERROR };

struct uidinfo;

struct p9_req_t {
	struct list link;       /* of those that wait for a tag */
	struct uidinfo *ui;     /* to whom its memory is counted; NULL: to nobody */
	struct p9_fcall tc, rc; /* request and reply; each is contiguous in memory */
	enum p9_req_status status;
	uint32_t length; /* bytes of the reply that the device has written */
	uint16_t tag;
};

/* What carries messages. One at most. */
struct p9_trans_module {
	const char *tag; /* by which it is mounted */
	unsigned requests;
	struct spinlock lock;
	bool broken, used;
	/* Gives a request, of which the tag is below `requests`, to the device. Lock held. */
	void (*request)(struct p9_req_t *req);
	/* Takes the replies that have come, as its interrupt does; or NULL. No lock held. */
	void (*look)(void *);
};

struct p9_client {
	struct p9_trans_module *trans;
	uint32_t msize;
	uint32_t tags;       /* bit n: tag n is free. The first one is for Tflush */
	struct list waiting; /* requests that get one of the others, in turn */
	uint64_t fids[P9_FIDS / 64];
	unsigned next_fid, nfids;
};

struct p9_fid {
	struct p9_client *clnt;
	uint32_t fid;
	uint32_t refs;         /* atomic */
	struct p9_req_t clunk; /* its last request: that needs no memory */
	uint8_t bytes[2][P9_IOHDRSZ];
};

/* This transport is used by mounts from now on. Boot. */
void v9fs_register_trans(struct p9_trans_module *trans);
/* The host has answered a request. Lock held; any context but NMI. */
void p9_client_cb(struct p9_req_t *req, uint32_t length);

/* Begins a session with the device of that tag. NULL: *err is -ENOENT, -EBUSY, or the host's. */
struct p9_client *p9_client_create(const char *tag, int *err);
/* Ends a session. It has no fids any more. */
void p9_client_destroy(struct p9_client *c);

/* Room for messages of these sizes, which is counted to a user, or to nobody. NULL: no memory. */
struct p9_req_t *p9_req_alloc(struct uidinfo *ui, uint32_t tsize, uint32_t rsize);
/* NULL is allowed. */
void p9_req_free(struct p9_req_t *req);

struct p9_fid *p9_fid_get(struct p9_fid *fid);
/* Drops a reference; the last one makes the host forget the fid. NULL is allowed. */
void p9_fid_put(struct p9_fid *fid);
/* Returns the fid; if there is an error, drops it and returns NULL. */
static inline struct p9_fid *
p9_fid_unless(int error, struct p9_fid *fid)
{
	if (error == 0)
		return fid;
	p9_fid_put(fid);
	return NULL;
}

/* The root. NULL and *err, as for the next. */
struct p9_fid *p9_client_attach(struct p9_client *c, struct p9_qid *qid, int *err);
/* A new fid of a name in a directory; NULL: of the same file. */
struct p9_fid *p9_client_walk(struct p9_fid *dir, const char *name, int *err);
/* Opens a fid. flags: O_RDONLY, O_WRONLY or O_RDWR. *qid: the host's, of what was opened. */
int p9_client_open(struct p9_fid *fid, unsigned flags, struct p9_qid *qid);
/* Makes a file in a directory, of which the fid then is, open for reading and writing. */
int p9_client_create_dotl(struct p9_fid *fid, const char *name, uint32_t mode, uint32_t gid);
int p9_client_mkdir_dotl(struct p9_fid *dir, const char *name, uint32_t mode, uint32_t gid);
int p9_client_symlink(struct p9_fid *dir, const char *name, const char *to, uint32_t gid);
int p9_client_mknod_dotl(struct p9_fid *dir, const char *name, uint32_t mode, uint64_t rdev,
			 uint32_t gid);
int p9_client_link(struct p9_fid *dir, struct p9_fid *old, const char *name);
int p9_client_renameat(struct p9_fid *from, const char *name, struct p9_fid *to, const char *new);
int p9_client_unlinkat(struct p9_fid *dir, const char *name, bool is_dir);
int p9_client_readlink(struct p9_fid *fid, char *text, size_t size);
int p9_client_getattr_dotl(struct p9_fid *fid, struct p9_stat_dotl *st);
int p9_client_setattr(struct p9_fid *fid, const struct p9_iattr_dotl *attr);
int p9_client_statfs(struct p9_fid *fid, struct p9_rstatfs *st);
int p9_client_fsync(struct p9_fid *fid);
/* Entries from an offset on, in req's reply, to be taken by p9dirent_read(). */
int p9_client_readdir(struct p9_fid *fid, uint64_t off, uint32_t count, struct p9_req_t *req);
/* P9_TREAD: bytes that were read, no more than count, which are at *data until req is used again.
 */
int64_t p9_client_fetch(struct p9_fid *fid, uint8_t type, uint64_t off, uint32_t count,
			struct p9_req_t *req, const uint8_t **data);
/* Writes what is at p9_write_data(). Bytes that were written, no more than count. */
int64_t p9_client_write(struct p9_fid *fid, uint64_t off, uint32_t count, struct p9_req_t *req);
static inline uint8_t *
p9_write_data(struct p9_req_t *req)
{
	return req->tc.sdata + P9_IOHDRSZ;
}
