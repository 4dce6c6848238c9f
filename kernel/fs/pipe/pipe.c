/*
 * pipe.c - pipes: a ring of bytes; reader and writer sleep when they cannot go on.
 */
#include "kernel/fs/pipe/pipe.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/ioctl.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/signal.h"
#include "kernel/fs/file.h"
#include "kernel/fs/pipe/pipe_private.h"
#include "kernel/fs/vfs.h"
#include "kernel/fs/wait/poll.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"
#include "kernel/sched/sleepq.h"
#include "ktr/ktr.h"

#define READY_BITS 16 /* bits of POLL… in pipe.ready; above them is `writes` */

static const struct vnode_ops pipe_ops;

static int pipe_max_size = PIPE_SIZE_MAX;
SYSCTL_INT(fs_pipe_max_size, "fs.pipe-max-size", SYSCTL_WR, &pipe_max_size, PAGE_SIZE,
	   PIPE_SIZE_MAX, "bytes that a pipe may have room for, without CAP_SYS_RESOURCE");

static bool
may_read(const struct file *f)
{
	return (f->flags & O_ACCMODE) != O_WRONLY;
}

static bool
may_write(const struct file *f)
{
	return (f->flags & O_ACCMODE) != O_RDONLY;
}

static void
pipe_free(struct pipe *p)
{
	if (p == NULL)
		return;
	uidinfo_free(p->ui, p->ring);
	uidinfo_free(p->ui, p);
}

