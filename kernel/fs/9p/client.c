/* client.c - requests of 9P2000.L, and fids (client.h). */
#include "kernel/fs/9p/client.h"

#include "kernel/abi/capability.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/stat.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"
#include "kernel/sched/sleepq.h"
#include "ktr/ktr.h"

#define SMALL   1024 /* bytes of a message without a path or data */
#define PATHS   8192
#define KILL_NS 50000000   /* a thread woken by a signal looks so often whether one ends it */
#define LOOK_NS 1000000000 /* who waits so long looks whether an interrupt was lost */

static struct p9_trans_module *trans; /* constant after boot */

void
v9fs_register_trans(struct p9_trans_module *t)
{
	trans = t;
}

struct p9_req_t *
p9_req_alloc(struct uidinfo *ui, uint32_t tsize, uint32_t rsize)
{
	struct p9_req_t *req = kzalloc(sizeof(*req));

	if (req == NULL || (ui != NULL && !uidinfo_charge(ui, UIDINFO_KMEM, tsize + rsize))) {
		kfree(req);
		return NULL;
	}
	req->ui = ui;
	req->tc.sdata = kmalloc(tsize);
	req->rc.sdata = kmalloc(rsize);
	req->tc.capacity = tsize;
	req->rc.capacity = rsize;
	if (req->tc.sdata != NULL && req->rc.sdata != NULL)
		return req;
	p9_req_free(req);
	return NULL;
}

void
p9_req_free(struct p9_req_t *req)
{
	if (req == NULL)
		return;
	if (req->ui != NULL)
		uidinfo_release(req->ui, UIDINFO_KMEM, req->tc.capacity + req->rc.capacity);
	/* A device that is not reset may still write to it. */
	if (req->status == REQ_STATUS_SENT)
		return;
	kfree(req->tc.sdata);
	kfree(req->rc.sdata);
	kfree(req);
}

void
p9_client_cb(struct p9_req_t *req, uint32_t length)
{
	req->length = length;
	req->status = REQ_STATUS_RCVD;
	wakeup(req);
}

static bool
is_waiting(const struct p9_req_t *req)
{
	return req->status == REQ_STATUS_SENT && !trans->broken;
}

/*
 * Sleeps on a channel of the transport, whose lock is held. With `killable`, -EINTR if the process
 * is to end. *told: the process has had a signal that does not end it; from then on it wakes up now
 * and then to ask whether it is to end.
 */
static int
p9_sleep(const void *chan, bool killable, bool *told)
{
	int error = sleep_on(chan, &trans->lock, "9p", killable && !*told ? SLEEP_INTR : 0,
			     clock_ns() + (killable && *told ? KILL_NS : LOOK_NS));
	bool killed;

	if (error == 0)
		return 0;
	*told |= error == -EINTR;
	spin_unlock(&trans->lock);
	if (trans->look != NULL)
		trans->look(NULL);
	killed = killable && proc_signal_kills();
	spin_lock(&trans->lock);
	return killed ? -EINTR : 0;
}

/* Gives the tag of a request to who has waited longest for one. Lock held. */
static void
p9_tag_put(struct p9_client *c, const struct p9_req_t *req)
{
	struct p9_req_t *next = list_entry(list_first(&c->waiting), struct p9_req_t, link);

	if (list_empty(&c->waiting)) {
		c->tags |= 1u << req->tag;
		return;
	}
	list_remove(&next->link);
	next->tag = req->tag;
	wakeup(next);
}

/* Takes a tag, when it is the request's turn. Lock held. */
static int
p9_tag_get(struct p9_client *c, struct p9_req_t *req, bool killable)
{
	bool told = false;
	int error = 0;

	req->tag = c->tags > 1 ? (uint16_t)__builtin_ctz(c->tags & ~1u) : 0;
	c->tags &= ~(1u << req->tag) | 1;
	if (req->tag == 0)
		list_append(&c->waiting, &req->link);
	while (req->tag == 0 && !trans->broken && error == 0)
		error = p9_sleep(req, killable, &told);
	if (trans->broken)
		error = -EIO;
	if (req->tag == 0)
		list_remove(&req->link);
	else if (error != 0)
		p9_tag_put(c, req);
	return error;
}

