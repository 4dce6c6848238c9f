/*
 * cpu_clock.c - the clocks of the time that a process, or a thread, has a CPU; timers by them, and
 * who sleeps until a time of one.
 *
 * At each clock tick of a thread it is looked whether a time has come. So these are as exact as
 * ticks are, as on Linux. Those by the process's clock are in the order of their times, for any
 * thread may sleep so; those by threads' clocks are timers, of which a process has few.
 *
 * Locking: proc_lock.
 */
#include "kernel/proc/cpu_clock.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/time.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/itimer.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"

#define NS_PER_S 1000000000ul

/* Whose clock that is, if it is one of CPU time: a thread's or a process's number, 0: the current
 * one's. */
static bool
cpu_clock_decode(uint32_t clock, bool *thread, uint32_t *number)
{
	*number = 0;
	*thread = clock == CLOCK_THREAD_CPUTIME_ID;
	if (*thread || clock == CLOCK_PROCESS_CPUTIME_ID)
		return true;
	*thread = clock & CPUCLOCK_PERTHREAD;
	*number = (uint32_t) ~((int32_t)clock >> 3);
	return (int32_t)clock < 0 && (clock & CPUCLOCK_MASK) == CPUCLOCK_SCHED;
}

/* Up to now, whichever of its threads asks: no clock goes back. */
static uint64_t
proc_cpu_ns(const struct proc *p)
{
	uint64_t sum = p->threads_usage.user_ns + p->threads_usage.system_ns;

	for_each_lwp(l, p) sum += sched_runtime_ns(l->thread);
	return sum;
}

/* The thread, if it is one of p. */
static const struct lwp *
lwp_of(const struct proc *p, uint32_t tid)
{
	const struct lwp *l = lwp_find(tid);

	return l != NULL && l->thread->proc == p ? l : NULL;
}

bool
cpu_clock_own(uint32_t clock, uint32_t *tid)
{
	bool thread, good;
	uint32_t number;

	if (!cpu_clock_decode(clock, &thread, &number))
		return false;
	*tid = !thread ? 0 : number != 0 ? number : curthread()->tid;
	spin_lock(&proc_lock);
	good = thread ? lwp_of(curproc(), *tid) != NULL : number == 0 || number == curproc()->pid;
	spin_unlock(&proc_lock);
	return good;
}

bool
cpu_clock_read(uint32_t clock, uint64_t *ns)
{
	const struct proc *p;
	const struct lwp *l;
	uint32_t number;
	bool thread, good;

	if (!cpu_clock_decode(clock, &thread, &number))
		return false;
	if (thread && number == 0) {
		*ns = thread_cpu_ns();
		return true;
	}
	spin_lock(&proc_lock);
	p = number == 0 || thread ? curproc() : proc_find(number);
	l = thread ? lwp_of(p, number) : NULL;
	good = thread ? l != NULL : p != NULL;
	if (good)
		*ns = thread ? sched_runtime_ns(l->thread) : proc_cpu_ns(p);
	spin_unlock(&proc_lock);
	return good;
}

/* The time by which an alarm goes; 0: its thread has ended. */
static uint64_t
cpu_alarm_now(const struct cpu_alarm *a)
{
	const struct lwp *l;

	if (a->tid == 0)
		return proc_cpu_ns(a->proc);
	l = lwp_of(a->proc, a->tid);
	return l != NULL ? sched_runtime_ns(l->thread) : 0;
}

/* What ticks look at has changed. */
static void
cpu_alarms_update(struct proc *p)
{
	const struct cpu_alarm *first = list_entry(p->cpu_alarms.next, struct cpu_alarm, link);
	uint64_t ns = list_empty(&p->cpu_alarms) ? UINT64_MAX : first->deadline_ns;

	__atomic_store_n(&p->cpu_alarm_ns, list_empty(&p->thread_alarms) ? ns : 0,
			 __ATOMIC_RELAXED);
	cpu_timers_update(p);
}

static void
cpu_alarm_start(struct cpu_alarm *a)
{
	struct list *at = a->tid != 0 ? &a->proc->thread_alarms : &a->proc->cpu_alarms;

	list_for_each_entry (struct cpu_alarm, other, at, link) {
		if (a->tid == 0 && other->deadline_ns > a->deadline_ns) {
			at = &other->link;
			break;
		}
	}
	list_append(at, &a->link); /* before that one */
	cpu_alarms_update(a->proc);
}

void
cpu_alarm_init(struct cpu_alarm *a)
{
	list_init(&a->link);
}

