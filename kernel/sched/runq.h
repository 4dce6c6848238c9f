/*
 * runq.h - a run queue: one CPU's threads, those that wait and the one that runs. Private to the
 * scheduler.
 *
 * Invariants: bit n of `occupied` is set while level n has threads, and `load` is their sum over
 * all levels. The CPU's idle thread is never queued.
 *
 * Locking: `lock`, the run-queue lock, guards the rest and the [r] fields of the queue's threads;
 * whoever calls holds it. [h] is also read without it, as a hint; [c] is constant after
 * runq_init(). Two are never held at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/lib/list.h"
#include "kernel/sync/spinlock.h"

#define RUNQ_LEVELS 64 /* priorities 4n to 4n+3 share a level */

struct thread;

struct runq {
	struct spinlock lock;
	unsigned cpu; /* [c] whose it is */
	struct list levels[RUNQ_LEVELS];
	uint64_t occupied;
	unsigned load;       /* [h] threads queued */
	bool idle;           /* [h] runs the idle thread */
	struct thread *cur;  /* [h] runs here */
	struct thread *prev; /* switched out by the switch in progress */
	uint64_t idle_ns;    /* [h] spent in the idle thread, up to the last switch */
	const char *ident;   /* [c] handle of "CPU n load" */
} __attribute__((aligned(64)));

/* An empty queue for a CPU, which runs its idle thread. Before the CPU starts: without the lock. */
void runq_init(struct runq *rq, unsigned cpu, struct thread *idle);
/* Queues t behind those of its level. */
void runq_insert(struct runq *rq, struct thread *t);
void runq_remove(struct runq *rq, struct thread *t);
/* The thread that has waited longest at the best level, which stays queued. NULL: none waits. */
struct thread *runq_best(const struct runq *rq);
/* The best thread that may go to another CPU, which stays queued. NULL: none. */
struct thread *runq_best_unpinned(const struct runq *rq);
/* All user threads that wait rise to their base priority again. */
void runq_age(struct runq *rq);
