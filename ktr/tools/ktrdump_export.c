/*
 * ktrdump_export.c - gives events, and what they mean, to a report or an exporter
 * (export/export.h).
 *
 * The model of activities gets every event, also those that the filter keeps out: which thread runs
 * on a CPU does not depend on what is shown.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/export/export.h"
#include "ktr/tools/ktrdump.h"
#include "ktr/tools/model/span.h"

#define ERR_BYTES 400
#define NO_MEMORY "not enough memory" /* what a function says that says nothing */

struct dump_export {
	const struct export_format *format;
	void *x; /* the writer */
	struct activity_model *model;
	struct spans *spans;                    /* NULL: the format wants none */
	const struct ktr_decode_header *header; /* NULL: not begun */
};

static const struct ktr_decode_header no_header = {.arch = "unknown", .build = "unknown"};

bool
export_fail(char *err, size_t errlen, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err, errlen, fmt, ap);
	va_end(ap);
	return false;
}

static void
failed(struct dump *d, const char *err)
{
	if (!d->failed)
		fprintf(stderr, "ktrdump: %s\n", err);
	d->failed = true;
	d->status = DUMP_USAGE;
}

static void
gone(void *arg, const struct activity_thread *t)
{
	struct dump *d = arg;
	const struct dump_export *x = d->export;
	if (d->failed)
		return;
	bool good = x->spans == NULL || spans_gone(x->spans, t);
	if (x->format->gone != NULL)
		good = x->format->gone(x->x, t) && good;
	if (!good)
		failed(d, NO_MEMORY);
}

bool
dump_export_open(struct dump *d)
{
	struct export_options options = {
	    .path = d->opts.output,
	    .filter = &d->opts.filter,
	    .width = d->opts.width,
	    .out = &d->out,
	    .reports = d->opts.reports,
	    .function = d->opts.function,
	    .depth = d->opts.depth,
	    .kernel = d->opts.kernel,
	    .rows = d->opts.rows,
	    .json = d->opts.json,
	    .parts = &d->parts,
	    .empty = &d->empty,
	    .no_calls = &d->no_calls,
	    .status = &d->status,
	    .diff = d->opts.diff.state,
	};
	const struct export_format *format = d->opts.format;
	char err[ERR_BYTES] = NO_MEMORY;
	d->export = calloc(1, sizeof(*d->export));
	if (d->export != NULL) {
		d->export->format = format;
		options.model = d->export->model = activity_create(gone, d);
		if (format->spans != NULL)
			options.spans = d->export->spans =
			    spans_create(format->spans, options.filter);
		if (options.model != NULL && (format->spans == NULL || options.spans != NULL))
			d->export->x = format->open(&options, err, sizeof(err));
	}
	if (d->export == NULL || d->export->x == NULL) {
		failed(d, err);
		dump_export_close(d, false);
		return false;
	}
	return true;
}

/* Begins the export at the first event or gap. Later ones must be of the same boot. */
static bool
begun(struct dump *d, const struct ktr_decode_header *h)
{
	struct dump_export *x = d->export;
	if (h == x->header)
		return true;
	char err[ERR_BYTES] = NO_MEMORY;
	if (x->header != NULL && memcmp(h->boot_id, x->header->boot_id, sizeof(h->boot_id)) != 0) {
		failed(d, "the stream has more than one boot, whose times overlap: expected one");
		return false;
	}
	if (x->header != NULL && h->hz != x->header->hz) {
		snprintf(err, sizeof(err),
			 "the stream's clock has %" PRIu64 " Hz, and had %" PRIu64
			 " (0: not known yet) before: times of the two do not fit together",
			 h->hz, x->header->hz);
		failed(d, err);
		return false;
	}
	bool first = x->header == NULL;
	x->header = h;
	if (first && x->spans != NULL)
		spans_begin(x->spans, x->x, h);
	if (!first || x->format->begin == NULL || x->format->begin(x->x, h, err, sizeof(err)))
		return true;
	failed(d, err);
	return false;
}

void
dump_export_event(struct dump *d, const struct ktr_decode_event *e, uint64_t index, bool passes)
{
	struct dump_export *x = d->export;
	struct activity activities[ACTIVITY_MAX];
	char err[ERR_BYTES];
	if (!begun(d, e->header))
		return;
	const struct activity_thread *thread = NULL;
	int n = 0;
	if (x->format->plain)
		activity_pass(x->model, e);
	else
		n = activity_event(x->model, e, activities, &thread);
	if (n < 0) {
		failed(d, NO_MEMORY);
		return;
	}
	const struct export_event ev = {
	    .e = e,
	    .ns = activity_now(x->model),
	    .index = index,
	    .thread = thread,
	    .passes = passes,
	    .count = (unsigned)n,
	    .activities = activities,
	};
	if ((!passes && !x->format->sees_all) || d->failed)
		return;
	memcpy(err, NO_MEMORY, sizeof(NO_MEMORY)); /* for each event: so err is not cleared whole */
	if ((x->format->event != NULL && !x->format->event(x->x, &ev, err, sizeof(err))) ||
	    (x->spans != NULL && !spans_event(x->spans, &ev)))
		failed(d, err);
}

void
dump_export_gap(struct dump *d, const struct ktr_decode_gap *g, bool passes)
{
	struct dump_export *x = d->export;
	char err[ERR_BYTES] = NO_MEMORY;
	if (!begun(d, g->header))
		return;
	struct export_gap gap = {.g = g, .passes = passes};
	gap.from_ns = activity_ns(x->model, g->header, g->from_ticks);
	gap.lost = activity_gap(x->model, g, &gap.thread);
	gap.to_ns = activity_ns(x->model, g->header, g->to_ticks);
	if (gap.to_ns < gap.from_ns) /* a damaged stream may say so */
		gap.to_ns = gap.from_ns;
	if (!passes && !x->format->sees_all)
		return;
	if ((x->format->gap != NULL && !x->format->gap(x->x, &gap, err, sizeof(err))) ||
	    (x->spans != NULL && !spans_gap(x->spans, &gap)))
		failed(d, err);
}

void
dump_export_close(struct dump *d, bool complete)
{
	struct dump_export *x = d->export;
	char err[ERR_BYTES] = NO_MEMORY;
	if (x == NULL)
		return;
	complete = complete && !d->failed;
	if (x->x != NULL && complete && x->header == NULL)
		complete = begun(d, d->header != NULL ? d->header : &no_header);
	if (x->x != NULL && complete && x->spans != NULL && !spans_end(x->spans)) {
		failed(d, err);
		complete = false;
	}
	bool whole = x->x != NULL && x->format->close(x->x, complete, err, sizeof(err));
	if (x->x != NULL && complete && !whole)
		failed(d, err);
	activity_destroy(x->model);
	spans_destroy(x->spans);
	free(x);
	d->export = NULL;
}