static struct itimer_left
cpu_alarm_rest(const struct cpu_alarm *a, uint64_t now)
{
	struct itimer_left l = {.interval_ns = a->interval_ns};

	if (a->deadline_ns > now)
		l.left_ns = a->deadline_ns - now;
	else if (a->deadline_ns != 0 && a->interval_ns != 0)
		l.left_ns = a->interval_ns - (now - a->deadline_ns) % a->interval_ns;
	else if (a->deadline_ns != 0 && !a->due)
		l.left_ns = 1;
	return l;
}

struct itimer_left
cpu_alarm_left(const struct cpu_alarm *a)
{
	return cpu_alarm_rest(a, cpu_alarm_now(a));
}

struct itimer_left
cpu_alarm_set(struct cpu_alarm *a, bool absolute, uint64_t ns, uint64_t interval_ns)
{
	uint64_t now = cpu_alarm_now(a);
	struct itimer_left old = cpu_alarm_rest(a, now);

	list_remove(&a->link);
	a->due = false;
	a->deadline_ns = ns == 0 || absolute ? ns : now + ns;
	a->interval_ns = ns != 0 ? interval_ns : 0;
	if (ns != 0)
		cpu_alarm_start(a);
	else
		cpu_alarms_update(a->proc);
	return old;
}

uint64_t
cpu_alarm_take(struct cpu_alarm *a)
{
	uint64_t n = 1, now = cpu_alarm_now(a);

	if (!a->due)
		return 0;
	a->due = false;
	if (a->interval_ns == 0) {
		a->deadline_ns = 0;
		return n;
	}
	if (now > a->deadline_ns)
		n += (now - a->deadline_ns) / a->interval_ns;
	a->deadline_ns += n * a->interval_ns;
	cpu_alarm_start(a);
	return n;
}

bool
cpu_alarms_are_due(const struct proc *p, uint64_t ns)
{
	return ns >= __atomic_load_n(&p->cpu_alarm_ns, __ATOMIC_RELAXED);
}

static void
cpu_alarm_expire(struct cpu_alarm *a)
{
	list_remove(&a->link);
	a->due = true;
	a->fn(a);
}

void
cpu_alarms_tick(struct proc *p, uint64_t ns)
{
	uint64_t own = thread_cpu_ns();

	while (!list_empty(&p->cpu_alarms)) {
		struct cpu_alarm *a = list_entry(p->cpu_alarms.next, struct cpu_alarm, link);

		if (a->deadline_ns > ns)
			break;
		cpu_alarm_expire(a);
	}
	list_for_each_entry_safe (struct cpu_alarm, a, &p->thread_alarms, link) {
		if (a->tid == curthread()->tid && a->deadline_ns <= own)
			cpu_alarm_expire(a);
	}
	cpu_alarms_update(p);
}

struct cpu_sleeper {
	struct cpu_alarm alarm;
	bool woken;
};

static void
cpu_sleeper_wake(struct cpu_alarm *a)
{
	struct cpu_sleeper *s = container_of(a, struct cpu_sleeper, alarm);

	s->woken = true;
	wakeup(s);
}

int64_t
cpu_clock_sleep(uint32_t clock, uint64_t again, bool absolute, int error, uint64_t ns,
		uint64_t urest)
{
	struct cpu_sleeper s = {.alarm = {.proc = curproc(), .fn = cpu_sleeper_wake}};
	struct itimer_left left;
	struct timespec rest;
	uint32_t tid = 0;
	int r = error;

	if (!cpu_clock_own(clock, &tid) || tid != 0)
		return tid == curthread()->tid && clock != CLOCK_THREAD_CPUTIME_ID ? -EINVAL
										   : -EOPNOTSUPP;
	if (error != 0)
		return error;
	cpu_alarm_init(&s.alarm);
	spin_lock(&proc_lock);
	cpu_alarm_set(&s.alarm, absolute || again != DEADLINE_NEVER,
		      again != DEADLINE_NEVER ? again : ns, 0);
	while (!s.woken && ns != 0 && r == 0)
		r = sleep_on(&s, &proc_lock, "nanslp", SLEEP_INTR, DEADLINE_NEVER);
	if (r == -EINTR)
		curthread()->interrupted_ns = s.alarm.deadline_ns; /* of this clock */
	left = cpu_alarm_set(&s.alarm, false, 0, 0);
	spin_unlock(&proc_lock);
	if (s.woken || r != -EINTR || absolute || urest == 0)
		return s.woken ? 0 : r;
	rest = (struct timespec){(int64_t)(left.left_ns / NS_PER_S),
				 (int64_t)(left.left_ns % NS_PER_S)};
	return copy_out(urest, &rest, sizeof(rest)) != 0 ? -EFAULT : r;
}