/* Tells the host to give up a request, and waits until it has: then its buffers are ours. */
static void
p9_client_flush(struct p9_client *c, struct p9_req_t *old)
{
	struct p9_req_t *req = p9_req_alloc(NULL, SMALL, SMALL);
	bool told = false;

	CTR1(KTR_VOP, "9p flush: tag %u", old->tag);
	if (req != NULL)
		p9pdu_prepare(&req->tc, P9_TFLUSH, 0);
	spin_lock(&trans->lock);
	while ((c->tags & 1) == 0 && !trans->broken)
		p9_sleep(c, false, &told);
	if (req != NULL && !trans->broken) {
		c->tags &= ~1u;
		p9pdu_writef(&req->tc, "w", (uint32_t)old->tag);
		p9pdu_finalize(&req->tc);
		req->status = REQ_STATUS_SENT;
		trans->request(req);
		while (is_waiting(req))
			p9_sleep(req, false, &told);
		c->tags |= 1;
	}
	wakeup_one(c);
	while (is_waiting(old))
		p9_sleep(old, false, &told);
	spin_unlock(&trans->lock);
	p9_req_free(req);
}

/* Sends a request, and waits for its reply, of which p9pdu_readf() then takes the rest. */
static int
p9_client_send(struct p9_client *c, struct p9_req_t *req, uint8_t type)
{
	bool killable = type != P9_TCLUNK, told = false;
	int error;

	p9pdu_finalize(&req->tc);
	spin_lock(&trans->lock);
	error = p9_tag_get(c, req, killable);
	if (error != 0) {
		spin_unlock(&trans->lock);
		return error;
	}
	req->tc.sdata[5] = (uint8_t)req->tag;
	req->tc.sdata[6] = 0;
	if (type == P9_TVERSION)
		req->tc.sdata[5] = req->tc.sdata[6] = 0xff;
	req->status = REQ_STATUS_SENT;
	trans->request(req);
	while (is_waiting(req) && error == 0)
		error = p9_sleep(req, killable, &told);
	if (is_waiting(req)) {
		spin_unlock(&trans->lock);
		p9_client_flush(c, req);
		spin_lock(&trans->lock);
	}
	p9_tag_put(c, req);
	spin_unlock(&trans->lock);
	if (req->status != REQ_STATUS_RCVD)
		return -EIO;
	if (error != -EINTR || req->length != 0) /* it was not given up */
		error = p9_check_reply(&req->rc, req->length, type,
				       type == P9_TVERSION ? (uint16_t)P9_NOTAG : req->tag);
	CTR4(KTR_VOP, "9p: type %u tag %u bytes %u error %d", type, req->tag, req->length, -error);
	return error;
}

/* Makes a request and sends it. The reply, to be freed; NULL and *err. */
static struct p9_req_t *
p9_client_rpc(struct p9_client *c, int *err, uint8_t type, const char *fmt, ...)
{
	uint32_t size = type == P9_TSYMLINK || type == P9_TREADLINK ? PATHS : SMALL;
	struct p9_req_t *req = p9_req_alloc(NULL, size, size);
	va_list ap;
	bool fits;

	*err = -ENOMEM;
	if (req == NULL)
		return NULL;
	p9pdu_prepare(&req->tc, type, 0);
	va_start(ap, fmt);
	fits = p9pdu_vwritef(&req->tc, fmt, ap);
	va_end(ap);
	*err = fits ? p9_client_send(c, req, type) : -ENAMETOOLONG;
	if (*err == 0)
		return req;
	p9_req_free(req);
	return NULL;
}

