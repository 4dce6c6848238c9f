/*
 * html.c - a page that shows the trace in a browser: puts events, losses and the samples of all
 * reports into columns (html.h), while they pass.
 *
 * The samples are made by a report over the whole trace, which hands them out instead of adding
 * them up.
 */
#define _GNU_SOURCE /* fopencookie() */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/export/html.h"
#include "ktr/tools/ktrdump.h"
#include "ktr/tools/memory.h"
#include "ktr/tools/model/span.h"
#include "ktr/tools/symbols.h"

/* The line of `who` that a thread has. */
struct html_who {
	uint64_t serial;
	size_t line; /* from 1 */
	char name[ACTIVITY_NAME];
};

struct html {
	struct export_file file;
	struct html_head head;
	const struct spans *spans;
	struct report *report;
	struct out *out; /* for JSON: to the column `to` */
	struct html_column *to;
	struct html_column columns[HTML_COLUMN_COUNT];
	struct export_classes classes;
	struct html_who *who; /* by activity_thread.number */
	size_t who_room;
	size_t who_lines, string_lines, place_lines, site_lines;
	struct ktr_map names; /* the last line of `who` of a serial and name */
	struct ktr_map strings, places, sites_known; /* lines, from 1 */
	struct {
		uint64_t seq;
		size_t who;
	} cpus[KTR_DECODE_CPUS];
	uint64_t ns; /* of the last event */
	uint64_t events, sample_at, wake_at;
	bool failed; /* no memory */
};

/* ---- lines of JSON ---- */

static ssize_t
line_write(void *arg, const char *text, size_t n)
{
	struct html *x = arg;
	html_column_put(x->to, text, n);
	return (ssize_t)n;
}

static struct out *
line_begin(struct html *x, enum html_column_name column)
{
	x->to = &x->columns[column];
	return x->out;
}

static void
line_end(struct html *x)
{
	out_char(x->out, '\n');
	out_flush(x->out);
}

/* False: no memory. */
static bool
line_put(struct html *x, struct ktr_map *map, uint64_t key, size_t line)
{
	if (map->realloc == NULL)
		*map = memory_map();
	if (!ktr_map_put(map, key, (void *)(uintptr_t)line))
		x->failed = true;
	return !x->failed;
}

/* Finds a line, from 1 on, that a map has by a key. *is_new: the caller writes it. 0: no memory. */
static size_t
line_of(struct html *x, struct ktr_map *map, uint64_t key, size_t *lines, bool *is_new)
{
	size_t line = (uintptr_t)ktr_map_get(map, key);
	*is_new = line == 0;
	if (line != 0)
		return line;
	return line_put(x, map, key, *lines + 1) ? ++*lines : 0;
}

/* The line of `string`; of NULL 0. */
static size_t
string_line(struct html *x, const char *text)
{
	bool is_new;
	if (text == NULL)
		return 0;
	uint64_t key = ktr_hash(memory_seed(), text, strlen(text));
	size_t line = line_of(x, &x->strings, key, &x->string_lines, &is_new);
	if (is_new && line != 0) {
		out_json(line_begin(x, HTML_STRING), text);
		line_end(x);
	}
	return line;
}

/* The line of `place`: what report_table.place makes of an address. 0: of none. */
static size_t
place_line(struct html *x, const struct report_sample *s)
{
	char text[300], address[32];
	bool is_new, before = s->kind == SAMPLE_HELD || s->kind == SAMPLE_TAKEN;
	if (s->pc == 0 && !s->user)
		return 0;
	uint64_t key = ktr_mix(s->pc ^ memory_seed(), before ? 3 : 5);
	size_t line = line_of(x, &x->places, key, &x->place_lines, &is_new);
	if (!is_new || line == 0)
		return line;
	const struct symbols *symbols = x->report->symbols;
	const char *function = symbols_function(symbols, s->pc - before);
	snprintf(address, sizeof(address), "0x%" PRIx64, s->pc);
	struct out *o = line_begin(x, HTML_PLACE);
	out_printf(o, "[\"%s\",", address);
	out_json(o, s->user ? "(the program)" : function != NULL ? function : address);
	out_char(o, ',');
	out_json(o, s->user ? NULL : symbols_place(symbols, s->pc - before, text, sizeof(text)));
	out_char(o, ']');
	line_end(x);
	return line;
}

