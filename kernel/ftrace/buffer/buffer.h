/*
 * buffer.h - the entries of an instance's log, as the files show them.
 *
 * In: the rings of a log (ktr/ring.h), which hooks fill at any time. Out: the text of `trace`,
 * trace_pipe and `snapshot`; pages of trace_pipe_raw; the trace on the console.
 *
 *	ring of each CPU ──► buffer_peek(): the oldest ──┬─► print_entry() ──► a line
 *	                                                 └─► raw_page() ──► a page of records
 *
 * Locking: a reader holds ftrace_lock where it consumes, and the control lock while it prints, so
 * that no site goes away. Rings are read without a lock: an entry that is overwritten meanwhile is
 * counted as lost. snapshot.c has a lock of its own, since hooks take snapshots.
 *
 * Files, in reading order: buffer.c (the readers, and the files), print.c (lines), raw.c (pages),
 * count.c, raw_tracers.c (events/ftrace), marker.c (trace_marker), percent.c, snapshot.c,
 * dump.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/ftrace/tracefs.h"
#include "kernel/lib/sbuf.h"
#include "kernel/sync/pcpu.h"
#include "ktr/entry.h"
#include "ktr/event_format.h"
#include "ktr/intern.h"
#include "ktr/param.h"
#include "ktr/ring.h"
#include "ktr/site.h"

struct instance;
struct latency;

/* ---- buffer.c: the entries of the log, in the order of their times ---- */

/* The entries of a log, as files show them. */
struct buffer {
	struct ktr_log *log;
	struct {
		uint64_t from;    /* atomic: the first that is shown: buffer_show_from() */
		uint64_t cleared; /* the first after the last clearing */
		uint64_t lost;    /* since then: overwritten before they were consumed */
		uint64_t dropped; /* … not recorded without the option overwrite; atomic */
	} shown[MAX_CPUS];
	unsigned rings; /* how often the log got new rings */
};

#define BUFFER_ALL UINT32_MAX /* instead of a CPU */

/* Of two entries' numbers the later one. */
static inline uint64_t
buffer_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t
buffer_from(const struct buffer *b, unsigned cpu)
{
	return __atomic_load_n(&b->shown[cpu].from, __ATOMIC_RELAXED);
}

/* Reads entries, the oldest first. */
struct buffer_reader {
	const struct instance *i; /* whose log it is */
	struct buffer *b;
	unsigned cpu;              /* that CPU's only; or BUFFER_ALL */
	bool consume;              /* what is read is read for all (trace_pipe) */
	bool raw;                  /* … in pages instead of lines (trace_pipe_raw) */
	bool dump;                 /* for print.c: events are for the messages, each in a line */
	bool annotates, annotated; /* for print.c: the option annotate; an entry was printed */
	uint64_t started;          /* … CPUs of which one was */
	unsigned rings;            /* b->rings of the cursors */
	bool keeps_last[MAX_CPUS]; /* for print.c: last[] is known */
	uint32_t last[MAX_CPUS];   /* … the thread whose calls were printed last */
	struct buffer_cursor {
		uint64_t seq, end; /* the next to be read; where to stop */
		uint64_t lost;     /* entries before seq that were overwritten */
		bool valid;        /* entry is the one before seq */
		struct ktr_entry entry;
	} cursors[MAX_CPUS];
};

void buffer_open(struct buffer_reader *r, const struct instance *of, struct buffer *b, unsigned cpu,
		 bool consume);
/*
 * Returns the oldest entry that was not taken yet, and its CPU; NULL if there is none now. *lost
 * becomes how many entries of that CPU were lost before it. ftrace_lock held if r->consume; control
 * lock held.
 */
const struct ktr_entry *buffer_peek(struct buffer_reader *r, unsigned *cpu, uint64_t *lost);
/* Takes the entries of that CPU up to number seq. Locks as for buffer_peek(). */
void buffer_take(struct buffer_reader *r, unsigned cpu, uint64_t seq);
/* Finds the entry after the one that was peeked, of the same CPU, and its number. False if it is
 * not known. Locks as for buffer_peek(). */
bool buffer_peek_next(const struct buffer_reader *r, unsigned cpu, struct ktr_entry *entry,
		      uint64_t *seq);
