/*
 * raw_tracers.c - events/ftrace/: the events that tracers record, with Linux's names and formats
 * (Linux's kernel/trace/trace_entries.h). What else has no event in events/ is recorded as a
 * `print`, with the text that `trace` shows. Locking: as of the reader.
 */
#include "kernel/ftrace/ftrace_private.h"
#include "kernel/lib/ksyms.h"
#include "ktr/word.h"

#define FIELDS 9
#define FRAMES 8 /* that `format` tells; a record may have more */
#define NSEC   1000000000ull

struct field {
	const char *type, *name, *array;
	unsigned size; /* bytes; 0: what is left of the record */
	bool is_signed;
};

#define ADDRESS(n)                               \
	{                                        \
		"unsigned long", n, "", 8, false \
	}
#define U64(n)                         \
	{                              \
		"u64", n, "", 8, false \
	}
#define UINT(n)                                 \
	{                                       \
		"unsigned int", n, "", 4, false \
	}
#define INT(n)                        \
	{                             \
		"int", n, "", 4, true \
	}
#define TEXT(n)                           \
	{                                 \
		"char", n, "[]", 0, false \
	}

static const struct event {
	const struct ktr_site *site;
	const char *name, *print;
	struct field fields[FIELDS];
} events[] = {
    {&tracer_function,
     "function",
     "\" %ps <-- %ps\", (void *)REC->ip, (void *)REC->parent_ip",
     {ADDRESS("ip"), ADDRESS("parent_ip")}},
    {&tracer_graph_entry,
     "funcgraph_entry",
     "\"--> %ps (%d)\", (void *)REC->func, REC->depth",
     {ADDRESS("func"), INT("depth")}},
    {&tracer_graph_return,
     "funcgraph_exit",
     "\"<-- %ps (%d) (start: %llx  end: %llx) over: %d\", (void *)REC->func, REC->depth, "
     "REC->calltime, REC->rettime, REC->depth",
     {ADDRESS("func"), INT("depth"), UINT("overrun"), U64("calltime"), U64("rettime")}},
    {&tracer_mark, "print", "\"%ps: %s\", (void *)REC->ip, REC->buf", {ADDRESS("ip"), TEXT("buf")}},
    {&tracer_raw,
     "raw_data",
     "\"id:%04x %08x\", REC->id, (int)REC->buf[0]",
     {UINT("id"), TEXT("buf")}},
    {&trigger_stack,
     "kernel_stack",
     "\"\\t=> %ps\\n\\t=> %ps\\n\\t=> %ps\\n\" \"\\t=> %ps\\n\\t=> %ps\\n\\t=> %ps\\n\" "
     "\"\\t=> %ps\\n\\t=> %ps\\n\",(void *)REC->caller[0], (void *)REC->caller[1], "
     "(void *)REC->caller[2], (void *)REC->caller[3], (void *)REC->caller[4], "
     "(void *)REC->caller[5], (void *)REC->caller[6], (void *)REC->caller[7]",
     {INT("size"), {"unsigned long", "caller", "[8]", FRAMES * 8, false}}},
    {&hwlat_site,
     "hwlat",
     "\"cnt:%u\\tts:%010llu.%010lu\\tinner:%llu\\touter:%llu\\tcount:%d\\tnmi-ts:%llu\\t"
     "nmi-count:%u\\n\", REC->seqnum, REC->tv_sec, REC->tv_nsec, REC->duration, "
     "REC->outer_duration, REC->count, REC->nmi_total_ts, REC->nmi_count",
     {U64("duration"),
      U64("outer_duration"),
      U64("nmi_total_ts"),
      {"s64", "tv_sec", "", 8, true},
      {"long", "tv_nsec", "", 8, true},
      UINT("nmi_count"),
      UINT("seqnum"),
      UINT("count")}},
};

/* ---- records ---- */

static void
put64(struct raw_data *d, uint64_t value)
{
	raw_put(d, &value, 8);
}

static void
put32(struct raw_data *d, uint64_t value)
{
	raw_put(d, &(uint32_t){(uint32_t)value}, 4);
}

/* What record_stack() has recorded, as addresses. */
static void
put_stack(struct raw_data *d, const char *text)
{
	size_t size_at = d->size;
	uint32_t n = 0;

	put64(d, 0);
	while (*text != '\0') {
		uintptr_t at;

		text = stack_next(text, &at);
		put64(d, at);
		n++;
	}
	memcpy(d->bytes + size_at, &n, sizeof(n));
	while (n++ < FRAMES)
		put64(d, UINT64_MAX); /* readers end there */
}

