/*
 * cpu_timers.c - timers of a process's time on a CPU: ITIMER_VIRTUAL, ITIMER_PROF, RLIMIT_CPU; and
 * the tick that looks at all timers of such a time (cpu_clock.c has others).
 *
 * At each clock tick of a thread it is looked whether its process has used that much. So these
 * timers are as exact as ticks are, as on Linux. A tick looks at no other thread: a process may
 * have many. (To send a signal may need a look at them.)
 *
 * Locking: proc_lock, which a tick takes only if something is due, or the process has a timer by
 * the clock of one of its threads.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/signal.h"
#include "kernel/abi/time.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/hook.h"
#include "kernel/proc/cpu_clock.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sched/thread.h"
#include "kernel/sched/timer.h"
#include "kernel/sync/spinlock.h"

#define NS_PER_S 1000000000ul

void
cpu_timers_update(struct proc *p)
{
	const struct rlimit *limit = &p->limits[RLIMIT_CPU];
	bool timed = limit->rlim_cur != RLIM_INFINITY || limit->rlim_max != RLIM_INFINITY ||
		     p->cpu_alarm_ns != UINT64_MAX;

	for (unsigned i = 0; i < CPU_TIMERS; i++)
		timed |= p->cpu_timers[i].deadline_ns != 0;
	__atomic_store_n(&p->cpu_timed, timed, __ATOMIC_RELAXED);
}

/* What the current process has used: its other threads up to their last ticks. Interrupts off. */
static struct usage
cpu_used(const struct proc *p)
{
	const struct thread *t = curthread();
	uint64_t all = __atomic_load_n(&p->sums.runtime_ns, __ATOMIC_RELAXED);
	uint64_t ticks = __atomic_load_n(&p->sums.user_ticks, __ATOMIC_RELAXED), user;

	if (t->sums == NULL) /* it has always been the only one */
		return thread_usage(t);
	all += thread_cpu_ns() - __atomic_load_n(&t->runtime_ns, __ATOMIC_RELAXED);
	user = clock_span_ns(ticks + t->user_ticks - t->user_known);
	if (user > all)
		user = all; /* as in thread_usage() */
	return (struct usage){.user_ns = user, .system_ns = all - user};
}

/* What the timer counts: time in the program, or all. */
static uint64_t
used_ns(struct usage u, unsigned timer)
{
	return u.user_ns + (timer == CPU_TIMER_PROF ? u.system_ns : 0);
}

static struct itimer_left
cpu_timer_left(const struct cpu_timer *t, uint64_t now)
{
	struct itimer_left left = {.interval_ns = t->interval_ns};

	if (t->deadline_ns != 0)
		left.left_ns = t->deadline_ns > now ? t->deadline_ns - now : 1;
	return left;
}

struct itimer_left
cpu_timer_set(unsigned timer, const struct itimer_left *new)
{
	struct proc *p = curproc();
	struct cpu_timer *t = &p->cpu_timers[timer];
	struct itimer_left old;
	uint64_t now;

	spin_lock(&proc_lock);
	now = used_ns(cpu_used(p), timer);
	old = cpu_timer_left(t, now);
	if (new != NULL) {
		t->deadline_ns = new->left_ns != 0 ? now + new->left_ns : 0;
		t->interval_ns = new->interval_ns;
		cpu_timers_update(p);
	}
	spin_unlock(&proc_lock);
	return old;
}

/* Above the soft limit sends a signal each second, which raises it; at the hard one SIGKILL. */
static void
check_cpu_limit(struct proc *p, uint64_t ns)
{
	struct rlimit *limit = &p->limits[RLIMIT_CPU];
	uint64_t seconds = ns / NS_PER_S;

	if (limit->rlim_max != RLIM_INFINITY && seconds >= limit->rlim_max) {
		proc_signal_locked(p, SIGKILL);
	} else if (limit->rlim_cur != RLIM_INFINITY && seconds >= limit->rlim_cur) {
		__atomic_store_n(&limit->rlim_cur, seconds + 1, __ATOMIC_RELAXED);
		proc_signal_locked(p, SIGXCPU);
	}
}

static bool
cpu_timers_are_due(const struct proc *p, struct usage u)
{
	const struct rlimit *limit = &p->limits[RLIMIT_CPU];
	uint64_t seconds = (u.user_ns + u.system_ns) / NS_PER_S;
	bool due = seconds >= __atomic_load_n(&limit->rlim_cur, __ATOMIC_RELAXED) ||
		   seconds >= __atomic_load_n(&limit->rlim_max, __ATOMIC_RELAXED) ||
		   cpu_alarms_are_due(p, u.user_ns + u.system_ns);

	for (unsigned i = 0; i < CPU_TIMERS; i++) {
		uint64_t ns = __atomic_load_n(&p->cpu_timers[i].deadline_ns, __ATOMIC_RELAXED);

		due |= ns != 0 && used_ns(u, i) >= ns;
	}
	return due;
}

static void
cpu_timers_tick(void)
{
	static const int signals[CPU_TIMERS] = {SIGVTALRM, SIGPROF};
	struct proc *p = curthread()->proc;
	struct usage u;

	if (p == NULL || !__atomic_load_n(&p->cpu_timed, __ATOMIC_RELAXED))
		return;
	u = cpu_used(p);
	if (!cpu_timers_are_due(p, u))
		return;
	spin_lock(&proc_lock);
	for (unsigned i = 0; i < CPU_TIMERS; i++) {
		struct cpu_timer *t = &p->cpu_timers[i];
		uint64_t now = used_ns(u, i), late = now - t->deadline_ns;

		if (t->deadline_ns == 0 || now < t->deadline_ns)
			continue;
		t->deadline_ns =
		    t->interval_ns == 0
			? 0
			: t->deadline_ns + (late / t->interval_ns + 1) * t->interval_ns;
		proc_signal_locked(p, signals[i]);
	}
	check_cpu_limit(p, u.user_ns + u.system_ns);
	cpu_alarms_tick(p, u.user_ns + u.system_ns);
	spin_unlock(&proc_lock);
}
HOOK(clock_tick, cpu_timers_tick);
