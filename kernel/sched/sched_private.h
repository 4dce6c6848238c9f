/* sched_private.h - between the scheduler, threads, sleep queues and callouts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct list;
struct spinlock;
struct thread;

/* Boot CPU: its current context becomes the idle thread. */
void sched_init(void);
/* Another CPU's idle thread, before it starts. Returns its stack top. 0: out of memory. */
uintptr_t sched_prepare_cpu(unsigned cpu);
/* The idle loop. Never returns. */
_Noreturn void sched_idle(void);
/* The current thread sleeps; lk is its queue's lock, released once the run-queue lock is held. */
void sched_sleep(struct spinlock *lk);
/* The current thread is gone for good. */
_Noreturn void sched_exit(void);
/* First thing that a new thread does: ends the switch that led to it. */
void sched_first(void);
/* Clock tick, interrupt context. */
void sched_tick(void);
/* Gives the CPU away at the end of an interrupt. Interrupts off. */
void sched_preempt_irq(void);
/* Its identity in the log, and whether its events are refused. Interrupts off. */
void sched_set_thread(const struct thread *t);

/* thread.c: buries dead threads. */
void thread_init(void);
void thread_reap(struct thread *t);

/* callout.c: runs what is due on this CPU; returns when the next one is. Timer interrupt. */
uint64_t callout_run(uint64_t now_ns);
void callout_init_cpu(unsigned cpu);
/* timer.c: sets the timer for the earlier of the next tick and deadline_ns. Interrupts off. */
void timer_arm(uint64_t deadline_ns);
