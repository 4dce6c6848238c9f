/*
 * report_events.c - the report events: counts of events by class, trace point and CPU, and of those
 * that were lost.
 */
#include <string.h>

#include "ktr/tools/ktrdump.h"
#include "ktr/tools/report.h"

static struct report_table classes = {
    .report = "events",
    .name = "classes",
    .title = "events by class; an event of several classes counts in each",
    .needs = "any",
    .columns = {{"class", "class", COLUMN_TEXT, 0}, {"events", "count", COLUMN_COUNT, CELL_COUNT}},
    .weight = CELL_COUNT,
    .overlaps = true,
};

static struct report_table sites = {
    .report = "events",
    .name = "sites",
    .title = "events by trace point",
    .needs = "any",
    .columns = {{"events", "count", COLUMN_COUNT, CELL_COUNT},
		{"%", NULL, COLUMN_SHARE, CELL_COUNT},
		{"file and line", "place", COLUMN_TEXT, 0},
		{"function", "function", COLUMN_TEXT, 1},
		{"format", "fmt", COLUMN_TEXT, 2}},
    .weight = CELL_COUNT,
};

enum { LOST = CELL_MORE }; /* this and the next cells: lost events, by reason */

static struct report_table cpus = {
    .report = "events",
    .name = "cpus",
    .title = "events by CPU, and what was lost",
    .needs = "any",
    .columns = {{"cpu", "cpu", COLUMN_NUMBER, 0},
		{"events", "count", COLUMN_COUNT, CELL_COUNT},
		{"overwritten", "overwritten", COLUMN_COUNT, LOST + KTR_GAP_OVERWRITTEN},
		{"corrupt", "corrupt", COLUMN_COUNT, LOST + KTR_GAP_CORRUPT},
		{"cleared", "cleared", COLUMN_COUNT, LOST + KTR_GAP_CLEARED},
		{"damaged", "damaged", COLUMN_COUNT, LOST + KTR_GAP_DAMAGED},
		{"left", "left", COLUMN_COUNT, LOST + KTR_GAP_LEFT}},
    .weight = CELL_COUNT,
};

/* A cache of the rows of sites, by site number. */
static struct {
	const struct ktr_decode_site *site;
	struct report_row *row;
} known[1024];

static struct report_row *
cpu_row(struct report *r, uint32_t cpu)
{
	struct report_row *row = report_row(r, &cpus, report_key(cpu, 0, NULL, NULL), NULL, NULL);
	row->number = cpu;
	return row;
}

static struct report_row *
site_row(struct report *r, const struct ktr_decode_event *e)
{
	const struct ktr_decode_site *s = e->site;
	char place[300];
	if (s == NULL)
		return report_row(r, &sites, report_key(0, 0, NULL, NULL),
				  "(its description was lost)", NULL);
	snprintf(place, sizeof(place), "%s:%u", s->file, (unsigned)s->line);
	struct report_row *row =
	    report_row(r, &sites, report_key(s->line, s->classes, s->file, s->fmt), NULL, s->func);
	if (row->texts[0] == NULL && row != &sites.others) {
		report_note(r, row, 0, place);
		row->texts[2] = s->fmt;
		row->number = s->classes;
		row->header = e->header;
	}
	return row;
}

static void
events_event(struct report *r, const struct export_event *ev)
{
	const struct ktr_decode_event *e = ev->e;
	size_t at = e->site_number % (sizeof(known) / sizeof(known[0]));
	if (!ev->passes)
		return;
	if (known[at].row == NULL || known[at].site != e->site) {
		known[at].site = e->site;
		known[at].row = site_row(r, e);
	}
	known[at].row->cells[CELL_COUNT]++;
	cpu_row(r, e->cpu)->cells[CELL_COUNT]++;
}

static void
events_gap(struct report *r, const struct export_gap *gap)
{
	if (gap->passes)
		cpu_row(r, gap->g->cpu)->cells[LOST + gap->g->reason] += gap->g->count;
}

static void
events_end(struct report *r)
{
	char name[64];
	for (size_t i = 0; i < sites.count; i++) {
		const struct report_row *site = sites.rows[i];
		for (unsigned bit = 0; bit < 64; bit++) {
			if ((site->number >> bit & 1) == 0)
				continue;
			dump_classes(site->header, 1ull << bit, name, sizeof(name));
			struct report_row *row =
			    report_row(r, &classes, report_key(bit, 0, name, NULL), NULL, NULL);
			row->cells[CELL_COUNT] += site->cells[CELL_COUNT];
			if (row->texts[0] == NULL)
				report_note(r, row, 0, name);
		}
	}
}

static struct report_table *const tables[] = {&classes, &sites, &cpus, NULL};

const struct report_part report_part_events = {
    .tables = tables,
    .event = events_event,
    .gap = events_gap,
    .end = events_end,
};
