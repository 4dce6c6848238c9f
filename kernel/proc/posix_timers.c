/*
 * posix_timers.c - timers that send signals: timer_create and so on.
 *
 * Locking: proc_lock guards proc.timers and the fields marked [p]; timer_mutex is held while timers
 * are made, set and deleted.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/signal.h"
#include "kernel/abi/time.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/cpu_clock.h"
#include "kernel/proc/itimer.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sched/mutex.h"
#include "kernel/sched/thread.h"
#include "kernel/syscall.h"
#include "ktr/ktr.h"

#define BIT(sig) (1ul << ((sig)-1))

#define TIMERS_MAX 128 /* of a process */

struct posix_timer {
	struct real_itimer real;
	struct cpu_alarm cpu; /* [p] instead, of a CPU clock */
	bool by_cpu;
	struct list link; /* [p] in proc.timers */
	struct proc *proc;
	struct uidinfo *ui; /* to whom it is counted */
	int32_t id;
	uint32_t clock;
	int sig;                 /* 0: none */
	uint32_t tid;            /* the thread that gets it; 0: any */
	uint64_t value;          /* the program's own */
	struct sigqueue *queued; /* [p] the room for its signal; always there */
	uint32_t overrun; /* [p] how often it had expired besides, when its signal was taken */
};

static struct mutex timer_mutex = MUTEX_INIT("timers");

/* Sends the signal of a timer to p or its thread l. False: it is ignored, so nobody will take it.
 * proc_lock held. */
static bool
posix_timer_send(struct proc *p, struct lwp *l, const struct siginfo *info, struct sigqueue *own)
{
	proc_signal_send(p, l, info, own);
	return (l != NULL ? l->pending.set : p->pending.set) & BIT(info->si_signo);
}

/* Takes how many times a timer has expired. now: cpu_alarm_take(). proc_lock held. */
static uint64_t
posix_timer_take(struct posix_timer *t, uint64_t now, bool heard)
{
	return t->by_cpu ? cpu_alarm_take(&t->cpu, now) : itimer_take(&t->real.timer, heard);
}

/* proc_lock held */
static void
posix_timer_tell(struct posix_timer *t, uint64_t now)
{
	struct siginfo info = {t->sig, .si_code = SI_TIMER, .si_tid = t->id, .si_overrun = 0,
			       .si_value = t->value};
	struct lwp *to = NULL;

	if (t->sig == 0)
		return;
	if (t->tid != 0)
		to = lwp_of(t->proc, t->tid);
	if ((to != NULL || t->tid == 0) && !posix_timer_send(t->proc, to, &info, t->queued)) {
		posix_timer_take(t, now, false);
		t->proc->paused |= BIT(t->sig);
	}
}

static void
posix_timer_expired(struct itimer *it)
{
	spin_lock(&proc_lock);
	posix_timer_tell(container_of(it, struct posix_timer, real.timer), 0);
	spin_unlock(&proc_lock);
}

static void
posix_timer_ticked(struct cpu_alarm *a, uint64_t now)
{
	posix_timer_tell(container_of(a, struct posix_timer, cpu), now);
}

void
proc_alarm(struct itimer *t)
{
	struct proc *p = container_of(t, struct proc, alarm);

	spin_lock(&proc_lock);
	if (!posix_timer_send(p, NULL, &(struct siginfo){SIGALRM, .si_code = SI_KERNEL}, NULL)) {
		itimer_take(t, false);
		p->paused |= BIT(SIGALRM);
	}
	spin_unlock(&proc_lock);
}

void
proc_timers_take(struct proc *p, struct siginfo *info, bool kept, bool dropped)
{
	if (dropped)
		p->paused |= BIT(info->si_signo);
	if (info->si_signo == SIGALRM)
		itimer_take(&p->alarm, !dropped);
	if (!kept || info->si_code != SI_TIMER) /* a program may say so, too */
		return;
	list_for_each_entry (struct posix_timer, t, &p->timers, link) {
		uint64_t n = info->si_tid == t->id ? posix_timer_take(t, 0, !dropped) : 0;

		if (n > 0) {
			t->overrun = n - 1 < INT32_MAX ? (uint32_t)(n - 1) : INT32_MAX;
			info->si_overrun = (int32_t)t->overrun;
		}
	}
}

