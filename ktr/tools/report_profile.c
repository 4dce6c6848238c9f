/*
 * report_profile.c - the report profile: what CPUs were running when a timer interrupt came.
 *
 * Each interrupt is a sample of what its CPU was doing. While the kernel has interrupts off, a
 * sample is late: it is counted where the kernel turns them on again.
 */
#include <inttypes.h>
#include <string.h>

#include "ktr/tools/ktrdump.h"
#include "ktr/tools/report.h"
#include "ktr/tools/symbols.h"

static struct report_table functions = {
    .report = "profile",
    .name = "functions",
    .title = "functions of the kernel, and programs, that timer interrupts found running",
    .needs = "INTR",
    .columns = {{"function", "function", COLUMN_TEXT, 0},
		{"samples", "count", COLUMN_COUNT, CELL_COUNT},
		{"%", NULL, COLUMN_SHARE, CELL_COUNT}},
    .weight = CELL_COUNT,
};

static struct report_table places = {
    .report = "profile",
    .name = "places",
    .title = "the same by line of the kernel",
    .needs = "INTR",
    .columns = {{"function", "function", COLUMN_TEXT, 0},
		{"line", "place", COLUMN_TEXT, 1},
		{"samples", "count", COLUMN_COUNT, CELL_COUNT},
		{"%", NULL, COLUMN_SHARE, CELL_COUNT}},
    .weight = CELL_COUNT,
};

static void
profile_activity(struct report *r, const struct export_event *ev, const struct activity *a)
{
	char place[300], name[ACTIVITY_NAME + 20];
	(void)ev;
	if (a->kind != ACTIVITY_IRQ_ENTER || strcmp(a->text, "timer") != 0 || a->pc == 0 ||
	    a->ns < r->since_ns || a->ns > r->until_ns || !report_wants(r, a->thread, a->cpu))
		return;
	const char *function = symbols_function(r->symbols, a->pc);
	if (a->user)
		snprintf(name, sizeof(name), "(program %s)", a->thread->name);
	else if (function != NULL)
		snprintf(name, sizeof(name), "%s", function);
	else
		snprintf(name, sizeof(name), "0x%" PRIx64, a->pc);
	struct report_row *row =
	    report_row(r, &functions, report_key(0, 0, name, NULL), NULL, NULL);
	row->cells[CELL_COUNT]++;
	if (row->texts[0] == NULL)
		report_note(r, row, 0, name);
	if (a->user)
		return;
	symbols_place(r->symbols, a->pc, place, sizeof(place));
	row = report_row(r, &places, report_key(0, 0, name, place), NULL, NULL);
	row->cells[CELL_COUNT]++;
	if (row->texts[0] == NULL) {
		report_note(r, row, 0, name);
		report_note(r, row, 1, place);
	}
}

static struct report_table *const tables[] = {&functions, &places, NULL};

const struct report_part report_part_profile = {
    .tables = tables,
    .activity = profile_activity,
};
