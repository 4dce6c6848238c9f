/*
 * balance.c - which CPU's queue a thread is on: where it goes, and what a CPU takes from others.
 *
 * What is read of other CPUs' queues without their locks may be old by then. An idle CPU looks
 * again at each interrupt. Every CPU takes at its ticks a waiting real-time thread that preempts
 * what runs there. Locking: run-queue locks (runq.h).
 */
#include "kernel/sched/runq.h"
#include "kernel/sched/sched_private.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"
#include "ktr/ktr.h"

static bool
balance_is_free(unsigned cpu)
{
	return runqs[cpu].idle && runqs[cpu].load == 0;
}

unsigned
balance_worst(const struct thread *t)
{
	unsigned cpu = MAX_CPUS;
	int worst = t->prio;

	for (unsigned i = 0; i < ncpus; i++) {
		int prio = __atomic_load_n(&runqs[i].cur_prio, __ATOMIC_RELAXED);

		if (pcpus[i] == NULL || !pcpus[i]->online || !runq_may_run(t, i) || prio <= worst)
			continue;
		worst = prio;
		cpu = i;
	}
	return cpu;
}

unsigned
balance_choose(const struct thread *t)
{
	unsigned last = runq_may_run(t, t->cpu) ? t->cpu : MAX_CPUS;

	if (last != MAX_CPUS && balance_is_free(last))
		return last;
	for (unsigned i = 0; i < ncpus; i++) {
		if (pcpus[i] == NULL || !pcpus[i]->online || !runq_may_run(t, i))
			continue;
		if (balance_is_free(i))
			return i;
		if (last == MAX_CPUS)
			last = i;
	}
	if (thread_is_rt(t)) {
		unsigned worst = balance_worst(t);

		if (worst != MAX_CPUS)
			return worst;
	}
	return last != MAX_CPUS ? last : t->cpu;
}

/* Do real-time threads wait for any CPU? A hint. */
static bool
rt_waits(void)
{
	for (unsigned i = 0; i < ncpus; i++)
		if (__atomic_load_n(&runqs[i].rt_load, __ATOMIC_RELAXED) != 0)
			return true;
	return false;
}

/* Takes t off a queue, for another CPU. The locks of both are held. */
static void
balance_take(struct runq *from, struct thread *t, unsigned to)
{
	KTR_POINT2(KTR_SCHED, "thread", t->ident, "steal", "from:%u", from->cpu, "to:%u", to);
	runq_remove(from, t);
	runq_leave(from, t);
	fair_detach(&t->fair);
	t->cpu = to;
}

/*
 * Takes a real-time thread from a CPU where it waits for a better one. If `running` keeps this CPU
 * until it is preempted, takes only a thread that preempts it. rq->lock held.
 */
static void
pull_rt(struct runq *rq, const struct thread *running)
{
	struct thread *t = NULL;

	for (unsigned i = 0; i < ncpus && t == NULL; i++) {
		struct runq *from = &runqs[i];

		if (from == rq || __atomic_load_n(&from->rt_load, __ATOMIC_RELAXED) == 0 ||
		    !spin_trylock(&from->lock))
			continue;
		t = from->throttled ? NULL : runq_best_rt_for(from, rq->cpu);
		if (t != NULL && running != NULL && !runq_prefers(rq, t, running, 0))
			t = NULL;
		if (t != NULL) {
			balance_take(from, t, rq->cpu);
			runq_join(rq, t);
			runq_insert(rq, t, false);
		}
		spin_unlock(&from->lock);
	}
}

struct thread *
balance_best(struct runq *rq, const struct thread *running)
{
	struct thread *best = runq_best(rq);

	if (rq->throttled || (best != NULL && best->prio < PRIO_RT) || !rt_waits())
		return best;
	pull_rt(rq, running);
	return runq_best(rq);
}

/* The CPU with the longest queue, of those whose bit is not set in `not`. ncpus: all are empty. */
static unsigned
longest_queue(uint64_t not )
{
	unsigned from = ncpus, most = 0;

	for (unsigned i = 0; i < ncpus; i++) {
		unsigned load = __atomic_load_n(&runqs[i].load, __ATOMIC_RELAXED);
		if (!(not >> i & 1) && load > most) {
			most = load;
			from = i;
		}
	}
	return from;
}

struct thread *
balance_steal(struct runq *rq)
{
	unsigned from;
	uint64_t tried = 1ul << rq->cpu;
	struct thread *t = NULL;

	while (t == NULL && (from = longest_queue(tried)) < ncpus) {
		tried |= 1ul << from;
		if (!spin_trylock(&runqs[from].lock))
			continue;
		t = runq_best_for(&runqs[from], rq->cpu);
		if (t != NULL)
			balance_take(&runqs[from], t, rq->cpu);
		spin_unlock(&runqs[from].lock);
	}
	return t;
}
