/*
 * runq.h - the run queue of a CPU: its waiting threads, and the one that runs. Private to the
 * scheduler.
 *
 * Real-time threads and the kernel's wait in lists, one for each priority below PRIO_FAIR. All
 * others have shares, by user and then by thread (kernel/lib/fair.h). A thread has joined its
 * user's group of that CPU from when it becomes runnable until it sleeps or leaves the CPU.
 *
 * Invariants: bit n of `occupied` is set while level n has threads. `load` is the number of threads
 * that wait, `rt_load` that of real-time threads. The CPU's idle thread is never queued. A queued
 * thread may run on the queue's CPU.
 *
 * Locking: `lock`, the run-queue lock, guards the fields below, the groups of all users on its CPU,
 * and the [r] fields of the threads whose `cpu` it is. That changes with the locks of both CPUs
 * held. Callers of all functions hold the lock. [h] is also read without it, as a hint; [c] is
 * constant after runq_init(). A CPU that holds a run-queue lock may try to get another, and waits
 * only for that of a higher CPU.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/abi/sched.h"
#include "kernel/lib/list.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"

#define RUNQ_WORDS ((PRIO_FAIR + 63) / 64)

/* How much earlier a thread's deadline must be than that of another of its user to preempt it. */
#define RUNQ_MARGIN_NS 1000000

struct runq {
	struct spinlock lock;
	unsigned cpu; /* [c] the CPU of this queue */
	struct list levels[PRIO_FAIR];
	uint64_t occupied[RUNQ_WORDS];
	struct fair_queue users; /* of those, the users whose threads wait */
	unsigned load;           /* [h] threads queued */
	unsigned rt_load;        /* [h] real-time threads queued */
	bool idle;               /* [h] the CPU runs its idle thread */
	struct thread *cur;      /* [h] the thread that runs */
	int cur_prio;            /* [h] its priority */
	struct thread *prev;     /* switched out by the switch in progress */
	struct thread *probed;   /* see sched_probed() */
	uint64_t rt_debt_ns; /* real-time threads' time: beyond their share, and since the tick */
	uint64_t rt_counted_ns; /* when the last tick was */
	bool throttled;         /* others go before them */
	const char *ident;      /* [c] handle of "CPU n load" */
} __attribute__((aligned(64)));

extern struct runq runqs[MAX_CPUS];

/* Of this CPU. Interrupts off. */
static inline struct runq *
this_runq(void)
{
	return &runqs[arch_cpu()];
}

/* A real-time thread: of a program, or of the tracer timerlat. */
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

/* Has the thread a share? Others have a priority. */
static inline bool
thread_is_fair(const struct thread *t)
{
	return t->prio >= PRIO_FAIR && t->prio <= PRIO_USER_MAX;
}

/* Does a run before b? If both have shares and the same user: by more than that margin. */
static inline bool
runq_prefers(const struct runq *rq, const struct thread *a, const struct thread *b,
	     uint64_t margin_ns)
{
	if (rq->throttled && thread_is_rt(a) != thread_is_rt(b))
		return thread_is_rt(b);
	if (thread_is_fair(a) && thread_is_fair(b))
		return fair_before(&a->fair, &b->fair, margin_ns);
	return a->prio < b->prio;
}

/* Makes the queue of a CPU that runs its idle thread. Before the CPU starts: without the lock. */
void runq_init(struct runq *rq, unsigned cpu, struct thread *idle);
/* t, which is not queued, becomes runnable here; its cpu is this one. */
void runq_join(struct runq *rq, struct thread *t);
/* t, which is not queued, sleeps, ends, or goes to another CPU. */
void runq_leave(struct runq *rq, struct thread *t);
/* Must the thread hurry: does it hold a mutex for which others wait, or has it waited for one
 * that it may get next? */
bool runq_hurries(struct thread *t);
/* The next slice of the thread that runs, which has a share, begins if fair_renew() says so. */
void runq_renew(struct runq *rq, struct thread *t);
/* Queues t, which has joined; before PRIO_FAIR as the last of its level, or as the first. */
void runq_insert(struct runq *rq, struct thread *t, bool front);
void runq_remove(struct runq *rq, struct thread *t);
/* Returns the thread that is to run next, which stays queued. While real-time threads are
 * throttled, it is one of the others, if there is any. NULL if none waits. */
struct thread *runq_best(const struct runq *rq);
/*
 * Returns the thread that another CPU is to take, which stays queued: the best of those with a
 * priority that may run there, or else one with a share. NULL if there is none.
 */
struct thread *runq_best_for(const struct runq *rq, unsigned cpu);
/* The best real-time thread that may. */
struct thread *runq_best_rt_for(const struct runq *rq, unsigned cpu);
/* Counts the time of the thread that runs, up to now. */
void runq_charge(struct runq *rq, uint64_t now_ns);
