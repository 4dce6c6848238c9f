/*
 * events.c - the report events: counts of events by class, trace point and CPU, and of those
 * that were lost.
 */
#include <string.h>

#include "ktr/tools/ktrdump.h"
#include "ktr/tools/report/report.h"

/* A cache of the rows of sites, by site number. */
static struct {
	const struct ktr_decode_site *site;
	struct report_row *row;
} known[1024];

static struct report_row *
site_row(struct report *r, const struct ktr_decode_event *e)
{
	const struct ktr_decode_site *s = e->site;
	char place[300];
	if (s == NULL)
		return report_row(r, &report_sites, report_key(0, 0, NULL, NULL),
				  "(its description was lost)", NULL);
	snprintf(place, sizeof(place), "%s:%u", s->file, (unsigned)s->line);
	struct report_row *row =
	    report_row(r, &report_sites, report_key(s->line, s->classes, s->file, s->fmt), NULL,
		       s->func);
	if (row->texts[0] == NULL && row != &report_sites.others) {
		report_note(r, row, 0, place);
		row->texts[2] = s->fmt;
		row->number = s->classes;
		row->header = e->header;
	}
	return row;
}

void
report_events_event(struct report *r, const struct export_event *ev)
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
	report_row_numbered(r, &report_event_cpus, e->cpu)->cells[CELL_COUNT]++;
}

void
report_events_gap(struct report *r, const struct export_gap *gap)
{
	if (gap->passes)
		report_row_numbered(r, &report_event_cpus, gap->g->cpu)
		    ->cells[CELL_LOST + gap->g->reason] += gap->g->count;
}

void
report_events_end(struct report *r)
{
	char name[64];
	memset(known, 0, sizeof(known)); /* a diff makes a second report, of another run */
	for (size_t i = 0; i < report_sites.count; i++) {
		const struct report_row *site = report_sites.rows[i];
		for (unsigned bit = 0; bit < 64; bit++) {
			if ((site->number >> bit & 1) == 0)
				continue;
			dump_classes(site->header, 1ull << bit, name, sizeof(name));
			struct report_row *row =
			    report_row(r, &report_classes, report_key(bit, 0, name, NULL), NULL,
				       NULL);
			row->cells[CELL_COUNT] += site->cells[CELL_COUNT];
			if (row->texts[0] == NULL)
				report_note(r, row, 0, name);
		}
	}
}
