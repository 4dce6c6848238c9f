/*
 * callout.h - functions called at a time, from the timer interrupt: at most 64 in one.
 * Locking: one spin lock per CPU's queue, inside. A callout lives on the CPU that set it.
 * Trace: class CALLOUT, and SCHED's callwheel states.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/lib/leftist.h"

struct callout {
	struct leftist node;
	uint64_t deadline_ns;
	void (*fn)(void *); /* interrupt context, no lock held; must not sleep */
	void *arg;
	int cpu; /* whose queue it is on; -1: none */
};

/* Once for each CPU, before it starts. */
void callout_init_cpu(unsigned cpu);
void callout_init(struct callout *c, void (*fn)(void *), void *arg);
/* Calls fn once, at deadline_ns of clock_ns() or soon after; moves a pending one. Not in NMI. */
void callout_set(struct callout *c, uint64_t deadline_ns);
/*
 * Cancels a callout. It may be pending while another CPU runs it: when this returns it is neither,
 * unless somebody but its function sets it meanwhile. Was it pending? Do not call from the callout
 * itself, nor while holding a lock that its function takes. Not in NMI.
 */
bool callout_stop(struct callout *c);
/*
 * The pending callout of a CPU after c, in the order of their times; NULL starts and ends. Looks at
 * all of them. No lock: for the debugger only.
 */
const struct callout *callout_next_unlocked(unsigned cpu, const struct callout *c);
