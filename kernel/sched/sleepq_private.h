/* sleepq_private.h - the full form of a sleep, for mutexes and condition variables. */
#pragma once

#include "kernel/sched/sleepq.h"

struct thread;

struct sleep_request {
	const void *chan;
	struct spinlock *lk;
	bool (*still)(void *); /* asked under the queue lock: false means do not sleep. NULL: do */
	void *arg;
	const char *wmesg, *lockname;
	int flags;
	uint64_t deadline_ns;
};

void sleepq_init(void);
/*
 * Who knows whether the current thread has a signal to act on, so that SLEEP_INTR ends its sleep.
 * pending() is called under the queue lock. Boot, once.
 */
void sleepq_register_signals(bool (*pending)(void));
/* As sleep_on(). */
int sleepq_wait(const struct sleep_request *r);
/* A signal came for t: ends its sleep if that is SLEEP_INTR. Any context but NMI. */
void sleepq_interrupt(struct thread *t);