static uint64_t
name_key(const struct report_who *who)
{
	return ktr_mix(ktr_hash(memory_seed(), who->name, strlen(who->name)), 2 * who->serial + 1);
}

/* A new line of `who`. 0: no memory. */
static size_t
who_put(struct html *x, const struct report_who *who, unsigned kind)
{
	struct out *o = line_begin(x, HTML_WHO);
	out_printf(o, "[%" PRIu64 ",%" PRIu32 ",", who->serial, who->tid);
	out_json(o, who->name);
	out_printf(o, ",%u]", kind);
	line_end(x);
	line_put(x, &x->names, name_key(who), ++x->who_lines);
	return x->who_lines;
}

/* The line of `who`, which a thread has as long as it has this name. Of NULL 0. */
static size_t
who_line(struct html *x, const struct activity_thread *t)
{
	if (t == NULL)
		return 0;
	if (!MEMORY_ROOM(x->who, x->who_room, t->number)) {
		x->failed = true;
		return 0;
	}
	const struct report_who who = report_who(x->report, t);
	struct html_who *known = &x->who[t->number];
	if (known->serial == who.serial && strcmp(known->name, who.name) == 0)
		return known->line;
	known->serial = who.serial;
	memcpy(known->name, who.name, sizeof(known->name));
	return known->line = who_put(x, &who, t->idle ? WHO_IDLE : WHO_THREAD);
}

/* The line of who holds a lock: a thread that may be gone, or no thread. */
static size_t
holder_line(struct html *x, const struct report_who *who)
{
	size_t line = (uintptr_t)ktr_map_get(&x->names, name_key(who));
	return line != 0 ? line : who_put(x, who, WHO_HOLDER);
}

/* ---- events ---- */

static void
params_put(struct out *o, const struct export_class *class)
{
	out_text(o, ",\"params\":[");
	for (unsigned i = 0; i < class->site->nargs; i++) {
		const struct ktr_param *p = &class->params[i];
		out_text(o, i > 0 ? ",[" : "[");
		out_json(o, p->name);
		out_printf(o, ",%d]", p->string ? 0 : p->is_signed ? -p->bits : p->bits);
	}
	out_char(o, ']');
}

static void
site_put(struct html *x, const struct ktr_decode_event *e, const struct export_class *class)
{
	const struct ktr_decode_site *site = e->site;
	struct out *o = line_begin(x, HTML_SITE);
	if (site == NULL) {
		out_printf(o, "{\"number\":%" PRIu32 ",\"count\":%u}", e->site_number, e->nargs);
		line_end(x);
		return;
	}
	out_printf(o, "{\"number\":%" PRIu32 ",\"line\":%" PRIu32 ",\"bits\":\"%" PRIu64 "\"",
		   e->site_number, site->line, site->classes);
	out_text(o, ",\"file\":");
	out_json(o, site->file);
	out_text(o, ",\"func\":");
	out_json(o, site->func);
	out_text(o, ",\"fmt\":");
	out_json(o, site->fmt);
	out_text(o, ",\"classes\":[");
	bool first = true;
	for (unsigned bit = 0; bit < 64; bit++) {
		char name[64];
		if ((site->classes >> bit & 1) == 0)
			continue;
		dump_classes(e->header, 1ull << bit, name, sizeof(name));
		out_text(o, first ? "" : ",");
		out_json(o, name);
		first = false;
	}
	out_char(o, ']');
	params_put(o, class);
	out_char(o, '}');
	line_end(x);
}

/*
 * Writes the event's line of `site`, and its parameters. Sites that are not known are told apart by
 * their number and by how many parameters their events have.
 */
static void
site_event(struct html *x, const struct ktr_decode_event *e)
{
	size_t number = 0, line;
	bool is_new;
	const struct export_class *class = NULL;
	uint64_t key = (uint64_t)e->site_number << 3 | e->nargs;
	if (e->site != NULL) {
		class = export_class_of(&x->classes, e, &number, &is_new);
		x->failed |= class == NULL;
		key = 1ull << 40 | number;
	}
	line = line_of(x, &x->sites_known, key, &x->site_lines, &is_new);
	if (x->failed)
		return;
	if (is_new)
		site_put(x, e, class);
	html_number(&x->columns[HTML_EVENT_SITE], line - 1);
	struct html_column *c = &x->columns[HTML_EVENT_ARGS];
	for (unsigned i = 0; i < e->nargs; i++) {
		if (class == NULL || !class->params[i].string) {
			html_number(c, e->args[i]);
			continue;
		}
		size_t text = string_line(x, e->strings[i]);
		html_number(c, text);
		if (text == 0)
			html_number(c, e->args[i]);
	}
}

