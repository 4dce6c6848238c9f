/*
 * cpu_clock.c - the clocks of the time that a process, or a thread, has a CPU; timers by them, and
 * who sleeps until a time of one.
 *
 * At each clock tick of a thread it is looked whether a time has come. So these are as exact as
 * ticks are, as on Linux. A tick handles few, and each once; the next one goes on. Those by the
 * process's clock are in a heap, for any thread may sleep so; those by threads' clocks are timers,
 * of which a process has few.
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

#define CPU_ALARMS_AT_ONCE 16 /* of a tick */

/* Is that a clock of CPU time? Then the number of its thread or process; 0: the current one. */
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

/* The time up to now, whichever thread of the process asks: no clock goes back. */
static uint64_t
proc_cpu_ns(struct proc *p)
{
	uint64_t sum = p->threads_usage.user_ns + p->threads_usage.system_ns;

	if (p->sums.runtime_ns != 0)
		return sched_sums_ns(&p->sums);
	for_each_lwp(l, p) sum += sched_runtime_ns(l->thread); /* there was never another one */
	return sum;
}

bool
cpu_clock_own(uint32_t clock, struct cpu_alarm *a)
{
	const struct lwp *l = NULL;
	uint32_t number;
	bool thread;

	if (!cpu_clock_decode(clock, &thread, &number))
		return false;
	a->proc = curproc();
	a->tid = !thread ? 0 : number != 0 ? number : curthread()->tid;
	a->serial = 0;
	if (!thread)
		return number == 0 || number == curproc()->pid;
	spin_lock(&proc_lock);
	l = lwp_of(curproc(), a->tid);
	if (l != NULL)
		a->serial = l->thread->serial;
	spin_unlock(&proc_lock);
	return l != NULL;
}

uint32_t
cpu_clock_to_read(uint32_t clock)
{
	uint32_t number;
	bool thread;

	return cpu_clock_decode(clock, &thread, &number) && !thread && number == curthread()->tid
		   ? CLOCK_PROCESS_CPUTIME_ID
		   : clock;
}

