/*
 * report.h - `ktrdump report`: tables of what took how long.
 *
 * What comes in: each event with what it means (model/activity.h), losses, and spans
 * (model/span.h), from ktrdump_export.c, to which a report is one more format. What goes out: rows
 * of text, or jsonl. Between them are samples. A sample is something that lasted: a system call, a
 * wait.
 *
 *	events --> report.c --> sample.c --> table.c --> print.c
 *	                   \--> lock.c ---/    |
 *	                   |\-> net.c ----/  tables.c
 *	                   |\-> io.c -----/
 *	                    \-> events.c -/
 *
 * In reading order: tables.c declares what each table shows of which samples; sample.c, lock.c,
 * net.c and io.c find out what lasted from when to when, events.c counts; table.c keeps rows, and
 * finishes them; print.c prints them; report.c runs it all. Memory is bounded by the threads that
 * live, and by REPORT_ROWS_MAX rows a table. One thread, no locks.
 *
 * All times are nanoseconds. Something that began before --since counts from --since on. Something
 * that ends after --until does not count, except that a thread's state counts until --until.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/map.h"
#include "ktr/tools/export/export.h"
#include "ktr/tools/model/span.h"
#include "ktr/tools/out.h"

struct report;

/* A thread, also after it has gone. */
struct report_who {
	uint64_t serial; /* 0: it is no thread */
	uint32_t tid, number;
	char name[ACTIVITY_NAME]; /* "": the id alone is shown */
	unsigned order;           /* of a diff: how many threads of this name came before */
};

/* Samples. A sample that is only a moment ends when it begins. */

enum report_kind {
	SAMPLE_CPU,    /* a CPU ran something; thread NULL: not known, or not wanted */
	SAMPLE_SWITCH, /* a moment: a CPU has switched to a thread */
	SAMPLE_RUN,    /* a thread that is not idle ran on a CPU */
	SAMPLE_STATE,  /* a thread was in the state `state`; value is the time that it ran in a
			  system call */
	SAMPLE_WAIT,   /* as STATE, if the thread waited: for `more`; text is the state's name */
	SAMPLE_IRQ,    /* interrupt `text` */
	SAMPLE_TIMER,  /* from when a timer was due, until it ran */
	SAMPLE_CALL,   /* system call `text`, in C `more`; value is 1 if it failed */
	SAMPLE_FAULT,  /* a page fault at pc, served by `text` */
	SAMPLE_TRAP,   /* a moment: exception `text` at pc */
	SAMPLE_WAKEUP, /* from when `text` woke a thread until that ran, after `more`; value is the
			* event's index */
	SAMPLE_FUNCTION, /* of the kernel, `text`; value is the time less that of traced calls */
	SAMPLE_TIMED,    /* a moment: a timer interrupt found `text` running */
	SAMPLE_TIMED_AT, /* as TIMED, but the kernel was running, in line `more` */
	SAMPLE_LOCK,     /* a wait for lock `text`, of the kind `more` */
	SAMPLE_HELD,     /* `who` had lock `text`, taken at pc, while `value` others waited */
	SAMPLE_TAKEN,    /* a moment: as HELD, from here on; or one more waits */
	/* On the connection from `text` to `more`: a segment of `value` bytes was sent, not for
	 * the first time if `moved`; a segment was received; a round trip. */
	SAMPLE_SENT,
	SAMPLE_RECEIVED,
	SAMPLE_ROUND_TRIP,
	/*
	 * A disk has read or written a piece of `value` bytes; the time counts from the queue on.
	 * Once for the device `text`, where `more` is what was done; once for the file `text` on
	 * the device `more`.
	 */
	SAMPLE_BIO,
	SAMPLE_BIO_FILE,
	SAMPLE_KINDS, /* how many there are */
};

struct report_sample {
	enum report_kind kind;
	const struct activity_thread *thread; /* NULL: none, or not known */
	uint32_t cpu;
	uint64_t from_ns, to_ns;
	bool untimed; /* how long the sample took is not known */
	const char *text, *more;
	uint64_t pc; /* 0 when user is true */
	bool user;   /* the sample is about a place in the program */
	bool preempted,
	    moved; /* of a SWITCH: the thread before was; the next came from elsewhere */
	enum activity_state state;
	uint64_t value;
	uint64_t queued_ns;           /* of BIO: until the driver had it */
	const struct report_who *who; /* in its place, when it may be gone; NULL: it is thread */
};

/* Tables. */

#define REPORT_DECADES 7u