static struct pipe *
pipe_alloc(void)
{
	struct uidinfo *ui = proc_uidinfo();
	struct pipe *p = uidinfo_alloc(ui, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->ui = ui;
	p->size = PIPE_SIZE;
	p->ring = uidinfo_alloc(ui, p->size);
	if (p->ring == NULL) {
		pipe_free(p);
		return NULL;
	}
	return p;
}

void
pipe_publish_ready(struct pipe *p)
{
	unsigned ready = (pipe_room(p) >= PIPE_BUF ? POLLOUT : 0) | (p->readers == 0 ? POLLERR : 0);

	if (!p->taken)
		ready |= (pipe_used(p) > 0 ? POLLIN : 0) | (p->writers == 0 ? POLLHUP : 0);
	/* before poll_notify() looks for who waits (poll.c) */
	__atomic_store_n(&p->ready, p->writes << READY_BITS | ready, __ATOMIC_SEQ_CST);
}

static void
pipe_enter(struct file *f, struct pipe *p)
{
	p->readers += may_read(f);
	p->writers += may_write(f);
	p->reads += may_read(f);
	p->writes += may_write(f);
	f->news = &p->news;
	pipe_publish_ready(p);
}

static int
pipe_open(struct file *f)
{
	mutex_lock(&f->vn->lock);
	pipe_enter(f, f->vn->data);
	mutex_unlock(&f->vn->lock);
	return 0;
}

/* One open file less; lock held. */
static void
pipe_leave(const struct file *f, struct pipe *p)
{
	p->readers -= may_read(f);
	p->writers -= may_write(f);
	pipe_publish_ready(p);
	CTR3(KTR_BUF, "pipe close: ino %lu readers %u writers %u", f->vn->ino, p->readers,
	     p->writers);
	/* Readers now see the end of the file, writers a broken pipe. */
	cond_broadcast(&p->can_read);
	cond_broadcast(&p->can_write);
}

static void
pipe_release(struct file *f)
{
	struct pipe *p = f->vn->data;

	mutex_lock(&f->vn->lock);
	pipe_leave(f, p);
	mutex_unlock(&f->vn->lock);
	poll_notify(&p->news, POLLIN | POLLOUT);
}

/* Waits until the other end of a FIFO is open, or has been opened since. */
static int
fifo_await_other(struct file *f, struct pipe *p)
{
	bool reads = may_read(f);
	const unsigned *others = reads ? &p->writers : &p->readers;
	const uint64_t *opens = reads ? &p->writes : &p->reads, seen = *opens;
	int error = 0;

	if (*others > 0)
		return 0; /* perhaps the file itself */
	if (f->flags & O_NONBLOCK) {
		/* poll() does not say of this file that its writers have gone (pipe_poll). */
		f->priv = (void *)(uintptr_t)(p->writes + 1);
		return 0;
	}
	while (error == 0 && *opens == seen)
		error = cond_wait(reads ? &p->can_read : &p->can_write, &f->vn->lock, "fifo",
				  SLEEP_INTR, DEADLINE_NEVER);
	return *opens != seen ? 0 : error;
}

/* Nobody has the FIFO open: what was not read is lost. lock held. */
static void
fifo_forget(struct vnode *vn)
{
	struct pipe *p = vn->data;

	if (p->readers + p->writers > 0)
		return;
	vn->data = NULL;
	pipe_free(p);
}

static int
fifo_open(struct file *f)
{
	struct vnode *vn = f->vn;
	struct pipe *p;
	int error;

	mutex_lock(&vn->lock);
	f->priv = NULL;
	p = vn->data != NULL ? vn->data : pipe_alloc();
	if (p == NULL) {
		mutex_unlock(&vn->lock);
		return -ENOMEM;
	}
	vn->data = p;
	if (!may_read(f) && p->readers == 0 && (f->flags & O_NONBLOCK)) {
		error = -ENXIO;
	} else {
		pipe_enter(f, p);
		cond_broadcast(&p->can_read);
		cond_broadcast(&p->can_write);
		error = fifo_await_other(f, p);
		if (error != 0)
			pipe_leave(f, p);
	}
	fifo_forget(vn);
	mutex_unlock(&vn->lock);
	return error;
}

static void
fifo_release(struct file *f)
{
	struct pipe *p = f->vn->data;

	mutex_lock(&f->vn->lock);
	pipe_leave(f, p);
	poll_notify(&p->news, POLLIN | POLLOUT);
	fifo_forget(f->vn);
	mutex_unlock(&f->vn->lock);
}

static unsigned
pipe_poll(struct file *f)
{
	const struct pipe *p = f->vn->data;
	uint64_t ready = __atomic_load_n(&p->ready, __ATOMIC_SEQ_CST), writes = ready >> READY_BITS;

	/* A FIFO that was opened without waiting, and has had no writer since, has not ended. */
	if (f->vn->ops == &fifo_ops && (uintptr_t)f->priv == writes + 1)
		ready &= ~(uint64_t)POLLHUP;
	return ready &
	       ((may_write(f) ? POLLOUT | POLLERR : 0) | (may_read(f) ? POLLIN | POLLHUP : 0));
}

int
pipe_wait_data(struct vnode *vn, bool nowait)
{
	struct pipe *p = vn->data;
	int error;

	while (p->taken || pipe_used(p) == 0) {
		if (p->writers == 0 && !p->taken)
			return 0;
		if (nowait)
			return -EAGAIN;
		CTR1(KTR_BUF, "pipe empty: ino %lu", vn->ino);
		error = cond_wait(&p->can_read, &vn->lock, "piperd", SLEEP_INTR, DEADLINE_NEVER);
		if (error < 0)
			return error;
	}
	return 1;
}

static int64_t
pipe_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	struct pipe *p = vn->data;
	size_t start = u->resid;
	bool makes_room = false;
	int error;

	if (start == 0)
		return 0;
	mutex_lock(&vn->lock);
	error = pipe_wait_data(vn, u->nowait || (f->flags & O_NONBLOCK));
	if (error == 1) {
		error = 0;
		makes_room = pipe_room(p) < PIPE_BUF;
		/* At most two pieces, since the data may wrap around. */
		while (error == 0 && u->resid > 0 && pipe_used(p) > 0) {
			size_t at = pipe_at(p, p->tail), n = p->size - at, before = u->resid;

			n = n < pipe_used(p) ? n : pipe_used(p);
			error = uio_put(u, p->ring + at, n);
			p->tail += before - u->resid;
		}
		makes_room = makes_room && pipe_room(p) >= PIPE_BUF;
		pipe_publish_ready(p);
		cond_broadcast(&p->can_write);
	}
	CTR3(KTR_BUF, "pipe read: ino %lu bytes %lu left %lu", vn->ino, start - u->resid,
	     pipe_used(p));
	mutex_unlock(&vn->lock);
	if (makes_room) /* as in Linux: a write end that was ready is not news again */
		poll_notify(&p->news, POLLOUT);
	return start != u->resid ? (int64_t)(start - u->resid) : error;
}

int
pipe_wait_room(struct vnode *vn, bool nowait, size_t room, bool moved)
{
	struct pipe *p = vn->data;
	int error;

	for (;;) {
		if (p->readers == 0)
			return -EPIPE;
		/* With a fast reader there is always room: check that a killed writer stops. */
		if (moved && proc_signal_pending())
			return -EINTR;
		if (pipe_room(p) >= room)
			return 0;
		if (nowait)
			return -EAGAIN;
		CTR2(KTR_BUF, "pipe full: ino %lu wanted %lu", vn->ino, room);
		error = cond_wait(&p->can_write, &vn->lock, "pipewr", SLEEP_INTR, DEADLINE_NEVER);
		if (error < 0)
			return error;
	}
}

int
pipe_fill(struct pipe *p, struct uio *u)
{
	int error = 0;

	while (error == 0 && u->resid > 0 && pipe_room(p) > 0) {
		size_t at = pipe_at(p, p->head), n = p->size - at, before = u->resid;

		n = n < pipe_room(p) ? n : pipe_room(p);
		error = uio_take(u, p->ring + at, n);
		p->head += before - u->resid;
	}
	return error;
}

