/*
 * report.c - runs a report: hands events and spans to the files whose tables are wanted, keeps
 * track of what each thread is doing, and prints the tables at the end.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/ktrdump.h"
#include "ktr/tools/memory.h"
#include "ktr/tools/report.h"
#include "ktr/tools/symbols.h"

static const struct report_part *const parts[] = {&report_part_run,      &report_part_call,
						  &report_part_wait,     &report_part_profile,
						  &report_part_function, &report_part_events};
#define PARTS (sizeof(parts) / sizeof(parts[0]))

static const struct {
	const char *name, *what;
} reports[] = {
    {"cpu", "who ran where: busy and idle time, switches, preemptions, migrations"},
    {"thread", "what each thread did: ran, could run, slept, waited for a lock"},
    {"syscall", "system calls: how many, how many failed, how long they took"},
    {"lock", "waits for locks, and who had the lock meanwhile"},
    {"fault", "page faults: which kind, in which program or at which place of the kernel"},
    {"irq", "interrupts: how long they took, and how late the timer was"},
    {"wakeup", "how long it took until a woken thread ran"},
    {"profile", "where the kernel's time goes, sampled by timer interrupts"},
    {"function", "functions of the kernel: how many calls, how long they took (ktr on fbt:::)"},
    {"events", "events by class, trace point and CPU, and what was lost"},
};
#define REPORTS (sizeof(reports) / sizeof(reports[0]))

/* ---- which reports ---- */

/* Is the name in a list with commas? All names are in the list "". */
static bool
is_among(const char *names, const char *name)
{
	size_t n = strlen(name);
	if (*names == '\0')
		return true;
	for (; *names != '\0'; names += strcspn(names, ",")) {
		names += *names == ',';
		if (strcspn(names, ",") == n && strncmp(names, name, n) == 0)
			return true;
	}
	return false;
}

bool
report_names_known(const char *names, const char **wrong)
{
	while (*names != '\0') {
		size_t n = strcspn(names, ","), i = 0;
		while (i < REPORTS &&
		       (strlen(reports[i].name) != n || strncmp(names, reports[i].name, n) != 0))
			i++;
		if (i == REPORTS) {
			*wrong = names;
			return false;
		}
		names += n + (names[n] == ',');
	}
	return true;
}

const char *
report_help(unsigned n)
{
	static char line[100];
	if (n >= REPORTS)
		return NULL;
	snprintf(line, sizeof(line), "  %-13s %s", reports[n].name, reports[n].what);
	return line;
}

static bool
part_wanted(const struct report_part *p)
{
	bool any = false;
	for (struct report_table *const *t = p->tables; *t != NULL; t++)
		any |= (*t)->wanted;
	return any;
}

/* ---- threads ---- */

void
report_no_memory(struct report *r)
{
	r->failed = true;
}

struct report_thread *
report_thread_of(struct report *r, const struct activity_thread *t)
{
	if (!MEMORY_ROOM(r->threads, r->room, t->number)) {
		report_no_memory(r);
		return &r->nobody;
	}
	struct report_thread *is = &r->threads[t->number];
	if (is->t == NULL) {
		is->t = t;
		is->serial = ++r->last_serial;
	}
	return is;
}

struct report_row *
report_thread_row(struct report *r, struct report_table *t, const struct activity_thread *thread,
		  uint64_t number, const char *text, const char *more)
{
	uint64_t serial = report_thread_of(r, thread)->serial;
	struct report_row *row =
	    report_row(r, t, report_key(serial, number, text, more), text, more);
	if (row == &t->others)
		return row;
	row->serial = serial;
	row->thread_number = thread->number;
	row->tid = thread->tid;
	row->number = number;
	memcpy(row->thread, thread->name, sizeof(row->thread));
	return row;
}

bool
report_wants(const struct report *r, const struct activity_thread *t, uint32_t cpu)
{
	return dump_match_cpu(r->filter, cpu) &&
	       (r->filter->thread == NULL ||
		(t != NULL && dump_match_thread(r->filter, t->tid, t->name)));
}

bool
report_cut(const struct report *r, uint64_t *from_ns, uint64_t to_ns)
{
	if (*from_ns < r->since_ns)
		*from_ns = r->since_ns;
	return to_ns >= r->since_ns && to_ns <= r->until_ns;
}

/* ---- what comes in ---- */

static bool
on_thread(void *arg, const struct span *span)
{
	struct report *r = arg;
	for (size_t i = 0; i < PARTS; i++) {
		if (parts[i]->thread != NULL && part_wanted(parts[i]))
			parts[i]->thread(r, span);
	}
	return !r->failed;
}

