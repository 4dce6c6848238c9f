/*
 * timerfd.c - timers that are files: a read takes how often the timer has expired, and waits while
 * it has not. TFD_TIMER_CANCEL_ON_SET makes it fail if the clock of the day was set. Locking:
 * itimer.h.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/time.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/fs/wait/poll.h"
#include "kernel/proc/itimer.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sched/sleepq.h"
#include "kernel/syscall.h"

#define TFD_TIMER_CANCEL_ON_SET 2

struct timer_file {
	struct real_itimer real;
	struct poll_source news;
	uint32_t clock;
	bool cancels;   /* atomic: TFD_TIMER_CANCEL_ON_SET, for a time of the clock of the day */
	bool cancelled; /* atomic: that clock was set, and nobody has been told */
};

static void
timer_expired(struct itimer *t)
{
	poll_notify(&container_of(t, struct timer_file, real.timer)->news, POLLIN);
}

static void
timer_clock_set(struct real_itimer *t)
{
	struct timer_file *tf = container_of(t, struct timer_file, real);

	if (!__atomic_load_n(&tf->cancels, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&tf->cancelled, true, __ATOMIC_RELAXED);
	poll_notify(&tf->news, POLLIN);
}

/* Was the timer cancelled? Then it no longer is. */
static bool
take_cancelled(struct timer_file *tf)
{
	return __atomic_exchange_n(&tf->cancelled, false, __ATOMIC_RELAXED);
}

static int
timer_open(struct file *f)
{
	struct timer_file *tf = f->vn->data;

	f->news = &tf->news;
	real_itimer_init(&tf->real, timer_expired, timer_clock_set);
	return 0;
}

static void
timer_release(struct file *f)
{
	struct timer_file *tf = f->vn->data;

	real_itimer_set(&tf->real, ITIMER_STOP);
}

static unsigned
timer_poll(struct file *f)
{
	const struct timer_file *tf = f->vn->data;

	return itimer_is_due(&tf->real.timer) || __atomic_load_n(&tf->cancelled, __ATOMIC_RELAXED)
		   ? POLLIN
		   : 0;
}

static int64_t
timerfd_take(void *arg)
{
	struct timer_file *tf = arg;
	bool cancelled = take_cancelled(tf);
	int64_t n = (int64_t)itimer_take(&tf->real.timer, true);

	return cancelled ? -ECANCELED : n;
}

static int64_t
timer_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	struct timer_file *tf = vn->data;
	int64_t n;
	int error;

	if (u->resid < sizeof(n))
		return -EINVAL;
	n = poll_wait(timerfd_take, tf, f->flags & O_NONBLOCK ? 0 : DEADLINE_NEVER);
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
	struct itimer_when when;
	struct file *f;
	int error;

	if ((uint32_t)a[1] & ~(uint32_t)(TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET))
		return -EINVAL;
	f = filetable_get_kind(a[0], &timer_ops, &error);
	if (f == NULL)
		return error;
	tf = f->vn->data;
	error = take_itimerspec(a[2], tf->clock, a[1] & TIMER_ABSTIME, &when);
	if (error != 0)
		return error;
	__atomic_store_n(&tf->cancels, when.real && (a[1] & TFD_TIMER_CANCEL_ON_SET),
			 __ATOMIC_RELAXED);
	old = real_itimer_set(&tf->real, when);
	if (take_cancelled(tf))
		return -ECANCELED; /* it is set all the same */
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
	left = itimer_left(&((struct timer_file *)f->vn->data)->real.timer);
	return give_itimerspec(a[1], &left);
}