/* Bytes in hexadecimal, with blanks between. */
static void
put_hex(struct raw_data *d, const char *text)
{
	for (; text[0] != '\0' && text[1] != '\0'; text += text[2] == ' ' ? 3 : 2) {
		uint64_t byte = 0;

		if (ktr_number(text, 2, 16, &byte) == KTR_NUMBER_OK)
			raw_put(d, &(uint8_t){(uint8_t)byte}, 1);
	}
}

static void
put_text(struct raw_data *d, uintptr_t ip, const char *text)
{
	put64(d, ip);
	raw_put(d, text, strnlen(text, KTR_STRING_MAX - 1));
	raw_put(d, "\n", 2);
}

/* Where an event is: the function, or that of the trace point. */
static uintptr_t
place_of(const struct ktr_site *site)
{
	bool function = site->kind == KTR_SITE_ENTRY || site->kind == KTR_SITE_RETURN;

	return function ? function_address(site) : ksym_address(site->func);
}

static void
put_print(struct raw_data *d, const struct buffer_reader *r, const struct ktr_entry *e,
	  unsigned cpu, uint64_t seq)
{
	char text[KTR_STRING_MAX];
	struct sbuf out;

	sbuf_init(&out, text, sizeof(text));
	print_event(&out, r, e, cpu, seq);
	text[sbuf_stored(&out)] = '\0';
	put_text(d, place_of(ktr_site_get(e->site)), text);
}

void
raw_tracer_data(struct raw_data *d, const struct buffer_reader *r, const struct ktr_entry *e,
		unsigned cpu, uint64_t seq)
{
	const struct ktr_site *site = ktr_site_get(e->site);
	const uint64_t *a = e->args;
	char buf[KTR_STRING_MAX];
	bool known = false;

	for (unsigned i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		known |= events[i].site == site;
	raw_begin(d, known ? site : &tracer_mark, e);
	if (site == &tracer_function) {
		put64(d, a[2]);
		put64(d, a[1]);
	} else if (site == &tracer_graph_entry) {
		put64(d, a[2]);
		put32(d, a[1]);
	} else if (site == &tracer_graph_return) {
		put64(d, a[4]);
		put32(d, a[1]);
		put32(d, 0);
		put64(d, a[2]);
		put64(d, a[3]);
	} else if (site == &tracer_mark) {
		put_text(d, ksym_address("tracing_mark_write"),
			 ktr_data_text(r->b->log, cpu, seq, a[0], buf));
	} else if (site == &tracer_raw) {
		put32(d, a[0]);
		put_hex(d, ktr_data_text(r->b->log, cpu, seq, a[1], buf));
	} else if (site == &trigger_stack) {
		put_stack(d, ktr_data_text(r->b->log, cpu, seq, a[0], buf));
	} else if (site == &hwlat_site) {
		put64(d, a[1]);
		put64(d, a[2]);
		put64(d, 0);
		put64(d, a[3] / NSEC);
		put64(d, a[3] % NSEC);
		put32(d, 0);
		put32(d, a[0]);
		put32(d, a[4]);
	} else {
		put_print(d, r, e, cpu, seq);
	}
}

/* ---- files ---- */

static void
put_bytes(void *out, const char *text, size_t n)
{
	sbuf_write(out, text, n);
}

static void
show_format(uintptr_t arg, struct sbuf *out)
{
	const struct event *event = (const struct event *)arg;
	const struct ktr_format_out to = {put_bytes, out};
	unsigned at = KTR_FORMAT_COMMON;

	ktr_format_begin(&to, event->name, ktr_site_number(event->site) + 1);
	for (const struct field *f = event->fields; f->name != NULL; f++) {
		unsigned align = f->size == 0 ? 1 : f->size > 8 ? 8 : f->size;

		at = (at + align - 1) & ~(align - 1);
		ktr_format_field(&to, f->type, f->name, f->array, &at, f->size, f->is_signed);
	}
	sbuf_printf(out, "\nprint fmt: %s\n", event->print);
}

static void
show_id(uintptr_t arg, struct sbuf *out)
{
	sbuf_printf(out, "%u\n", ktr_site_number(((const struct event *)arg)->site) + 1);
}

static void
fill_event(struct vnode *dir)
{
	static const struct tracefs_file files[] = {
	    {.name = "format", .mode = 0440, .show = show_format},
	    {.name = "id", .mode = 0440, .show = show_id},
	};

	static const struct tracefs_file of_marks[] = {
	    {.name = "hist", .mode = 0440, .show = hist_show},
	    {.name = "trigger",
	     .mode = 0640,
	     .show = trigger_show,
	     .store = trigger_store,
	     .clear = trigger_clear},
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
