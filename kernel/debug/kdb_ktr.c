/*
 * kdb_ktr.c - the commands show ktr, search and mark: the events of all CPUs, merged by time, read
 * straight from the rings.
 *
 * No locks: the machine is stopped. ktr_ring_read() rejects an entry that is not complete.
 */
#include "kernel/debug/kdb_filter.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/sync/pcpu.h"
#include "ktr/class.h"
#include "ktr/control.h"
#include "ktr/event.h"
#include "ktr/ring.h"
#include "ktr/site.h"

#define EVENT_TEXT 384
#define POLL_EVERY 1024 /* poll for ^C once in so many events */

/* A position among the events in one CPU's ring. Parts of long data are passed over. */
struct cursor {
	uint64_t tail, head; /* events that the ring holds */
	uint64_t seq;        /* position */
	bool valid;          /* entry holds event seq */
	struct ktr_entry entry;
};

static struct cursor cursors[MAX_CPUS]; /* static: the stack may be nearly full */

/* A position that names one event, if `set`. */
struct place {
	bool set;
	unsigned cpu;
	uint64_t seq, ticks;
};

static struct place marked, found;
static struct kdb_filter last_filter;

static void
kdb_events_step(unsigned cpu, bool newer)
{
	static unsigned steps;
	struct cursor *c = &cursors[cpu];

	if (++steps % POLL_EVERY == 0 && kdb.running)
		kdb_poll();
	c->valid = false;
	while (!c->valid && (newer ? c->seq + 1 < c->head : c->seq > c->tail)) {
		c->seq = newer ? c->seq + 1 : c->seq - 1;
		c->valid = ktr_ring_read(cpu, c->seq, &c->entry) == KTR_READ_OK &&
			   !ktr_entry_is_part(&c->entry);
	}
}

/* Moves all cursors to their newest events, or to their oldest. */
static void
kdb_events_start(bool oldest)
{
	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++) {
		struct cursor *c = &cursors[cpu];

		*c = (struct cursor){0};
		if (ktr_ring_window(cpu, &c->tail, &c->head)) {
			c->seq = oldest ? c->tail - 1 : c->head;
			kdb_events_step(cpu, oldest);
		}
	}
}

/* Is an event newer than another? At equal times, the event of the lower CPU counts as newer. */
static bool
is_newer(uint64_t ticks, unsigned cpu, uint64_t than_ticks, unsigned than_cpu)
{
	return ticks > than_ticks || (ticks == than_ticks && cpu < than_cpu);
}

/* Moves all cursors to p or the next older event; with `newer`, to the next newer one. */
static void
start_at(const struct place *p, bool newer)
{
	kdb_events_start(false);
	for (unsigned cpu = 0; cpu < MAX_CPUS && !kdb.quit; cpu++) {
		struct cursor *c = &cursors[cpu];

		while (c->valid && !kdb.quit &&
		       (cpu == p->cpu ? c->seq > p->seq
				      : is_newer(c->entry.ticks, cpu, p->ticks, p->cpu)))
			kdb_events_step(cpu, false);
		if (!newer)
			continue;
		if (!c->valid)
			c->seq = c->tail - 1; /* the next step reaches the first of all */
		kdb_events_step(cpu, true);
	}
}

/* The CPU whose cursor has the newest (or oldest) event. KDB_NO_CPU: no cursor has one. */
static int
kdb_extreme_cpu(bool oldest)
{
	int best = KDB_NO_CPU;

	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
		if (cursors[cpu].valid &&
		    (best == KDB_NO_CPU ||
		     is_newer(cursors[cpu].entry.ticks, cpu, cursors[best].entry.ticks,
			      (unsigned)best) != oldest))
			best = (int)cpu;
	return best;
}

struct style {
	bool time, place, relative;
	uint64_t zero; /* the origin of relative times, in ticks */
};

/*
 * Converts as ktrdump does, exact to the nanosecond. clock_ns() is faster, and too low by up to 1
 * ns, and by 1 ns more for each 2^32 ticks since the boot. While the clock's rate is unknown,
 * returns ticks.
 */
static uint64_t
ticks_to_ns(uint64_t ticks)
{
	uint64_t boot = clock_boot_ticks(), hz = clock_hz();
	uint64_t t = ticks > boot ? ticks - boot : 0;

	return hz != 0 ? ktr_ticks_to_ns(t, hz) : t;
}

