/*
 * span.h - makes spans from activities (activity.h): who did what, from when to when. For formats
 * that show times, not events.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ktr/tools/model/activity.h"

struct dump_filter; /* ktrdump.h */

/**
 * A time in which a thread's state, the reason for it, its system call, its CPU, its name and, if
 * span_ops.functions is true, its functions did not change.
 */
struct span {
	const struct activity_thread *thread; /* as it is now */
	enum activity_state state;
	const char *why, *call;       /* as in struct activity_thread */
	const char *const *functions; /* names of the thread's functions, outermost first */
	unsigned depth;               /* how many */
	const char *name;             /* "" when it has none; valid during the call */
	uint32_t cpu;                 /* where it ran last */
	uint64_t from_ns, to_ns;
};

/**
 * Functions that are called at the end of each span, in the order of these ends. All but `thread`
 * may be NULL. False: no memory.
 */
struct span_ops {
	bool (*thread)(void *arg, const struct span *span);
	/**
	 * A CPU ran the thread t, or NULL if it is not known. A CPU's spans follow each other
	 * without holes, from its start on; or from the beginning of the trace on, if the trace
	 * does not tell the start.
	 */
	bool (*cpu)(void *arg, uint32_t cpu, const struct activity_thread *t, uint64_t from_ns,
		    uint64_t to_ns);
	/** t was interrupted; NULL: not known. */
	bool (*irq)(void *arg, uint32_t cpu, const struct activity_thread *t, uint32_t number,
		    const char *name, uint64_t from_ns, uint64_t to_ns);
	/** Events of a CPU were lost. This is called when the loss begins. */
	bool (*lost)(void *arg, uint32_t cpu, uint64_t count, uint64_t from_ns, uint64_t to_ns);
	bool functions; /* spans say what functions the thread is in */
};

struct spans;

/** Spans are cut to the filter's times. NULL: no memory. */
struct spans *spans_create(const struct span_ops *ops, const struct dump_filter *filter);
void spans_destroy(struct spans *s);

/**
 * arg is that of the functions in ops. Call spans_begin() first, spans_event() and spans_gap() in
 * order, and spans_end() last. False: no memory.
 */
void spans_begin(struct spans *s, void *arg, const struct ktr_decode_header *h);
bool spans_event(struct spans *s, const struct export_event *ev);
bool spans_gap(struct spans *s, const struct export_gap *gap);
/** The thread will not be seen again: ends its span. False: no memory. */
bool spans_gone(struct spans *s, const struct activity_thread *t);
bool spans_end(struct spans *s);

/** From the first event to the last, within the filter's times; both 0 without events. */
void spans_range(const struct spans *s, uint64_t *from_ns, uint64_t *to_ns);
/** CPUs that the machine has, or that were seen. */
unsigned spans_cpus(const struct spans *s);
