/*
 * ftrace_private.h - what the files of ftrace share. Guarded by ftrace_lock unless said otherwise.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/ftrace/tracefs.h"
#include "kernel/lib/list.h"
#include "kernel/lib/sbuf.h"
#include "kernel/sync/pcpu.h"
#include "ktr/entry.h"
#include "ktr/event_format.h"
#include "ktr/site.h"

/* ---- functions.c: lists of functions ---- */

enum function_list {
	FUNCTIONS_FILTER,        /* set_ftrace_filter */
	FUNCTIONS_NOTRACE,       /* set_ftrace_notrace */
	FUNCTIONS_GRAPH,         /* set_graph_function */
	FUNCTIONS_GRAPH_NOTRACE, /* set_graph_notrace */
	FUNCTIONS_LISTS
};

/* Are there names in a list? Any context. */
bool functions_any(enum function_list list);
/* Is the function of this site in a list? Any context. */
bool functions_have(enum function_list list, const struct ktr_site *site);
/* Is the function of this site to be traced, as the first two lists say? */
bool functions_traced(const struct ktr_site *site);
/* The files: arg is the list. */
void functions_show(uintptr_t arg, struct sbuf *out);
int functions_store(uintptr_t arg, char *text);
int functions_clear(uintptr_t arg);
/* available_filter_functions. */
void functions_show_all(uintptr_t arg, struct sbuf *out);

/* ---- tracer.c: the current tracer ---- */

/* The sites of the events that tracers record. */
extern struct ktr_site tracer_function, tracer_graph_entry, tracer_graph_return, tracer_mark;

enum tracer { TRACER_NOP, TRACER_FUNCTION, TRACER_GRAPH, TRACER_HWLAT, TRACERS };

/* The name of the current tracer; its number. */
const char *tracer_name(void);
enum tracer tracer_current(void);
/* A list of functions, or the pids, have changed. */
void tracer_update(void);
void tracer_show_all(uintptr_t arg, struct sbuf *out); /* available_tracers */
void tracer_show(uintptr_t arg, struct sbuf *out);     /* current_tracer */
int tracer_store(uintptr_t arg, char *text);
void tracer_pids_show(uintptr_t arg, struct sbuf *out); /* set_ftrace_pid */
int tracer_pids_store(uintptr_t arg, char *text);
int tracer_pids_clear(uintptr_t arg);

/* Numbers that hooks read at any time: files of one number each. */
extern uint64_t tracer_max_depth; /* max_graph_depth; 0: none */
extern uint64_t tracer_thresh_ns; /* tracing_thresh: only calls that last as long; 0: all */

/* ---- hwlat.c: the tracer of that name ---- */

/* 0 or -ENOMEM. */
int hwlat_start(void);
void hwlat_stop(void);
/* Prints an event of the tracer. False: it is another one. */
bool hwlat_print(struct sbuf *out, const struct ktr_entry *e);
extern const struct tracefs_file hwlat_dir; /* hwlat_detector */

/* ---- options.c: trace_options, options/ ---- */

enum trace_option {
	OPTION_CONTEXT_INFO,
	OPTION_IRQ_INFO,
	OPTION_PRINT_PARENT,
	OPTION_GRAPH_ABSTIME,
	OPTION_GRAPH_CPU,
	OPTION_GRAPH_DURATION,
	OPTION_GRAPH_IRQS,
	OPTION_GRAPH_OVERHEAD,
	OPTION_GRAPH_PROC,
	OPTION_GRAPH_TAIL,
	OPTIONS
};

/* Any context. */
bool option_on(enum trace_option option);
void options_show(uintptr_t arg, struct sbuf *out);
int options_store(uintptr_t arg, char *text);
extern const struct tracefs_file options_dir;

/* ---- buffer.c: the entries of the log, in the order of their times ---- */

#define BUFFER_ALL UINT_MAX /* instead of a CPU */

/* Reads entries, the oldest first. */
struct buffer_reader {
	unsigned cpu;              /* that CPU's only; or BUFFER_ALL */
	bool consume;              /* what is read is read for all (trace_pipe) */
	bool follow;               /* entries that are recorded later, too */
	bool keeps_last[MAX_CPUS]; /* for print.c: last[] is known */
	uint32_t last[MAX_CPUS];   /* … the thread whose calls were printed last */
	struct buffer_cursor {
		uint64_t seq, end; /* the next to be read; where to stop */
		uint64_t lost;     /* entries before seq that were overwritten */
		bool valid;        /* entry is the one before seq */
		struct ktr_entry entry;
	} cursors[MAX_CPUS];
};

void buffer_open(struct buffer_reader *r, unsigned cpu, bool consume);
/*
 * The oldest entry that was not taken yet, and its CPU. NULL: there is none now. *lost: how many
 * entries of that CPU were lost before it. ftrace_lock held if r->consume; control lock held.
 */
