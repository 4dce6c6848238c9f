/*
 * raw.c - trace_pipe_raw: pages of events in the layout of events/header_page, each event in that
 * of its `format` (Linux's include/linux/ring_buffer.h). Locking: buffer.h.
 */
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"
#include "ktr/dynamic.h"
#include "ktr/event_format.h"
#include "ktr/intern.h"
#include "ktr/param.h"
#include "ktr/ring.h"
#include "ktr/wire.h"
#include "ktr/word.h"

#define HEAD  16u /* bytes: the first event's time, and how many bytes follow */
#define LOST  (1ull << 31 | 1ull << 30) /* among these: events are missing, and so many */
#define ROOM  (RAW_PAGE - HEAD - 8)     /* after the data: how many are missing */
#define TEXTS KTR_PARAM_MAX
#define KINDS 256u /* at most half of them are used */

/* What is known of kinds of events; ftrace_lock. */
static struct kind {
	const struct ktr_site *site;
	bool event;   /* it has a folder in events/ */
	bool is_call; /* of one system call */
	/* How many parameters there are, and how many of the first ones are places of a probe or
	 * the number of a system call. */
	unsigned nparams, places;
	uint64_t call;
	struct ktr_param params[EVENT_RECORD];
	enum ktr_field fields[EVENT_RECORD];
} kinds[KINDS];

static unsigned kinds_used;
static bool kinds_change; /* some kinds are of sites that are made at run time */

/* Finds out what is known of a site's event. */
static void
kind_learn(struct kind *k, const struct ktr_site *site)
{
	char fmt[EVENT_FORMAT];

	*k = (struct kind){.site = site, .event = event_system(site) != NULL};
	if (k->event)
		k->nparams = event_record(site, fmt, k->params);
	k->is_call = event_is_call(site);
	k->places = k->is_call ? 1 : kprobe_event_places(site);
	k->call = k->is_call ? event_call_number(site) : 0;
	for (unsigned i = 0; i < k->nparams; i++)
		k->fields[i] = ktr_param_field(&k->params[i]);
	kinds_change |= site >= ktr_dynamic_sites && site < ktr_dynamic_sites + KTR_DYNAMIC_SITES;
}

static void
kinds_forget(void)
{
	memset(kinds, 0, sizeof(kinds));
	kinds_used = 0;
	kinds_change = false;
}

static const struct kind *
raw_kind(const struct ktr_site *site)
{
	unsigned n = ktr_site_number(site) % KINDS;

	for (; kinds[n].site != NULL; n = (n + 1) % KINDS)
		if (kinds[n].site == site)
			return &kinds[n];
	if (kinds_used == KINDS / 2) {
		kinds_forget();
		n = ktr_site_number(site) % KINDS;
	}
	kinds_used++;
	kind_learn(&kinds[n], site);
	return &kinds[n];
}

void
raw_put(struct raw_data *d, const struct ktr_site *site, const struct ktr_entry *e,
	const struct ktr_value *v, unsigned n)
{
	char name[KTR_THREAD_NAME];

	d->size = ktr_record_put(d->bytes, ktr_site_number(site) + 1, print_thread(e, name), v, n);
}

/* A number that begins a text. */
static uint64_t
raw_read_number(const char *text, unsigned base)
{
	uint64_t v;
	size_t n = 0;

	while (text[n] != '\0' && text[n] != ' ')
		n++;
	size_t hex = n > 2 && text[1] == 'x' ? 2 : 0;

	return ktr_number(text + hex, n - hex, base, &v) == KTR_NUMBER_OK ? v : 0;
}

/* Reads the two numbers of a text that was printed by the format `last` (ktr/sdt.h). The second
 * one is at the end, after a blank or a =. */
static void
read_last(const char *text, const char *last, uint64_t v[2])
{
	unsigned base = strstr(last, "lx") != NULL ? 16 : 10;
	size_t at = strlen(text);

	while (at > 0 && text[at - 1] != ' ' && text[at - 1] != '=')
		at--;
	v[0] = raw_read_number(text, base);
	v[1] = raw_read_number(text + at, base);
}

