/*
 * placement.c - what others set of a thread: the CPUs that it may run on, its policy and priority.
 * Locking: run-queue locks (runq.h).
 */
#include "arch/smp.h"
#include "kernel/abi/sched.h"
#include "kernel/lib/clock.h"
#include "kernel/sched/runq.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sched_private.h"
#include "kernel/sched/thread.h"
#include "kernel/sched/timer.h"
#include "kernel/sync/spinlock.h"
#include "ktr/sdt.h"

#define SUMS_ROUNDS 4
#define IDLE_WEIGHT 3 /* of SCHED_IDLE, as on Linux; that of niceness 19 is 15 */

SDT_PROVIDER_DECLARE(sched);
SDT_PROBE_DECLARE(sched, , , change_pri);

/* Locks the queue of the thread's CPU. */
static struct runq *
lock_queue_of(const struct thread *t)
{
	for (;;) {
		struct runq *rq = &runqs[__atomic_load_n(&t->cpu, __ATOMIC_RELAXED)];

		spin_lock(&rq->lock);
		if (rq->cpu == t->cpu)
			return rq;
		spin_unlock(&rq->lock);
	}
}

void
sched_kick(const struct thread *t)
{
	struct runq *rq = lock_queue_of(t);

	if (rq->cur == t && rq->cpu != arch_cpu()) {
		CTR1(KTR_SMP, "ipi send: kick cpu %u", rq->cpu);
		arch_ipi_send(rq->cpu, IPI_RESCHED);
	}
	spin_unlock(&rq->lock);
}

uint64_t
sched_runtime_ns(const struct thread *t)
{
	struct runq *rq = lock_queue_of(t);
	uint64_t ns = rq->cur == t ? clock_ns() - t->zero_ns : t->runtime_ns;

	spin_unlock(&rq->lock);
	return ns;
}

