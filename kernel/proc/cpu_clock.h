/*
 * cpu_clock.h - the clocks of the time that a process, or a thread, has a CPU: who waits until a
 * time of one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/lib/leftist.h"
#include "kernel/lib/list.h"

struct proc;

/*
 * An alarm. At a time of a CPU clock a tick calls fn. Then the alarm stands still until
 * cpu_alarm_take(), as timers of itimer.h do. Guarded by proc_lock.
 */
struct cpu_alarm {
	struct leftist heap; /* while it runs by the process's clock: in proc.cpu_alarms */
	struct list link;    /* by a thread's: in proc.thread_alarms */
	struct proc *proc;
	uint32_t tid;    /* the thread whose time counts; 0: the whole process's */
	uint64_t serial; /* thread.serial of that thread: its number may come again */
	bool in_heap;
	bool due;             /* the alarm has expired, and nobody has taken that */
	uint64_t deadline_ns; /* when it expires, or has expired; 0: never */
	uint64_t interval_ns; /* after that; 0: once */
	/* Called at that time of the clock, in a tick, or when the alarm is set. proc_lock held. */
	void (*fn)(struct cpu_alarm *a, uint64_t now);
};

struct itimer_left;

/* Is that the number of a clock of the current process, or one of its threads, as timers can have?
 * Then *a gets the process and the thread. May take proc_lock. */
bool cpu_clock_own(uint32_t clock, struct cpu_alarm *a);
/* As in Linux, who only reads the time may name the process's clock by the number of the thread
 * that calls. Else it is the clock itself. */
uint32_t cpu_clock_to_read(uint32_t clock);
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
/* Prepares an alarm, which has a process, a thread and fn, and else zeroes. */
void cpu_alarm_init(struct cpu_alarm *a);
/* Sets it to a time, or to one in ns from now on; 0 stops it. *old: what was left. False: its
 * thread has ended. proc_lock held, as for those that follow. */
bool cpu_alarm_set(struct cpu_alarm *a, bool absolute, uint64_t ns, uint64_t interval_ns,
		   struct itimer_left *old);
void cpu_alarm_stop(struct cpu_alarm *a);
struct itimer_left cpu_alarm_left(const struct cpu_alarm *a);
/* Takes how many times an alarm has expired, and lets it run on. now: of its clock, as fn got it;
 * or 0. */
uint64_t cpu_alarm_take(struct cpu_alarm *a, uint64_t now);
/* Must a tick of the current thread look at alarms? ns: what its process has used. The lock need
 * not be held. */
bool cpu_alarms_are_due(const struct proc *p, uint64_t ns);
void cpu_alarms_tick(struct proc *p, uint64_t ns);
/* The current thread of p ends: alarms by its clock end. */
void cpu_alarms_end(struct proc *p);
