/*
 * runq.c - run queues: threads with priorities, and those with shares.
 *
 * Locking and invariants: runq.h.
 */
#include "kernel/sched/runq.h"

#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/sched/thread.h"
#include "ktr/intern.h"
#include "ktr/sdt.h"

void
runq_init(struct runq *rq, unsigned cpu, struct thread *idle)
{
	char name[24];

	snprintf(name, sizeof(name), "CPU %u load", cpu);
	rq->ident = ktr_intern_keep(name);
	rq->cpu = cpu;
	spin_init(&rq->lock, "runq");
	for (unsigned i = 0; i < PRIO_FAIR; i++)
		list_init(&rq->levels[i]);
	rq->cur = idle;
	rq->idle = true;
	rq->cur_prio = idle->prio;
	idle->cpu = cpu;
	idle->cpus = 1ul << cpu;
	idle->state = THREAD_RUNNING;
}

SDT_PROVIDER_DECLARE(sched);
SDT_PROBE_DEFINE_TEXT(sched, , , sched_stat_runtime, "sched_stat_runtime",
		      ": comm=%s pid=%u runtime=%lu [ns] vruntime=%lu [ns]", 4, "char *", "pid_t",
		      "uint64_t", "uint64_t");
SDT_PROBE_DEFINE_TEXT(sched, , , enqueue, "enqueue",
		      ": thread %p proc %p pcpu %p front %d tid %u cpu %u", 6, "struct thread *",
		      "struct proc *", "struct pcpu *", "int", "tid_t", "unsigned");
SDT_PROBE_DEFINE_TEXT(sched, , , dequeue, "dequeue", ": thread %p proc %p pcpu %p tid %u cpu %u", 5,
		      "struct thread *", "struct proc *", "struct pcpu *", "tid_t", "unsigned");

SDT_PROBE_DEFINE_TEXT(sched, , , load_change, "load-change", ": cpu %d load %d", 2, "int", "int");

static void
trace_load(const struct runq *rq)
{
	KTR_COUNTER0(KTR_SCHED, "load", rq->ident, (int)rq->load);
	SDT_PROBE2(sched, , , load_change, rq->cpu, rq->load);
}

void
runq_join(struct runq *rq, struct thread *t)
{
	if (!thread_is_fair(t))
		return;
	fair_join(&rq->users, &t->groups[rq->cpu], &t->fair);
	if (runq_hurries(t))
		fair_hurry(&rq->users, &t->fair);
}

bool
runq_hurries(struct thread *t)
{
	t->hurries = t->urgent || t->contends || (t->hurries && t->mutexes > 0);
	return t->hurries;
}

void
runq_renew(struct runq *rq, struct thread *t)
{
	if (runq_hurries(t))
		fair_hurry(&rq->users, &t->fair);
	else
		fair_calm(&rq->users, &t->fair);
	fair_renew(&rq->users, &t->fair);
}

void
runq_leave(struct runq *rq, struct thread *t)
{
	if (thread_is_fair(t))
		fair_leave(&rq->users, &t->fair);
}

static void
insert_in_level(struct runq *rq, struct thread *t, bool front)
{
	struct list *level = &rq->levels[t->prio];

	list_insert_after(front ? level : level->prev, &t->runq);
	rq->occupied[t->prio / 64] |= 1ul << t->prio % 64;
	rq->rt_load += thread_is_rt(t);
}

static void
remove_from_level(struct runq *rq, struct thread *t)
{
	list_remove(&t->runq);
	if (list_empty(&rq->levels[t->prio]))
		rq->occupied[t->prio / 64] &= ~(1ul << t->prio % 64);
	rq->rt_load -= thread_is_rt(t);
}

void
runq_insert(struct runq *rq, struct thread *t, bool front)
{
	if (!runq_may_run(t, rq->cpu))
		panic("thread %u is queued on CPU %u, expected one of %#lx", t->tid, rq->cpu,
		      t->cpus);
	if (thread_is_fair(t))
		fair_put(&rq->users, &t->fair);
	else
		insert_in_level(rq, t, front);
	t->queued = true;
	rq->load++;
	trace_load(rq);
	SDT_CTR3(sched, , , enqueue, SDT_ARGS6(t, t->proc, pcpus[rq->cpu], front, t->tid, rq->cpu),
		 KTR_RUNQ, "runq insert: cpu %u tid %u prio %u", rq->cpu, t->tid, t->prio);
}