bool
cpu_clock_read(uint32_t clock, uint64_t *ns)
{
	struct proc *p;
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

/* The time by which an alarm goes. False: its thread has ended. */
static bool
cpu_alarm_now(const struct cpu_alarm *a, uint64_t *now)
{
	const struct lwp *l;

	if (a->tid == 0) {
		*now = proc_cpu_ns(a->proc);
		return true;
	}
	l = lwp_of(a->proc, a->tid);
	if (l == NULL || l->thread->serial != a->serial)
		return false;
	*now = sched_runtime_ns(l->thread);
	return true;
}

/* What ticks look at has changed. */
static void
cpu_alarms_update(struct proc *p)
{
	uint64_t ns = p->cpu_alarms != NULL ? p->cpu_alarms->at : UINT64_MAX;

	__atomic_store_n(&p->cpu_alarm_ns, list_empty(&p->thread_alarms) ? ns : 0,
			 __ATOMIC_RELAXED);
	cpu_timers_update(p);
}

static void
cpu_alarm_start(struct cpu_alarm *a)
{
	if (a->tid != 0) {
		list_append(&a->proc->thread_alarms, &a->link);
	} else { /* the heap ends at 2^63 ns, which nobody lives to see */
		a->in_heap = true;
		a->heap.at = a->deadline_ns < INT64_MAX ? a->deadline_ns : INT64_MAX;
		leftist_insert(&a->proc->cpu_alarms, &a->heap);
	}
	cpu_alarms_update(a->proc);
}

void
cpu_alarm_stop(struct cpu_alarm *a)
{
	list_remove(&a->link);
	if (a->in_heap)
		leftist_remove(&a->proc->cpu_alarms, &a->heap);
	a->in_heap = false;
	cpu_alarms_update(a->proc);
}

/* The time of an alarm has come. */
static void
cpu_alarm_expire(struct cpu_alarm *a, uint64_t now)
{
	cpu_alarm_stop(a);
	a->due = true;
	a->fn(a, now);
}

void
cpu_alarm_init(struct cpu_alarm *a)
{
	list_init(&a->link);
}

static struct itimer_left
cpu_alarm_rest(const struct cpu_alarm *a, uint64_t now)
{
	return itimer_rest(a->deadline_ns, a->interval_ns, a->due, now);
}

struct itimer_left
cpu_alarm_left(const struct cpu_alarm *a)
{
	uint64_t now;

	return cpu_alarm_now(a, &now) ? cpu_alarm_rest(a, now) : (struct itimer_left){0};
}

bool
cpu_alarm_set(struct cpu_alarm *a, bool absolute, uint64_t ns, uint64_t interval_ns,
	      struct itimer_left *old)
{
	uint64_t now;

	if (!cpu_alarm_now(a, &now))
		return false;
	*old = cpu_alarm_rest(a, now);
	cpu_alarm_stop(a);
	a->due = false;
	a->deadline_ns = ns == 0 || absolute ? ns : now + ns;
	a->interval_ns = ns != 0 ? interval_ns : 0;
	if (ns == 0)
		return true;
	cpu_alarm_start(a);
	if (a->deadline_ns <= now) /* perhaps no tick comes, since all its threads may sleep */
		cpu_alarm_expire(a, now);
	return true;
}

uint64_t
cpu_alarm_take(struct cpu_alarm *a, uint64_t now)
{
	uint64_t n = 1;

	if (!a->due)
		return 0;
	a->due = false;
	if (a->interval_ns == 0 || (now == 0 && !cpu_alarm_now(a, &now))) {
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

/* An alarm that repeats is due next after ns, so each one expires at most once in here. */
void
cpu_alarms_tick(struct proc *p, uint64_t ns)
{
	uint64_t own = thread_cpu_ns();
	unsigned n = 0;

	for (; n < CPU_ALARMS_AT_ONCE && p->cpu_alarms != NULL && p->cpu_alarms->at <= ns; n++)
		cpu_alarm_expire(container_of(p->cpu_alarms, struct cpu_alarm, heap), ns);
	n = 0;
	list_for_each_entry_safe (struct cpu_alarm, a, &p->thread_alarms, link) {
		if (a->serial == curthread()->serial && a->deadline_ns <= own &&
		    n++ < CPU_ALARMS_AT_ONCE)
			cpu_alarm_expire(a, own);
	}
	cpu_alarms_update(p);
}

void
cpu_alarms_end(struct proc *p)
{
	list_for_each_entry_safe (struct cpu_alarm, a, &p->thread_alarms, link) {
		if (a->serial == curthread()->serial)
			cpu_alarm_stop(a);
	}
}

struct cpu_sleeper {
	struct cpu_alarm alarm;
	bool woken;
};

static void
cpu_sleeper_wake(struct cpu_alarm *a, uint64_t now)
{
	struct cpu_sleeper *s = container_of(a, struct cpu_sleeper, alarm);

	s->woken = true;
	wakeup(s);
}

int64_t
cpu_clock_sleep(uint32_t clock, uint64_t again, bool absolute, int error, uint64_t ns,
		uint64_t urest)
{
	struct cpu_sleeper s = {.alarm = {.fn = cpu_sleeper_wake}};
	uint32_t *tid = &s.alarm.tid;
	struct itimer_left left;
	struct timespec rest;
	int r = error;

	if (!cpu_clock_own(clock, &s.alarm) || *tid != 0)
		return *tid == curthread()->tid && clock != CLOCK_THREAD_CPUTIME_ID ? -EINVAL
										    : -EOPNOTSUPP;
	if (error != 0)
		return error;
	cpu_alarm_init(&s.alarm);
	spin_lock(&proc_lock);
	cpu_alarm_set(&s.alarm, absolute || again != DEADLINE_NEVER,
		      again != DEADLINE_NEVER ? again : ns, 0, &left);
	while (!s.woken && ns != 0 && r == 0)
		r = sleep_on(&s, &proc_lock, "nanslp", SLEEP_INTR, DEADLINE_NEVER);
	if (r == -EINTR)
		curthread()->interrupted_ns = s.alarm.deadline_ns; /* of this clock */
	if (r == -EINTR && urest != 0)
		left = cpu_alarm_left(&s.alarm);
	cpu_alarm_stop(&s.alarm);
	spin_unlock(&proc_lock);
	if (s.woken || r != -EINTR || absolute || urest == 0)
		return s.woken ? 0 : r;
	rest = (struct timespec){(int64_t)(left.left_ns / NS_PER_S),
				 (int64_t)(left.left_ns % NS_PER_S)};
	return copy_out(urest, &rest, sizeof(rest)) != 0 ? -EFAULT : r;
}