const struct ktr_entry *buffer_peek(struct buffer_reader *r, unsigned *cpu, uint64_t *lost);
/* Takes the entries of that CPU up to number seq. Locks as above, and for the next. */
void buffer_take(struct buffer_reader *r, unsigned cpu, uint64_t seq);
/* The entry of that CPU that comes after the one that was peeked, and its number. False: not known.
 */
bool buffer_peek_next(const struct buffer_reader *r, unsigned cpu, struct ktr_entry *entry,
		      uint64_t *seq);
/* `> trace`: what is there now is not shown any more. */
int buffer_clear(uintptr_t arg);
/* How many entries `trace` would show, and how many were written since it was cleared. Control
 * lock held. */
void buffer_count(unsigned cpu, uint64_t *entries, uint64_t *written);

extern const struct vnode_ops trace_ops, trace_pipe_ops, trace_pipe_raw_ops, trace_marker_ops;

/* ---- print.c: an entry as Linux prints it ---- */

/* The head of `trace`. Control lock held, as for the next. */
void print_head(struct sbuf *out, const struct buffer_reader *r);
/* A line, or several. Takes the entry, and a second one if it is the return of a function that
 * called none. False: there is no entry. */
bool print_entry(struct sbuf *out, struct buffer_reader *r);
/* A time of calls: "  12.019 us", as in Linux's trace_print_graph_duration(). */
void print_duration(struct sbuf *out, uint64_t ns);

/* ---- raw.c ---- */

#define RAW_PAGE 4096u
/* Fills a page with the reader's next events that have a format. False: there are none. Locks as of
 * print_entry(). */
bool raw_page(uint8_t page[RAW_PAGE], struct buffer_reader *r);
/* Adds events/header_page and events/header_event. */
void raw_fill(struct vnode *dir);

/* ---- profile.c: the function profiler ---- */

/* A list of functions has changed. */
void profile_update(void);
void profile_show_enabled(uintptr_t arg, struct sbuf *out);
int profile_store_enabled(uintptr_t arg, char *text);
extern const struct tracefs_file profile_dir; /* trace_stat */

/* ---- error_log.c ---- */

/* A command was refused: which part of ftrace says what about it, and about which character. */
void error_log_add(const char *system, const char *message, const char *command, size_t at);
void error_log_show(uintptr_t arg, struct sbuf *out);
int error_log_store(uintptr_t arg, char *text);
int error_log_clear(uintptr_t arg);

/* ---- kprobes.c ---- */

void kprobes_show(uintptr_t arg, struct sbuf *out); /* kprobe_events, dynamic_events */
int kprobes_store(uintptr_t arg, char *text);
int kprobes_clear(uintptr_t arg);
void kprobes_show_profile(uintptr_t arg, struct sbuf *out);
/* Prints place and arguments of an event of a kprobe. False: it is another event. Control lock
 * held. */
bool kprobes_print(struct sbuf *out, const struct ktr_site *site, const struct ktr_entry *e);

/* ---- event_filter.c ---- */

struct filter_error;
struct program;

bool event_filter_has(const struct ktr_site *site);
/* Does a site have a filter or triggers that switch it, and is it on? */
bool event_filter_on(const struct ktr_site *site);
/* Do triggers switch it? */
bool event_filter_soft(const struct ktr_site *site);
/* Switches the event's program on or off. 0 or -errno. Without a filter: nothing. */
int event_filter_switch(const struct ktr_site *site, bool on);
/* Gives a site a filter, in the place of the one it has; NULL: none. -EINVAL: *error says why. */
int event_filter_set(const struct ktr_site *site, const char *text, struct filter_error *error);
/* One trigger more, or one less (-1), switches the event by *gate, a word of 1 or 0. */
int event_filter_use(const struct ktr_site *site, int more, uint32_t **gate);
void event_filter_drop(const struct ktr_site *site);
/* Drops filters, triggers and histograms of events that are not there any more. */
void event_filters_clean(void);
/* Has the site another event now than the one of that name? */
bool event_is_gone(const struct ktr_site *site, const char *name);
/* Prints the filter, or "none". */
void event_filter_show(const struct ktr_site *site, struct sbuf *out);
/* Appends code of a filter, after which the program goes on if it is true. */
int filter_compile_for(struct program *p, const struct ktr_site *site, const char *text,
		       struct filter_error *error);
/* Appends code, after which the program goes on if the word is not 0. */
bool program_gate(struct program *p, const uint32_t *gate);

/* ---- upcall.c ---- */

struct dif_clause;
struct dtrace_consumer;
struct ktr_firing;