static bool
on_cpu(void *arg, uint32_t cpu, const struct activity_thread *t, uint64_t from_ns, uint64_t to_ns)
{
	struct report *r = arg;
	if (dump_match_cpu(r->filter, cpu)) {
		r->known_ns += t != NULL ? to_ns - from_ns : 0;
		r->all_ns += to_ns - from_ns;
	}
	for (size_t i = 0; i < PARTS; i++) {
		if (parts[i]->cpu != NULL && part_wanted(parts[i]))
			parts[i]->cpu(r, cpu, t, from_ns, to_ns);
	}
	return !r->failed;
}

static bool
on_irq(void *arg, uint32_t cpu, const struct activity_thread *t, uint32_t number, const char *name,
       uint64_t from_ns, uint64_t to_ns)
{
	struct report *r = arg;
	for (size_t i = 0; i < PARTS; i++) {
		if (parts[i]->irq != NULL && part_wanted(parts[i]))
			parts[i]->irq(r, cpu, t, number, name, from_ns, to_ns);
	}
	return !r->failed;
}

static bool
report_begin(void *arg, const struct ktr_decode_header *h, char *err, size_t errlen)
{
	struct report *r = arg;
	(void)err, (void)errlen;
	r->header = h;
	r->symbols = symbols_open(r->kernel, h);
	spans_begin(r->spans, h);
	return true;
}

static bool
report_event(void *arg, const struct export_event *ev, char *err, size_t errlen)
{
	struct report *r = arg;
	r->events += ev->passes;
	for (size_t p = 0; p < PARTS; p++) {
		if (!part_wanted(parts[p]))
			continue;
		for (unsigned i = 0; i < ev->count && parts[p]->activity != NULL; i++)
			parts[p]->activity(r, ev, &ev->activities[i]);
		if (parts[p]->event != NULL)
			parts[p]->event(r, ev);
	}
	if (!spans_event(r->spans, ev) || r->failed)
		return export_fail(err, errlen, "not enough memory");
	return true;
}

static bool
report_gap(void *arg, const struct export_gap *gap, char *err, size_t errlen)
{
	struct report *r = arg;
	if (gap->passes) {
		r->lost += gap->g->count;
		r->gaps++;
	}
	for (size_t p = 0; p < PARTS; p++) {
		if (parts[p]->gap != NULL && part_wanted(parts[p]))
			parts[p]->gap(r, gap);
	}
	for (const struct activity_thread *t = gap->lost; t != NULL; t = t->next_lost) {
		struct report_thread *is = report_thread_of(r, t);
		is->call = NULL;
		is->woken = is->faults = false;
	}
	if (!spans_gap(r->spans, gap) || r->failed)
		return export_fail(err, errlen, "not enough memory");
	return true;
}

static bool
report_gone(void *arg, const struct activity_thread *t)
{
	struct report *r = arg;
	bool good = spans_gone(r->spans, t);
	struct report_thread *is = report_thread_of(r, t);
	for (size_t p = 0; p < PARTS; p++) {
		if (parts[p]->gone != NULL && part_wanted(parts[p]))
			parts[p]->gone(r, is);
	}
	r->threads_gone++;
	memset(is, 0, sizeof(*is));
	return good && !r->failed;
}

/* ---- the end ---- */

static void
print_head(struct report *r, uint64_t from, uint64_t to, unsigned cpus)
{
	struct out *o = r->out;
	const struct {
		const char *before, *json;
		uint64_t value;
		bool is_time;
	} words[] = {
	    {"trace ", "{\"report\":\"trace\",\"from_ns\":", from, true},
	    {" s to ", ",\"to_ns\":", to, true},
	    {" s, cpus ", ",\"cpus\":", cpus, false},
	    {", events ", ",\"events\":", r->events, false},
	    {", lost ", ",\"lost\":", r->lost, false},
	    {" in ", ",\"gaps\":", r->gaps, false},
	};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		out_text(o, r->json ? words[i].json : words[i].before);
		if (words[i].is_time && !r->json)
			out_seconds(o, (int64_t)words[i].value, 0);
		else
			out_number(o, words[i].value, 0);
	}
	if (!r->json) {
		out_text(o, r->gaps == 1 ? " gap, parts " : " gaps, parts ");
		out_number(o, *r->parts, 0);
	} else {
		out_text(o, ",\"parts\":");
		out_number(o, *r->parts, 0);
		out_text(o, ",\"known_ns\":");
		out_number(o, r->known_ns, 0);
		out_text(o, ",\"all_ns\":");
		out_number(o, r->all_ns, 0);
		out_char(o, '}');
	}
	out_char(o, '\n');
}

