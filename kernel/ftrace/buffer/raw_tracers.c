/*
 * raw_tracers.c - events/ftrace/: the events that tracers record, with Linux's names and formats
 * (Linux's kernel/trace/trace_entries.h). What else has no event in events/ is recorded as a
 * `print`, with the text that `trace` shows. Locking: buffer.h.
 */
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/hist/hist.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/ksyms.h"
#include "ktr/word.h"

#define FIELDS 9
#define FRAMES 8 /* that a record has at least */
#define NSEC   1000000000ull

/* Where a field's value comes from: an argument of the entry, or what is made of them. */
enum source {
	ARG0,
	ARG1,
	ARG2,
	ARG3,
	ARG4,
	ARG5,
	ZERO,
	SECONDS,     /* of ARG3 */
	NANOSECONDS, /* … */
	PLACE,       /* where the event is */
	TEXT,        /* the event's text, as a line */
	HEX,         /* bytes, of which the text ARG1 has the digits */
	FRAMES_N,    /* what record_stack() has recorded: how many addresses */
	FRAMES_ALL   /* … and which */
};

static const struct event {
	const struct ktr_site *site;
	const char *name, *print;
	struct field {
		const char *name;
		enum ktr_field type;
		enum source from;
	} fields[FIELDS];
} events[] = {
    {&tracer_mark,
     "print",
     "\"%ps: %s\", (void *)REC->ip, REC->buf",
     {{"ip", KTR_FIELD_ULONG, PLACE}, {"buf", KTR_FIELD_REST, TEXT}}},
    {&tracer_function,
     "function",
     "\" %ps <-- %ps\", (void *)REC->ip, (void *)REC->parent_ip",
     {{"ip", KTR_FIELD_ULONG, ARG2}, {"parent_ip", KTR_FIELD_ULONG, ARG1}}},
    {&tracer_graph_entry,
     "funcgraph_entry",
     "\"--> %ps (%d)\", (void *)REC->func, REC->depth",
     {{"func", KTR_FIELD_ULONG, ARG2}, {"depth", KTR_FIELD_INT, ARG1}}},
    {&tracer_graph_return,
     "funcgraph_exit",
     "\"<-- %ps (%d) (start: %llx  end: %llx) over: %d\", (void *)REC->func, REC->depth, "
     "REC->calltime, REC->rettime, REC->depth",
     {{"func", KTR_FIELD_ULONG, ARG4},
      {"depth", KTR_FIELD_INT, ARG1},
      {"overrun", KTR_FIELD_UINT, ARG5},
      {"calltime", KTR_FIELD_U64, ARG2},
      {"rettime", KTR_FIELD_U64, ARG3}}},
    {&tracer_raw,
     "raw_data",
     "\"id:%04x %08x\", REC->id, (int)REC->buf[0]",
     {{"id", KTR_FIELD_UINT, ARG0}, {"buf", KTR_FIELD_REST, HEX}}},
    {&trigger_stack,
     "kernel_stack",
     "\"\\t=> %ps\\n\\t=> %ps\\n\\t=> %ps\\n\" \"\\t=> %ps\\n\\t=> %ps\\n\\t=> %ps\\n\" "
     "\"\\t=> %ps\\n\\t=> %ps\\n\",(void *)REC->caller[0], (void *)REC->caller[1], "
     "(void *)REC->caller[2], (void *)REC->caller[3], (void *)REC->caller[4], "
     "(void *)REC->caller[5], (void *)REC->caller[6], (void *)REC->caller[7]",
     {{"size", KTR_FIELD_INT, FRAMES_N}, {"caller", KTR_FIELD_CALLERS, FRAMES_ALL}}},
    {&hwlat_site,
     "hwlat",
     "\"cnt:%u\\tts:%010llu.%010lu\\tinner:%llu\\touter:%llu\\tcount:%d\\tnmi-ts:%llu\\t"
     "nmi-count:%u\\n\", REC->seqnum, REC->tv_sec, REC->tv_nsec, REC->duration, "
     "REC->outer_duration, REC->count, REC->nmi_total_ts, REC->nmi_count",
     {{"duration", KTR_FIELD_U64, ARG1},
      {"outer_duration", KTR_FIELD_U64, ARG2},
      {"nmi_total_ts", KTR_FIELD_U64, ZERO},
      {"tv_sec", KTR_FIELD_S64, SECONDS},
      {"tv_nsec", KTR_FIELD_LONG, NANOSECONDS},
      {"nmi_count", KTR_FIELD_UINT, ZERO},
      {"seqnum", KTR_FIELD_UINT, ARG0},
      {"count", KTR_FIELD_UINT, ARG4}}},
    {&osnoise_site,
     "osnoise",
     "\"noise:%llu\\tmax_sample:%llu\\thw:%u\\tnmi:%u\\tirq:%u\\tsoftirq:%u\\tthread:%u\\n\", "
     "REC->noise, REC->max_sample, REC->hw_count, REC->nmi_count, REC->irq_count, "
     "REC->softirq_count, REC->thread_count",
     {{"noise", KTR_FIELD_U64, ARG1},
      {"runtime", KTR_FIELD_U64, ARG0},
      {"max_sample", KTR_FIELD_U64, ARG2},
      {"hw_count", KTR_FIELD_UINT, ARG3},
      {"nmi_count", KTR_FIELD_UINT, ZERO},
      {"irq_count", KTR_FIELD_UINT, ARG4},
      {"softirq_count", KTR_FIELD_UINT, ZERO},
      {"thread_count", KTR_FIELD_UINT, ARG5}}},
    {&timerlat_site,
     "timerlat",
     "\"seq:%u\\tcontext:%d\\ttimer_latency:%llu\\n\", REC->seqnum, REC->context, "
     "REC->timer_latency",
     {{"seqnum", KTR_FIELD_UINT, ARG0},
      {"context", KTR_FIELD_INT, ARG1},
      {"timer_latency", KTR_FIELD_U64, ARG2}}},
};

