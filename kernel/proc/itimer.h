/*
 * itimer.h - a timer of a program: setitimer, timer_create, timerfd_create.
 *
 * When it expires, it stands still until somebody takes what has expired: so a short interval costs
 * no more than whoever takes it. Then all intervals that have passed are counted, and it runs on.
 * Who ignores what the timer says takes nothing: such a timer pauses, each time twice as long.
 *
 * Locking: a spin lock in each, which is innermost but for those of callouts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/lib/list.h"
#include "kernel/sched/callout.h"
#include "kernel/sync/spinlock.h"

struct itimer {
	struct callout callout;
	struct spinlock lock;
	uint64_t deadline_ns; /* when it expires, or has expired last, by clock_ns(); 0: never */
	uint64_t interval_ns; /* 0: once */
	bool due;             /* the timer has expired, and nobody has taken that */
	uint8_t ignored;      /* how often in a row it has expired for nobody */
	void (*fn)(struct itimer *t);
};

/* A timer that may expire at a time of the clock of the day, and moves when that clock is set. */
struct real_itimer {
	struct itimer timer;
	struct list link;                         /* itimer.c: of those that do */
	void (*clock_set)(struct real_itimer *t); /* NULL, or called after it moved */
};

/* When a timer is to expire. */
struct itimer_when {
	uint64_t deadline_ns; /* by clock_ns(); 0: never */
	uint64_t interval_ns; /* after that; 0: once */
	bool real;            /* deadline_ns is since 1970 */
};

/* What is left of a timer, and its interval, in ns. */
struct itimer_left {
	uint64_t left_ns; /* 0: it does not run */
	uint64_t interval_ns;
};

/* What is left at `now` of a timer that expires at deadline_ns of the same clock (0: never). `due`:
 * it has expired, and nobody has taken that. */
struct itimer_left itimer_rest(uint64_t deadline_ns, uint64_t interval_ns, bool due, uint64_t now);
/* Prepares a timer. fn: called when it expires, in interrupt context, without a lock. */
void itimer_init(struct itimer *t, void (*fn)(struct itimer *t));
/*
 * Sets the timer: it expires at deadline_ns of clock_ns(), and then after each interval; deadline 0
 * stops it. After the return, fn is no longer called for what was set before. Returns what was left
 * of that. Thread context.
 */
struct itimer_left itimer_set(struct itimer *t, uint64_t deadline_ns, uint64_t interval_ns);
struct itimer_left itimer_left(struct itimer *t);
/* A real_itimer is set by these functions only. clock_set: called in thread context. */
void real_itimer_init(struct real_itimer *t, void (*fn)(struct itimer *t),
		      void (*clock_set)(struct real_itimer *t));
struct itimer_left real_itimer_set(struct real_itimer *t, struct itimer_when when);
#define ITIMER_STOP ((struct itimer_when){0})
/* Sets the clock of the day, and moves the timers that expire at a time of it. Thread context. */
void itimers_set_clock(uint64_t real_ns);
/*
 * Takes how many times the timer has expired. heard: somebody is told of it; if not, the timer
 * pauses: 1 ms, and up to a second if nobody is told again and again. Any context but NMI.
 */
uint64_t itimer_take(struct itimer *t, bool heard);
/* There is somebody to be told again: a pause ends with the interval. Any context but NMI. */
void itimer_resume(struct itimer *t);
/* Has it expired? */
bool itimer_is_due(const struct itimer *t);