/* Prints the tables of a report. False: all of them are empty. */
static bool
print_report(struct report *r, const char *name)
{
	bool any = false;
	for (size_t p = 0; p < PARTS; p++) {
		for (struct report_table *const *at = parts[p]->tables; *at != NULL; at++) {
			struct report_table *t = *at;
			if (!t->wanted || strcmp(t->report, name) != 0 || t->count == 0)
				continue;
			any = true;
			if (!t->own_known) {
				t->known_ns = r->known_ns;
				t->all_ns = r->all_ns;
			}
			report_table_print(r, t);
		}
	}
	return any;
}

/* The classes of events that a report is made from. */
static const char *
needs_of(const char *name)
{
	for (size_t p = 0; p < PARTS; p++) {
		for (struct report_table *const *at = parts[p]->tables; *at != NULL; at++) {
			if (strcmp((*at)->report, name) == 0)
				return (*at)->needs;
		}
	}
	return "";
}

/* Prints all reports. False: a report that was named is empty; or, if none was named, all are. */
static bool
print_all(struct report *r)
{
	uint64_t from, to;
	unsigned cpus = 0;
	bool any = false, whole = true;
	spans_range(r->spans, &from, &to);
	for (unsigned cpu = 0; cpu < spans_cpus(r->spans); cpu++)
		cpus += dump_match_cpu(r->filter, cpu);
	print_head(r, from, to, cpus);
	for (size_t i = 0; i < REPORTS; i++) {
		if (!is_among(r->names, reports[i].name))
			continue;
		if (print_report(r, reports[i].name)) {
			any = true;
			continue;
		}
		whole = false;
		if (r->names[0] == '\0' || r->events == 0)
			continue;
		fprintf(stderr,
			"ktrdump: report %s: nothing to show; it is made from events of class %s\n",
			reports[i].name, needs_of(reports[i].name));
	}
	if (r->names[0] != '\0')
		return whole;
	if (!any && r->events > 0)
		fprintf(stderr, "ktrdump: report: nothing to show\n");
	return any;
}

static bool
report_close(void *arg, bool complete, char *err, size_t errlen)
{
	struct report *r = arg;
	bool good = complete && spans_end(r->spans) && !r->failed;
	for (size_t p = 0; good && p < PARTS; p++) {
		if (parts[p]->end != NULL && part_wanted(parts[p]))
			parts[p]->end(r);
	}
	if (good && !r->failed)
		*r->empty = !print_all(r);
	if (complete && (!good || r->failed))
		export_fail(err, errlen, "not enough memory");
	good = good && !r->failed;
	for (size_t p = 0; p < PARTS; p++) {
		for (struct report_table *const *t = parts[p]->tables; *t != NULL; t++)
			report_table_free(*t);
	}
	symbols_close(r->symbols);
	spans_destroy(r->spans);
	free(r->threads);
	free(r);
	return good;
}

static void *
report_open(const struct export_options *o, char *err, size_t errlen)
{
	static const struct span_ops ops = {.thread = on_thread, .cpu = on_cpu, .irq = on_irq};
	struct report *r = calloc(1, sizeof(*r));
	if (r != NULL)
		r->spans = spans_create(&ops, r, o->filter);
	if (r == NULL || r->spans == NULL) {
		free(r);
		export_fail(err, errlen, "not enough memory");
		return NULL;
	}
	r->out = o->out;
	r->filter = o->filter;
	r->model = o->model;
	r->names = o->reports;
	r->rows = o->rows;
	r->json = o->json;
	r->kernel = o->kernel;
	r->empty = o->empty;
	r->parts = o->parts;
	r->since_ns = o->filter->since_ns < 0 ? 0 : (uint64_t)o->filter->since_ns;
	r->until_ns = o->filter->until_ns < 0 ? 0 : (uint64_t)o->filter->until_ns;
	for (size_t p = 0; p < PARTS; p++) {
		for (struct report_table *const *t = parts[p]->tables; *t != NULL; t++)
			(*t)->wanted = is_among(r->names, (*t)->report);
	}
	return r;
}

const struct export_format export_report = {
    .lines = true,
    .name = "report",
    .what = "tables",
    .sees_all = true,
    .open = report_open,
    .begin = report_begin,
    .event = report_event,
    .gap = report_gap,
    .gone = report_gone,
    .close = report_close,
};
