/*
 * pipe_splice.c - pipes for splice(), tee() and their kin: bytes and room that one call holds while
 * it waits for its other file.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/signal.h"
#include "kernel/fs/file.h"
#include "kernel/fs/pipe/pipe.h"
#include "kernel/fs/pipe/pipe_private.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/string.h"
#include "kernel/proc/task.h"

int64_t
pipe_keep_room(const struct file *f, size_t n, bool nowait)
{
	struct pipe *p = f->vn->data;
	int r;

	mutex_lock(&f->vn->lock);
	r = pipe_wait_room(f->vn, nowait || (f->flags & O_NONBLOCK), 1, false);
	if (r == 0) {
		n = n < pipe_room(p) ? n : pipe_room(p);
		p->kept += n;
		pipe_publish_ready(p);
	}
	mutex_unlock(&f->vn->lock);
	if (r == -EPIPE)
		proc_signal_self(SIGPIPE);
	return r == 0 ? (int64_t)n : r;
}

int
pipe_await_room(const struct file *f, bool nowait)
{
	return (int)pipe_keep_room(f, 0, nowait);
}

int64_t
pipe_fill_kept(const struct file *f, const void *from, size_t n, size_t kept)
{
	struct pipe *p = f->vn->data;
	struct uio_vec v;
	struct uio u;
	bool broken;

	uio_init(&u, &v, UIO_KERNEL, from, n);
	mutex_lock(&f->vn->lock);
	p->kept -= kept;
	broken = n > 0 && p->readers == 0;
	if (!broken)
		pipe_fill(p, &u);
	pipe_publish_ready(p);
	if (n > 0)
		cond_broadcast(&p->can_read);
	if (n < kept)
		cond_broadcast(&p->can_write);
	mutex_unlock(&f->vn->lock);
	poll_notify(&p->news, (n > 0 ? POLLIN : 0) | (n < kept ? POLLOUT : 0));
	if (broken)
		proc_signal_self(SIGPIPE);
	return broken ? -EPIPE : (int64_t)n;
}

int
pipe_await_data(const struct file *f, bool nowait)
{
	int r;

	mutex_lock(&f->vn->lock);
	r = pipe_wait_data(f->vn, nowait || (f->flags & O_NONBLOCK));
	mutex_unlock(&f->vn->lock);
	return r;
}

int64_t
pipe_give(const struct file *f, size_t len, bool nowait, bool take,
	  int64_t (*sink)(void *arg, struct uio *u), void *arg)
{
	struct vnode *vn = f->vn;
	struct pipe *p = vn->data;
	int64_t r;

	mutex_lock(&vn->lock);
	r = pipe_wait_data(vn, nowait || (f->flags & O_NONBLOCK));
	if (r == 1) {
		size_t at = pipe_at(p, p->tail), n = len < pipe_used(p) ? len : pipe_used(p);
		size_t first = n < p->size - at ? n : p->size - at;
		const struct uio_vec v[2] = {{(uintptr_t)p->ring + at, first},
					     {(uintptr_t)p->ring, n - first}};
		struct uio u = {.first = v, .vec = v, .resid = n, .space = UIO_KERNEL};

		r = sink(arg, &u);
		if (take && r > 0) {
			p->tail += (uint64_t)r;
			pipe_publish_ready(p);
			cond_broadcast(&p->can_write);
		}
	}
	mutex_unlock(&vn->lock);
	if (take && r > 0)
		poll_notify(&p->news, POLLOUT);
	return r;
}

int64_t
pipe_take(const struct file *f, void *to, size_t n, bool nowait)
{
	struct pipe *p = f->vn->data;
	int64_t r;

	mutex_lock(&f->vn->lock);
	r = pipe_wait_data(f->vn, nowait || (f->flags & O_NONBLOCK));
	if (r == 1) {
		size_t at = pipe_at(p, p->tail), first = p->size - at;

		n = n < pipe_used(p) ? n : pipe_used(p);
		first = first < n ? first : n;
		memcpy(to, p->ring + at, first);
		memcpy((char *)to + first, p->ring, n - first);
		p->tail += n;
		p->kept += n;
		p->taken = true;
		pipe_publish_ready(p);
		r = (int64_t)n;
	}
	mutex_unlock(&f->vn->lock);
	return r;
}

void
pipe_put_back(const struct file *f, const char *from, size_t n, size_t left)
{
	struct pipe *p = f->vn->data;

	mutex_lock(&f->vn->lock);
	p->kept -= n;
	p->taken = false;
	for (; left > 0; left--)
		p->ring[pipe_at(p, --p->tail)] = from[--n];
	pipe_publish_ready(p);
	cond_broadcast(&p->can_read);
	cond_broadcast(&p->can_write);
	mutex_unlock(&f->vn->lock);
	poll_notify(&p->news, POLLIN | POLLOUT);
}
