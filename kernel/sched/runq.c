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

_Static_assert(PRIO_IDLE / 4 < RUNQ_LEVELS, "every priority has a level");

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
runq_insert(struct runq *rq, struct thread *t)
{
	unsigned level = t->prio / 4;

	list_append(&rq->levels[level], &t->runq);
	rq->occupied |= 1ul << level;
	rq->load++;
	SDT_CTR3(sched, , , enqueue, SDT_ARGS6(t, t->proc, pcpus[rq->cpu], 0, t->tid, rq->cpu),
		 KTR_RUNQ, "runq insert: cpu %u tid %u prio %u", rq->cpu, t->tid, t->prio);
	trace_load(rq);
}

void
runq_remove(struct runq *rq, struct thread *t)
{
	unsigned level = t->prio / 4;

	list_remove(&t->runq);
	if (list_empty(&rq->levels[level]))
		rq->occupied &= ~(1ul << level);
	rq->load--;
	SDT_CTR3(sched, , , dequeue, SDT_ARGS5(t, t->proc, pcpus[rq->cpu], t->tid, rq->cpu),
		 KTR_RUNQ, "runq remove: cpu %u tid %u prio %u", rq->cpu, t->tid, t->prio);
	trace_load(rq);
}

struct thread *
runq_best(const struct runq *rq)
{
	if (rq->occupied == 0)
		return NULL;
	return list_entry(rq->levels[__builtin_ctzl(rq->occupied)].next, struct thread, runq);
}

struct thread *
runq_best_for(const struct runq *rq, unsigned cpu)
{
	for (uint64_t left = rq->occupied; left != 0; left &= left - 1)
		list_for_each (l, &rq->levels[__builtin_ctzl(left)]) {
			struct thread *t = list_entry(l, struct thread, runq);
			if (t->cpus >> cpu & 1)
				return t;
		}
	return NULL;
}

void
runq_age(struct runq *rq)
{
	for (unsigned level = (PRIO_USER - 20) / 4 + 1; level < RUNQ_LEVELS; level++) {
		list_for_each_safe (l, &rq->levels[level]) {
			struct thread *t = list_entry(l, struct thread, runq);
			if (t->prio == t->base_prio)
				continue;
			runq_remove(rq, t);
			SDT_CTR4(sched, , , change_pri, SDT_ARGS4(t, t->proc, t->base_prio, t->tid),
				 KTR_SCHED, KTR_POINT_FORMAT("thread", "prio:%d, new prio:%d"),
				 t->ident, "prio", t->prio, t->base_prio);
			t->prio = t->base_prio;
			runq_insert(rq, t);
		}
	}
}
