/*
 * runq.h - the run queue of a CPU: its waiting threads, and the one that runs. Private to the
 * scheduler.
 *
 * Invariants: bit n of `occupied` is set while level n has threads. `load` is the number of threads
 * on all levels, `rt_load` that of real-time threads. The CPU's idle thread is never queued.
 *
 * Locking: `lock`, the run-queue lock, guards the fields below and the [r] fields of the queue's
 * threads. Callers of all functions hold it. [h] is also read without the lock, as a hint; [c] is
 * constant after runq_init(). A CPU that holds one run-queue lock may try to get another, but never
 * waits for it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/abi/sched.h"
#include "kernel/lib/list.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"

/* A priority below 100 has a level of its own; from there on, four priorities share one. */
#define RUNQ_LEVELS 139
#define RUNQ_WORDS  ((RUNQ_LEVELS + 63) / 64)
#define RUNQ_SHARED 100 /* the first level of several priorities */

struct runq {
	struct spinlock lock;
	unsigned cpu; /* [c] the CPU of this queue */
	struct list levels[RUNQ_LEVELS];
	uint64_t occupied[RUNQ_WORDS];
	unsigned load;         /* [h] threads queued */
	unsigned rt_load;      /* [h] real-time threads queued */
	bool idle;             /* [h] the CPU runs its idle thread */
	struct thread *cur;    /* [h] the thread that runs */
	int cur_prio;          /* [h] its priority */
	struct thread *prev;   /* switched out by the switch in progress */
	struct thread *probed; /* see sched_probed() */
	uint64_t idle_ns;      /* [h] time spent in the idle thread, up to the last switch */
	unsigned rt_ticks;     /* of real-time threads, in this second */
	bool throttled;        /* real-time threads have had theirs */
	const char *ident;     /* [c] handle of "CPU n load" */
} __attribute__((aligned(64)));

extern struct runq runqs[MAX_CPUS];

/* A real-time thread of a program. */
static inline bool
thread_is_rt(const struct thread *t)
{
	return t->sched.policy == SCHED_FIFO || t->sched.policy == SCHED_RR;
}

static inline bool
runq_may_run(const struct thread *t, unsigned cpu)
{
	return t->cpus >> cpu & 1;
}

/* Does a run before b? */
static inline bool
runq_prefers(const struct runq *rq, const struct thread *a, const struct thread *b)
{
	if (rq->throttled && thread_is_rt(a) != thread_is_rt(b))
		return thread_is_rt(b);
	return a->prio < b->prio;
}

/* Makes the queue of a CPU that runs its idle thread. Before the CPU starts: without the lock. */
void runq_init(struct runq *rq, unsigned cpu, struct thread *idle);
/* Queues t as the last of its level, or as the first. */
void runq_insert(struct runq *rq, struct thread *t, bool front);
void runq_remove(struct runq *rq, struct thread *t);
/*
 * The first thread of the best level; while real-time threads are throttled, of the best level that
 * is not real time, if there is one. It stays queued. NULL: none waits.
 */
struct thread *runq_best(const struct runq *rq);
/* The best thread that may run on another CPU. It stays queued. NULL: none. */
struct thread *runq_best_for(const struct runq *rq, unsigned cpu);
/* The best real-time thread that may. */
struct thread *runq_best_rt_for(const struct runq *rq, unsigned cpu);
/* Gives every waiting user thread its base priority back. */
void runq_age(struct runq *rq);
