/*
 * diff.h - what two runs of a report, and who asks for them, share: one report is made of each run,
 * one after the other, and the second prints what changed. One thread, no locks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ktr/tools/report/report.h"

#define DIFF_NO_LIMIT UINT64_MAX

struct diff_table; /* diff.c */

struct report_diff {
	const char *files[2]; /* of A and B, for what is printed */
	bool named;           /* the reports were named: one that shows nothing is told */
	const char *grep;     /* only rows of which a name has this text, or glob; NULL: all */
	uint64_t limit;       /* how much a row may change: hundredths of a percent */
	bool above;           /* a row has changed by more */
	unsigned runs;        /* that have ended */
	struct report_head heads[2];
	struct diff_table *tables; /* as many as report_tables */
	size_t tables_room;
};

void report_diff_free(struct report_diff *d);
