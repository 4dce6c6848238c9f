/*
 * callout.h - functions called at a time, from the timer interrupt.
 * Locking: one spin lock per CPU's queue, inside. A callout lives on the CPU that set it.
 * Trace: class CALLOUT, and SCHED's callwheel states.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/lib/list.h"

struct callout {
	struct list link;
	uint64_t deadline_ns;
	void (*fn)(void *); /* interrupt context, no lock held; must not sleep */
	void *arg;
	int cpu; /* queue it is on; -1 none */
};

void callout_init(struct callout *c, void (*fn)(void *), void *arg);
/* Calls fn once, at deadline_ns of clock_ns() or soon after. Replaces an earlier time. Not NMI. */
void callout_set(struct callout *c, uint64_t deadline_ns);
/*
 * True: it was pending and will not run. False: it was not pending; when it was just then running
 * on another CPU, it has finished on return. Must not be called by the callout, nor with a lock
 * held that the function takes. Not NMI.
 */
bool callout_stop(struct callout *c);
/* For the debugger only, no lock taken: the next pending one of a CPU after c; NULL starts and
 * ends. */
const struct callout *callout_next_unlocked(unsigned cpu, const struct callout *c);
