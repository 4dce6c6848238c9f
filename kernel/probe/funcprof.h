/*
 * funcprof.h - the function profiler: how often each function was called on each CPU, and how long
 * its calls took. It is a hook (ktr/hook.h), and counts without loss whatever the size of the
 * rings.
 *
 * A call lasts from the function's entry to its return, and so includes the functions that it
 * calls, interrupts, and time in which its thread did not run. Its own time (`self`) leaves out the
 * functions that it calls, if these are counted, too.
 *
 * The stack of calls is the thread's (struct thread_calls). A call deeper than THREAD_CALLS, or one
 * that does not return before the end, is counted but not timed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ktr/hook.h"

/** A function's calls on one CPU: counted where they end, for times; where they begin, for hits. */
struct funcprof {
	uint64_t hits;
	uint64_t timed;   /* calls that have ended, and whose times are known */
	uint64_t ns;      /* sum of these times */
	uint64_t self_ns; /* sum of their own times */
	/* Sums of the squares of the times, and of the own times: [1] * 2^64 + [0]. */
	uint64_t square[2], self_square[2];
};

/** Begins with all counters at 0. -EBUSY: the profiler runs. -ENOMEM. Thread context. */
int funcprof_start(void);
/** While it is paused, nothing is counted: switching functions calls some. Any context. */
void funcprof_pause(bool paused);
/** Nobody calls funcprof_count() any more. Thread context. */
void funcprof_stop(void);

/** What a hook does for a function's entry or return; ignores other probes. As of a hook. */
void funcprof_count(const struct ktr_firing *f);

/**
 * The name of the function whose entry is site n of all functions' sites, and its counters on that
 * CPU. NULL: there are not so many, or the profiler does not run. A return's counters are 0. While
 * functions are being counted, the counters of a call may be half added. Call it between
 * funcprof_start() and funcprof_stop() only.
 */
const char *funcprof_get(unsigned n, unsigned cpu, struct funcprof *to);