/* Sends a request, and wants nothing of the reply but whether there is an error. */
#define p9_client_do(c, ...)                                       \
	({                                                         \
		int err_;                                          \
		p9_req_free(p9_client_rpc(c, &err_, __VA_ARGS__)); \
		err_;                                              \
	})

/* Takes the rest of a reply, which is freed. */
#define p9_client_take(req, err, ...)                                       \
	do {                                                                \
		if ((req) != NULL && !p9pdu_readf(&(req)->rc, __VA_ARGS__)) \
			*(err) = -EPROTO;                                   \
		p9_req_free(req);                                           \
	} while (0)

struct p9_client *
p9_client_create(const char *tag, int *err)
{
	char version[16] = "";
	struct p9_client *c;
	struct p9_req_t *req;

	*err = -ENOENT;
	if (trans == NULL || strcmp(trans->tag, tag) != 0)
		return NULL;
	*err = -ENOMEM;
	c = kzalloc(sizeof(*c));
	if (c == NULL)
		return NULL;
	spin_lock(&trans->lock);
	*err = trans->broken ? -EIO : trans->used ? -EBUSY : 0;
	trans->used |= *err == 0;
	spin_unlock(&trans->lock);
	if (*err != 0) {
		kfree(c);
		return NULL;
	}
	c->trans = trans;
	list_init(&c->waiting);
	c->tags = (uint32_t)((1ull << trans->requests) - 1);
	req = p9_client_rpc(c, err, P9_TVERSION, "ds", (uint32_t)P9_MSIZE, "9P2000.L");
	p9_client_take(req, err, "ds", &c->msize, version, sizeof(version));
	if (*err == 0 &&
	    (strcmp(version, "9P2000.L") != 0 || c->msize > P9_MSIZE || c->msize < PATHS / 2))
		*err = -EPROTO;
	if (*err == 0)
		return c;
	p9_client_destroy(c);
	return NULL;
}

void
p9_client_destroy(struct p9_client *c)
{
	spin_lock(&trans->lock);
	trans->used = false;
	spin_unlock(&trans->lock);
	kfree(c);
}

/* ---- fids ---- */

/* NULL: *err is -ENFILE or -ENOMEM. */
static struct p9_fid *
p9_fid_create(struct p9_client *c, int *err)
{
	struct p9_fid *fid = kzalloc(sizeof(*fid));
	unsigned n = 0, most = P9_FIDS - (capable(CAP_SYS_ADMIN) ? 0 : P9_KEPT);

	*err = -ENOMEM;
	if (fid == NULL)
		return NULL;
	*err = -ENFILE;
	spin_lock(&trans->lock);
	for (; n < P9_FIDS / 64 && *err != 0 && c->nfids < most; n++) {
		uint64_t *word = &c->fids[c->next_fid / 64];

		if (*word == UINT64_MAX) {
			c->next_fid = (c->next_fid + 64) % P9_FIDS;
			continue;
		}
		fid->fid = c->next_fid / 64 * 64 + (uint32_t)__builtin_ctzll(~*word);
		*word |= 1ul << fid->fid % 64;
		c->nfids++;
		*err = 0;
	}
	spin_unlock(&trans->lock);
	fid->clnt = c;
	fid->refs = 1;
	if (*err == 0)
		return fid;
	kfree(fid);
	return NULL;
}

struct p9_fid *
p9_fid_get(struct p9_fid *fid)
{
	__atomic_fetch_add(&fid->refs, 1, __ATOMIC_RELAXED);
	return fid;
}

/* Frees a fid that the host does not have. */
static void
p9_fid_destroy(struct p9_fid *fid)
{
	spin_lock(&trans->lock);
	fid->clnt->fids[fid->fid / 64] &= ~(1ul << fid->fid % 64);
	fid->clnt->nfids--;
	spin_unlock(&trans->lock);
	kfree(fid);
}

