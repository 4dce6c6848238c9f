/*
 * export_chrome.h - the entries of Chrome's trace event JSON, for export_chrome.c. Host only.
 */
#pragma once

#include "ktr/tools/export_timeline.h"
#include "ktr/tools/out.h"

/** Where entries go; any: there are some. */
struct chrome_out {
	struct out out;
	bool any;
};

/** Where an entry stands. */
struct chrome_place {
	uint32_t pid, tid;
};

/** An event, and what it is called. */
struct chrome_told {
	const struct ktr_decode_event *e;
	const struct export_class *class;
	const struct timeline_name *name;
};

/** An entry of that phase, without its end: a line to which members are added. */
void chrome_entry_begin(struct chrome_out *o, char phase, struct chrome_place at, uint64_t ns);
void chrome_entry_name(struct out *l, const char *name, const char *category);
void chrome_entry_end(struct out *l);

/** A slice begins. */
void chrome_put_begin(struct chrome_out *o, struct chrome_place at, uint64_t ns, const char *name,
		      const char *category);
/** The slice of that name ends, if it is not "", which it becomes. */
void chrome_put_end(struct chrome_out *o, struct chrome_place at, uint64_t ns, char *name,
		    const char *category);
/** An arrow of that number begins (phase 's') or ends ('f') at a slice. */
void chrome_put_flow(struct chrome_out *o, char phase, struct chrome_place at, uint64_t ns,
		     uint64_t flow);
/** Entries for what a viewer calls a process or thread, and where it shows it. */
void chrome_put_meta(struct chrome_out *o, const char *what, struct chrome_place at,
		     const char *name, uint32_t order);

/** Microseconds, to the nanosecond. */
void chrome_put_time(struct out *l, uint64_t ns);
/** An integer that a reader's double holds, or its digits as a string. */
void chrome_put_integer(struct out *l, uint64_t v, bool is_signed);
/** The event's parameters, and its CPU. */
void chrome_put_args(struct out *l, const struct chrome_told *told);