static int64_t
pipe_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	struct pipe *p = vn->data;
	size_t start = u->resid, together = start <= PIPE_BUF && !u->part ? start : 1;
	int error = 0;

	if (start == 0)
		return 0;
	mutex_lock(&vn->lock);
	while (error == 0 && u->resid > 0) {
		error = pipe_wait_room(vn,
				       u->nowait || (f->flags & O_NONBLOCK) ||
					   (u->part && u->resid < start),
				       together, u->resid < start);
		if (error == 0)
			error = pipe_fill(p, u);
		pipe_publish_ready(p);
		cond_broadcast(&p->can_read);
		poll_notify(&p->news, POLLIN);
	}
	CTR4(KTR_BUF, "pipe write: ino %lu bytes %lu used %lu error %d", vn->ino, start - u->resid,
	     pipe_used(p), -error);
	mutex_unlock(&vn->lock);
	if (error == -EPIPE)
		proc_signal_self(SIGPIPE);
	return start != u->resid ? (int64_t)(start - u->resid) : error;
}

bool
is_pipe(const struct file *f)
{
	return f->vn->ops == &pipe_ops || f->vn->ops == &fifo_ops;
}

/* Gives the pipe a ring of this size, a power of two. lock held. */
static int
pipe_resize(struct pipe *p, size_t size)
{
	char *ring = uidinfo_alloc(p->ui, size);

	if (ring == NULL)
		return -ENOMEM;
	if (pipe_used(p) + p->kept > size) {
		uidinfo_free(p->ui, ring);
		return -EBUSY;
	}
	for (uint64_t n = p->tail; n < p->head; n++)
		ring[n & (size - 1)] = p->ring[pipe_at(p, n)];
	uidinfo_free(p->ui, p->ring);
	p->ring = ring;
	p->size = size;
	pipe_publish_ready(p);
	cond_broadcast(&p->can_write);
	return 0;
}

int64_t
pipe_fcntl(const struct file *f, bool set, uint64_t size)
{
	struct pipe *p = f->vn->data;
	size_t whole = PAGE_SIZE;
	int64_t r = 0;

	if (!is_pipe(f))
		return -EBADF;
	while (set && whole < (uint32_t)size)
		whole *= 2;
	if (whole > 1ul << 31)
		return -EINVAL;
	mutex_lock(&f->vn->lock);
	if (set && whole > p->size && whole > (uint32_t)pipe_max_size && !capable(CAP_SYS_RESOURCE))
		r = -EPERM;
	else if (set && whole != p->size)
		r = pipe_resize(p, whole);
	r = r != 0 ? r : (int64_t)p->size;
	mutex_unlock(&f->vn->lock);
	if (set && r > 0)
		poll_notify(&p->news, POLLOUT);
	return r;
}

static int64_t
pipe_ioctl(struct file *f, unsigned request, uint64_t arg)
{
	int32_t n;

	if (request != FIONREAD)
		return -ENOTTY;
	mutex_lock(&f->vn->lock);
	n = (int32_t)pipe_used(f->vn->data);
	mutex_unlock(&f->vn->lock);
	return copy_out(arg, &n, sizeof(n));
}

static void
pipe_destroy(struct vnode *vn)
{
	pipe_free(vn->data);
}

static const struct vnode_ops pipe_ops = {
    .open = pipe_open,
    .release = pipe_release,
    .read = pipe_read,
    .write = pipe_write,
    .nowait = true,
    .poll = pipe_poll,
    .ioctl = pipe_ioctl,
    .destroy = pipe_destroy,
};

const struct vnode_ops fifo_ops = {
    .open = fifo_open,
    .release = fifo_release,
    .read = pipe_read,
    .write = pipe_write,
    .nowait = true,
    .poll = pipe_poll,
    .ioctl = pipe_ioctl,
};

int
pipe_create(int flags, struct file *end[2])
{
	struct vnode *vn = vnode_alloc(S_IFIFO | 0600, &pipe_ops, NULL);
	int error = -ENOMEM;

	if (vn == NULL)
		return -ENOMEM;
	vn->data = pipe_alloc();
	if (vn->data != NULL)
		error = file_open_vnode(vn, O_RDONLY | flags, &end[0]);
	if (error < 0) {
		vnode_unref(vn);
		return error;
	}
	error = file_open_vnode(vnode_ref(vn), O_WRONLY | flags, &end[1]);
	if (error < 0) {
		vnode_unref(vn);
		file_unref(end[0]);
		return error;
	}
	CTR1(KTR_BUF, "pipe: ino %lu", vn->ino);
	return 0;
}
