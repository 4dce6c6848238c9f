/*
 * placement.c - what others set of a thread: the CPUs that it may run on, and how nice it is.
 * Locking: run-queue locks (runq.h).
 */
#include "arch/irq.h"
#include "kernel/sched/runq.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sched_private.h"
#include "kernel/sched/thread.h"
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
		sched_place(t);
}

void
sched_set_nice(struct thread *t, int nice)
{
	struct runq *rq = lock_queue_of(t);
	bool queued = is_queued(t);

	CTR2(KTR_SCHED, "nice: tid %u nice %d", t->tid, nice);
	if (queued)
		runq_remove(rq, t);
	t->prio = t->base_prio = (uint8_t)(PRIO_USER + nice);
	/* 10 ticks at -20, 1 from 16 on */
	t->full_slice = (uint16_t)(nice < 16 ? (20 - nice) * SCHED_SLICE / 20 : 1);
	if (queued)
		runq_insert(rq, t);
	if (rq->cur == t)
		sched_request(rq->cpu); /* somebody may be better now */
	spin_unlock(&rq->lock);
}
