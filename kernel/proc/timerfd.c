/*
 * timerfd.c - timers that are files: a read takes how often the timer has expired, and waits while
 * it has not. Locking: itimer.h.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/time.h"
#include "kernel/fs/file.h"
#include "kernel/fs/poll.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/clock.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/itimer.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/proc/syscall.h"
#include "kernel/sched/sleepq.h"

#define TFD_TIMER_CANCEL_ON_SET 2 /* nobody sets the clock, so it changes nothing */

struct timer_file {
	struct itimer timer;
	struct poll_source news;
	uint32_t clock;
};

static void
timer_expired(struct itimer *t)
{
	poll_notify(&container_of(t, struct timer_file, timer)->news, POLLIN);
}

static int
timer_open(struct file *f)
{
	struct timer_file *tf = f->vn->data;

	f->news = &tf->news;
	itimer_init(&tf->timer, timer_expired);
	return 0;
}

static void
timer_release(struct file *f)
{
	struct timer_file *tf = f->vn->data;

	itimer_set(&tf->timer, 0, 0);
}

static unsigned
timer_poll(struct file *f)
{
	const struct timer_file *tf = f->vn->data;

	return itimer_is_due(&tf->timer) ? POLLIN : 0;
}

static int64_t
take(void *arg)
{
	return (int64_t)itimer_take(arg, 0);
}

static int64_t
timer_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	struct timer_file *tf = vn->data;
	int64_t n;
	int error;

	if (u->resid < sizeof(n))
		return -EINVAL;
	n = poll_wait(take, &tf->timer, f->flags & O_NONBLOCK ? 0 : DEADLINE_NEVER);
	if (n <= 0)
		return n == 0 ? -EAGAIN : n;
	error = uio_put(u, &n, sizeof(n));
	return error != 0 ? error : (int64_t)sizeof(n);
}

static const struct vnode_ops timer_ops = {
    .open = timer_open,
    .release = timer_release,
    .read = timer_read,
    .poll = timer_poll,
    .destroy = file_unnamed_destroy,
};

int64_t
sys_timerfd_create(const uint64_t a[6])
{
	uint32_t clock = (uint32_t)a[0];
	int flags = (int)a[1], error;
	struct file *f;

	if ((flags & ~(O_CLOEXEC | O_NONBLOCK)) || !clock_has_timers(clock))
		return -EINVAL;
	f = file_open_unnamed(&timer_ops, sizeof(struct timer_file), flags & O_NONBLOCK, &error);
	if (f == NULL)
		return error;
	((struct timer_file *)f->vn->data)->clock = clock;
	return filetable_install(f, flags);
}

int64_t
sys_timerfd_settime(const uint64_t a[6])
{
	struct itimer_left old;
	struct timer_file *tf;
	uint64_t deadline, interval;
	struct file *f;
	int error;

	if (a[1] & ~(uint64_t)(TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET))
		return -EINVAL;
	f = filetable_get_kind(a[0], &timer_ops, &error);
	if (f == NULL)
		return error;
	tf = f->vn->data;
	error = take_itimerspec(a[2], tf->clock, a[1] & TIMER_ABSTIME, &deadline, &interval);
	if (error != 0)
		return error;
	old = itimer_set(&tf->timer, deadline, interval);
	return a[3] != 0 ? give_itimerspec(a[3], &old) : 0;
}

int64_t
sys_timerfd_gettime(const uint64_t a[6])
{
	struct itimer_left left;
	int error;
	struct file *f = filetable_get_kind(a[0], &timer_ops, &error);

	if (f == NULL)
		return error;
	left = itimer_left(&((struct timer_file *)f->vn->data)->timer);
	return give_itimerspec(a[1], &left);
}
