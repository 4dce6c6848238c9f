/*
 * sched.h - per-CPU run queues with priorities, preemption and stealing.
 * Locking: one spin lock a run queue, held across the context switch; inside sleep-queue locks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* Makes a new thread runnable. */
void sched_start(struct thread *t);
/* Makes a thread runnable that the caller alone took off its sleep queue. Any context but NMI. */
void sched_wakeup(struct thread *t);
/* Lets others of the same or better priority run. Thread context, no spin lock held. */
void sched_yield(void);
/* Gives the CPU away if something better waits. Interrupts on, no spin lock held. */
void sched_preempt(void);
/* Share of the time that CPU has been idle since boot. */
uint64_t sched_idle_ns(unsigned cpu);