enum report_cell {
	CELL_COUNT, /* of samples */
	CELL_TOTAL, /* their sum */
	CELL_MAX,   /* the longest sample */
	CELL_WHEN,  /* the time since boot at which the longest sample began */
	CELL_VALUE, /* the sum of the samples' values */
	CELL_BELOW, /* how many samples took < 1 us; the next cells: < 10 us, … */
	CELL_MORE = CELL_BELOW + REPORT_DECADES, /* cells from here on belong to the table */
	CELLS = CELL_MORE + 8,
	/* What is computed from these: */
	CELL_MEAN = CELLS, /* of the samples */
	CELL_P50,          /* their median, from the histogram */
	CELL_P99,          /* the 99th percentile */
};

enum report_format {
	COLUMN_END,
	COLUMN_TEXT,    /* text number `cell` of the row */
	COLUMN_PLACE,   /* as TEXT, if it is a line of the source, which another build may move */
	COLUMN_THREAD,  /* the row's thread: name and id */
	COLUMN_NUMBER,  /* the row's number */
	COLUMN_COUNT,   /* a cell */
	COLUMN_MS,      /* a cell that is a time, in milliseconds */
	COLUMN_US,      /* … in microseconds */
	COLUMN_SECONDS, /* a cell that is a time since boot */
	COLUMN_SHARE,   /* a cell, in percent of the total */
};

struct report_column {
	const char *title, *json; /* its name in text; in jsonl, which adds _ns to times */
	enum report_format format;
	unsigned cell;
};

#define REPORT_TEXTS    3u
#define REPORT_COLUMNS  20u
#define REPORT_ROWS_MAX 4096u
#define REPORT_BUCKETS  (62u * 8) /* eight for each power of two */

struct report_row {
	uint64_t cells[CELLS];
	/* Texts of the decoder, of symbols, constants, or notes below; NULL: none. */
	const char *texts[REPORT_TEXTS];
	struct report_who who;
	uint64_t number;
	uint64_t key;
	uint32_t *buckets;                      /* NULL: no sample, or the table has no histogram */
	char *notes[REPORT_TEXTS];              /* copies of texts, which the row frees; or NULL */
	const struct ktr_decode_header *header; /* for events.c */
};

/* What a table has a row for: each thread, and each of the others below. */
#define KEY_THREAD 0x01u
#define KEY_CPU    0x02u /* it becomes the row's number */
#define KEY_PC     0x04u /* this, too */
#define KEY_TEXT   0x08u /* it becomes text 0 */
#define KEY_MORE   0x10u /* it becomes text 1 */
#define KEY_COPY   0x20u /* texts are copied: they are no texts of the decoder */
#define KEY_EACH   0x40u /* each sample */

struct report_table {
	const char *report; /* such as "cpu" */
	const char *name;   /* such as "runs"; unique in the report */
	const char *title;  /* what it shows, in a few words */
	unsigned of;        /* the kinds of samples, as bits; 0: events.c fills it */
	unsigned key;       /* KEY_… */
	/** What a sample adds to its row, besides count, times and value. NULL: nothing. */
	void (*add)(struct report_row *row, const struct report_sample *sample);
	struct report_column columns[REPORT_COLUMNS];
	unsigned weight; /* rows are sorted by this cell, largest first */
	/* The row's number is an address. Its function becomes text 1, and its line text 2. */
	enum { PLACE_NONE, PLACE_PC, PLACE_CALL /* before a return address */ } place;
	bool histogram;  /* keeps a histogram for percentiles, and prints it below the table */
	bool worst;      /* keeps only the ten rows with the largest weights, and has no total */
	bool overlaps;   /* has no total, because two rows may count the same thing */
	bool of_threads; /* shares are of the threads' time, not of the CPUs' */

	/* for table.c and report.c alone */
	bool wanted;
	struct report_row *rows[REPORT_ROWS_MAX];
	size_t count;
	struct report_row others; /* the sum of the rows for which there was no room */
	bool has_others;
	uint64_t floor;     /* rows of less weight are not among the ten */
	uint64_t folded_at; /* threads that were gone when rows were folded last */
	struct ktr_map map; /* of rows, by their keys */
};

/* tables.c */

/** All tables, in the order in which a report shows them. NULL ends them. */
extern struct report_table *const report_tables[];
/** Filled by net.c, and by io.c. */
extern struct report_table report_connections, report_devices;
/** Filled by lock.c. */
extern struct report_table report_holders;
/** Tables that no samples fill, but events.c. */
extern struct report_table report_classes, report_sites, report_event_cpus;
/** The cells of report_event_cpus: lost events, by reason. */
#define CELL_LOST CELL_MORE