/* What programs ask for by DIF_UPCALL, and the registers. */
enum upcall {
	UPCALL_ON,
	UPCALL_OFF,
	UPCALL_STACK,
	UPCALL_GATE,      /* address of a word, value */
	UPCALL_SYNTHETIC, /* struct synthetic *, values of the fields */
};

extern struct ktr_site trigger_stack; /* of the entries of `stacktrace` */

/* NULL: no memory. */
struct program *program_new(void);
void program_free(struct program *p);
/* Runs the program: clause N of it at sites[N]. 0 or -errno. dtrace_detach() ends it. */
int program_attach(const struct program *p, const struct dif_clause *clauses,
		   const struct ktr_site *const *sites, unsigned n, struct dtrace_consumer **to);

/* ---- trigger.c ---- */

void trigger_show(uintptr_t arg, struct sbuf *out); /* arg: the event's site */
int trigger_store(uintptr_t arg, char *text);
int trigger_clear(uintptr_t arg);
/* Drops the triggers of events that are not there any more. */
void triggers_clean(void);
/* Has the event triggers? */
bool triggers_on(const struct ktr_site *site);
/* Do triggers of any event switch the histograms of this one? */
bool triggers_switch_hists(const struct ktr_site *site);
/* Another histogram is there, or one less: makes the programs of these triggers anew. 0 or -errno.
 */
int triggers_update(const struct ktr_site *site);
/* In set_ftrace_filter: [!]FUNCTION:COMMAND[:…]. 0 or -errno. */
int trigger_store_function(char *word);
void triggers_show_functions(struct sbuf *out);

/* ---- hist.c ---- */

struct hist;
/* Takes "hist:…", which adds a histogram, changes it, or removes it. 0 or -errno. */
int hist_store(const struct ktr_site *site, char *text, bool remove);
int hist_clear(const struct ktr_site *site);
void hists_clean(void);
void hist_show(uintptr_t arg, struct sbuf *out); /* arg: the event's site */
void hist_show_triggers(const struct ktr_site *site, struct sbuf *out);
/* Makes the programs of the event's histograms anew. 0 or -errno. */
int hists_update(const struct ktr_site *site);
/* While triggers switch the histogram, a word of 1 or 0: it counts. */
uint32_t *hist_gate(struct hist *h);

/* ---- synthetic.c ---- */

#define EVENT_SYNTHETIC "synthetic"

struct synthetic {
	struct list link;
	char name[64];
	struct ktr_site *site;
	unsigned n, users; /* fields; histograms that make the event */
	struct synthetic_field {
		char name[32], type[32];
		const char *format; /* "%s": a text */
	} fields[KTR_MAXARGS];
};

/* NULL: there is none. */
struct synthetic *synthetic_find(const char *name);
/* Records the event, and runs its triggers, in a firing. Texts: their addresses. In hooks. */
void synthetic_fire(const struct synthetic *s, const struct ktr_firing *f, const uint64_t *values);
void synthetic_show(uintptr_t arg, struct sbuf *out);
int synthetic_store(uintptr_t arg, char *text);
int synthetic_clear(uintptr_t arg);
int synthetic_command(char *text);
/* As dynamic_events has them. */
void synthetic_show_dynamic(struct sbuf *out);

/* ---- files.c ---- */

/* tracing_on. Any context. */
void tracing_switch(bool on);

/* ---- events.c ---- */

/* Room for the name of an event. */
#define EVENT_NAME KTR_EVENT_NAME
/* The system of the events of kprobes, which are made and removed. */
#define EVENT_KPROBES "kprobes"
/* Is an event enabled, with or without a filter? */
bool event_is_enabled(const struct ktr_site *site);
/* Makes the log, or its program, record it. */
int event_enable(const struct ktr_site *site);
/* The directory of a site's event. NULL: it is none. */
const char *event_system(const struct ktr_site *site);
/* The event of these names; NULL: there is none. */
struct ktr_site *event_find(const char *system, const char *event);
/* What Linux's files call the event of a site. */
void event_name(const struct ktr_site *site, char name[EVENT_NAME]);
/*
 * Its printf format, and how many parameters that has; as_recorded: of what is in the log, where
 * the last two of seven are one text.
 */
#define EVENT_FORMAT 320
unsigned event_format(const struct ktr_site *site, bool as_recorded, char fmt[EVENT_FORMAT]);
/* Names and types of the arguments of a firing; how many there are. */
unsigned event_params(const struct ktr_site *site, struct ktr_param params[KTR_SDT_ARGS]);
extern const struct tracefs_file events_dir;
void events_show_all(uintptr_t arg, struct sbuf *out); /* available_events */
void events_show_set(uintptr_t arg, struct sbuf *out); /* set_event */
int events_store_set(uintptr_t arg, char *text);
int events_clear_set(uintptr_t arg);