void
proc_timers_resume(struct proc *p, uint64_t signals)
{
	signals &= p->paused;
	if (signals == 0)
		return;
	p->paused &= ~signals;
	if (signals & BIT(SIGALRM))
		itimer_resume(&p->alarm);
	list_for_each_entry (struct posix_timer, t, &p->timers, link)
		if (t->sig != 0 && (signals & BIT(t->sig)) && !t->by_cpu)
			itimer_resume(&t->real.timer);
}

/* The timer of the current process with this number, or NULL. timer_mutex held. */
static struct posix_timer *
posix_timer_find(uint64_t id)
{
	list_for_each_entry (struct posix_timer, t, &curproc()->timers, link)
		if (t->id == (int32_t)id)
			return t;
	return NULL;
}

static void
posix_timer_destroy(struct posix_timer *t)
{
	if (!t->by_cpu)
		real_itimer_set(&t->real, ITIMER_STOP);
	spin_lock(&proc_lock);
	if (t->by_cpu)
		cpu_alarm_stop(&t->cpu);
	list_remove(&t->link);
	sigqueue_free(t->queued);
	spin_unlock(&proc_lock);
	uidinfo_free(t->ui, t);
}

void
proc_timers_end(struct proc *p)
{
	if (list_empty(&p->timers))
		return; /* without timer_mutex, whose holder may wait for memory of this process */
	mutex_lock(&timer_mutex);
	while (!list_empty(&p->timers))
		posix_timer_destroy(list_entry(p->timers.next, struct posix_timer, link));
	mutex_unlock(&timer_mutex);
}

/* Notes whom the timer tells, and how. 0 or -errno. */
static int
posix_timer_take_event(uint64_t uevent, struct posix_timer *t)
{
	struct sigevent e;
	bool found;

	if (uevent == 0)
		return 0;
	if (copy_in(&e, uevent, sizeof(e)) != 0)
		return -EFAULT;
	t->sig = e.sigev_notify == SIGEV_NONE ? 0 : e.sigev_signo;
	t->value = e.sigev_value;
	if (e.sigev_notify == SIGEV_NONE)
		return 0;
	if (t->sig < 1 || t->sig > NSIG)
		return -EINVAL;
	if (e.sigev_notify == SIGEV_SIGNAL || e.sigev_notify == SIGEV_THREAD)
		return 0;
	if (e.sigev_notify != SIGEV_THREAD_ID)
		return -EINVAL;
	t->tid = (uint32_t)e.sigev_tid;
	spin_lock(&proc_lock);
	found = lwp_of(curproc(), t->tid) != NULL;
	spin_unlock(&proc_lock);
	return found ? 0 : -EINVAL;
}

/* Has a process as many timers as it may have? The number is bounded because each signal, and
 * each callout nearby, looks at all of them. */
static bool
is_full(const struct proc *p)
{
	unsigned n = 0;

	list_for_each (l, &p->timers)
		n++;
	return n >= TIMERS_MAX;
}

int64_t
sys_timer_create(const uint64_t a[6])
{
	struct posix_timer new = {.proc = curproc(), .clock = (uint32_t)a[0], .sig = SIGALRM}, *t;
	struct uidinfo *ui = curproc()->ui;
	int error;

	new.by_cpu = cpu_clock_own(new.clock, &new.cpu);
	if (!new.by_cpu && !clock_has_timers(new.clock))
		return new.clock <= CLOCK_BOOTTIME ? -EOPNOTSUPP : -EINVAL;
	error = posix_timer_take_event(a[1], &new);
	if (error != 0)
		return error;
	new.queued = sigqueue_alloc(curproc(), true);
	t = new.queued != NULL ? uidinfo_alloc(ui, sizeof(*t)) : NULL;
	mutex_lock(&timer_mutex);
	if (t == NULL || is_full(curproc())) {
		mutex_unlock(&timer_mutex);
		if (new.queued != NULL)
			sigqueue_free(new.queued);
		uidinfo_free(ui, t);
		return -EAGAIN;
	}
	new.queued->kept = true;
	do
		new.id = (int32_t)(curproc()->next_timer++ & INT32_MAX);
	while (posix_timer_find((uint64_t) new.id) != NULL);
	*t = new;
	t->ui = ui;
	if (a[1] == 0)
		t->value = (uint64_t)t->id;
	real_itimer_init(&t->real, posix_timer_expired, NULL);
	t->cpu.fn = posix_timer_ticked;
	cpu_alarm_init(&t->cpu);
	spin_lock(&proc_lock);
	list_append(&curproc()->timers, &t->link);
	spin_unlock(&proc_lock);
	mutex_unlock(&timer_mutex);
	CTR4(KTR_PROC, "timer create: clock %u sig %d tid %u id %d", new.clock, new.sig, new.tid,
	     new.id);
	error = copy_out(a[2], &new.id, sizeof(new.id));
	if (error != 0)
		sys_timer_delete((const uint64_t[6]){(uint64_t) new.id});
	return error;
}