/* table.c */

/** Makes a key from two numbers and two texts. A text may be NULL. */
uint64_t report_key(uint64_t a, uint64_t b, const char *text, const char *more);
/**
 * Returns the row with a key; if there is none, makes it, with these texts. Never NULL: when there
 * is no room, it is the row of all others.
 */
struct report_row *report_row(struct report *r, struct report_table *t, uint64_t key,
			      const char *text, const char *more);
/** The row of a number that is the whole key. */
struct report_row *report_row_numbered(struct report *r, struct report_table *t, uint64_t number);
/** Adds a sample to its row of each table that is made of such samples. */
void report_add(struct report *r, const struct report_sample *sample);
/** Sets the row's text number n to a copy of `text`. */
void report_note(struct report *r, struct report_row *row, unsigned n, const char *text);
/** Adds a row's cells and histogram to a sum. */
void report_row_add(struct report_row *sum, const struct report_row *row);
/** A cell, or what is computed from cells: CELL_MEAN, a percentile. */
uint64_t report_row_cell(const struct report_row *row, unsigned cell);
/** Compares two rows of one table by what names them, so that their order is the same in each
 * run. 0 if the names are the same. */
int report_labels_compare(const struct report_row *l, const struct report_row *r);
/** Names places, and sorts the rows, after the last sample. *total becomes their sum. */
void report_table_finish(struct report *r, struct report_table *t, struct report_row *total);
/** Frees the rows. The table is as if it had never been used. */
void report_table_free(struct report_table *t);
void report_row_free(struct report_row *row);

/* print.c */

/* A function without a name, in a diff: addresses differ from build to build. */
#define REPORT_NOT_KNOWN "(not known)"

#define REPORT_CELL 64u /* bytes of a cell's text, with the NUL */

/** Is it of what names a row? */
bool report_is_label(const struct report_column *c);
/** The number in a cell of that column. */
uint64_t report_number(const struct report_column *c, const struct report_row *row);
/** The text of a cell; total is for COLUMN_SHARE. */
void report_cell_text(const struct report_column *c, const struct report_row *row,
		      const struct report_row *total, char to[REPORT_CELL]);
/** The text of a number in that column. */
void report_number_text(const struct report_column *c, uint64_t v, char to[REPORT_CELL]);
/**
 * Makes a line of text. row NULL: the titles. label replaces the row's own labels, if not NULL.
 */
void report_line_make(const struct report_column *columns, const struct report_row *row,
		      const struct report_row *total, const char *label,
		      char (*cells)[REPORT_CELL]);
/** Prints lines in columns of the width that they need. */
void report_lines_print(struct report *r, const struct report_column *columns,
			char (*cells)[REPORT_COLUMNS][REPORT_CELL], size_t lines);
/** A share in percent. */
void report_share_text(uint64_t part, uint64_t all, char to[REPORT_CELL]);
/** Makes the text of a number, with a point before its last `digits` digits. */
void report_fixed_text(uint64_t v, unsigned digits, char to[REPORT_CELL]);

/** Finishes and prints a table. */
void report_table_print(struct report *r, struct report_table *t);

/* report.c */

/** What a thread is doing, as far as this is known. */
struct report_thread {
	const struct activity_thread *t; /* NULL: none */
	uint64_t serial;                 /* unique: a later thread with the same id has another */
	bool ran;                        /* last_cpu is where it ran last */
	uint32_t last_cpu;
	const char *call; /* NULL: none */
	uint64_t call_ns;
	bool woken; /* and does not run yet */
	uint64_t woken_ns;
	char waker_name[ACTIVITY_NAME];
	bool faults;
	struct activity fault;
	const char *fault_how; /* NULL: not known */
	/* [0] for a mutex; [1] for a spin lock, which a thread may need to be able to sleep */
	struct report_wait {
		const char *name; /* of the lock; NULL: the thread does not wait */
		uint64_t address, ns;
		bool counts; /* it passes the filter */
	} waits[2];
};

struct symbols;
struct report_diff;

/* What a report is about. */
struct report_head {
	uint64_t from_ns, to_ns;
	unsigned cpus;
	uint64_t events, lost, gaps, parts; /* that passed the filter */
	uint64_t known_ns[2], all_ns[2];    /* of all CPUs, and of all threads: see below */
	bool damaged;                       /* a part of the trace could not be read */
};

