/*
 * report.h - `ktrdump report`: tables that answer questions, made from the activities (activity.h).
 *
 * report.c runs a report, report_table.c keeps its rows, report_print.c prints them, and each of
 * the other files fills some tables. Memory is bounded by the threads that live, and by
 * REPORT_ROWS_MAX rows a table. All times are nanoseconds. What began before --since counts from
 * --since on; what ends after --until does not count, but the time until then of a state does.
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

/* ---- report_table.c -----------------------------------------------------------------------------
 */

#define REPORT_DECADES 7u

enum report_cell {
	CELL_COUNT, /* of samples */
	CELL_TOTAL, /* their sum */
	CELL_MAX,   /* the longest of them */
	CELL_WHEN,  /* the time since boot at which that one began */
	CELL_BELOW, /* how many lasted less than a microsecond; the next cell: less than ten, … */
	CELL_MORE = CELL_BELOW + REPORT_DECADES, /* from here on: the table's own, added up */
	CELLS = CELL_MORE + 8
};

enum report_kind {
	COLUMN_END,
	COLUMN_TEXT,    /* text number `cell` of the row */
	COLUMN_THREAD,  /* its thread's name and id */
	COLUMN_NUMBER,  /* its number, which says what it is about */
	COLUMN_COUNT,   /* a cell */
	COLUMN_MS,      /* a cell that is a time, in milliseconds */
	COLUMN_US,      /* … in microseconds */
	COLUMN_SECONDS, /* a cell that is a time since boot */
	COLUMN_MEAN,    /* of the samples, in microseconds */
	COLUMN_MEAN_MS,
	COLUMN_P50, /* half of the samples are not longer, as the histogram tells */
	COLUMN_P99,
	COLUMN_SHARE, /* a cell, in percent of the total */
};

struct report_column {
	const char *title, *json; /* in text; in jsonl, where times have _ns at their ends */
	enum report_kind kind;
	unsigned cell;
};

#define REPORT_TEXTS    3u
#define REPORT_COLUMNS  16u
#define REPORT_ROWS_MAX 4096u
#define REPORT_BUCKETS  (62u * 8) /* eight for each power of two */

struct report_row {
	uint64_t cells[CELLS];
	const char *texts[REPORT_TEXTS]; /* valid as the decoder's texts; NULL: none */
	uint64_t serial;                 /* of its thread; 0: it has none */
	uint32_t tid, thread_number;
	char thread[ACTIVITY_NAME]; /* "": the id alone is shown */
	uint64_t number;
	uint64_t key;
	uint64_t weight;
	uint32_t *buckets;                      /* NULL: no sample, or the table has no histogram */
	char *notes[REPORT_TEXTS];              /* texts of its own, or NULL */
	const struct ktr_decode_header *header; /* of report_events.c */
};

struct report_table {
	const char *report; /* such as "cpu" */
	const char *name;   /* such as "runs"; unlike all others of the report */
	const char *title;  /* what it shows, in a few words */
	const char *needs;  /* the classes of events that it is made from */
	struct report_column columns[REPORT_COLUMNS];
	unsigned weight; /* the cell whose order rows are in, largest first; CELLS: the row's weight
			  */
	bool histogram;  /* of samples: for COLUMN_P50, and as a table below the table */
	bool worst;      /* keeps only the ten rows that weigh most, and has no total */
	bool overlaps;   /* a total would count twice what is in two rows */

	/* report_table.c's and report.c's own */
	bool wanted;
	bool own_known; /* known_ns and all_ns are what the table is about, not all CPUs */
	uint64_t known_ns, all_ns;
	struct report_row *rows[REPORT_ROWS_MAX];
	size_t count;
	struct report_row others; /* the sum of those that there was no room for */
	bool has_others;
	uint64_t floor; /* what weighs less is not among the ten */
	uint64_t folded_at;
	struct ktr_map map; /* of rows, by their keys */
};

/** A key of what two numbers and two texts say. A text may be NULL. */
uint64_t report_key(uint64_t a, uint64_t b, const char *text, const char *more);
/**
 * The row of a key; it is made, with the texts, when it is not there. Never NULL: when there is no
 * room it is the row of the others.
 */
