/*
 * tick.c - what a clock tick does: slices, priorities that drop and rise again, and the share of
 * real-time threads.
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

#define AGE_TICKS 100

#define PERIOD_US 1000000

_Static_assert(AGE_TICKS == HZ, "a period of ageing and throttling is a second");

static int rt_runtime_us = 950000;
SYSCTL_INT(kernel_sched_rt_runtime_us, "kernel.sched_rt_runtime_us", SYSCTL_WR, &rt_runtime_us, -1,
	   PERIOD_US,
	   "microseconds of a second that real-time threads have a CPU while others wait; -1: all");

SDT_PROVIDER_DECLARE(sched);
SDT_PROBE_DECLARE(sched, , , change_pri);
SDT_PROBE_DEFINE_TEXT(sched, , , tick, "tick", ": thread %p proc %p", 2, "struct thread *",
		      "struct proc *");

/* A new second: for threads that have become worse, and for those of real time. */
static void
begin_period(struct runq *rq)
{
	runq_age(rq);
	rq->rt_ticks = 0;
	if (rq->throttled && rq->rt_load > 0)
		sched_request(rq->cpu);
	rq->throttled = false;
}

/* A tick of a real-time thread. Only SCHED_RR has slices. */
static void
tick_rt(struct runq *rq, struct thread *t)
{
	int runtime_us = __atomic_load_n(&rt_runtime_us, __ATOMIC_RELAXED);
	const struct thread *best;

	if (!rq->throttled && runtime_us >= 0 &&
	    ++rq->rt_ticks * (PERIOD_US / AGE_TICKS) >= (unsigned)runtime_us) {
		CTR2(KTR_SCHED, "throttle: cpu %u tid %u", rq->cpu, t->tid);
		rq->throttled = true;
	}
	if (t->sched.policy == SCHED_RR && t->slice > 0)
		t->slice--;
	best = runq_best(rq);
	if (best != NULL && (runq_prefers(rq, best, t) || (t->slice == 0 && best->prio == t->prio)))
		sched_request(rq->cpu);
	else if (t->slice == 0)
		t->slice = t->full_slice;
}

/* A tick of another thread. */
static void
tick_shared(struct runq *rq, struct thread *t)
{
	if (t->slice != 0 && --t->slice != 0)
		return;
	t->slice = t->full_slice;
	if (t->proc != NULL && t->prio < PRIO_USER_MAX) {
		uint8_t lower = (uint8_t)(t->prio + 4);
		SDT_CTR4(sched, , , change_pri, SDT_ARGS4(t, t->proc, lower, t->tid), KTR_SCHED,
			 KTR_POINT_FORMAT("thread", "prio:%d, new prio:%d"), t->ident, "prio",
			 t->prio, lower);
		t->prio = lower;
		__atomic_store_n(&rq->cur_prio, lower, __ATOMIC_RELAXED);
	}
	if (!runq_may_run(t, rq->cpu) || (rq->load > 0 && runq_best(rq)->prio <= t->prio))
		sched_request(rq->cpu);
}

void
sched_tick(void)
{
	struct pcpu *pc = this_pcpu();
	struct runq *rq = &runqs[arch_cpu()];
	struct thread *t, *best;

	spin_lock(&rq->lock);
	t = rq->cur;
	SDT_CTR4(sched, , , tick, SDT_ARGS2(t, t->proc), KTR_TICK,
		 KTR_POINT_FORMAT("thread", "prio:%d, stathz:%d"), t->ident, "statclock", t->prio,
		 100);
	if (++pc->ticks % AGE_TICKS == 0)
		begin_period(rq);
	if (thread_is_rt(t))
		tick_rt(rq, t);
	else if (t != pc->idle)
		tick_shared(rq, t);
	best = balance_best(rq);
	if (best != NULL && thread_is_rt(best) && runq_prefers(rq, best, t))
		sched_request(rq->cpu); /* its queue was locked when this CPU looked last */
	spin_unlock(&rq->lock);
}
