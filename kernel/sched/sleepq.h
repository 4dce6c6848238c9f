/*
 * sleepq.h - sleep and wakeup by the address of what a thread waits for (the channel).
 *
 * Locking: a hash table of queues, each with a spin lock, taken after the caller's `lk`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/sync/spinlock.h"

struct thread;

#define SLEEP_INTR 1 /* a signal to the thread ends the sleep with -EINTR */

#define DEADLINE_NEVER UINT64_MAX

/*
 * Sleeps on chan until woken. `lk`, if not NULL, is held by the caller. It is released after the
 * thread is on the queue, so that no wakeup is lost, and held again on return. wmesg is read-only
 * data: ps shows it and the log records it. deadline_ns is a time of clock_ns(). Returns 0 (woken),
 * -EINTR or -ETIMEDOUT. Wakeups can be spurious: test the condition again. Thread context, no other
 * spin lock held.
 */
int sleep_on(const void *chan, struct spinlock *lk, const char *wmesg, int flags,
	     uint64_t deadline_ns);
/*
 * Wakes all threads that sleep on chan by now, or the one that has slept longest. Returns how many.
 * Any context but NMI. All are woken some at a time, and interrupts come in between unless the
 * caller has them off.
 */
unsigned wakeup(const void *chan);
unsigned wakeup_one(const void *chan);

/* A sleep with all parameters. */
struct sleep_request {
	const void *chan;
	struct spinlock *lk;
	/*
	 * Called under the queue lock, before the sleep; if it returns false, the thread does not
	 * sleep. NULL: it always sleeps. A pending signal comes before this: after -EINTR the
	 * caller looks once more.
	 */
	bool (*still)(void *);
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
/*
 * Wakes the thread that has slept longest on chan, and makes it *owner; *more says whether others
 * sleep there. Both are written under the queue lock. False if nobody sleeps there; then *owner
 * stays.
 */
bool sleepq_hand_over(const void *chan, struct thread **owner, bool *more);
/* Is one pending for the current thread? */
bool sleepq_signal_pending(void);
/* As sleep_on(). */
int sleepq_wait(const struct sleep_request *r);
/* Ends t's sleep with -EINTR if that sleep has SLEEP_INTR. False: it may sleep on. Any context but
 * NMI. */
bool sleepq_interrupt(struct thread *t);
