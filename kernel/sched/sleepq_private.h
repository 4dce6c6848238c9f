/* sleepq_private.h - sleeps with all parameters, for mutexes and condition variables. */
#pragma once

#include "kernel/sched/sleepq.h"

struct thread;

struct sleep_request {
	const void *chan;
	struct spinlock *lk;
	bool (*still)(
	    void *); /* called under the queue lock; false: do not sleep. NULL: always sleep */
	void *arg;
	const char *wmesg, *lockname;
	int flags;
	uint64_t deadline_ns;
};

void sleepq_init(void);
/*
 * Registers the function that says whether a signal is pending for the current thread, which ends a
 * sleep with SLEEP_INTR. It is called under the queue lock. Once, at boot.
 */
void sleepq_register_signals(bool (*pending)(void));
/* As sleep_on(). */
int sleepq_wait(const struct sleep_request *r);
/* Ends t's sleep with -EINTR if that sleep has SLEEP_INTR. Any context but NMI. */
void sleepq_interrupt(struct thread *t);
