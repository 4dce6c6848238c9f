/*
 * runq.h - the run queue of a CPU: its waiting threads, and the one that runs. Private to the
 * scheduler.
 *
 * Invariants: bit n of `occupied` is set while level n has threads. `load` is the number of threads
 * on all levels. The CPU's idle thread is never queued.
 *
 * Locking: `lock`, the run-queue lock, guards the fields below and the [r] fields of the queue's
 * threads. Callers of all functions hold it. [h] is also read without the lock, as a hint; [c] is
 * constant after runq_init(). No CPU ever holds two run-queue locks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/lib/list.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"

#define RUNQ_LEVELS 64 /* priorities 4n to 4n+3 share a level */

struct thread;

struct runq {
	struct spinlock lock;
	unsigned cpu; /* [c] the CPU of this queue */
	struct list levels[RUNQ_LEVELS];
	uint64_t occupied;
	unsigned load;       /* [h] threads queued */
	bool idle;           /* [h] the CPU runs its idle thread */
	struct thread *cur;  /* [h] the thread that runs */
	struct thread *prev; /* switched out by the switch in progress */
	uint64_t idle_ns;    /* [h] time spent in the idle thread, up to the last switch */
	const char *ident;   /* [c] handle of "CPU n load" */
} __attribute__((aligned(64)));

extern struct runq runqs[MAX_CPUS];

/* Makes the queue of a CPU that runs its idle thread. Before the CPU starts: without the lock. */
void runq_init(struct runq *rq, unsigned cpu, struct thread *idle);
/* Queues t as the last of its level. */
void runq_insert(struct runq *rq, struct thread *t);
void runq_remove(struct runq *rq, struct thread *t);
/* The thread that has waited longest on the best level. It stays queued. NULL: none waits. */
struct thread *runq_best(const struct runq *rq);
/* The best thread that may run on another CPU. It stays queued. NULL: none. */
struct thread *runq_best_for(const struct runq *rq, unsigned cpu);
/* Gives every waiting user thread its base priority back. */
void runq_age(struct runq *rq);
