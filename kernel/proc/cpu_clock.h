/*
 * cpu_clock.h - the clocks of the time that a process, or a thread, has a CPU: who waits until a
 * time of one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/lib/list.h"

struct proc;

/*
 * At a time of such a clock a tick calls fn. Then it stands still until cpu_alarm_take(), as timers
 * of itimer.h do. Guarded by proc_lock.
 */
struct cpu_alarm {
	struct list link; /* in a list of the process while it runs */
	struct proc *proc;
	uint32_t tid;                    /* the thread whose time counts; 0: the whole process's */
	bool due;                        /* it has expired, and nobody has taken that */
	uint64_t deadline_ns;            /* when it expires, or has expired; 0: never */
	uint64_t interval_ns;            /* after that; 0: once */
	void (*fn)(struct cpu_alarm *a); /* in a tick, with proc_lock held */
};

struct itimer_left;

/* Is that the number of a clock of the current process, or one of its threads, as timers can have?
 * *tid: of the thread, or 0. */
bool cpu_clock_own(uint32_t clock, uint32_t *tid);
/* The time of a CPU clock, of any process or an own thread. False: there is none of that number.
 * Takes proc_lock. */
bool cpu_clock_read(uint32_t clock, uint64_t *ns);
/*
 * Sleeps until a time of the current process's clock, or for ns of it; or until `again`, of
 * proc_deadline(). After a signal, *urest gets the rest, if urest is not 0 and ns was a span.
 * -EOPNOTSUPP, -EINVAL: not by that clock. `error`, if it is not 0 and the clock is good.
 */
int64_t cpu_clock_sleep(uint32_t clock, uint64_t again, bool absolute, int error, uint64_t ns,
			uint64_t urest);
/* For `a`, which has a process, a thread and fn, and else zeroes. */
void cpu_alarm_init(struct cpu_alarm *a);
/* Sets it to a time, or to one in ns from now on; 0 stops it. Returns what was left. proc_lock
 * held, as for those that follow. */
struct itimer_left cpu_alarm_set(struct cpu_alarm *a, bool absolute, uint64_t ns,
				 uint64_t interval_ns);
struct itimer_left cpu_alarm_left(const struct cpu_alarm *a);
/* Takes what has expired: how many times it was. It runs on. */
uint64_t cpu_alarm_take(struct cpu_alarm *a);
/* A tick of the current thread, whose process has used that time. Must it look at alarms? Without
 * the lock. */
bool cpu_alarms_are_due(const struct proc *p, uint64_t ns);
void cpu_alarms_tick(struct proc *p, uint64_t ns);