/* ---- records ---- */

/* The entry whose record is made, and room for its text. */
struct making {
	const struct buffer_reader *r;
	const struct ktr_entry *e;
	unsigned cpu;
	uint64_t seq;
	char text[MARK_MAX + 2];
	uint64_t frames[KTR_STRING_MAX / 2];
	size_t nframes;
};

static const char *
text_of(struct making *m, uint64_t word)
{
	return ktr_data_text(m->r->b->log, m->cpu, m->seq, word, m->text);
}

/* Where an event is: the function, or that of the trace point. */
static uintptr_t
raw_function_of(const struct ktr_site *site)
{
	bool function = site->kind == KTR_SITE_ENTRY || site->kind == KTR_SITE_RETURN;

	return function ? function_address(site) : ksym_address(site->func);
}

/* The text that `trace` shows, or that was written to trace_marker. */
static size_t
make_line(struct making *m)
{
	struct sbuf out;
	size_t n;

	if (ktr_site_get(m->e->site) == &tracer_mark) {
		n = ktr_data_bytes(m->r->b->log, m->cpu, m->seq, m->e->args[0], m->text, MARK_MAX);
	} else {
		sbuf_init(&out, m->text, MARK_MAX);
		trace_print_event(&out, m->r, m->e, m->cpu, m->seq);
		n = sbuf_stored(&out);
	}
	memcpy(m->text + n, "\n", 2);
	return n + 2;
}

/* Digits in hexadecimal, with blanks between, become bytes. */
static size_t
make_bytes(struct making *m)
{
	const char *text = text_of(m, m->e->args[1]);
	size_t n = 0;

	for (; text[0] != '\0' && text[1] != '\0'; text += text[2] == ' ' ? 3 : 2) {
		uint64_t byte = 0;

		if (ktr_number(text, 2, 16, &byte) == KTR_NUMBER_OK)
			m->text[n++] = (char)byte;
	}
	return n;
}

