/*
 * runq.c - run queues: a list of threads for each level of priorities.
 *
 * Locking and invariants: runq.h.
 */
#include "kernel/sched/runq.h"

#include "kernel/lib/printf.h"
#include "kernel/sched/thread.h"
#include "ktr/intern.h"
#include "ktr/sdt.h"

static unsigned
level_of(unsigned prio)
{
	return prio < RUNQ_SHARED ? prio : RUNQ_SHARED + (prio - RUNQ_SHARED) / 4;
}

_Static_assert(RUNQ_SHARED + (PRIO_IDLE - RUNQ_SHARED) / 4 < RUNQ_LEVELS,
	       "every priority has a level");

void
runq_init(struct runq *rq, unsigned cpu, struct thread *idle)
{
	char name[24];

	snprintf(name, sizeof(name), "CPU %u load", cpu);
	rq->ident = ktr_intern_keep(name);
	rq->cpu = cpu;
	spin_init(&rq->lock, "runq");
	for (unsigned i = 0; i < RUNQ_LEVELS; i++)
		list_init(&rq->levels[i]);
	rq->cur = idle;
	rq->idle = true;
	rq->cur_prio = idle->prio;
	idle->cpu = cpu;
	idle->cpus = 1ul << cpu;
	idle->state = THREAD_RUNNING;
}

SDT_PROVIDER_DECLARE(sched);
SDT_PROBE_DECLARE(sched, , , change_pri);
SDT_PROBE_DEFINE_TEXT(sched, , , enqueue, "enqueue",
		      ": thread %p proc %p pcpu %p front %d tid %u cpu %u", 6, "struct thread *",
		      "struct proc *", "struct pcpu *", "int", "tid_t", "unsigned");
SDT_PROBE_DEFINE_TEXT(sched, , , dequeue, "dequeue", ": thread %p proc %p pcpu %p tid %u cpu %u", 5,
		      "struct thread *", "struct proc *", "struct pcpu *", "tid_t", "unsigned");

static void
trace_load(const struct runq *rq)
{
	KTR_COUNTER0(KTR_SCHED, "load", rq->ident, (int)rq->load);
}

void
runq_insert(struct runq *rq, struct thread *t, bool front)
{
	unsigned level = level_of(t->prio);

	t->level = (uint8_t)level;
	if (front)
		list_insert_after(&rq->levels[level], &t->runq);
	else
		list_append(&rq->levels[level], &t->runq);
	rq->occupied[level / 64] |= 1ul << level % 64;
	rq->load++;
	t->level_rt = thread_is_rt(t);
	rq->rt_load += t->level_rt;
	SDT_CTR3(sched, , , enqueue, SDT_ARGS6(t, t->proc, pcpus[rq->cpu], front, t->tid, rq->cpu),
		 KTR_RUNQ, "runq insert: cpu %u tid %u prio %u", rq->cpu, t->tid, t->prio);
	trace_load(rq);
}

void
runq_remove(struct runq *rq, struct thread *t)
{
	list_remove(&t->runq);
	if (list_empty(&rq->levels[t->level]))
		rq->occupied[t->level / 64] &= ~(1ul << t->level % 64);
	rq->load--;
	rq->rt_load -= t->level_rt;
	SDT_CTR3(sched, , , dequeue, SDT_ARGS5(t, t->proc, pcpus[rq->cpu], t->tid, rq->cpu),
		 KTR_RUNQ, "runq remove: cpu %u tid %u prio %u", rq->cpu, t->tid, t->prio);
	trace_load(rq);
}

/* The first level from `level` on that has threads; RUNQ_LEVELS: none. */
static unsigned
next_level(const struct runq *rq, unsigned level)
{
	for (unsigned word = level / 64; word < RUNQ_WORDS; word++, level = word * 64) {
		uint64_t left = rq->occupied[word] >> level % 64;

		if (left != 0)
			return level + (unsigned)__builtin_ctzl(left);
	}
	return RUNQ_LEVELS;
}

/* The first that may run on `cpu`, of those that are real time, or of those that are not. */
static struct thread *
best_in_levels(const struct runq *rq, unsigned cpu, bool rt, bool other)
{
	for (unsigned n = 0; (n = next_level(rq, n)) < RUNQ_LEVELS; n++)
		list_for_each (l, &rq->levels[n]) {
			struct thread *t = list_entry(l, struct thread, runq);
			if ((t->cpus >> cpu & 1) && (thread_is_rt(t) ? rt : other))
				return t;
		}
	return NULL;
}

struct thread *
runq_best(const struct runq *rq)
{
	unsigned level;

	if (rq->throttled && rq->rt_load < rq->load)
		return best_in_levels(rq, rq->cpu, false, true);
	level = next_level(rq, 0);
	return level < RUNQ_LEVELS ? list_entry(rq->levels[level].next, struct thread, runq) : NULL;
}

struct thread *
runq_best_for(const struct runq *rq, unsigned cpu)
{
	return best_in_levels(rq, cpu, true, true);
}

struct thread *
runq_best_rt_for(const struct runq *rq, unsigned cpu)
{
	return best_in_levels(rq, cpu, true, false);
}

void
runq_age(struct runq *rq)
{
	for (unsigned level = RUNQ_SHARED; (level = next_level(rq, level)) < RUNQ_LEVELS; level++) {
		list_for_each_safe (l, &rq->levels[level]) {
			struct thread *t = list_entry(l, struct thread, runq);
			if (t->prio == t->base_prio)
				continue;
			runq_remove(rq, t);
			SDT_CTR4(sched, , , change_pri, SDT_ARGS4(t, t->proc, t->base_prio, t->tid),
				 KTR_SCHED, KTR_POINT_FORMAT("thread", "prio:%d, new prio:%d"),
				 t->ident, "prio", t->prio, t->base_prio);
			t->prio = t->base_prio;
			runq_insert(rq, t, false);
		}
	}
}
