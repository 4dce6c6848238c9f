/*
 * kdb_ktr.c - show ktr: the events of all CPUs merged by time, newest first, straight from the
 * rings. No locks: the machine is stopped, and ktr_ring_read() tells a whole entry from one in the
 * making.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/debug/kdb_private.h"
#include "kernel/lib/string.h"
#include "kernel/sched/clock.h"
#include "kernel/sched/pcpu.h"
#include "ktr/control.h"
#include "ktr/event.h"
#include "ktr/ring.h"
#include "ktr/site.h"

#define EVENT_TEXT   384
#define PANIC_EVENTS 64 /* at most; more than a screen helps nobody */

/* Going back through one CPU's ring. */
struct kdb_cursor {
	uint64_t seq, tail; /* [tail, seq) is still to be looked at; the newest of it is in entry */
	bool valid;         /* entry is whole, and has number seq */
	struct ktr_entry entry;
};

static struct kdb_cursor cursors[MAX_CPUS]; /* static: too large for a stack that may be full */

/* Steps to the next older whole entry of the CPU. */
static void
kdb_cursor_step(unsigned cpu)
{
	struct kdb_cursor *c = &cursors[cpu];

	c->valid = false;
	while (c->seq > c->tail && !c->valid) {
		c->seq--;
		c->valid = ktr_ring_read(cpu, c->seq, &c->entry) == KTR_READ_OK;
	}
}

/* only: one CPU, or KDB_NO_CPU for all. */
static void
kdb_cursor_start(int only)
{
	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++) {
		struct kdb_cursor *c = &cursors[cpu];

		c->valid = false;
		c->seq = c->tail = 0;
		if ((only == KDB_NO_CPU || only == (int)cpu) &&
		    ktr_ring_window(cpu, &c->tail, &c->seq))
			kdb_cursor_step(cpu);
	}
}

/* CPU with the newest event that was not taken yet, KDB_NO_CPU at the end. */
static int
kdb_cursor_newest(void)
{
	int best = KDB_NO_CPU;

	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
		if (cursors[cpu].valid &&
		    (best == KDB_NO_CPU || cursors[cpu].entry.ticks > cursors[best].entry.ticks))
			best = (int)cpu;
	return best;
}

struct kdb_event_style {
	bool time, place;
};

static void
kdb_print_event(unsigned cpu, uint64_t seq, const struct ktr_entry *e, struct kdb_event_style style)
{
	static char text[EVENT_TEXT];
	const struct ktr_site *site = ktr_site_get(e->site);
	unsigned long long ns = clock_ticks_to_ns(e->ticks);

	kdb_printf("%llu (%u:cpu%u)", (unsigned long long)seq, e->tid, cpu);
	if (style.time)
		kdb_printf(" %llu.%09llu", ns / 1000000000, ns % 1000000000);
	if (site == NULL) {
		kdb_printf(": (no site %u)\n", e->site);
		return;
	}
	if (style.place)
		kdb_printf(" %s.%u", site->file, site->line);
	ktr_entry_text(text, sizeof(text), site, e);
	kdb_printf(": %s\n", text);
}

void
kdb_print_events(unsigned count)
{
	static struct {
		unsigned cpu;
		uint64_t seq;
		struct ktr_entry entry;
	} last[PANIC_EVENTS];
	unsigned n = 0;
	int cpu;

	kdb_cursor_start(KDB_NO_CPU);
	while (n < count && n < PANIC_EVENTS && (cpu = kdb_cursor_newest()) != KDB_NO_CPU) {
		last[n].cpu = (unsigned)cpu;
		last[n].seq = cursors[cpu].seq;
		last[n++].entry = cursors[cpu].entry;
		kdb_cursor_step((unsigned)cpu);
	}
	if (n == 0) {
		kdb_printf("no events: debug.ktr.mask was clear\n");
		return;
	}
	kdb_printf("last %u events:\n", n);
	while (n-- > 0)
		kdb_print_event(last[n].cpu, last[n].seq, &last[n].entry,
				(struct kdb_event_style){.time = true});
}

struct kdb_show_ktr {
	struct kdb_event_style style;
	int cpu;
	uint64_t count;
};

/* "-c 1" or "-c1". False: an error line was printed. */
static bool
kdb_option(char *word, char **args, uint64_t *v)
{
	char *value = word[2] != '\0' ? word + 2 : kdb_word(args);

	if (value == NULL || !kdb_number(value, v)) {
		kdb_printf("show ktr: %.2s \"%s\": expected a number\n", word,
			   value != NULL ? value : "");
		return false;
	}
	return true;
}

static bool
kdb_show_ktr_args(char *mod, char *args, struct kdb_show_ktr *o)
{
	char *word;
	uint64_t v;

	for (; mod != NULL && *mod != '\0'; mod++) {
		if (*mod == 'v') {
			o->style.time = o->style.place = true;
		} else if (*mod == 'V') {
			o->style.time = true;
		} else if (*mod == 'a') {
			kdb.pager = false;
		} else if (*mod != '/') {
			kdb_printf("show ktr: modifier \"%c\": expected v, V or a\n", *mod);
			return false;
		}
	}
	while ((word = kdb_word(&args)) != NULL) {
		if (strncmp(word, "-c", 2) == 0) {
			if (!kdb_option(word, &args, &v))
				return false;
			if (v >= MAX_CPUS || pcpus[v] == NULL) {
				kdb_printf("show ktr: no cpu %llu; there are 0 to %u\n",
					   (unsigned long long)v, ncpus - 1);
				return false;
			}
			o->cpu = (int)v;
		} else if (strncmp(word, "-n", 2) == 0) {
			if (!kdb_option(word, &args, &o->count))
				return false;
		} else {
			kdb_printf("show ktr: \"%s\": expected -c CPU or -n COUNT\n", word);
			return false;
		}
	}
	return true;
}

void
kdb_command_show_ktr(char *mod, char *args)
{
	struct kdb_show_ktr o = {.cpu = KDB_NO_CPU, .count = UINT64_MAX};
	int cpu;

	if (!kdb_show_ktr_args(mod, args, &o))
		return;
	kdb_cursor_start(o.cpu);
	for (; o.count > 0 && !kdb.quit && (cpu = kdb_cursor_newest()) != KDB_NO_CPU; o.count--) {
		kdb_print_event((unsigned)cpu, cursors[cpu].seq, &cursors[cpu].entry, o.style);
		kdb_cursor_step((unsigned)cpu);
	}
	kdb_printf("--- End of trace buffer ---\n");
}

void
kdb_command_show_ktr_stats(void)
{
	struct ktr_stats s;

	kdb_printf("%3s %12s %12s %12s %12s %6s %12s\n", "cpu", "recorded", "delivered", "resident",
		   "overwritten", "torn", "suppressed");
	for (unsigned cpu = 0; cpu < MAX_CPUS && !kdb.quit; cpu++)
		if (ktr_stats_get(cpu, &s))
			kdb_printf("%3u %12llu %12llu %12llu %12llu %6llu %12llu\n", cpu,
				   (unsigned long long)s.recorded, (unsigned long long)s.delivered,
				   (unsigned long long)s.resident,
				   (unsigned long long)s.overwritten, (unsigned long long)s.torn,
				   (unsigned long long)s.suppressed);
}