void
raw_last(const struct ktr_log *log, const struct ktr_entry *e, unsigned cpu, uint64_t seq,
	 uint64_t v[2])
{
	char text[KTR_STRING_MAX];

	read_last(ktr_data_text(log, cpu, seq, e->args[5], text), ktr_site_get(e->site)->sdt->last,
		  v);
}

/* Makes the data of an event that has parameters. */
static void
event_data(struct raw_data *d, const struct kind *k, const struct ktr_log *log,
	   const struct ktr_entry *e, unsigned cpu, uint64_t seq)
{
	const struct ktr_param *params = k->params;
	char texts[TEXTS + 2][KTR_STRING_MAX];
	struct ktr_value values[EVENT_RECORD];
	uint64_t v[EVENT_RECORD] = {0}, at[2];
	unsigned n = k->nparams;

	memcpy(v + k->places, e->args, sizeof(e->args));
	if (k->is_call) {
		v[0] = k->call;
	} else if (k->places > 0) {
		kprobes_places(k->site, e, at);
		memcpy(v, at, k->places * sizeof(at[0]));
	} else if (n == KTR_SDT_ARGS) {
		raw_last(log, e, cpu, seq, &v[5]);
	}
	for (unsigned i = 0; i < n; i++) {
		const char *text;

		values[i] = (struct ktr_value){.type = k->fields[i],
					       .number = ktr_param_value(&params[i], v[i])};
		if (!params[i].string)
			continue;
		text = ktr_data_is_word(v[i]) ? ktr_data_text(log, cpu, seq, v[i], texts[i])
					      : ktr_string_text(v[i], texts[i]);
		values[i].text = text != NULL ? text : "(null)";
		values[i].len = strnlen(values[i].text, KTR_STRING_MAX - 1);
	}
	raw_put(d, k->site, e, values, n);
}

/* False: the site is gone. */
static bool
make_data(struct raw_data *d, const struct buffer_reader *r, const struct ktr_entry *e,
	  unsigned cpu, uint64_t seq)
{
	const struct ktr_site *site = ktr_site_get(e->site);

	if (site == NULL)
		return false;
	const struct kind *k = raw_kind(site);

	if (k->event)
		event_data(d, k, r->b->log, e, cpu, seq);
	else
		raw_tracer_data(d, r, e, cpu, seq);
	return true;
}

bool
raw_page(uint8_t page[RAW_PAGE], struct buffer_reader *r)
{
	uint64_t first_ns = 0, last_ns = 0, missing = 0, lost, commit;
	size_t used = 0;
	const struct ktr_entry *e;
	struct raw_data d;
	unsigned cpu;

	memset(page, 0, RAW_PAGE);
	if (kinds_change) /* since the last page, events may have been removed */
		kinds_forget();
	while ((e = buffer_peek(r, &cpu, &lost)) != NULL) {
		uint64_t ns = clock_ns_of(e->ticks), seq = r->cursors[cpu].seq;

		if (!make_data(&d, r, e, cpu, seq)) {
			buffer_take(r, cpu, seq);
			missing += lost;
			continue;
		}
		/* What is lost is told at the beginning of a page. */
		if (used > 0 && (lost > 0 || used + KTR_FORMAT_RECORD_HEAD + d.size > ROOM))
			break;
		if (used == 0) {
			first_ns = last_ns = ns;
			missing += lost;
		}
		used += ktr_format_record_head(page + HEAD + used, ns - last_ns, d.size);
		memcpy(page + HEAD + used, d.bytes, d.size);
		used += d.size;
		last_ns = ns;
		buffer_take(r, cpu, seq);
	}
	commit = used | (missing > 0 ? LOST : 0);
	memcpy(page, &first_ns, 8);
	memcpy(page + 8, &commit, 8);
	if (missing > 0)
		memcpy(page + HEAD + used, &missing, 8);
	return used > 0;
}

static void
header_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_puts(out, arg == 0 ? ktr_format_header_page : ktr_format_header_event);
}

void
raw_fill(struct vnode *dir)
{
	static const struct tracefs_file header = {.mode = 0440, .show = header_show};

	tracefs_add(dir, &header, "header_page", 0);
	tracefs_add(dir, &header, "header_event", 1);
}
