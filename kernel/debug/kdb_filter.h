/* kdb_filter.h - which events an operator wants to see. Any context. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/debug/kdb_private.h"

#define KDB_FILTER_CPUS 64

struct kdb_filter {
	int cpu;          /* -1: all */
	uint64_t classes; /* one of them is enough */
	enum { KDB_FILTER_ANY, KDB_FILTER_TID, KDB_FILTER_NAME } thread;
	uint64_t tid;
	char name[KDB_NAMELEN];         /* a glob */
	char pattern[KDB_LINE_MAX + 2]; /* a glob for the text; empty: any */
	uint64_t count;
	bool from_place; /* -p: begin where search or mark is */
	bool newer;      /* -f: go to newer events */
};

#define KDB_FILTER_ALL ((struct kdb_filter){.cpu = -1, .classes = UINT64_MAX, .count = UINT64_MAX})

/* Takes args apart. False: an error line was printed, which begins with `command`. */
bool kdb_filter_parse(const char *command, char *args, struct kdb_filter *f);
/* text: of the event; looked at only when there is a pattern. */
bool kdb_filter_match(const struct kdb_filter *f, unsigned cpu, uint32_t tid, uint64_t classes,
		      const char *text);
