/*
 * diff.h - what two runs of a report, and who asks for them, share: one report is made of each run,
 * one after the other, and the second prints what changed. One thread, no locks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ktr/tools/report/report.h"

#define DIFF_NO_LIMIT UINT64_MAX

#define DIFF_FROM_ZERO UINT64_MAX /* the change of what was nothing */

struct diff_row {
	struct report_row *runs[2];             /* NULL: that run has none */
	__extension__ unsigned __int128 weight; /* of the change: see change_weight() */
	uint64_t all;                           /* by how much all figures have changed, together */
	uint64_t percent; /* the largest change, hundredths of a percent, or DIFF_FROM_ZERO */
	bool falls;       /* that is to less */
};

struct diff_table {
	struct diff_row *rows;
	size_t count, room, changed;
	struct ktr_map map; /* the index of a row, plus one, by what names it */
	struct diff_row others;
	struct diff_row total;
};

struct report_diff {
	const char *files[2]; /* of A and B, for what is printed */
	bool named;           /* the reports were named: one that shows nothing is told */
	const char *grep;     /* only rows with a name that has this text, or glob; NULL: all */
	uint64_t limit;       /* how much a row may change: hundredths of a percent */
	bool above;           /* a row has changed by more */
	unsigned runs;        /* that have ended */
	struct report_head heads[2];
	struct diff_table *tables; /* as many as report_tables */
	size_t tables_room;
};

void report_diff_free(struct report_diff *d);

/* diff.c, for diff_print.c */

/** Does the column show what names a row of a diff? */
bool diff_names_row(const struct report_column *c);
/** The columns whose numbers are compared; how many. There is room for REPORT_COLUMNS. */
unsigned diff_figures(const struct report_table *t, const struct report_column **to);
/** The number of a run in such a column. */
uint64_t diff_figure(const struct report_column *c, const struct diff_row *row, unsigned run);
uint64_t diff_between(uint64_t a, uint64_t b);
/** Finds out by how much a row has changed. */
void diff_row_measure(const struct report_table *t, struct diff_row *row);
/** Adds to a sum. False: no memory. */
bool diff_row_sum(struct diff_row *to, unsigned run, const struct report_row *row);
/** Frees the rows of both runs. */
void diff_row_free(struct diff_row *row);
/** Does the trace have all events? */
bool diff_is_whole(const struct report_head *h);

/* diff_print.c */

void diff_print_text(struct report *r, const struct report_table *t, const struct diff_table *dt);
void diff_print_json(struct report *r, const struct report_table *t, const struct diff_table *dt);
