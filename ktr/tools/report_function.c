/*
 * report_function.c - the report function: how often the kernel's functions were called, and how
 * long they took.
 *
 * This file uses the mark of a call (struct activity_call) for the time that the call's own traced
 * calls took.
 */
#include "ktr/tools/report.h"

enum { FUNCTION_SELF = CELL_MORE };

static struct report_table functions = {
    .report = "function",
    .name = "functions",
    .title = "functions of the kernel; self leaves out the traced functions that they call",
    .needs = "functions (ktr on 'fbt:MODULE::')",
    .columns = {{"function", "function", COLUMN_TEXT, 0},
		{"count", "count", COLUMN_COUNT, CELL_COUNT},
		{"total ms", "total", COLUMN_MS, CELL_TOTAL},
		{"self ms", "self", COLUMN_MS, FUNCTION_SELF},
		{"mean us", "mean", COLUMN_MEAN, 0},
		{"p50 us", "p50", COLUMN_P50, 0},
		{"p99 us", "p99", COLUMN_P99, 0},
		{"longest us", "longest", COLUMN_US, CELL_MAX},
		{"which began at s", "when", COLUMN_SECONDS, CELL_WHEN}},
    .weight = FUNCTION_SELF,
    .histogram = true,
    .overlaps = true,
};

static void
function_activity(struct report *r, const struct export_event *ev, const struct activity *a)
{
	const struct activity_thread *t = a->thread;
	uint64_t from = a->call.ns, whole = a->ns - from;
	(void)ev;
	if (a->kind != ACTIVITY_RETURN || a->call.name == NULL)
		return;
	if (t->depth > 0)
		t->calls[t->depth - 1].mark += whole;
	if (!report_wants(r, t, a->cpu) || !report_cut(r, &from, a->ns))
		return;
	struct report_row *row =
	    report_row(r, &functions, report_key(0, 0, a->text, NULL), a->text, NULL);
	uint64_t self = whole - a->call.mark, took = a->ns - from;
	row->cells[FUNCTION_SELF] += self < took ? self : took;
	report_sample(r, &functions, row, from, a->ns);
}

static struct report_table *const tables[] = {&functions, NULL};

const struct report_part report_part_function = {
    .tables = tables,
    .activity = function_activity,
};
