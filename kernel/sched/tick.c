/*
 * tick.c - what a clock tick does: it counts time, ends slices, and gives real-time threads their
 * part of the time.
 *
 * Locking: each CPU changes its own queue, with its lock held (runq.h).
 */
#include "arch/pcpu.h"
#include "kernel/lib/sysctl.h"
#include "kernel/sched/runq.h"
#include "kernel/sched/sched_private.h"
#include "kernel/sched/thread.h"
#include "kernel/sched/timer.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"
#include "ktr/sdt.h"

#define PERIOD_US 1000000
#define PERIOD_NS (PERIOD_US * 1000ul)
#define TICK_NS   (PERIOD_NS / HZ)
_Static_assert(TICK_NS == FAIR_LOOK_NS, "ticks end slices");

static int rt_runtime_us = 950000;
SYSCTL_INT(kernel_sched_rt_runtime_us, "kernel.sched_rt_runtime_us", SYSCTL_WR, &rt_runtime_us, -1,
	   PERIOD_US,
	   "microseconds of a second that real-time threads have a CPU while others wait; -1: all");

SDT_PROVIDER_DECLARE(sched);
SDT_PROBE_DEFINE_TEXT(sched, , , tick, "tick", ": thread %p proc %p", 2, "struct thread *",
		      "struct proc *");

/*
 * Real-time threads have the CPU beyond their share by what they have run (runq_charge()), less
 * what the time since the last tick allows them. When that is two ticks, others go first until it
 * is less than one. What they have run is no sample, or a thread could sleep at each tick and owe
 * nothing.
 */
static void
count_rt(struct runq *rq, const struct thread *t, uint64_t now_ns)
{
	int runtime_us = __atomic_load_n(&rt_runtime_us, __ATOMIC_RELAXED);
	uint64_t passed = now_ns - rq->rt_counted_ns, allowed = passed, debt = rq->rt_debt_ns;
	bool was = rq->throttled;

	if (runtime_us >= 0)
		allowed =
		    (passed < PERIOD_NS ? passed : PERIOD_NS) * (unsigned)runtime_us / PERIOD_US;
	debt = debt > allowed ? debt - allowed : 0;
	rq->rt_counted_ns = now_ns;
	rq->rt_debt_ns = debt < 2 * TICK_NS ? debt : 2 * TICK_NS;
	rq->throttled = debt >= (was ? TICK_NS : 2 * TICK_NS);
	if (rq->throttled && !was)
		KTR_POINT1(KTR_SCHED, "thread", t->ident, "throttle", "cpu:%u", rq->cpu);
}

/* A tick of a thread that has no share. Those of SCHED_FIFO have no slices. */
static void
tick_ordered(struct runq *rq, struct thread *t)
{
	const struct thread *best = runq_best(rq);

	if (t->sched.policy != SCHED_FIFO && t->slice > 0)
		t->slice--;
	if (best != NULL &&
	    (runq_prefers(rq, best, t, 0) || (t->slice == 0 && best->prio == t->prio)))
		sched_request(rq->cpu);
	else if (t->slice == 0)
		t->slice = SCHED_RR_SLICE;
}

/* A tick of a thread that has a share. */
static void
tick_fair(struct runq *rq, struct thread *t)
{
	const struct thread *best;

	runq_renew(rq, t);
	best = runq_best(rq);
	if (best != NULL && runq_prefers(rq, best, t, 0))
		sched_request(rq->cpu);
	else
		fair_run(&rq->users, &t->fair);
}

void
scheduler_tick(uint64_t now_ns)
{
	struct pcpu *pc = this_pcpu();
	struct runq *rq = &runqs[arch_cpu()];
	struct thread *t, *best;

	spin_lock(&rq->lock);
	t = rq->cur;
	SDT_CTR4(sched, , , tick, SDT_ARGS2(t, t->proc), KTR_TICK,
		 KTR_POINT_FORMAT("thread", "prio:%d, stathz:%d"), t->ident, "statclock", t->prio,
		 100);
	pc->ticks++;
	runq_charge(rq, now_ns);
	count_rt(rq, t, now_ns);
	if (thread_is_fair(t))
		tick_fair(rq, t);
	else if (t != pc->idle)
		tick_ordered(rq, t);
	best = balance_best(rq, t);
	if (best != NULL && thread_is_rt(best) && runq_prefers(rq, best, t, 0))
		sched_request(rq->cpu); /* the queue was locked when this CPU looked last */
	spin_unlock(&rq->lock);
}
