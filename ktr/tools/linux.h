/*
 * linux.h - Kestrel's activities (activity.h) as the events of Linux that mean the same, with
 * Linux's fields, which trace-cmd, KernelShark and the LTTng analyses know by name. Host only.
 *
 * These events are written in addition to those of the trace points, and say nothing more. Idle
 * threads are thread 0, "swapper/N", as in Linux. So is what a CPU ran before its first switch, or
 * where events were lost: Linux's tools know no number for an unknown thread. The target_cpu of a
 * wakeup is the CPU where the thread ran last, because no trace point tells the CPU whose queue it
 * joins.
 *
 * Names and fields are those of Linux 6.1, include/trace/events/{sched,irq}.h, and of LTTng-modules
 * 2.13.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/tools/activity.h"

#define LINUX_FIELDS 8u
#define LINUX_COMM   16u /* bytes, with the NUL: TASK_COMM_LEN */

enum linux_type {
	LINUX_INT,    /* 32 bits, signed */
	LINUX_LONG,   /* 64 bits, signed */
	LINUX_ULONG,  /* 64 bits, best shown in hexadecimal */
	LINUX_COMM16, /* char[16] */
	LINUX_STRING
};

struct linux_field {
	const char *name;  /* in ftrace */
	const char *lttng; /* in LTTng; NULL: it has no such field */
	enum linux_type type;
};

/** An event class. There is one of each, so that its address names it. */
struct linux_class {
	const char *system; /* of ftrace: sched, irq, syscalls */
	const char *name;   /* in ftrace: sys_enter_read */
	const char *lttng;  /* in LTTng: syscall_entry_read */
	const char
	    *print; /* a printf format of all fields in their order; NULL: name and value each */
	unsigned nfields;
	struct linux_field fields[LINUX_FIELDS];
};

struct linux_event {
	const struct linux_class *class;
	int64_t values[LINUX_FIELDS]; /* of numbers */
	const char
	    *texts[LINUX_FIELDS]; /* of LINUX_COMM16 and LINUX_STRING; valid until the next call */
};

/** True: the activity is an event of Linux's, in *out. Not from two threads at once. */
bool linux_event(const struct activity *a, struct linux_event *out);

/** A thread's id and name as Linux has them: idle threads are 0, "swapper/N". */
uint32_t linux_tid(const struct activity_thread *t);
/** buf holds LINUX_COMM bytes, and is padded with zeros. */
void linux_comm(const struct activity_thread *t, char *buf);