static void
make_frames(struct making *m)
{
	const char *text = stack_text(m->r->b->log, m->cpu, m->seq, m->e->args[0], m->text);

	while (*text != '\0')
		text = stack_next(text, &m->frames[m->nframes++]);
}

static struct ktr_value
raw_value_of(struct making *m, const struct field *f)
{
	const struct ktr_site *site = ktr_site_get(m->e->site);
	struct ktr_value v = {.type = f->type, .text = m->text};

	switch (f->from) {
	case ZERO:
		break;
	case SECONDS:
		v.number = m->e->args[3] / NSEC;
		break;
	case NANOSECONDS:
		v.number = m->e->args[3] % NSEC;
		break;
	case PLACE:
		v.number = site == &tracer_mark ? ksym_address("tracing_mark_write")
						: raw_function_of(site);
		break;
	case TEXT:
		v.len = make_line(m);
		break;
	case HEX:
		v.len = make_bytes(m);
		break;
	case FRAMES_N:
		make_frames(m);
		v.number = m->nframes;
		break;
	case FRAMES_ALL: /* the field after it */
		while (m->nframes < FRAMES)
			m->frames[m->nframes++] = UINT64_MAX; /* readers end there */
		v.text = (const char *)m->frames;
		v.len = m->nframes * sizeof(m->frames[0]);
		break;
	default:
		v.number = m->e->args[f->from];
	}
	return v;
}

void
raw_tracer_data(struct raw_data *d, const struct buffer_reader *r, const struct ktr_entry *e,
		unsigned cpu, uint64_t seq)
{
	struct making m = {.r = r, .e = e, .cpu = cpu, .seq = seq};
	const struct event *event = &events[0];
	struct ktr_value v[FIELDS];
	unsigned n = 0;

	for (unsigned i = 1; i < sizeof(events) / sizeof(events[0]); i++)
		if (events[i].site == ktr_site_get(e->site))
			event = &events[i];
	for (; event->fields[n].name != NULL; n++)
		v[n] = raw_value_of(&m, &event->fields[n]);
	raw_put(d, event->site, e, v, n);
}

/* ---- files ---- */

static void
show_format(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	const struct event *event = (const struct event *)arg;
	const struct ktr_format_out to = {event_format_put, out};
	unsigned at = KTR_FORMAT_COMMON;

	ktr_format_begin(&to, event->name, ktr_site_number(event->site) + 1);
	for (const struct field *f = event->fields; f->name != NULL; f++)
		ktr_format_field(&to, f->type, f->name, &at);
	sbuf_printf(out, "\nprint fmt: %s\n", event->print);
}

static void
show_id(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_printf(out, "%u\n", ktr_site_number(((const struct event *)arg)->site) + 1);
}

static void
fill_event(struct vnode *dir)
{
	static const struct tracefs_file files[] = {
	    TRACEFS_TEXT("format", 0440, show_format, NULL, NULL),
	    TRACEFS_TEXT("id", 0440, show_id, NULL, NULL),
	};

	static const struct tracefs_file of_marks[] = {
	    TRACEFS_TEXT("hist", 0440, hist_show, NULL, NULL),
	    TRACEFS_TEXT("trigger", 0640, trigger_show, trigger_store, trigger_clear),
	};

	tracefs_add_all(dir, files, sizeof(files) / sizeof(files[0]), tracefs_arg(dir));
	if (((const struct event *)tracefs_arg(dir))->site == &tracer_mark)
		tracefs_add_all(dir, of_marks, sizeof(of_marks) / sizeof(of_marks[0]),
				(uintptr_t)event_find(EVENT_MARK, "print"));
}

static void
fill_events(struct vnode *dir)
{
	static const struct tracefs_file event_dir = {.mode = 0750, .fill = fill_event};

	for (unsigned i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		tracefs_add(dir, &event_dir, events[i].name, (uintptr_t)&events[i]);
}

const struct tracefs_file raw_tracers_dir = {.name = "ftrace", .mode = 0750, .fill = fill_events};
