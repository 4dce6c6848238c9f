/*
 * itimer.h - a timer of a program: setitimer, timer_create, timerfd_create.
 *
 * When it expires, it stands still until somebody takes what has expired: so a short interval costs
 * no more than whoever takes it. Then all intervals that have passed are counted, and it runs on.
 *
 * Locking: a spin lock in each, which is innermost but for those of callouts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/sched/callout.h"
#include "kernel/sync/spinlock.h"

struct itimer {
	struct callout callout;
	struct spinlock lock;
	uint64_t deadline_ns; /* when it expires, or has expired last, by clock_ns(); 0: never */
	uint64_t interval_ns; /* 0: once */
	bool due;             /* it has expired, and nobody has taken that */
	void (*fn)(struct itimer *t);
};

/* What is left of a timer, and its interval, in ns. */
struct itimer_left {
	uint64_t left_ns; /* 0: it does not run */
	uint64_t interval_ns;
};

/* fn: called when it expires, in interrupt context, without a lock. */
void itimer_init(struct itimer *t, void (*fn)(struct itimer *t));
/*
 * Lets it expire at deadline_ns of clock_ns() and then each interval; deadline 0 stops it. When it
 * returns, fn is not called for what was set before. Returns what was left. Thread context.
 */
struct itimer_left itimer_set(struct itimer *t, uint64_t deadline_ns, uint64_t interval_ns);
struct itimer_left itimer_left(struct itimer *t);
/*
 * Takes what has expired: returns how many times. The next time is at least pause_ns from now. Any
 * context but NMI.
 */
uint64_t itimer_take(struct itimer *t, uint64_t pause_ns);
/* Has it expired? */
bool itimer_is_due(const struct itimer *t);
