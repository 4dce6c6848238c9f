/*
 * chrome.h - the entries of Chrome's trace event JSON, for chrome.c. Host only.
 */
#pragma once

#include "ktr/tools/export/timeline.h"
#include "ktr/tools/out.h"

/** Where entries go; any: there are some. */
struct chrome_out {
	struct out out;
	bool any;
};

/** The track that an entry belongs to. */
struct chrome_place {
	uint32_t pid, tid;
};

/** An event, its class and its name. */
struct chrome_told {
	const struct ktr_decode_event *e;
	const struct export_class *class;
	const struct timeline_name *name;
};

/** Begins an entry, a line to which members are added. `phase` is its type. */
void chrome_entry_begin(struct chrome_out *o, char phase, struct chrome_place at, uint64_t ns);
void chrome_entry_name(struct out *l, const char *name, const char *category);
void chrome_entry_end(struct out *l);

/** Begins a slice. */
void chrome_put_begin(struct chrome_out *o, struct chrome_place at, uint64_t ns, const char *name,
		      const char *category);
/** Ends the slice of that name, and sets name to "". If it is "" already, does nothing. */
void chrome_put_end(struct chrome_out *o, struct chrome_place at, uint64_t ns, char *name,
		    const char *category);
/** Begins (phase 's') or ends ('f') an arrow at a slice. `flow` is the arrow's number. */
void chrome_put_flow(struct chrome_out *o, char phase, struct chrome_place at, uint64_t ns,
		     uint64_t flow);
/** Names a process or thread (`what`), and gives its place among the others (`order`). */
void chrome_put_meta(struct chrome_out *o, const char *what, struct chrome_place at,
		     const char *name, uint32_t order);

/** Writes a time in microseconds, with three decimals. */
void chrome_put_time(struct out *l, uint64_t ns);
/** Writes an integer. One that a reader's double cannot hold becomes a string. */
void chrome_put_integer(struct out *l, uint64_t v, bool is_signed);
/** Writes the event's parameters, and its CPU. */
void chrome_put_args(struct out *l, const struct chrome_told *told);
