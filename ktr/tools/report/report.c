/*
 * report.c - runs a report: hands events and spans to the files whose tables are wanted, keeps
 * track of what each thread is doing, and prints the tables at the end.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/ktrdump.h"
#include "ktr/tools/memory.h"
#include "ktr/tools/report/report.h"
#include "ktr/tools/symbols.h"

static const struct {
	const char *name, *what, *needs; /* the classes of events that it is made from */
} reports[] = {
    {"cpu", "who ran where: busy and idle time, switches, preemptions, migrations", "SCHED"},
    {"thread", "what each thread did: ran, could run, slept, waited for a lock", "SCHED"},
    {"syscall", "system calls: how many, how many failed, how long they took", "SYSC"},
    {"lock", "waits for locks, and who had the lock meanwhile", "LOCK"},
    {"fault", "page faults: which kind, in which program or at which place of the kernel",
     "TRAP, and VM for what served them"},
    {"irq", "interrupts: how long they took, and how late the timer was", "INTR"},
    {"wakeup", "how long it took until a woken thread ran", "SCHED"},
    {"net", "connections of TCP: bytes, segments, those sent again, round trips", "INET"},
    {"io", "requests to disks, by device, file and thread: bytes, time, time in the queue", "GEOM"},
    {"profile", "where the kernel's time goes, sampled by timer interrupts", "INTR"},
    {"function", "functions of the kernel: how many calls, how long they took (ktr on fbt:::)",
     "functions (ktr on 'fbt:MODULE::')"},
    {"events", "events by class, trace point and CPU, and what was lost", "any"},
};
#define REPORTS (sizeof(reports) / sizeof(reports[0]))

/* ---- which reports ---- */