void
runq_remove(struct runq *rq, struct thread *t)
{
	if (thread_is_fair(t))
		fair_take(&rq->users, &t->fair);
	else
		remove_from_level(rq, t);
	t->queued = false;
	rq->load--;
	SDT_CTR3(sched, , , dequeue, SDT_ARGS5(t, t->proc, pcpus[rq->cpu], t->tid, rq->cpu),
		 KTR_RUNQ, "runq remove: cpu %u tid %u prio %u", rq->cpu, t->tid, t->prio);
	trace_load(rq);
}

/* The first level from `level` on that has threads. PRIO_FAIR: none has. */
static unsigned
next_level(const struct runq *rq, unsigned level)
{
	for (unsigned word = level / 64; word < RUNQ_WORDS; word++, level = word * 64) {
		uint64_t left = rq->occupied[word] >> level % 64;

		if (left != 0)
			return level + (unsigned)__builtin_ctzl(left);
	}
	return PRIO_FAIR;
}

/* The first thread that may run on `cpu`, of the real-time ones, or of the others. */
static struct thread *
best_in_levels(const struct runq *rq, unsigned cpu, bool rt, bool other)
{
	for (unsigned n = 0; (n = next_level(rq, n)) < PRIO_FAIR; n++)
		list_for_each_entry (struct thread, t, &rq->levels[n], runq)
			if (runq_may_run(t, cpu) && (thread_is_rt(t) ? rt : other))
				return t;
	return NULL;
}

static struct thread *
thread_of(struct fair_entry *e)
{
	return e != NULL ? container_of(e, struct thread, fair) : NULL;
}

struct thread *
runq_best(const struct runq *rq)
{
	struct thread *t;
	unsigned level;

	if (rq->throttled && rq->rt_load < rq->load) {
		t = best_in_levels(rq, rq->cpu, false, true);
		return t != NULL ? t : thread_of(fair_first(&rq->users));
	}
	level = next_level(rq, 0);
	return level < PRIO_FAIR ? list_entry(rq->levels[level].next, struct thread, runq)
				 : thread_of(fair_first(&rq->users));
}

static bool
entry_may_run(const struct fair_entry *e, const void *cpu)
{
	return runq_may_run(container_of(e, const struct thread, fair), *(const unsigned *)cpu);
}

struct thread *
runq_best_for(const struct runq *rq, unsigned cpu)
{
	struct thread *t = best_in_levels(rq, cpu, true, true);

	return t != NULL ? t : thread_of(fair_find(&rq->users, entry_may_run, &cpu));
}

struct thread *
runq_best_rt_for(const struct runq *rq, unsigned cpu)
{
	return best_in_levels(rq, cpu, true, false);
}

void
runq_charge(struct runq *rq, uint64_t now_ns)
{
	struct thread *t = rq->cur;
	uint64_t ns = now_ns - t->zero_ns - t->runtime_ns, user = t->user_ticks;
	struct cpu_sums *sums = t->sums;

	/* Who has read the clock before the queue was locked may be late: it is charged already. */
	if ((int64_t)ns < 0)
		return;
	t->runtime_ns += ns;
	if (sums != NULL) {
		__atomic_fetch_add(&sums->runtime_ns, ns, __ATOMIC_RELAXED);
		__atomic_fetch_add(&sums->user_ticks, user - t->user_known, __ATOMIC_RELAXED);
	}
	t->user_known = user;
	if (thread_is_rt(t))
		rq->rt_debt_ns += ns;
	if (!thread_is_fair(t))
		return;
	fair_charge(&rq->users, &t->fair, ns);
	SDT_PROBE4(sched, , , sched_stat_runtime, ktr_intern(t->name), t->tid, ns, t->fair.time);
}
