/*
 * report.h - `ktrdump report`: makes tables from the activities (activity.h).
 *
 * report.c runs a report, report_table.c keeps its rows, report_print.c prints them, and each of
 * the other files fills some tables. Memory is bounded by the threads that live, and by
 * REPORT_ROWS_MAX rows a table.
 *
 * All times are nanoseconds. Something that began before --since counts from --since on. Something
 * that ends after --until does not count, except that a thread's state counts until --until.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/map.h"
#include "ktr/tools/export.h"
#include "ktr/tools/out.h"
#include "ktr/tools/span.h"

struct report;

/* report_table.c */

#define REPORT_DECADES 7u

enum report_cell {
	CELL_COUNT, /* of samples */
	CELL_TOTAL, /* their sum */
	CELL_MAX,   /* the longest sample */
	CELL_WHEN,  /* the time since boot at which the longest sample began */
	CELL_BELOW, /* how many samples took < 1 us; the next cells: < 10 us, … */
	CELL_MORE = CELL_BELOW + REPORT_DECADES, /* cells from here on belong to the table */
	CELLS = CELL_MORE + 8
};

enum report_kind {
	COLUMN_END,
	COLUMN_TEXT,    /* text number `cell` of the row */
	COLUMN_THREAD,  /* the row's thread: name and id */
	COLUMN_NUMBER,  /* the row's number */
	COLUMN_COUNT,   /* a cell */
	COLUMN_MS,      /* a cell that is a time, in milliseconds */
	COLUMN_US,      /* … in microseconds */
	COLUMN_SECONDS, /* a cell that is a time since boot */
	COLUMN_MEAN,    /* of the samples, in microseconds */
	COLUMN_MEAN_MS, /* … in milliseconds */
	COLUMN_P50,     /* the median of the samples, from the histogram, in microseconds */
	COLUMN_P99,     /* the 99th percentile */
	COLUMN_SHARE,   /* a cell, in percent of the total */
};

struct report_column {
	const char *title, *json; /* its name in text; in jsonl, which adds _ns to times */
	enum report_kind kind;
	unsigned cell;
};

#define REPORT_TEXTS    3u
#define REPORT_COLUMNS  16u
#define REPORT_ROWS_MAX 4096u
#define REPORT_BUCKETS  (62u * 8) /* eight for each power of two */

struct report_row {
	uint64_t cells[CELLS];
	const char *texts[REPORT_TEXTS]; /* the decoder's texts, or notes; NULL: none */
	uint64_t serial;                 /* of its thread; 0: the row is not about a thread */
	uint32_t tid, thread_number;
	char thread[ACTIVITY_NAME]; /* "": the id alone is shown */
	uint64_t number;
	uint64_t key;
	uint64_t weight;
	uint32_t *buckets;                      /* NULL: no sample, or the table has no histogram */
	char *notes[REPORT_TEXTS];              /* copies of texts, which the row frees; or NULL */
	const struct ktr_decode_header *header; /* for report_events.c */
};

struct report_table {
	const char *report; /* such as "cpu" */
	const char *name;   /* such as "runs"; unique in the report */
	const char *title;  /* what it shows, in a few words */
	const char *needs;  /* the classes of events that it is made from */
	struct report_column columns[REPORT_COLUMNS];
	unsigned weight; /* rows are sorted by this cell, largest first; CELLS: by row->weight */
	bool histogram;  /* keeps a histogram for COLUMN_P50, and prints it below the table */
	bool worst;      /* keeps only the ten rows with the largest weights, and has no total */
	bool overlaps;   /* has no total, because two rows may count the same thing */

	/* for report_table.c and report.c alone */
	bool wanted;
	bool own_known; /* known_ns and all_ns are the table's own, not those of all CPUs */
	uint64_t known_ns, all_ns; /* how much is known of the time that the table covers */
	struct report_row *rows[REPORT_ROWS_MAX];
	size_t count;
	struct report_row others; /* the sum of the rows for which there was no room */
	bool has_others;
	uint64_t floor;     /* rows of less weight are not among the ten */
	uint64_t folded_at; /* threads that were gone when rows were folded last */
	struct ktr_map map; /* of rows, by their keys */
};

/** Makes a key from two numbers and two texts. A text may be NULL. */
uint64_t report_key(uint64_t a, uint64_t b, const char *text, const char *more);
/**
 * The row with a key. If there is none, it is made, with these texts. Never NULL: when there is no
 * room, it is the row of the others.
 */
struct report_row *report_row(struct report *r, struct report_table *t, uint64_t key,
			      const char *text, const char *more);
/** Adds a sample, which lasted from from_ns to to_ns. */
void report_sample(struct report *r, struct report_table *t, struct report_row *row,
		   uint64_t from_ns, uint64_t to_ns);
