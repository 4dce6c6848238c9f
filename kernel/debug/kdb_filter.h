/* kdb_filter.h - the filters of `show ktr' and `search'. Any context. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/debug/kdb_private.h"

#define KDB_FILTER_CPUS 64

struct kdb_filter {
	int cpu;          /* -1: all */
	uint64_t classes; /* an event must have one of these */
	enum { KDB_FILTER_ANY, KDB_FILTER_TID, KDB_FILTER_NAME } thread;
	uint64_t tid;
	char name[KDB_NAMELEN];         /* a glob */
	char pattern[KDB_LINE_MAX + 3]; /* a glob for the text; empty: any text */
	uint64_t count;
	uint64_t us;     /* of the time from where it begins */
	bool from_place; /* -p: begin at the event of search or mark */
	bool newer;      /* -f: go to newer events */
};

#define KDB_FILTER_ALL        \
	((struct kdb_filter){ \
	    .cpu = -1, .classes = UINT64_MAX, .count = UINT64_MAX, .us = UINT64_MAX})

/* Parses args. False: an error line was printed, which begins with `command`. */
bool kdb_filter_parse(const char *command, char *args, struct kdb_filter *f);
/* Does an event pass? text is read only if there is a pattern. */
bool kdb_filter_match(const struct kdb_filter *f, unsigned cpu, uint32_t tid, uint64_t classes,
		      const char *text);