void
p9_fid_put(struct p9_fid *fid)
{
	struct p9_req_t *req;

	if (fid == NULL || __atomic_sub_fetch(&fid->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	req = &fid->clunk;
	req->tc = (struct p9_fcall){.sdata = fid->bytes[0], .capacity = P9_IOHDRSZ};
	req->rc = (struct p9_fcall){.sdata = fid->bytes[1], .capacity = P9_IOHDRSZ};
	p9pdu_prepare(&req->tc, P9_TCLUNK, 0);
	p9pdu_writef(&req->tc, "d", fid->fid);
	p9_client_send(fid->clnt, req, P9_TCLUNK);
	if (req->status != REQ_STATUS_SENT) /* as p9_req_free() */
		p9_fid_destroy(fid);
}

struct p9_fid *
p9_client_attach(struct p9_client *c, struct p9_qid *qid, int *err)
{
	struct p9_fid *fid = p9_fid_create(c, err);
	struct p9_req_t *req;

	if (fid == NULL)
		return NULL;
	req = p9_client_rpc(c, err, P9_TATTACH, "ddssd", fid->fid, P9_NOFID, "root", "", 0u);
	p9_client_take(req, err, "Q", qid);
	if (*err == 0)
		return fid;
	p9_fid_destroy(fid);
	return NULL;
}

struct p9_fid *
p9_client_walk(struct p9_fid *dir, const char *name, int *err)
{
	struct p9_fid *fid = p9_fid_create(dir->clnt, err);
	struct p9_req_t *req;
	uint16_t n = 0;

	if (fid == NULL)
		return NULL;
	req = p9_client_rpc(dir->clnt, err, P9_TWALK, name != NULL ? "ddws" : "ddw", dir->fid,
			    fid->fid, (uint32_t)(name != NULL), name);
	p9_client_take(req, err, "w", &n);
	if (*err == 0 && n != (name != NULL))
		*err = -EPROTO;
	if (*err == 0)
		return fid;
	if (*err == -EINTR || *err == -EPROTO) /* the host may have it, or not */
		p9_fid_put(fid);
	else
		p9_fid_destroy(fid);
	return NULL;
}

/* ---- requests ---- */

int
p9_client_open(struct p9_fid *fid, unsigned flags, struct p9_qid *qid)
{
	int error;
	struct p9_req_t *req = p9_client_rpc(fid->clnt, &error, P9_TLOPEN, "dd", fid->fid,
					     (uint32_t)(flags & O_ACCMODE));

	p9_client_take(req, &error, "Q", qid);
	return error;
}

int
p9_client_create_dotl(struct p9_fid *fid, const char *name, uint32_t mode, uint32_t gid)
{
	return p9_client_do(fid->clnt, P9_TLCREATE, "dsddd", fid->fid, name,
			    (uint32_t)(O_RDWR | P9_DOTL_CREATE | P9_DOTL_EXCL), mode, gid);
}

int
p9_client_mkdir_dotl(struct p9_fid *dir, const char *name, uint32_t mode, uint32_t gid)
{
	return p9_client_do(dir->clnt, P9_TMKDIR, "dsdd", dir->fid, name, mode, gid);
}

int
p9_client_symlink(struct p9_fid *dir, const char *name, const char *to, uint32_t gid)
{
	return p9_client_do(dir->clnt, P9_TSYMLINK, "dssd", dir->fid, name, to, gid);
}

int
p9_client_mknod_dotl(struct p9_fid *dir, const char *name, uint32_t mode, uint64_t rdev,
		     uint32_t gid)
{
	return p9_client_do(dir->clnt, P9_TMKNOD, "dsdddd", dir->fid, name, mode, STAT_MAJOR(rdev),
			    STAT_MINOR(rdev), gid);
}

int
p9_client_link(struct p9_fid *dir, struct p9_fid *old, const char *name)
{
	return p9_client_do(dir->clnt, P9_TLINK, "dds", dir->fid, old->fid, name);
}

int
p9_client_renameat(struct p9_fid *from, const char *name, struct p9_fid *to, const char *new)
{
	return p9_client_do(from->clnt, P9_TRENAMEAT, "dsds", from->fid, name, to->fid, new);
}

int
p9_client_unlinkat(struct p9_fid *dir, const char *name, bool is_dir)
{
	return p9_client_do(dir->clnt, P9_TUNLINKAT, "dsd", dir->fid, name,
			    is_dir ? (uint32_t)P9_DOTL_AT_REMOVEDIR : 0u);
}

int
p9_client_readlink(struct p9_fid *fid, char *text, size_t size)
{
	int error;
	struct p9_req_t *req = p9_client_rpc(fid->clnt, &error, P9_TREADLINK, "d", fid->fid);

	p9_client_take(req, &error, "s", text, size);
	return error;
}

int
p9_client_getattr_dotl(struct p9_fid *fid, struct p9_stat_dotl *st)
{
	int error;
	struct p9_req_t *req =
	    p9_client_rpc(fid->clnt, &error, P9_TGETATTR, "dq", fid->fid, P9_STATS_BASIC);

	p9_client_take(req, &error, "A", st);
	return error;
}

int
p9_client_setattr(struct p9_fid *fid, const struct p9_iattr_dotl *a)
{
	return p9_client_do(fid->clnt, P9_TSETATTR, "dddddqqqqq", fid->fid, a->valid, a->mode,
			    a->uid, a->gid, a->size, a->atime_sec, a->atime_nsec, a->mtime_sec,
			    a->mtime_nsec);
}

int
p9_client_statfs(struct p9_fid *fid, struct p9_rstatfs *st)
{
	int error;
	struct p9_req_t *req = p9_client_rpc(fid->clnt, &error, P9_TSTATFS, "d", fid->fid);

	p9_client_take(req, &error, "ddqqqqqqd", &st->type, &st->bsize, &st->blocks, &st->bfree,
		       &st->bavail, &st->files, &st->ffree, &st->fsid, &st->namelen);
	return error;
}

int
p9_client_fsync(struct p9_fid *fid)
{
	return p9_client_do(fid->clnt, P9_TFSYNC, "dd", fid->fid, 0u);
}

int64_t
p9_client_fetch(struct p9_fid *fid, uint8_t type, uint64_t off, uint32_t count,
		struct p9_req_t *req, const uint8_t **data)
{
	uint32_t n;
	int error;

	p9pdu_prepare(&req->tc, type, 0);
	p9pdu_writef(&req->tc, "dqd", fid->fid, off, count);
	error = p9_client_send(fid->clnt, req, type);
	if (error == 0 && (!p9pdu_readf(&req->rc, "dr", &n, data) || n > count))
		error = -EPROTO;
	return error != 0 ? error : (int64_t)n;
}

int
p9_client_readdir(struct p9_fid *fid, uint64_t off, uint32_t count, struct p9_req_t *req)
{
	const uint8_t *data;
	int64_t n = p9_client_fetch(fid, P9_TREADDIR, off, count, req, &data);

	if (n >= 0) /* what comes after them is not theirs */
		req->rc.size = req->rc.offset + (uint32_t)n;
	return n < 0 ? (int)n : 0;
}

int64_t
p9_client_write(struct p9_fid *fid, uint64_t off, uint32_t count, struct p9_req_t *req)
{
	uint32_t n;
	int error;

	p9pdu_prepare(&req->tc, P9_TWRITE, 0);
	p9pdu_writef(&req->tc, "dqd", fid->fid, off, count);
	req->tc.size += count;
	error = p9_client_send(fid->clnt, req, P9_TWRITE);
	if (error == 0 && (!p9pdu_readf(&req->rc, "d", &n) || n > count))
		error = -EPROTO;
	return error != 0 ? error : (int64_t)n;
}
