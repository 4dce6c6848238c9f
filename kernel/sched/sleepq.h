/*
 * sleepq.h - wait for, and wake, threads by the address of what they wait for (the channel).
 * Locking: a hashed table of queues, each with a spin lock, taken inside the caller's `lk`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/sync/spinlock.h"

#define SLEEP_INTR 1 /* a signal to the process ends the sleep with -EINTR */

#define DEADLINE_NEVER UINT64_MAX

/*
 * Sleeps on chan until woken. `lk`, if not NULL, is held by the caller, released when the thread is
 * on the queue (so that no wakeup is lost) and held again on return. wmesg is read-only data, shown
 * by ps and traced. deadline_ns is in clock_ns() time. Returns 0 woken, -EINTR, -ETIMEDOUT. Thread
 * context, no other spin lock held. Wakeups can be spurious: test the condition again.
 */
int sleep_on(const void *chan, struct spinlock *lk, const char *wmesg, int flags,
	     uint64_t deadline_ns);
/* Wakes every thread, or the one that waits longest. Any context but NMI. Returns how many woke. */
unsigned wakeup(const void *chan);
unsigned wakeup_one(const void *chan);
