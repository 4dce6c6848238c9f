/* sched_private.h - between the scheduler, threads, sleep queues and callouts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SCHED_RR_SLICE 10 /* ticks of SCHED_RR, 100 ms as on Linux; and of the kernel's threads */

struct runq;
struct spinlock;
struct thread;

/* Makes another CPU's idle thread, before the CPU starts. Returns its stack top; 0: no memory. */
uintptr_t sched_prepare_cpu(unsigned cpu);
/*
 * Puts a runnable thread on rq, and preempts the running one if that is worse. rq->lock held, and
 * that of the thread's last CPU.
 */
void ttwu_do_wakeup(struct runq *rq, struct thread *t, bool front);
void sched_give_away(bool yields);
/* Asks a CPU to look at its queue. Its run-queue lock held. */
void sched_request(unsigned cpu);
/*
 * Queues a runnable thread, which is on no queue, on a CPU that it may use, as the last of its
 * priority or as the first. Any context but NMI.
 */
void sched_place(struct thread *t, bool front);
/*
 * Call this when others wait for a mutex of the thread: until it holds none, it goes before the
 * other threads of its user. The lock of a sleep queue may be held.
 */
void sched_hurry(struct thread *t);
/* Puts the current thread to sleep; releases lk, its queue's lock, under the run-queue lock. */
void schedule(struct spinlock *lk);
/* Ends the current thread. */
_Noreturn void sched_exit(void);
/* Completes the switch to a new thread, which calls this first. */
void sched_first(void);
/* tick.c: clock tick, interrupt context. */
void scheduler_tick(uint64_t now_ns);
/* This CPU runs its idle thread, the current one, from now on. Interrupts off. */
void sched_begin_cpu(void);

/*
 * balance.c: chooses a CPU for a thread, among those it may use: its last one if idle, else any
 * idle one, else for a real-time thread that of the worst thread, else its last one, else the
 * first.
 */
unsigned balance_choose(const struct thread *t);
/* The CPU of the worst thread, if that is worse than t and t may run there. MAX_CPUS: none. */
unsigned balance_worst(const struct thread *t);
/*
 * Returns the best thread for rq's CPU, which stays queued there, or NULL. It may be a real-time
 * thread that waited elsewhere. It is better than `running`, the thread that keeps the CPU until it
 * is preempted; NULL if there is none. rq->lock held.
 */
struct thread *balance_best(struct runq *rq, const struct thread *running);
/*
 * Takes a thread that may run here from the longest queue that has one. It gets rq's CPU, and is on
 * no queue yet. NULL if there is none. rq->lock held.
 */
struct thread *balance_steal(struct runq *rq);

#define TID_MAX 0x3fffffffu
/* thread.c: the next thread has the number thread_next & TID_MAX, if that is free. For tests. */
extern uint64_t thread_next;
/* thread.c: frees dead threads. */
void thread_reap(struct thread *t);

/* callout.c: runs this CPU's due callouts. Returns the next deadline. Timer interrupt. */
uint64_t callout_run(uint64_t now_ns);
/* timer.c: sets the timer for the earlier of the next tick and deadline_ns. Interrupts off. */
void timer_arm(uint64_t deadline_ns);