struct report_row *report_row(struct report *r, struct report_table *t, uint64_t key,
			      const char *text, const char *more);
/** One sample more: it lasted from from_ns to to_ns. */
void report_sample(struct report *r, struct report_table *t, struct report_row *row,
		   uint64_t from_ns, uint64_t to_ns);
/** Makes a copy of a text the row's text number n. */
void report_note(struct report *r, struct report_row *row, unsigned n, const char *text);
/** Text 1 of rows whose number is an address becomes the function `back` bytes before it, and text
 * 2 the line. */
void report_table_symbols(struct report *r, struct report_table *t, unsigned back);
/** Adds what a row says to a sum. */
void report_row_add(struct report_row *sum, const struct report_row *row);
/** So many percent of the samples are not longer, if each is as long as its bucket allows. */
uint64_t report_quantile(const struct report_row *row, unsigned percent);
/** Sorts the rows, once nothing is added any more. *total becomes their sum. */
void report_table_finish(struct report *r, struct report_table *t, struct report_row *total);
void report_table_free(struct report_table *t);

/* ---- report_print.c -----------------------------------------------------------------------------
 */

/** Finishes and prints a table. */
void report_table_print(struct report *r, struct report_table *t);

/* ---- report.c -----------------------------------------------------------------------------------
 */

/** What a thread is doing, as far as it is known. */
struct report_thread {
	const struct activity_thread *t; /* NULL: none */
	uint64_t serial;                 /* another thread of the same id has another one */
	bool ran;                        /* last_cpu is where it ran last */
	uint32_t last_cpu;
	const char *call; /* NULL: none */
	uint64_t call_ns;
	bool woken; /* and does not run yet */
	uint64_t woken_ns;
	char waker_name[ACTIVITY_NAME];
	bool faults;
	struct activity fault;
	const char *fault_how;    /* NULL: not told */
	struct report_wait {      /* for a mutex, and while it goes to sleep for a spin lock */
		const char *name; /* NULL: none */
		uint64_t address, ns;
		bool counts; /* the filter wants it */
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
	const char *names;  /* which reports, with commas between; "": all */
	const char *kernel; /* where symbols are; NULL: it is looked for */
	unsigned rows;      /* that text shows of a table, at most; 0: all */
	bool json, failed;
	uint64_t since_ns, until_ns;
	uint64_t events, lost, gaps; /* that passed the filter */
	const uint64_t *parts;
	uint64_t known_ns; /* the sum over all CPUs of the time in which it is known who ran */
	uint64_t last_serial, threads_gone;
	bool *empty; /* becomes true when a report that was asked for has nothing to show */
	struct report_thread *threads; /* by their numbers */
	size_t room;
	struct report_thread nobody; /* what threads share when there is no memory */
};

/** What the thread is doing. Never NULL. Valid until the next call. */
struct report_thread *report_thread_of(struct report *r, const struct activity_thread *t);
/** The row of a thread, and of a number and a text beside it. */
struct report_row *report_thread_row(struct report *r, struct report_table *t,
				     const struct activity_thread *thread, uint64_t number,
				     const char *text, const char *more);
/** Does --thread want what it does on that CPU, and --cpu? NULL: it is not known who does it. */
bool report_wants(const struct report *r, const struct activity_thread *t, uint32_t cpu);
/** Cuts off what lies before --since. False: it does not end between --since and --until. */
bool report_cut(const struct report *r, uint64_t *from_ns, uint64_t to_ns);
/** No memory: the report fails. */
void report_no_memory(struct report *r);

/** The tables of one file, and who fills them. All functions may be NULL. */
struct report_part {
	struct report_table *const *tables; /* NULL ends them */
	void (*event)(struct report *r, const struct export_event *ev);
	void (*activity)(struct report *r, const struct export_event *ev, const struct activity *a);
	void (*gap)(struct report *r, const struct export_gap *gap);
	/** A thread will not be seen again. */
	void (*gone)(struct report *r, struct report_thread *is);
	/** The same as those of struct span_ops. */
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

/** Are these names of reports, with commas between? Else *wrong is the first that is not. */
bool report_names_known(const char *names, const char **wrong);
/** The line of the help text about report number n; NULL after the last. */
const char *report_help(unsigned n);