bool
report_is_among(const char *names, const char *name)
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
report_name(unsigned n)
{
	return n < REPORTS ? reports[n].name : NULL;
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

struct report_who
report_who(struct report *r, const struct activity_thread *t)
{
	struct report_who who = {report_thread_of(r, t)->serial, t->tid, t->number, "", 0};
	memcpy(who.name, t->name, sizeof(who.name));
	return who;
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
report_begin(void *arg, const struct ktr_decode_header *h, char *err, size_t errlen)
{
	struct report *r = arg;
	r->header = h;
	r->symbols = symbols_open(r->kernel, h);
	return true;
}

static bool
report_event(void *arg, const struct export_event *ev, char *err, size_t errlen)
{
	struct report *r = arg;
	r->events += ev->passes;
	for (unsigned i = 0; i < ev->count; i++) {
		report_activity(r, ev, &ev->activities[i]);
		if (report_holders.wanted)
			report_lock_activity(r, &ev->activities[i]);
	}
	if (report_connections.wanted)
		report_net_event(r, ev);
	if (report_devices.wanted)
		report_io_event(r, ev);
	if (report_sites.wanted)
		report_events_event(r, ev);
	return !r->failed;
}

static bool
report_gap(void *arg, const struct export_gap *gap, char *err, size_t errlen)
{
	struct report *r = arg;
	if (gap->passes) {
		r->lost += gap->g->count;
		r->gaps++;
	}
	if (report_sites.wanted)
		report_events_gap(r, gap);
	if (report_holders.wanted)
		report_locks_lost(r, gap);
	report_net_lost();
	report_io_lost();
	report_samples_lost(r, gap);
	return !r->failed;
}

static bool
report_gone(void *arg, const struct activity_thread *t)
{
	struct report *r = arg;
	struct report_thread *is = report_thread_of(r, t);
	report_waits_end(r, is, activity_now(r->model));
	report_io_gone(t);
	r->threads_gone++;
	memset(is, 0, sizeof(*is));
	return !r->failed;
}

/* ---- the end ---- */

void
report_head_print(struct report *r, const struct report_head *h, const char *run, const char *file)
{
	struct out *o = r->out;
	if (r->json) {
		out_text(o, "{\"report\":\"trace\"");
		if (run != NULL) {
			out_printf(o, ",\"run\":\"%s\",\"file\":", run);
			out_json(o, file);
		}
		out_printf(o,
			   ",\"from_ns\":%" PRIu64 ",\"to_ns\":%" PRIu64
			   ",\"cpus\":%u,\"events\":%" PRIu64 ",\"lost\":%" PRIu64
			   ",\"gaps\":%" PRIu64 ",\"parts\":%" PRIu64 ",\"known_ns\":%" PRIu64
			   ",\"all_ns\":%" PRIu64 "}\n",
			   h->from_ns, h->to_ns, h->cpus, h->events, h->lost, h->gaps, h->parts,
			   h->known_ns[0], h->all_ns[0]);
		return;
	}
	if (run != NULL) {
		out_printf(o, "%s ", run);
		out_printable(o, file, strlen(file));
		out_text(o, ": ");
	}
	out_text(o, "trace ");
	out_seconds(o, (int64_t)h->from_ns, 0);
	out_text(o, " s to ");
	out_seconds(o, (int64_t)h->to_ns, 0);
	out_printf(o,
		   " s, cpus %u, events %" PRIu64 ", lost %" PRIu64 " in %" PRIu64
		   " gap%s, parts %" PRIu64 "\n",
		   h->cpus, h->events, h->lost, h->gaps, h->gaps == 1 ? "" : "s", h->parts);
}

/* What the report is about. */
static struct report_head
head_of(const struct report *r)
{
	struct report_head h = {.events = r->events,
				.lost = r->lost,
				.gaps = r->gaps,
				.parts = *r->parts,
				.known_ns = {r->known_ns[0], r->known_ns[1]},
				.all_ns = {r->all_ns[0], r->all_ns[1]},
				.damaged = *r->status != DUMP_CLEAN};
	spans_range(r->spans, &h.from_ns, &h.to_ns);
	for (unsigned cpu = 0; cpu < spans_cpus(r->spans); cpu++)
		h.cpus += dump_match_cpu(r->filter, cpu);
	return h;
}

void
report_say_nothing(const char *name)
{
	for (size_t i = 0; i < REPORTS; i++) {
		if (strcmp(reports[i].name, name) == 0)
			fprintf(stderr,
				"ktrdump: report %s: nothing to show: it needs events of "
				"class %s, in the formats of ktr/README.md\n",
				name, reports[i].needs);
	}
}

/* Prints the tables of a report. False: all of them are empty. */
static bool
print_report(struct report *r, const char *name)
{
	bool any = false;
	for (struct report_table *const *at = report_tables; *at != NULL; at++) {
		if ((*at)->count == 0 || strcmp((*at)->report, name) != 0)
			continue;
		any = true;
		report_table_print(r, *at);
	}
	return any;
}

/* Prints all reports. False: a report that was named is empty; or, if none was named, all are. */
static bool
print_all(struct report *r)
{
	const struct report_head head = head_of(r);
	bool any = false, whole = true;
	report_head_print(r, &head, NULL, NULL);
	for (size_t i = 0; i < REPORTS; i++) {
		if (!report_is_among(r->names, reports[i].name))
			continue;
		if (print_report(r, reports[i].name)) {
			any = true;
			continue;
		}
		whole = false;
		if (r->names[0] == '\0' || r->events == 0)
			continue;
		report_say_nothing(reports[i].name);
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
	report_samples_end();
	report_locks_end(r);
	report_net_end();
	report_io_end();
	report_events_end(r);
	bool good = complete && !r->failed;
	if (good && r->diff != NULL) {
		const struct report_head head = head_of(r);
		*r->empty = !report_diff_run(r, &head);
	} else if (good) {
		*r->empty = !print_all(r);
	}
	good = good && !r->failed;
	for (struct report_table *const *t = report_tables; *t != NULL; t++)
		report_table_free(*t);
	symbols_close(r->symbols);
	free(r->threads);
	free(r);
	return good;
}

static void *
report_open(const struct export_options *o, char *err, size_t errlen)
{
	struct report *r = calloc(1, sizeof(*r));
	if (r == NULL)
		return NULL;
	r->spans = o->spans;
	r->out = o->out;
	r->filter = o->filter;
	r->model = o->model;
	r->names = o->reports;
	r->rows = o->rows;
	r->json = o->json;
	r->kernel = o->kernel;
	r->diff = o->diff;
	r->sample = o->sample;
	r->sample_arg = o->sample_arg;
	r->empty = o->empty;
	r->parts = o->parts;
	r->status = o->status;
	r->since_ns = o->filter->since_ns < 0 ? 0 : (uint64_t)o->filter->since_ns;
	r->until_ns = o->filter->until_ns < 0 ? 0 : (uint64_t)o->filter->until_ns;
	for (struct report_table *const *t = report_tables; *t != NULL; t++) {
		(*t)->wanted = report_is_among(r->names, (*t)->report);
		r->kinds |= (*t)->wanted ? (*t)->of : 0;
	}
	return r;
}

const struct export_format export_report = {
    EXPORT_FORMAT(report),     .lines = true,       .what = "tables", .sees_all = true,
    .spans = &report_span_ops, .gone = report_gone,
};