static void
print_time(uint64_t ticks, const struct style *style)
{
	uint64_t ns = ticks_to_ns(ticks), zero = 0;
	const char *sign = "";

	if (style->relative) {
		zero = ticks_to_ns(style->zero);
		sign = ns < zero ? "-" : "+";
	}
	ns = ns < zero ? zero - ns : ns - zero;
	if (clock_hz() == 0)
		kdb_printf(" %s%lu ticks", sign, ns);
	else
		kdb_printf(" %s%lu.%09lu", sign, ns / 1000000000, ns % 1000000000);
}

static const char *
event_text(unsigned cpu)
{
	static char text[EVENT_TEXT];
	const struct cursor *c = &cursors[cpu];
	const struct ktr_entry *e = &c->entry;
	const struct ktr_site *site = ktr_site_get(e->site);

	if (site == NULL)
		snprintf(text, sizeof(text), "(no site %u)", e->site);
	else
		ktr_entry_text(text, sizeof(text), site, e, cpu, c->seq);
	return printk_hide_controls(text);
}

static void
kdb_print_event(unsigned cpu, const struct style *style)
{
	const struct cursor *c = &cursors[cpu];
	const struct ktr_site *site = ktr_site_get(c->entry.site);

	kdb_printf("%lu (%u:cpu%u)", c->seq, c->entry.tid, cpu);
	if (style->time || style->relative)
		print_time(c->entry.ticks, style);
	if (style->place && site != NULL)
		kdb_printf(" %s.%u", site->file, site->line);
	if (marked.set && marked.cpu == cpu && marked.seq == c->seq)
		kdb_printf(" [mark]");
	kdb_printf(": %s\n", event_text(cpu));
}

static bool
kdb_event_is_wanted(unsigned cpu, const struct kdb_filter *f)
{
	const struct ktr_entry *e = &cursors[cpu].entry;
	const struct ktr_site *site = ktr_site_get(e->site);

	return kdb_filter_match(f, cpu, e->tid, site != NULL ? site->classes : UINT64_MAX,
				f->pattern[0] != '\0' ? event_text(cpu) : "");
}

static void
set_place(struct place *p, unsigned cpu)
{
	*p = (struct place){true, cpu, cursors[cpu].seq, cursors[cpu].entry.ticks};
}

/* Is the event of p still in its ring? If not, prints an error line. */
static bool
still_there(struct place *p)
{
	struct ktr_entry e;

	if (p->set && ktr_ring_read(p->cpu, p->seq, &e) != KTR_READ_OK) {
		kdb_printf("event %lu of cpu %u has been overwritten\n", p->seq, p->cpu);
		p->set = false;
	}
	return p->set;
}

static bool
show_modifiers(const char *mod, struct style *style)
{
	for (; mod != NULL && *mod != '\0'; mod++) {
		if (*mod == 'v') {
			style->time = style->place = true;
		} else if (*mod == 'V') {
			style->time = true;
		} else if (*mod == 'r') {
			style->relative = true;
		} else if (*mod == 'a') {
			kdb.pager = false;
		} else if (*mod != '/') {
			kdb_printf("show ktr: modifier \"%c\": expected v, V, r or a\n", *mod);
			return false;
		}
	}
	return true;
}

/* Says why nothing is shown. any: there are events. */
static void
say_nothing(bool any)
{
	char mask[256];

	ktr_mask_print(ktr_mask_get(), mask, sizeof(mask));
	if (any)
		kdb_printf("no event is what was asked for\n");
	else
		kdb_printf("no events: debug.ktr.mask is %s\n", mask);
}

static void
kdb_show_events(const struct kdb_filter *f, struct style *style)
{
	uint64_t left = f->count, begin = 0;
	int cpu = kdb_extreme_cpu(f->newer);
	bool first = true, any = cpu != KDB_NO_CPU;

	if (any)
		begin = ticks_to_ns(cursors[cpu].entry.ticks);
	while (left > 0 && !kdb.quit && (cpu = kdb_extreme_cpu(f->newer)) != KDB_NO_CPU) {
		uint64_t ns = ticks_to_ns(cursors[cpu].entry.ticks);

		if ((f->newer ? ns - begin : begin - ns) / 1000 >= f->us)
			break;
		if (kdb_event_is_wanted((unsigned)cpu, f)) {
			if (first) {
				style->zero = marked.set ? marked.ticks : cursors[cpu].entry.ticks;
				set_place(&found, (unsigned)cpu);
			}
			first = false;
			kdb_print_event((unsigned)cpu, style);
			left--;
		}
		kdb_events_step((unsigned)cpu, f->newer);
	}
	if (first && !kdb.quit)
		say_nothing(any);
}