/** Sets the row's text number n to a copy of `text`. */
void report_note(struct report *r, struct report_row *row, unsigned n, const char *text);
/**
 * For rows whose numbers are addresses: sets text 1 to the function, and text 2 to the line, that
 * is `back` bytes before the address.
 */
void report_table_symbols(struct report *r, struct report_table *t, unsigned back);
/** Adds a row's cells and histogram to a sum. */
void report_row_add(struct report_row *sum, const struct report_row *row);
/** A percentile of the samples: the longest time that its bucket of the histogram allows. */
uint64_t report_quantile(const struct report_row *row, unsigned percent);
/** Sorts the rows, after the last sample. *total becomes their sum. */
void report_table_finish(struct report *r, struct report_table *t, struct report_row *total);
void report_table_free(struct report_table *t);

/* report_print.c */

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
	bool woken; /* but does not run yet */
	uint64_t woken_ns;
	char waker_name[ACTIVITY_NAME];
	bool faults;
	struct activity fault;
	const char *fault_how; /* NULL: not known */
	/* [0] for a mutex; [1] for a spin lock, which a thread may need to go to sleep */
	struct report_wait {
		const char *name; /* of the lock; NULL: the thread does not wait */
		uint64_t address, ns;
		bool counts; /* it passes the filter */
	} waits[2];
};

struct symbols;

struct report {
	struct out *out;
	const struct dump_filter *filter;
	const struct activity_model *model;
	const struct ktr_decode_header *header;
	struct symbols *symbols; /* NULL: none were found */
	struct spans *spans;
	const char *names;  /* of the reports, with commas between; "": all */
	const char *kernel; /* the ELF file with symbols; NULL: symbols.h looks for it */
	unsigned rows;      /* of a table that text shows at most; 0: all */
	bool json, failed;
	uint64_t since_ns, until_ns;
	uint64_t events, lost, gaps; /* that passed the filter */
	const uint64_t *parts;       /* parts of long data */
	/* Summed over all CPUs: the time in which the running thread is known, and all since a
	 * CPU's start. */
	uint64_t known_ns, all_ns;
	uint64_t last_serial, threads_gone;
	bool *empty; /* becomes true when a report that was asked for has nothing to show */
	struct report_thread *threads; /* by their numbers */
	size_t room;
	struct report_thread nobody; /* all threads share it when there is no memory */
};

/** What the thread is doing. Never NULL. Valid until the next call. */
struct report_thread *report_thread_of(struct report *r, const struct activity_thread *t);
/** The row with this thread, number and texts; else as report_row(). */
struct report_row *report_thread_row(struct report *r, struct report_table *t,
				     const struct activity_thread *thread, uint64_t number,
				     const char *text, const char *more);
/** Do --thread and --cpu select what t does on that CPU? t NULL: the thread is not known. */
bool report_wants(const struct report *r, const struct activity_thread *t, uint32_t cpu);
/** Cuts off the time before --since. False: to_ns is not between --since and --until. */
bool report_cut(const struct report *r, uint64_t *from_ns, uint64_t to_ns);
/** Makes the report fail for want of memory. */
void report_no_memory(struct report *r);

/** The tables of one file, and the functions that fill them. All functions may be NULL. */
struct report_part {
	struct report_table *const *tables; /* NULL ends them */
	void (*event)(struct report *r, const struct export_event *ev);
	void (*activity)(struct report *r, const struct export_event *ev, const struct activity *a);
	void (*gap)(struct report *r, const struct export_gap *gap);
	/** A thread will not be seen again. */
	void (*gone)(struct report *r, struct report_thread *is);
	/** These three are as in struct span_ops. */
	void (*thread)(struct report *r, const struct span *span);
	void (*cpu)(struct report *r, uint32_t cpu, const struct activity_thread *t,
		    uint64_t from_ns, uint64_t to_ns);
	void (*irq)(struct report *r, uint32_t cpu, const struct activity_thread *t,
		    uint32_t number, const char *name, uint64_t from_ns, uint64_t to_ns);
	/** After the last event. */
	void (*end)(struct report *r);
};

extern const struct report_part report_part_run;      /* cpu, thread, irq */
extern const struct report_part report_part_call;     /* syscall, fault */
extern const struct report_part report_part_function; /* function */
extern const struct report_part report_part_wait;     /* lock, wakeup */
extern const struct report_part report_part_profile;  /* profile */
extern const struct report_part report_part_events;   /* events */

/** Are these, with commas between, names of reports? If not, *wrong is the first wrong one. */
bool report_names_known(const char *names, const char **wrong);
/** The help text's line for report number n; NULL after the last. */
const char *report_help(unsigned n);