/* 0; or -ESRCH: the timer goes by the clock of a thread that has ended. timer_mutex held. */
static int
posix_timer_set(struct posix_timer *t, bool absolute, struct itimer_when when,
		struct itimer_left *old)
{
	bool good = true;

	if (!t->by_cpu) {
		*old = real_itimer_set(&t->real, when);
		return 0;
	}
	spin_lock(&proc_lock);
	good = cpu_alarm_set(&t->cpu, absolute, when.deadline_ns, when.interval_ns, old);
	spin_unlock(&proc_lock);
	return good ? 0 : -ESRCH;
}

int64_t
sys_timer_settime(const uint64_t a[6])
{
	struct itimer_when when = ITIMER_STOP;
	bool by_cpu = false, absolute = a[1] & TIMER_ABSTIME;
	struct itimer_left old;
	struct posix_timer *t;
	uint32_t clock;
	int r;

	/* What the program gives is copied without the lock: that may wait for memory. */
	mutex_lock(&timer_mutex);
	t = posix_timer_find(a[0]);
	clock = t != NULL ? t->clock : 0;
	by_cpu = t != NULL && t->by_cpu;
	mutex_unlock(&timer_mutex);
	if (t == NULL || a[2] == 0)
		return -EINVAL;
	r = take_itimerspec(a[2], clock, absolute || by_cpu, &when);
	if (r != 0)
		return r;
	mutex_lock(&timer_mutex);
	t = posix_timer_find(a[0]);
	/* Another thread may have deleted it. */
	r = t != NULL ? posix_timer_set(t, absolute, when, &old) : -EINVAL;
	mutex_unlock(&timer_mutex);
	if (r != 0)
		return r;
	return a[3] != 0 ? give_itimerspec(a[3], &old) : 0;
}

int64_t
sys_timer_gettime(const uint64_t a[6])
{
	struct itimer_left left;
	struct posix_timer *t;

	mutex_lock(&timer_mutex);
	t = posix_timer_find(a[0]);
	if (t != NULL && t->by_cpu) {
		spin_lock(&proc_lock);
		left = cpu_alarm_left(&t->cpu);
		spin_unlock(&proc_lock);
	} else if (t != NULL) {
		left = itimer_left(&t->real.timer);
	}
	mutex_unlock(&timer_mutex);
	return t != NULL ? give_itimerspec(a[1], &left) : -EINVAL;
}

int64_t
sys_timer_getoverrun(const uint64_t a[6])
{
	const struct posix_timer *t;
	int64_t n;

	mutex_lock(&timer_mutex);
	t = posix_timer_find(a[0]);
	n = t != NULL ? (int64_t)__atomic_load_n(&t->overrun, __ATOMIC_RELAXED) : -EINVAL;
	mutex_unlock(&timer_mutex);
	return n;
}

int64_t
sys_timer_delete(const uint64_t a[6])
{
	struct posix_timer *t;

	mutex_lock(&timer_mutex);
	t = posix_timer_find(a[0]);
	if (t != NULL)
		posix_timer_destroy(t);
	mutex_unlock(&timer_mutex);
	return t != NULL ? 0 : -EINVAL;
}