/* Only entries from seq on are shown. False: that is so already. Any context, for snapshots. */
static inline bool
buffer_show_from(struct buffer *b, unsigned cpu, uint64_t seq)
{
	uint64_t from = __atomic_load_n(&b->shown[cpu].from, __ATOMIC_RELAXED);

	while (from < seq)
		if (__atomic_compare_exchange_n(&b->shown[cpu].from, &from, seq, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	return false;
}
/* `> trace`: what is there now is not shown any more. */
void buffer_clear(struct buffer *b, unsigned cpu);
/* The log has new rings. */
void buffer_forget(struct buffer *b);
extern const struct vnode_ops trace_ops, trace_pipe_ops, trace_pipe_raw_ops, trace_marker_ops;
extern const struct vnode_ops trace_marker_raw_ops;
extern const struct vnode_ops snapshot_ops;
#define MARK_MAX 1024u /* bytes of a text in trace_marker; the rest is cut, as in Linux */
/* Where the text of the event `print` that fires was written; ftrace_lock. */
extern struct instance *marker_instance;

/* ---- count.c ---- */

/* Entries that `trace` would show; those written since it was cleared; and of these, those that
 * were overwritten before anybody consumed them. */
struct buffer_counts {
	uint64_t entries, written, overrun;
};

/* All of one moment, for each CPU. Control lock held, as for the next. */
struct buffer_counts buffer_count(const struct buffer *b, unsigned cpu);
/* When the first entry of a CPU that is shown was recorded; 0: there is none. */
uint64_t buffer_oldest_ns(const struct buffer *b, unsigned cpu);

/* ---- print.c: an entry as Linux prints it ---- */

/* The head of `trace`. Control lock held, as for the next. */
void print_head(struct sbuf *out, const struct buffer_reader *r);
/* Prints an entry: one line, or several. Takes it, and also the next one if that is the return
 * of a function that called none. False if there is no entry. */
bool print_entry(struct sbuf *out, struct buffer_reader *r);
/* The event itself: name and parameters. */
void trace_print_event(struct sbuf *out, const struct buffer_reader *r, const struct ktr_entry *e,
		       unsigned cpu, uint64_t seq);
/* A thread's name and number as Linux has them: idle threads are 0. */
uint32_t print_thread(const struct ktr_entry *e, char name[KTR_THREAD_NAME]);
/* The mark of a time of calls: $ @ * # ! + or a blank. */
char print_mark(uint64_t ns);
/* A time of calls: "  12.019 us", as in Linux's trace_print_graph_duration(). */
void print_duration(struct sbuf *out, uint64_t ns);

/* ---- raw.c ---- */

#define RAW_PAGE 4096u

/* An event's data. */
struct raw_data {
	uint8_t
	    bytes[KTR_FORMAT_COMMON + (KTR_SDT_ARGS + 2) * 8 + KTR_PARAM_MAX * KTR_STRING_MAX + 12];
	size_t size;
};

/* The last two of the seven parameters of a probe of SDT, which the log keeps as one text. */
void raw_last(const struct ktr_log *log, const struct ktr_entry *e, unsigned cpu, uint64_t seq,
	      uint64_t v[2]);
/* Makes the data of an entry, whose event is that of the site. */
void raw_put(struct raw_data *d, const struct ktr_site *site, const struct ktr_entry *e,
	     const struct ktr_value *v, unsigned n);

/* Fills a page with the reader's next events that have a format. False: none. Locks as
 * print_entry(). */
bool raw_page(uint8_t page[RAW_PAGE], struct buffer_reader *r);
/* Adds events/header_page and events/header_event. */
void raw_fill(struct vnode *dir);

/* ---- raw_tracers.c: events/ftrace/, what the tracers record ---- */

/* Makes the data of an entry that has no event outside of events/ftrace/. Locks as of
 * print_entry(). */
void raw_tracer_data(struct raw_data *d, const struct buffer_reader *r, const struct ktr_entry *e,
		     unsigned cpu, uint64_t seq);
extern const struct tracefs_file raw_tracers_dir; /* events/ftrace */

/* ---- snapshot.c: copies of a log ---- */

/* Takes a snapshot, if there is memory for it, nobody reads the last one, and the last one is
 * not that of a latency tracer. Any context. */
void snapshot_take(struct instance *i, unsigned cpu);
/* Takes a snapshot of the entries from these numbers on, if the latency counts. Any context. */
void snapshot_keep(struct instance *i, const uint64_t from[MAX_CPUS], const struct latency *l);
/* Gives the instance memory for a snapshot. 0 or -ENOMEM. */
int snapshot_alloc(struct instance *i);
void snapshot_free(struct instance *i);
/* As snapshot_alloc(), but the memory stays until the last user has gone and somebody frees it. */
int snapshot_use(struct instance *i);
void snapshot_unuse(struct instance *i);
/* A reader comes or goes. */
void snapshot_hold(struct instance *i, bool hold);
/* Does what a number in the file `snapshot` asks for. 0 or -errno; -EBUSY if somebody reads the
 * snapshot, or uses what is to be freed. */
int snapshot_store(struct instance *i, uint64_t command, unsigned cpu);
/* Locks as of print_head(). */
bool snapshot_is_empty(const struct instance *i, unsigned cpu);
void snapshot_print_help(struct sbuf *out, const struct instance *i, unsigned cpu);

/* ---- percent.c: buffer_percent ---- */

void percent_show(struct instance *i, uintptr_t arg, struct sbuf *out);
int percent_store(struct instance *i, uintptr_t arg, char *text);
/* May a reader have pages? Yes if a CPU that it reads is as full as buffer_percent says, if
 * tracing is off, or if there are no pages. Takes ftrace_lock. */
bool percent_is_reached(const struct vnode *vn, const struct buffer_reader *r);

/* ---- dump.c: the trace on the console ---- */

/* Stops the recording, and asks the thread to print the instance's entries, of one CPU or of
 * all. For hooks, between dump_use(1) and dump_use(-1). */
void dump_ask(struct instance *i, unsigned cpu);
/* Counts one user of dumps more, or one less (-1). 0 or -ENOMEM. */
int dump_use(int more);