static void
event_put(struct html *x, const struct export_event *ev)
{
	const struct ktr_decode_event *e = ev->e;
	uint64_t ns = (uint64_t)ktr_decode_ns(e->header, e->ticks);
	size_t who = who_line(x, ev->thread);
	html_number(&x->columns[HTML_EVENT_CPU], e->cpu);
	html_signed(&x->columns[HTML_EVENT_NS], ns - x->ns);
	html_signed(&x->columns[HTML_EVENT_SEQ], e->seq - x->cpus[e->cpu].seq - 1);
	html_number(&x->columns[HTML_EVENT_WHO], who == x->cpus[e->cpu].who ? 0 : who);
	site_event(x, e);
	x->ns = ns;
	x->cpus[e->cpu].seq = e->seq;
	x->cpus[e->cpu].who = who;
	x->events++;
}

static bool
html_event(void *arg, const struct export_event *ev, char *err, size_t errlen)
{
	struct html *x = arg;
	if (ev->passes)
		event_put(x, ev);
	for (unsigned i = 0; i < ev->count && ev->passes; i++) {
		const struct activity *a = &ev->activities[i];
		if (a->kind != ACTIVITY_WAKE)
			continue;
		html_number(&x->columns[HTML_WAKE_AT], x->events - x->wake_at);
		html_number(&x->columns[HTML_WAKE_WHO], who_line(x, a->thread));
		x->wake_at = x->events;
	}
	return export_report.event(x->report, ev, err, errlen) && !x->failed;
}

static bool
html_gap(void *arg, const struct export_gap *gap, char *err, size_t errlen)
{
	struct html *x = arg;
	if (gap->passes) {
		uint64_t from = (uint64_t)ktr_decode_ns(gap->g->header, gap->g->from_ticks),
			 to = (uint64_t)ktr_decode_ns(gap->g->header, gap->g->to_ticks);
		html_number(&x->columns[HTML_GAP_CPU], gap->g->cpu);
		html_number(&x->columns[HTML_GAP_REASON], gap->g->reason);
		html_number(&x->columns[HTML_GAP_COUNT], gap->g->count);
		html_signed(&x->columns[HTML_GAP_FROM], from);
		html_signed(&x->columns[HTML_GAP_NS], to - from);
	}
	return export_report.gap(x->report, gap, err, errlen) && !x->failed;
}

static bool
html_gone(void *arg, const struct activity_thread *t)
{
	struct html *x = arg;
	return export_report.gone(x->report, t) && !x->failed;
}

/* ---- samples ---- */

/* The page makes RUN and WAIT of CPU and STATE, as sample.c does. */
static void
on_sample(void *arg, const struct report_sample *s)
{
	struct html *x = arg;
	struct html_column *c = x->columns;
	if (s->kind == SAMPLE_RUN || s->kind == SAMPLE_WAIT)
		return;
	html_number(&c[HTML_SAMPLE_KIND], s->kind);
	html_number(&c[HTML_SAMPLE_FLAGS],
		    (unsigned)s->untimed | (unsigned)s->preempted << 1 | (unsigned)s->moved << 2);
	html_number(&c[HTML_SAMPLE_AT], x->events - x->sample_at);
	html_signed(&c[HTML_SAMPLE_TO], s->to_ns - x->ns);
	html_number(&c[HTML_SAMPLE_NS], s->to_ns - s->from_ns);
	html_number(&c[HTML_SAMPLE_WHO],
		    s->who != NULL ? holder_line(x, s->who) : who_line(x, s->thread));
	html_number(&c[HTML_SAMPLE_CPU], s->cpu);
	html_number(&c[HTML_SAMPLE_TEXT], string_line(x, s->text));
	html_number(&c[HTML_SAMPLE_MORE], string_line(x, s->more));
	html_number(&c[HTML_SAMPLE_PLACE], place_line(x, s));
	html_number(&c[HTML_SAMPLE_VALUE], s->value);
	html_number(&c[HTML_SAMPLE_QUEUED], s->queued_ns);
	x->sample_at = x->events;
}