uint64_t
sched_sums_ns(struct cpu_sums *sums)
{
	uint64_t charged, ns, told;
	unsigned rounds = 0;

	/* Again if one of these threads was charged in between; not for ever, for all may yield. */
	do {
		ns = charged = __atomic_load_n(&sums->runtime_ns, __ATOMIC_RELAXED);
		for (unsigned i = 0; i < ncpus; i++) {
			struct runq *rq = &runqs[i];
			const struct thread *t;
			int64_t more = 0;

			spin_lock(&rq->lock);
			t = rq->cur;
			if (t->sums == sums)
				more = (int64_t)(clock_ns() - t->zero_ns - t->runtime_ns);
			spin_unlock(&rq->lock);
			ns += more > 0 ? (uint64_t)more : 0;
		}
	} while (charged != __atomic_load_n(&sums->runtime_ns, __ATOMIC_RELAXED) &&
		 ++rounds < SUMS_ROUNDS);
	told = __atomic_load_n(&sums->told_ns, __ATOMIC_RELAXED);
	while (ns > told && !__atomic_compare_exchange_n(&sums->told_ns, &told, ns, false,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return ns > told ? ns : told;
}

void
sched_count_in(struct cpu_sums *sums)
{
	struct thread *t = curthread();
	struct runq *rq = lock_queue_of(t);

	runq_charge(rq, clock_ns());
	if (sums != NULL)
		*sums = (struct cpu_sums){t->runtime_ns, t->user_known, 0};
	t->sums = sums;
	spin_unlock(&rq->lock);
}

/* Takes a thread off its queue, for another CPU or with other parameters. */
static void
sched_withdraw(struct runq *rq, struct thread *t)
{
	runq_remove(rq, t);
	runq_leave(rq, t);
	fair_detach(&t->fair);
}

void
sched_set_cpus(struct thread *t, uint64_t cpus)
{
	struct runq *rq = lock_queue_of(t);
	bool wrong = (cpus >> rq->cpu & 1) == 0, moves = wrong && t->queued;

	KTR_POINT1(KTR_SCHED, "thread", t->ident, "affinity", "cpus:%#lx", cpus);
	t->cpus = cpus;
	if (wrong && rq->cur == t)
		sched_request(rq->cpu); /* it moves when it is switched out */
	if (moves)
		sched_withdraw(rq, t);
	spin_unlock(&rq->lock);
	if (moves)
		sched_place(t, false);
}

static uint8_t
prio_of(const struct sched_params *p)
{
	if (p->rt_prio != 0)
		return (uint8_t)(PRIO_RT - p->rt_prio);
	return (uint8_t)(p->policy == SCHED_IDLE ? PRIO_USER_MAX : PRIO_USER + p->nice);
}

static uint32_t
weight_of(const struct sched_params *p)
{
	return p->policy == SCHED_IDLE ? IDLE_WEIGHT : fair_weight(p->nice);
}

static void
set_params(struct thread *t, const struct sched_params *p)
{
	t->sched = *p;
	t->prio = prio_of(p);
	t->slice = SCHED_RR_SLICE;
	t->fair.weight = weight_of(p);
}

/* Changes the parameters of the thread that runs on rq. */
static void
set_params_running(struct runq *rq, struct thread *t, const struct sched_params *p)
{
	runq_charge(rq, clock_ns()); /* up to now it ran with the old parameters */
	runq_leave(rq, t);
	fair_detach(&t->fair);
	set_params(t, p);
	runq_join(rq, t);
	__atomic_store_n(&rq->cur_prio, t->prio, __ATOMIC_RELAXED);
	sched_request(rq->cpu); /* somebody may be better now */
}

/* Is the place in the queue the same? Of a real-time thread niceness is only remembered. */
static bool
same_order(const struct sched_params *a, const struct sched_params *b)
{
	return a->policy == b->policy && a->rt_prio == b->rt_prio &&
	       (a->rt_prio != 0 || a->nice == b->nice);
}

void
sched_set_params(struct thread *t, const struct sched_params *p)
{
	struct runq *rq = lock_queue_of(t);
	uint8_t old = t->prio;
	bool queued = t->queued;

	KTR_POINT3(KTR_SCHED, "thread", t->ident, "params", "policy:%u", p->policy, "rt_prio:%u",
		   p->rt_prio, "nice:%d", p->nice);
	if (same_order(&t->sched, p)) {
		t->sched = *p;
		spin_unlock(&rq->lock);
		return;
	}
	if (queued)
		sched_withdraw(rq, t);
	if (rq->cur == t)
		set_params_running(rq, t, p);
	else
		set_params(t, p);
	if (t->prio != old)
		SDT_CTR4(sched, , , change_pri, SDT_ARGS4(t, t->proc, t->prio, t->tid), KTR_SCHED,
			 KTR_POINT_FORMAT("thread", "prio:%d, new prio:%d"), t->ident, "prio", old,
			 t->prio);
	spin_unlock(&rq->lock);
	if (queued)
		sched_place(t, t->prio > old && thread_is_rt(t)); /* POSIX, SCHED_FIFO */
}

void
sched_set_user(struct thread *t, struct fair_group *groups)
{
	struct runq *rq = lock_queue_of(t);
	bool queued = t->queued;

	if (queued) {
		sched_withdraw(rq, t);
	} else if (rq->cur == t) {
		runq_charge(rq, clock_ns());
		runq_leave(rq, t);
	}
	fair_detach(&t->fair);
	t->groups = groups;
	if (rq->cur == t)
		runq_join(rq, t);
	spin_unlock(&rq->lock);
	if (queued)
		sched_place(t, false);
}

void
sched_inherit(struct thread *to)
{
	struct thread *self = curthread();
	struct runq *rq = lock_queue_of(self);
	struct sched_params p = self->sched;

	/* Else who goes on as its own child, again and again, would never have used any time. */
	if (rq->cur == self)
		runq_charge(rq, clock_ns());
	to->cpus = self->cpus;
	to->groups = self->groups;
	to->fair.time = self->fair.time;
	if (self->fair.group != NULL)
		to->fair.time -= self->fair.group->members.time;
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

void
sched_hurry(struct thread *t)
{
	struct runq *rq = lock_queue_of(t);
	bool moves = t->queued && thread_is_fair(t) && !t->hurries;

	t->hurries = true;
	if (moves) {
		runq_remove(rq, t);
		fair_hurry(&rq->users, &t->fair);
		runq_insert(rq, t, false);
		if (runq_prefers(rq, t, rq->cur, 0))
			sched_request(rq->cpu);
	}
	spin_unlock(&rq->lock);
}

uint64_t
sched_slice_ns(const struct thread *t)
{
	if (t->sched.policy == SCHED_RR)
		return SCHED_RR_SLICE * (1000000000ul / HZ);
	return t->sched.policy == SCHED_FIFO ? 0 : FAIR_SLICE_NS;
}