struct report {
	struct out *out;
	const struct dump_filter *filter;
	const struct activity_model *model;
	const struct ktr_decode_header *header;
	struct symbols *symbols; /* NULL: none were found */
	const struct spans *spans;
	const char *names;  /* of the reports, with commas between; "": all */
	const char *kernel; /* the ELF file with symbols; NULL: symbols.h looks for it */
	unsigned rows;      /* rows of a table that text shows, at most; 0: all */
	bool json, failed;
	uint64_t since_ns, until_ns;
	uint64_t events, lost, gaps; /* that passed the filter */
	const uint64_t *parts;       /* parts of long data */
	/* How long it is known what ran, or what a thread did, and how long there was in all:
	 * [0] for all CPUs, each since its start; [1] for all threads. */
	uint64_t known_ns[2], all_ns[2];
	uint64_t last_serial, threads_gone, samples;
	unsigned kinds;           /* of the samples that tables are made of, as bits */
	struct report_diff *diff; /* NULL: it is no part of one */
	/* Gets all samples, in place of the tables; NULL: the tables do. */
	void (*sample)(void *arg, const struct report_sample *s);
	void *sample_arg;
	bool *empty;       /* becomes true when a report that was asked for has nothing to show */
	const int *status; /* not 0: the trace is damaged */
	bool has_unnamed;  /* a sample's function has no name */
	struct report_thread *threads; /* by their numbers */
	size_t room;
	struct report_thread nobody; /* all threads share it when there is no memory */
};

/** What the thread is doing. Never NULL. Valid until the next call. */
struct report_thread *report_thread_of(struct report *r, const struct activity_thread *t);
struct report_who report_who(struct report *r, const struct activity_thread *t);
/** Stands for a thread that is not known. */
extern const struct report_who report_not_known;
/** Do --thread and --cpu select what t does on that CPU? t NULL: the thread is not known. */
bool report_wants(const struct report *r, const struct activity_thread *t, uint32_t cpu);
/** Cuts off the time before --since. False: to_ns is not between --since and --until. */
bool report_cut(const struct report *r, uint64_t *from_ns, uint64_t to_ns);
/** Makes the report fail for want of memory. */
void report_no_memory(struct report *r);
/** Prints what the report is about. run: "A" or "B" of a diff, of that file; or NULL. */
void report_head_print(struct report *r, const struct report_head *head, const char *run,
		       const char *file);
/** Report number n, its name; NULL after the last. */
const char *report_name(unsigned n);
/** Is the name in a list with commas? All names are in the list "". */
bool report_is_among(const char *names, const char *name);
/** Says on standard error that a report that was named shows nothing, and what it is made from. */
void report_say_nothing(const char *name);

/* sample.c */

/** The functions of model/span.h; their arg is the report. */
extern const struct span_ops report_span_ops;

void report_activity(struct report *r, const struct export_event *ev, const struct activity *a);
/** What was under way may have ended, or timers may have been stopped. */
void report_samples_lost(struct report *r, const struct export_gap *gap);
void report_samples_end(void);

/* lock.c: waits for locks, and who has them meanwhile */

/** Takes activities about locks, and the end of a thread. */
void report_lock_activity(struct report *r, const struct activity *a);
void report_locks_lost(struct report *r, const struct export_gap *gap);
/** The thread will not be seen again, or the trace ends: its waits end. */
void report_waits_end(struct report *r, struct report_thread *is, uint64_t ns);
void report_locks_end(struct report *r);

/* net.c: connections */

void report_net_event(struct report *r, const struct export_event *ev);
void report_net_lost(void);
void report_net_end(void);

/* io.c: requests to disks */

void report_io_event(struct report *r, const struct export_event *ev);
void report_io_lost(void);
/** The thread will not be seen again. */
void report_io_gone(const struct activity_thread *t);
void report_io_end(void);

/* events.c: counts of events and losses */

void report_events_event(struct report *r, const struct export_event *ev);
void report_events_gap(struct report *r, const struct export_gap *gap);
void report_events_end(struct report *r);

/* diff.c: two runs */

/** Takes the rows of a run. After the second, prints what changed. False: there is nothing. */
bool report_diff_run(struct report *r, const struct report_head *head);

/** Is `names` a list of reports with commas between? If not, *wrong is the first wrong name. */
bool report_names_known(const char *names, const char **wrong);
/** The help text's line for report number n; NULL after the last. */
const char *report_help(unsigned n);