static bool
on_thread(void *arg, const struct span *span)
{
	return report_span_ops.thread(((struct html *)arg)->report, span);
}

static bool
on_cpu(void *arg, uint32_t cpu, const struct activity_thread *t, uint64_t from_ns, uint64_t to_ns)
{
	return report_span_ops.cpu(((struct html *)arg)->report, cpu, t, from_ns, to_ns);
}

static bool
on_irq(void *arg, uint32_t cpu, const struct activity_thread *t, uint32_t number, const char *name,
       uint64_t from_ns, uint64_t to_ns)
{
	return report_span_ops.irq(((struct html *)arg)->report, cpu, t, number, name, from_ns,
				   to_ns);
}

/* ---- begin and end ---- */

static bool
html_begin(void *arg, const struct ktr_decode_header *h, char *err, size_t errlen)
{
	struct html *x = arg;
	x->head.header = h;
	return export_report.begin(x->report, h, err, errlen);
}

static bool
page_put(struct html *x)
{
	static const char *const names[] = {
#define X(name, text) text,
	    HTML_COLUMNS(X)
#undef X
	};
	FILE *f = x->file.f;
	spans_range(x->spans, &x->head.from_ns, &x->head.to_ns);
	x->head.cpus = spans_cpus(x->spans);
	html_head_put(line_begin(x, HTML_HEAD), &x->head);
	line_end(x);
	html_page_begin(f);
	for (unsigned i = 0; i < HTML_COLUMN_COUNT; i++) {
		html_page_column(f, names[i]);
		if (!html_column_write(&x->columns[i], f))
			return false;
		html_page_column_end(f);
	}
	html_page_end(f);
	return true;
}

static bool
html_close(void *arg, bool complete, char *err, size_t errlen)
{
	struct html *x = arg;
	/* Before the columns are closed, since the report has samples still. */
	if (x->report != NULL)
		export_report.close(x->report, false, err, errlen);
	errno = 0;
	bool told = !complete || (!x->failed && page_put(x));
	if (complete && !told && !x->failed) { /* a nameless file in the same folder was written */
		errno = errno != 0 ? errno : EIO;
		export_file_failed(&x->file, err, errlen);
	}
	bool good = export_file_close(&x->file, complete && told, err, errlen);
	for (unsigned i = 0; i < HTML_COLUMN_COUNT; i++)
		html_column_close(&x->columns[i]);
	export_classes_free(&x->classes);
	ktr_map_free(&x->names);
	ktr_map_free(&x->strings);
	ktr_map_free(&x->places);
	ktr_map_free(&x->sites_known);
	free(x->who);
	if (x->out != NULL && x->out->file != NULL)
		fclose(x->out->file);
	free(x->out);
	free(x);
	return good && told;
}

/* False: errno. */
static bool
columns_open(struct html *x)
{
	static const cookie_io_functions_t line = {.write = line_write};
	x->out = calloc(1, sizeof(*x->out));
	if (x->out == NULL)
		return false;
	x->out->file = fopencookie(x, "w", line);
	if (x->out->file == NULL)
		return false;
	setvbuf(x->out->file, NULL, _IONBF, 0);
	for (unsigned i = 0; i < HTML_COLUMN_COUNT; i++)
		if (!html_column_open(&x->columns[i], &x->file))
			return false;
	return true;
}

static void *
html_open(const struct export_options *o, char *err, size_t errlen)
{
	struct export_options of_report = *o;
	struct html *x = export_create(sizeof(*x), o, err, errlen);
	if (x == NULL)
		return NULL;
	x->spans = o->spans;
	of_report.reports = "";
	of_report.sample = on_sample;
	of_report.sample_arg = x;
	x->report = export_report.open(&of_report, err, errlen);
	if (x->report != NULL && columns_open(x))
		return x;
	if (x->report != NULL)
		export_file_failed(&x->file, err, errlen);
	html_close(x, false, err, errlen);
	return NULL;
}

static const struct span_ops html_spans = {.thread = on_thread, .cpu = on_cpu, .irq = on_irq};

const struct export_format export_html = {
    EXPORT_FORMAT(html),
    .what = "a page to look at in a browser: all events on a timeline, and the reports of any part",
    .sees_all = true,
    .whole = true,
    .spans = &html_spans,
    .gone = html_gone,
};
