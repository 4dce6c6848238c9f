/*
 * placement.c - what others set of a thread: the CPUs that it may run on, its policy and priority.
 * Locking: run-queue locks (runq.h).
 */
#include "arch/irq.h"
#include "kernel/abi/sched.h"
#include "kernel/sched/runq.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sched_private.h"
#include "kernel/sched/thread.h"
#include "kernel/sched/timer.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"
#include "ktr/ktr.h"

/* Locks the queue of the thread's CPU. */
static struct runq *
lock_queue_of(struct thread *t)
{
	for (;;) {
		struct runq *rq = &runqs[__atomic_load_n(&t->cpu, __ATOMIC_RELAXED)];

		spin_lock(&rq->lock);
		if (rq->cpu == t->cpu)
			return rq;
		spin_unlock(&rq->lock);
	}
}

static bool
is_queued(const struct thread *t)
{
	return t->state == THREAD_RUNNABLE && !list_empty(&t->runq);
}

void
sched_set_cpus(struct thread *t, uint64_t cpus)
{
	struct runq *rq = lock_queue_of(t);
	bool wrong = (cpus >> rq->cpu & 1) == 0, moves = wrong && is_queued(t);

	CTR2(KTR_SCHED, "affinity: tid %u cpus %#lx", t->tid, cpus);
	t->cpus = cpus;
	if (wrong && rq->cur == t)
		sched_request(rq->cpu); /* it moves when it is switched out */
	if (moves)
		runq_remove(rq, t);
	spin_unlock(&rq->lock);
	if (moves)
		sched_place(t, false);
}

static uint8_t
base_prio(const struct sched_params *p)
{
	if (p->rt_prio != 0)
		return (uint8_t)(PRIO_RT - p->rt_prio);
	return (uint8_t)(p->policy == SCHED_IDLE ? PRIO_USER_MAX : PRIO_USER + p->nice);
}

/* In ticks. 10 at -20, 1 from 16 on. */
static uint16_t
full_slice(const struct sched_params *p)
{
	if (p->policy == SCHED_RR)
		return SCHED_RR_SLICE;
	if (p->policy == SCHED_IDLE)
		return 1;
	return (uint16_t)(p->nice < 16 ? (20 - p->nice) * SCHED_SLICE / 20 : 1);
}

static void
set_params(struct thread *t, const struct sched_params *p)
{
	t->sched = *p;
	t->prio = t->base_prio = base_prio(p);
	t->slice = t->full_slice = full_slice(p);
}

void
sched_set_params(struct thread *t, const struct sched_params *p)
{
	struct runq *rq = lock_queue_of(t);
	bool queued = is_queued(t), drops;

	CTR4(KTR_SCHED, "params: tid %u policy %u rt_prio %u nice %d", t->tid, p->policy,
	     p->rt_prio, p->nice);
	if (t->sched.policy == p->policy && t->sched.rt_prio == p->rt_prio &&
	    t->sched.nice == p->nice) {
		t->sched.reset_on_fork = p->reset_on_fork;
		spin_unlock(&rq->lock);
		return;
	}
	if (queued)
		runq_remove(rq, t);
	drops = base_prio(p) > t->prio;
	set_params(t, p);
	if (rq->cur == t) {
		__atomic_store_n(&rq->cur_prio, t->prio, __ATOMIC_RELAXED);
		sched_request(rq->cpu); /* somebody may be better now */
	}
	spin_unlock(&rq->lock);
	if (queued)
		sched_place(t, drops && thread_is_rt(t)); /* POSIX, SCHED_FIFO */
}

void
sched_inherit(struct thread *to)
{
	struct thread *self = curthread();
	struct runq *rq = lock_queue_of(self);
	struct sched_params p = self->sched;

	to->cpus = self->cpus;
	spin_unlock(&rq->lock);
	if (p.reset_on_fork) {
		if (p.rt_prio != 0)
			p = (struct sched_params){.policy = SCHED_OTHER};
		if (p.nice < 0)
			p.nice = 0;
		p.reset_on_fork = false;
	}
	set_params(to, &p);
}

uint64_t
sched_slice_ns(const struct thread *t)
{
	return t->sched.policy == SCHED_FIFO ? 0 : t->full_slice * (1000000000ul / HZ);
}
