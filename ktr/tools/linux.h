/*
 * linux.h - turns Kestrel's activities (model/activity.h) into the events of Linux that mean the
 * same. trace-cmd, KernelShark and the LTTng analyses know these events and their fields by name.
 * Host only.
 *
 * These events are written in addition to those of the trace points, and contain nothing new. Idle
 * threads are thread 0, "swapper/N", as in Linux. A thread that is not known (before the first
 * switch of a CPU, or where events were lost) is thread 0, too, because Linux's tools know no
 * number for it. The target_cpu of a wakeup is the CPU where the thread ran last, because no trace
 * point tells whose run queue it joins.
 *
 * The entry and return of a function are those of Linux's function graph tracer. They have what
 * ours have, and stand for them. If no function returns in a trace, the entries are those of the
 * function tracer. A stream does not tell the addresses of functions, so each gets a number for an
 * address. Of a caller the trace knows which function it is, if that was traced, and no more: its
 * number stands for the address to which a function returns; 0: it is not known.
 *
 * Names and fields are those of Linux 6.1, include/trace/events/{sched,irq}.h, and of LTTng-modules
 * 2.13.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ktr/event_format.h"
#include "ktr/tools/model/activity.h"

#define LINUX_FUNCTION 16u /* from the address of a function to that of the next */
#define LINUX_FIELDS   9u
#define LINUX_COMM     16u /* bytes, with the NUL: TASK_COMM_LEN */

struct linux_field {
	const char *name;  /* name in ftrace; NULL: it has no such field */
	const char *lttng; /* name in LTTng; NULL: it has no such field */
	enum ktr_field type;
};

/** An event class. There is one of each, so that its address names it. */
struct linux_class {
	const char *system; /* of ftrace: sched, irq, syscalls */
	const char *name;   /* in ftrace: sys_enter_read */
	const char *lttng;  /* in LTTng: syscall_entry_read */
	const char *print;  /* printf format of all fields in order; NULL: `name: value` for each */
	unsigned nfields;
	struct linux_field fields[LINUX_FIELDS];
};

struct linux_event {
	const struct linux_class *class;
	int64_t values[LINUX_FIELDS];    /* of fields that are numbers */
	const char *texts[LINUX_FIELDS]; /* of COMM and STRING; valid until the next call */
};

/** Makes *out the event of Linux that means the same. False: Linux has none. Not thread-safe. */
bool linux_event(const struct activity *a, struct linux_event *out);

/** For a class that linux_event() gave: the class under which its events are told, once all of
 * them were given. */
const struct linux_class *linux_class_told(const struct linux_class *class);

/** True: the event of Linux stands for our own. */
static inline bool
linux_replaces(const struct activity *a)
{
	return a->kind == ACTIVITY_CALL || (a->kind == ACTIVITY_RETURN && a->call.name != NULL);
}
/** Writes the functions that were told so far, as /proc/kallsyms has them. */
void linux_functions_print(FILE *f);

/** A thread's id and name as Linux has them: idle threads are 0, "swapper/N". */
uint32_t linux_tid(const struct activity_thread *t);
/** Copies a thread's name to buf, LINUX_COMM bytes, padded with zeros. */
void linux_comm(const struct activity_thread *t, char *buf);