void
kdb_command_show_ktr(char *mod, char *args)
{
	struct style style = {0};
	struct kdb_filter f;
	struct place *from;

	while (*args == ' ')
		args++;
	if (strcmp(args, "stats") == 0) {
		kdb_sysctl_show("debug.ktr.stats");
		return;
	}
	if (!show_modifiers(mod, &style) || !kdb_filter_parse("show ktr", args, &f))
		return;
	if (f.cpu >= 0 && pcpus[f.cpu] == NULL) {
		kdb_printf("show ktr: no cpu %d; there are 0 to %u\n", f.cpu, ncpus - 1);
		return;
	}
	from = found.set ? &found : &marked;
	if (f.from_place && still_there(from))
		start_at(from, f.newer);
	else
		kdb_events_start(f.newer);
	kdb_show_events(&f, &style);
	kdb_printf("--- End of trace buffer ---\n");
}

void
kdb_command_search(char *mod, char *args)
{
	const struct style style = {.time = true};
	struct kdb_filter f = last_filter;
	struct place *from;
	int cpu;

	if (!kdb_filter_parse("search", args, &f))
		return;
	if (f.cpu < 0 && f.classes == UINT64_MAX && f.thread == KDB_FILTER_ANY &&
	    f.pattern[0] == '\0' && last_filter.classes != 0) {
		last_filter.newer = f.newer;
		f = last_filter;
	}
	last_filter = f;
	from = found.set ? &found : &marked;
	if (still_there(from)) {
		start_at(from, f.newer);
		if (!f.newer)
			kdb_events_step(from->cpu, false); /* skip the event itself */
	} else {
		kdb_events_start(false);
	}
	while (!kdb.quit && (cpu = kdb_extreme_cpu(f.newer)) != KDB_NO_CPU) {
		if (kdb_event_is_wanted((unsigned)cpu, &f)) {
			set_place(&found, (unsigned)cpu);
			kdb_print_event((unsigned)cpu, &style);
			return;
		}
		kdb_events_step((unsigned)cpu, f.newer);
	}
	kdb_printf("search: no %s event matches\n", f.newer ? "newer" : "older");
}

/* Parses "CPU:SEQ". False: an error line was printed. */
static bool
parse_place(char *word, struct place *p)
{
	char *colon = strchr(word, ':');
	struct ktr_entry e;
	uint64_t cpu, seq;

	if (colon != NULL)
		*colon++ = '\0';
	if (colon == NULL || !kdb_number(word, &cpu) || !kdb_number(colon, &seq) ||
	    cpu >= MAX_CPUS) {
		kdb_printf("mark: \"%s\": expected CPU:SEQ, as 1:95, or off\n", word);
		return false;
	}
	if (ktr_ring_read((unsigned)cpu, seq, &e) != KTR_READ_OK) {
		kdb_printf("mark: cpu %lu has no event %lu\n", cpu, seq);
		return false;
	}
	*p = (struct place){true, (unsigned)cpu, seq, e.ticks};
	return true;
}

void
kdb_command_mark(char *mod, char *args)
{
	char *word = kdb_word(&args);

	if (word != NULL && strcmp(word, "off") == 0) {
		marked.set = false;
		return;
	}
	if (word != NULL && !parse_place(word, &marked))
		return;
	if (word == NULL) {
		if (!still_there(&found)) {
			kdb_printf("mark: first search for an event, or give CPU:SEQ\n");
			return;
		}
		marked = found;
	}
	found = marked;
	kdb_printf("mark at %u:%lu\n", marked.cpu, marked.seq);
}

void
kdb_print_events(unsigned count)
{
	const struct style style = {.time = true};
	uint64_t n = 0;
	int cpu;

	if (count == 0)
		return;
	kdb_events_start(false);
	for (unsigned i = 0; i < MAX_CPUS; i++) {
		struct cursor *c = &cursors[i];
		unsigned whole = 0;

		for (; c->valid && whole < count; whole++)
			kdb_events_step(i, false);
		if (whole == 0)
			continue;
		/* The loop went one event too far. */
		if (!c->valid)
			c->seq = c->tail - 1;
		kdb_events_step(i, true);
		n += whole;
	}
	if (n == 0) {
		say_nothing(false);
		return;
	}
	kdb_printf("last %lu events:\n", n);
	for (; n > 0 && (cpu = kdb_extreme_cpu(true)) != KDB_NO_CPU; n--) {
		kdb_print_event((unsigned)cpu, &style);
		kdb_events_step((unsigned)cpu, true);
	}
}
