/*
 * eventfd.c - files that are a counter: eventfd(). A write adds to it; a read takes all of it, or 1
 * (EFD_SEMAPHORE), and waits while it is 0. Locking: the vnode's mutex.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/poll.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/fs/wait/poll.h"
#include "kernel/sched/sleepq.h"
#include "kernel/syscall.h"

#define EFD_SEMAPHORE 1
#define COUNT_MAX     (UINT64_MAX - 1)

struct event {
	uint64_t count; /* COUNT_MAX at most */
	bool semaphore;
	struct cond changed;
	struct poll_source news;
};

static int
event_open(struct file *f)
{
	struct event *e = f->vn->data;

	f->news = &e->news;
	return 0;
}

static unsigned
event_poll(struct file *f)
{
	const struct event *e = f->vn->data;
	unsigned found;

	mutex_lock(&f->vn->lock);
	found = (e->count > 0 ? POLLIN : 0) | (e->count < COUNT_MAX ? POLLOUT : 0);
	mutex_unlock(&f->vn->lock);
	return found;
}

/* Waits until the counter changes. lock held. */
static int
event_wait(struct vnode *vn, const struct file *f, const struct uio *u)
{
	struct event *e = vn->data;

	return u->nowait || (f->flags & O_NONBLOCK)
		   ? -EAGAIN
		   : cond_wait(&e->changed, &vn->lock, "eventfd", SLEEP_INTR, DEADLINE_NEVER);
}

static int64_t
event_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	struct event *e = vn->data;
	uint64_t n;
	int error = 0;

	if (u->resid < sizeof(n))
		return -EINVAL;
	mutex_lock(&vn->lock);
	while (error == 0 && e->count == 0)
		error = event_wait(vn, f, u);
	n = e->semaphore ? 1 : e->count;
	if (error == 0) {
		e->count -= n;
		cond_broadcast(&e->changed);
	}
	mutex_unlock(&vn->lock);
	if (error != 0)
		return error;
	poll_notify(&e->news, POLLOUT);
	error = uio_put(u, &n, sizeof(n));
	return error != 0 ? error : (int64_t)sizeof(n);
}

static int64_t
event_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	struct event *e = vn->data;
	uint64_t n;
	int error;

	if (u->resid < sizeof(n))
		return -EINVAL;
	error = uio_take(u, &n, sizeof(n));
	if (error != 0 || n > COUNT_MAX)
		return error != 0 ? error : -EINVAL;
	mutex_lock(&vn->lock);
	while (error == 0 && n > COUNT_MAX - e->count)
		error = event_wait(vn, f, u);
	if (error == 0) {
		e->count += n;
		cond_broadcast(&e->changed);
	}
	mutex_unlock(&vn->lock);
	if (error != 0)
		return error;
	poll_notify(&e->news, POLLIN);
	return sizeof(n);
}

static const struct vnode_ops event_ops = {
    .open = event_open,
    .read = event_read,
    .write = event_write,
    .nowait = true,
    .poll = event_poll,
    .destroy = file_unnamed_destroy,
};

int64_t
sys_eventfd2(const uint64_t a[6])
{
	int flags = (int)a[1], error;
	struct event *e;
	struct file *f;

	if (flags & ~(EFD_SEMAPHORE | O_CLOEXEC | O_NONBLOCK))
		return -EINVAL;
	f = file_open_unnamed(&event_ops, sizeof(*e), flags & O_NONBLOCK, &error);
	if (f == NULL)
		return error;
	e = f->vn->data;
	e->count = (uint32_t)a[0];
	e->semaphore = flags & EFD_SEMAPHORE;
	return filetable_install(f, flags);
}

SYSCALL_IS(eventfd, sys_eventfd2((const uint64_t[6]){a[0]}))
