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
#include "kernel/lib/string.h"
#include "kernel/sched/sched.h"
#include "kernel/sync/pcpu.h"
#include "ktr/control.h"
#include "ktr/entry.h"
#include "ktr/event_format.h"
#include "ktr/hook.h"
#include "ktr/intern.h"
#include "ktr/param.h"
#include "ktr/ring.h"
#include "ktr/site.h"

/* ---- instance.c: logs, and what is set for each ---- */

/* The entries of a log, as files show them. */
struct buffer {
	struct ktr_log *log;
	struct {
		uint64_t from;    /* atomic: the first that is shown */
		uint64_t cleared; /* the first after the last clearing */
	} shown[MAX_CPUS];
};

/* ---- functions.c: lists of functions ---- */

enum function_list {
	FUNCTIONS_FILTER,        /* set_ftrace_filter */
	FUNCTIONS_NOTRACE,       /* set_ftrace_notrace */
	FUNCTIONS_GRAPH,         /* set_graph_function */
	FUNCTIONS_GRAPH_NOTRACE, /* set_graph_notrace */
	FUNCTIONS_STACK,         /* stack_trace_filter */
	FUNCTIONS_LISTS
};

/* Sets of entries of functions, by the numbers of their sites. */
struct functions {
	uint64_t bits[FUNCTIONS_LISTS][65536 / 64]; /* atomic */
	bool any[FUNCTIONS_LISTS];                  /* atomic: a bit is set */
};

/* Are there names in a list? Any context. */
bool functions_any(const struct functions *f, enum function_list list);
/* Is the function of this site in a list? Any context. */
bool functions_have(const struct functions *f, enum function_list list,
		    const struct ktr_site *site);
/* Is the function of this site to be traced, as the first two lists say? */
bool functions_traced(const struct functions *f, const struct ktr_site *site);
/* The files: arg is the list. */
void functions_show(uintptr_t arg, struct sbuf *out);
int functions_store(uintptr_t arg, char *text);
int functions_clear(uintptr_t arg);
/* available_filter_functions. */
void functions_show_all(uintptr_t arg, struct sbuf *out);

/* ---- tracer.c: the current tracer ---- */

/* The sites of the events that tracers record. */
extern struct ktr_site tracer_function, tracer_graph_entry, tracer_graph_return, tracer_mark;
extern struct ktr_site tracer_raw;

enum tracer {
	TRACER_NOP,
	TRACER_FUNCTION,
	TRACER_GRAPH,
	TRACER_IRQSOFF,
	TRACER_WAKEUP,
	TRACER_WAKEUP_RT,
	TRACER_HWLAT,
	TRACERS
};

/* Where the function of an entry's site begins: the kernel is in the last 2 GiB. */
static inline uintptr_t
function_address(const struct ktr_site *entry)
{
	return (uintptr_t)(int32_t)entry->pc;
}
/* Records a function's entry. */
void tracer_record_function(struct instance *i, const struct ktr_firing *f);

/* The name of the current tracer. */
const char *tracer_name(void);
/* It becomes nop. */
void tracer_stop(void);
/* A list of functions has changed. */
void tracer_update(void);
void tracer_show_all(uintptr_t arg, struct sbuf *out); /* available_tracers */
void tracer_show(uintptr_t arg, struct sbuf *out);     /* current_tracer */
int tracer_store(uintptr_t arg, char *text);

/* Numbers that hooks read at any time: files of one number each. */
extern uint64_t tracer_max_depth; /* max_graph_depth; 0: none */
extern uint64_t tracer_thresh_ns; /* tracing_thresh: only calls that last as long; 0: all */

/* ---- latency.c: the tracers irqsoff, wakeup and wakeup_rt ---- */

extern struct ktr_site latency_point, latency_switch;
ktr_hook_fn irqsoff_fire, wakeup_fire;
/* 0 or -ENOMEM. */
int latency_start(void);
/* Is one of them the current one? Does it want this site? */
bool tracer_is_latency(enum tracer t);
bool latency_is_on(const struct instance *i);
/* Is its trace printed in their format? */
bool latency_layout(const struct instance *i);
bool latency_wants(const struct ktr_site *site);
void latency_show(uintptr_t arg, struct sbuf *out); /* tracing_max_latency */
int latency_store(uintptr_t arg, char *text);
void latency_print_head(struct sbuf *out, uint64_t entries, uint64_t written);
/* What is before an event, if the next one is from that time; an event of these tracers. */
void latency_print_context(struct sbuf *out, const struct ktr_entry *e, unsigned cpu,
			   uint64_t next_ns);
bool latency_print(struct sbuf *out, const struct ktr_entry *e, unsigned cpu);

/* ---- hwlat.c: the tracer of that name ---- */

/* 0 or -ENOMEM. */
int hwlat_start(void);
void hwlat_stop(void);
/* Prints an event of the tracer. False: it is another one. */
bool hwlat_print(struct sbuf *out, const struct ktr_entry *e);
extern struct ktr_site hwlat_site;
extern const struct tracefs_file hwlat_dir; /* hwlat_detector */

/* ---- instance.c: what belongs to a log ---- */

/* Lists of threads; each is followed by that of those who are left out. */
enum pid_list { PIDS_FUNCTION, PIDS_FUNCTION_NOT, PIDS_EVENT, PIDS_EVENT_NOT, PID_LISTS };
#define PIDS_MAX      64
#define INSTANCE_NAME 64

/*
 * The top instance is /sys/kernel/tracing itself, with the main log; others are its folders
 * `instances/NAME`, each with a log of its own. What hooks read is atomic, or changes while none
 * of the instance's is on.
 */
struct instance {
	struct list link;
	char name[INSTANCE_NAME];
	unsigned users; /* open files */
	struct buffer trace, snapshot;
	struct ktr_log own, copy; /* trace.log, but for the top instance; snapshot.log */
	struct latency {
		uint64_t ns, start_ns;
		unsigned cpu;
		uint32_t tid;
		uint64_t started_at[KTR_MAXARGS], ended_at[KTR_MAXARGS]; /* return addresses */
		uint32_t uid;                                            /* of the thread, then */
		struct sched_params sched;
	} latency;              /* to which the snapshot belongs; snapshot_lock */
	uint32_t snapshot_lock; /* see snapshot.c */
	unsigned snapshot_readers;
	bool snapshot_there;
	uint64_t mask, cpus; /* atomic: CPUs that record, but for the top; and while it is on */
	uint32_t options;    /* atomic; bit N: option N is not as by default */
	unsigned entries;    /* of a ring of its own */
	enum tracer tracer;
	unsigned clock;                      /* trace_clock, see clock.c */
	unsigned tracer_owner, events_owner; /* of its probes; 0: none */
	unsigned fork_owner;                 /* of those that change its lists of threads */
	struct pids {
		uint32_t pid[PIDS_MAX]; /* atomic */
		unsigned n;             /* atomic */
	} pids[PID_LISTS];
	struct functions functions;
	struct list filters, triggers, hists;
	struct dtrace_consumer *linked; /* of all its histograms that have variables */
};

extern struct instance instance_top;
/* The one whose file is read or written. */
extern struct instance *instance_now;

bool instance_is_there(const struct instance *i);
/* Calls f(arg) for each instance, as instance_now, until it is true. */
bool instances_any(bool (*f)(const void *arg), const void *arg);
extern const struct tracefs_file instances_dir;
/* clock.c */
const char *clock_name(const struct instance *i);
/* The number of the clock of this name, or -EINVAL. */
int clock_find(const char *name, size_t len);
void clock_show(uintptr_t arg, struct sbuf *out);
int clock_store(uintptr_t arg, char *text);
/* readme.c */
void readme_show(uintptr_t arg, struct sbuf *out);
/* files.c: the folder of an instance. */
void tracefs_fill_instance(struct vnode *dir);

/* Registers an owner of probes whose hook, if it has one, works for instance_now. */
int instance_owner(const char *name, ktr_hook_fn *hook);
/* Unregisters it; it becomes 0. 0: does nothing. */
void instance_disown(unsigned *owner);
extern struct instance *instance_owners[KTR_OWNER_MAX]; /* change while they have no hook */

/* For such hooks: the instance. What hooks call is inline, since a function's entry is a probe. */
static inline struct instance *
instance_of(const struct ktr_firing *f)
{
	return instance_owners[f->owner];
}

/* The CPUs that record; 0: tracing is off. Sets them; switches tracing. Any context. */
uint64_t instance_mask(const struct instance *i);
/* Where it is; atomic. */
const uint64_t *instance_mask_at(const struct instance *i);
void instance_set_mask(struct instance *i, uint64_t mask);
void instance_switch(struct instance *i, bool on);
/* buffer_size_kb. 0 or -errno. Another size empties a log that is not the main one. */
int instance_resize(struct instance *i, unsigned entries);
unsigned instance_entries(const struct instance *i);

/* Record an event in the instance's log, as ktr_log_record() and ktr_log_record_data() do; and one
 * of a firing. Any context. */
bool instance_record(struct instance *i, const struct ktr_site *site,
		     const uint64_t args[KTR_MAXARGS]);
bool instance_record_data(struct instance *i, const struct ktr_site *site,
			  const uint64_t args[KTR_MAXARGS], const void *data, size_t len);
void instance_fire(struct instance *i, const struct ktr_firing *f);
/* The same in all instances but the top that have enabled the event. */
void instances_fire(const struct ktr_firing *f);

/* ---- pids.c: of which threads ---- */

/* Do the list and the next one have any? Any context. */
static inline bool
pids_any(const struct instance *i, enum pid_list list)
{
	return (__atomic_load_n(&i->pids[list].n, __ATOMIC_RELAXED) |
		__atomic_load_n(&i->pids[list + 1].n, __ATOMIC_RELAXED)) != 0;
}
/* Do they want this thread? Any context. */
bool pids_have(const struct instance *i, enum pid_list list);
static inline bool
pids_want(const struct instance *i, enum pid_list list)
{
	return !pids_any(i, list) || pids_have(i, list);
}
/* An option has changed: a list follows those who fork and exit, or not. 0 or -errno. */
int pids_follow(void);
/* The files: arg is the list. */
void pids_show(uintptr_t arg, struct sbuf *out);
int pids_store(uintptr_t arg, char *text);
int pids_clear(uintptr_t arg);

/* ---- snapshot.c: copies of a log ---- */

/* Takes one, if there is memory for it and nobody reads the last one. Any context. */
void snapshot_take(struct instance *i, unsigned cpu);
/* The same of the entries from these numbers on, which belong to a latency. False: none. */
bool snapshot_keep(struct instance *i, const uint64_t from[MAX_CPUS], const struct latency *l);
/* Gives instance_now memory for a snapshot. 0 or -ENOMEM. */
int snapshot_alloc(void);
void snapshot_free(void);
/* A reader comes or goes. */
void snapshot_hold(struct instance *i, bool hold);
/* What is written to the file. 0 or -errno. */
int snapshot_store(uint64_t command, unsigned cpu);
/* Locks as of print_head(). */
bool snapshot_is_empty(unsigned cpu);
void snapshot_print_help(struct sbuf *out, unsigned cpu);

/* ---- dump.c: the trace on the console ---- */

/* Prints the instance's entries of a CPU, or of all, soon after; no more are recorded. Any context,
 * while somebody uses it. */
void dump_ask(struct instance *i, unsigned cpu);
/* One user more, or one less (-1). 0 or -ENOMEM. */
int dump_use(int more);

/* ---- options.c: trace_options, options/ ---- */

enum trace_option {
	OPTION_CONTEXT_INFO,
	OPTION_EVENT_FORK,
	OPTION_FUNC_STACK,
	OPTION_FUNCTION_FORK,
	OPTION_FUNCTION_TRACE,
	OPTION_IRQ_INFO,
	OPTION_LATENCY_FORMAT,
	OPTION_MARKERS,
	OPTION_PRINT_PARENT,
	OPTION_STACKTRACE,
	OPTION_SYM_ADDR,
	OPTION_SYM_OFFSET,
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
bool option_on(const struct instance *i, enum trace_option option);
void options_show(uintptr_t arg, struct sbuf *out);
int options_store(uintptr_t arg, char *text);
extern const struct tracefs_file options_dir;

/* ---- buffer.c: the entries of the log, in the order of their times ---- */

#define BUFFER_ALL UINT_MAX /* instead of a CPU */

/* Reads entries, the oldest first. */
struct buffer_reader {
	struct buffer *b;
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

void buffer_open(struct buffer_reader *r, struct buffer *b, unsigned cpu, bool consume);
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
void buffer_clear(struct buffer *b, unsigned cpu);
/* The log has new rings. */
void buffer_forget(struct buffer *b);
/* How many entries `trace` would show, and how many were written since it was cleared. Control
 * lock held. */
void buffer_count(const struct buffer *b, unsigned cpu, uint64_t *entries, uint64_t *written);

extern const struct vnode_ops trace_ops, trace_pipe_ops, trace_pipe_raw_ops, trace_marker_ops;
extern const struct vnode_ops trace_marker_raw_ops;
extern const struct vnode_ops snapshot_ops;

/* ---- print.c: an entry as Linux prints it ---- */

/* The head of `trace`. Control lock held, as for the next. */
void print_head(struct sbuf *out, const struct buffer_reader *r);
/* A line, or several. Takes the entry, and a second one if it is the return of a function that
 * called none. False: there is no entry. */
bool print_entry(struct sbuf *out, struct buffer_reader *r);
/* The event itself: name and parameters. */
void print_event(struct sbuf *out, const struct buffer_reader *r, const struct ktr_entry *e,
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

/* The last two of the seven parameters of a probe of SDT, which the log has as one text. */
void raw_last(const struct ktr_log *log, const struct ktr_entry *e, unsigned cpu, uint64_t seq,
	      uint64_t v[2]);
/* Makes the data of an entry, whose event is that of the site. */
void raw_put(struct raw_data *d, const struct ktr_site *site, const struct ktr_entry *e,
	     const struct ktr_value *v, unsigned n);

/* Fills a page with the reader's next events that have a format. False: there are none. Locks as of
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

/* ---- profile.c: the function profiler ---- */

/* A list of functions has changed. */
void profile_update(void);
void profile_show_enabled(uintptr_t arg, struct sbuf *out);
int profile_store_enabled(uintptr_t arg, char *text);
extern const struct tracefs_file profile_dir; /* trace_stat */

/* ---- stack.c: the deepest stack ---- */

/* A list of functions has changed. */
void stack_update(void);
void stack_show(uintptr_t arg, struct sbuf *out);
void stack_show_size(uintptr_t arg, struct sbuf *out);
int stack_store_size(uintptr_t arg, char *text);

/* ---- error_log.c ---- */

/* A command was refused: which part of ftrace says what about it, and about which character. */
void error_log_add(const char *system, const char *message, const char *command, size_t at);
void error_log_show(uintptr_t arg, struct sbuf *out);
int error_log_store(uintptr_t arg, char *text);
int error_log_clear(uintptr_t arg);

/* ---- kprobes.c, kprobe_print.c: arg says of which probes ---- */

enum { PROBES_KERNEL, PROBES_USER, PROBES_EVENT, PROBES_ALL }; /* as enum kprobe_kind */

void kprobes_show(uintptr_t arg, struct sbuf *out); /* kprobe_events, dynamic_events, … */
int kprobes_store(uintptr_t arg, char *text);
int kprobes_clear(uintptr_t arg);
/* Takes a line: makes a probe, or removes some, of all only with PROBES_ALL. 0 or -errno. */
int kprobes_command(uintptr_t of, char *line);
void kprobes_show_profile(uintptr_t arg, struct sbuf *out);
/* FUNCTION+OFFSET/SIZE. */
void print_address(struct sbuf *out, uintptr_t at);
/* Prints place and arguments of an event of a kprobe. False: it is another event. Control lock
 * held. */
/* The format of such an event as kprobes_print() prints it, without the place. False: it is another
 * event. */
bool kprobe_event_format(const struct ktr_site *site, const char *from, char *fmt);
/* How many places an event of a kprobe has: that of its instruction, or of the function and where
 * that returns to. 0: it is another event. Control lock held. */
unsigned kprobe_event_places(const struct ktr_site *site);
/* What they are; 0: not known. Control lock held. */
void kprobes_places(const struct ktr_site *site, const struct ktr_entry *e, uint64_t v[2]);
bool kprobes_print(struct sbuf *out, const struct ktr_site *site, const struct ktr_entry *e);

/* ---- eprobe.c: probes at events ---- */

struct eprobe;
/* Fires an event probe, with those fields of its event. In hooks. */
void eprobe_fire(const struct eprobe *e, const struct ktr_firing *f, const uint64_t *fields);
/* Gives the event probe that was made its program. 0; or -errno, and it is removed. */
int eprobe_attach(void);
/* Takes their programs from those of kprobe_del(), which go. */
void eprobes_detach(const char *which);
/* Drops those whose events are not there any more. */
void eprobes_clean(void);
/* Is one at the event? */
bool eprobe_is_at(const struct ktr_site *site);

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
/* The site's event is to go: drops its filters in all instances. */
void event_filter_drop(const struct ktr_site *site);
/* Drops filters, triggers and histograms of events that are not there any more, in all instances.
 */
void event_filters_clean(void);
/* Drops all of instance_now. */
void event_filters_stop(void);
/* Has the site another event now than the one of that name? */
bool event_is_gone(const struct ktr_site *site, const char *name);
/* Prints the filter, or "none". */
void event_filter_show(const struct ktr_site *site, struct sbuf *out);
/* Appends code of a filter, after which the program goes on if it is true. */
int filter_compile_for(struct program *p, const struct ktr_site *site, const char *text,
		       struct filter_error *error);
/* Appends code, after which the program goes on if the word is not 0. */
void program_gate(struct program *p, const uint32_t *gate);
/* Appends code, after which the program goes on if the event belongs to instance_now. */
void program_instance(struct program *p, const struct ktr_site *site);

/* ---- upcall.c ---- */

struct dif_clause;
struct dtrace_consumer;
struct ktr_firing;

/* What programs ask for by DIF_UPCALL, and the registers. */
enum upcall {
	UPCALL_ON, /* struct instance *, as up to UPCALL_GATE */
	UPCALL_OFF,
	UPCALL_STACK,
	UPCALL_RECORD,
	UPCALL_SNAPSHOT,
	UPCALL_DUMP,
	UPCALL_CPUDUMP,
	UPCALL_GATE = 16, /* address of a word, value */
	UPCALL_SYNTHETIC, /* struct synthetic *, values of the fields */
	UPCALL_EPROBE,    /* struct eprobe *, values of the event's fields */
};

/* Appends a call for instance_now. */
void program_upcall(struct program *p, enum upcall what);

/* Records FUNCTION+OFFSET from the probe on, the innermost first, with blanks between. In hooks. */
void record_stack(struct instance *i, const struct ktr_firing *f);

/* The next place of such a text; returns where the one after it is. */
const char *stack_next(const char *text, uintptr_t *at);

extern struct ktr_site trigger_stack; /* of the entries of `stacktrace` */

/* NULL: no memory. */
struct program *program_new(void);
void program_free(struct program *p);
/* Runs the program: clause N of it at sites[N]. 0 or -errno. dtrace_detach() ends it. */
int program_attach(const struct program *p, const struct dif_clause *clauses,
		   const struct ktr_site *const *sites, unsigned n, struct dtrace_consumer **to);
/* Ends a program of one clause, and runs it at n sites; `to` NULL: nowhere. Frees it. error: what
 * has failed so far, which is returned; or 0, and the result may be -errno. */
int program_finish(struct program *p, int error, const struct ktr_site *const *sites, unsigned n,
		   struct dtrace_consumer **to);

/* ---- trigger.c ---- */

void trigger_show(uintptr_t arg, struct sbuf *out); /* arg: the event's site */
int trigger_store(uintptr_t arg, char *text);
int trigger_clear(uintptr_t arg);
/* Drops the triggers of events that are not there any more. */
void triggers_clean(void);
/* Drops all, and all histograms. */
void triggers_stop(void);
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
/* Drops all. */
void hists_stop(void);
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
/* NAME FIELDS; or !NAME, which removes it. 0 or -errno. */
int synthetic_command(char *text);
/* s:[synthetic/]NAME FIELDS */
int synthetic_command_dynamic(char *text);
/* As dynamic_events has them. */
void synthetic_show_dynamic(struct sbuf *out);

/* ---- events.c ---- */

/* Room for the name of an event. */
#define EVENT_NAME KTR_EVENT_NAME
/* The systems of the events of kprobes and uprobes, which are made and removed. */
#define EVENT_KPROBES "kprobes"
#define EVENT_UPROBES "uprobes"
/* The system of the event `print`, of text in trace_marker: it has triggers, in the instance where
 * the text was written. */
#define EVENT_MARK "ftrace"
/* Is an event enabled, with or without a filter? */
bool event_is_enabled(const struct ktr_site *site);
/* Does any instance record it, or have triggers for it? */
bool event_is_used(const struct ktr_site *site);
/* Disables all, and forgets the owner. */
void events_stop(void);
/* The lists of threads have changed, or the option stacktrace. 0 or -errno. */
int events_pids_changed(void);
/* Makes the log, or its program, record it. */
int event_enable(const struct ktr_site *site);
/* The directory of a site's event. NULL: it is none. */
const char *event_system(const struct ktr_site *site);
/* The event of these names; NULL: there is none. */
struct ktr_site *event_find(const char *system, const char *event);
/* Is the event the entry of one system call, or its return? */
bool event_is_call(const struct ktr_site *site);
/* What Linux's files call the event of a site. */
void event_name(const struct ktr_site *site, char name[EVENT_NAME]);
/*
 * Its printf format, and how many parameters that has; as_recorded: of what is in the log, where
 * the last two of seven are one text, and what a system call returned has no name.
 */
#define EVENT_FORMAT 320
unsigned event_format(const struct ktr_site *site, bool as_recorded, char fmt[EVENT_FORMAT]);
/* Names and types of the arguments of a firing; how many there are. */
unsigned event_params(const struct ktr_site *site, struct ktr_param params[KTR_SDT_ARGS]);
/* The texts of the events of raw_syscalls, as on Linux. */
#define EVENT_RAW_ENTER "NR %ld (%lx, %lx, %lx, %lx, %lx, %lx)"
#define EVENT_RAW_EXIT  "NR %ld = %ld"
/* Is it an event of raw_syscalls? */
bool event_is_raw_call(const struct ktr_site *site);
/*
 * The fields of the event's record for programs, and the printf format for them: of a kprobe its
 * place or places, then what event_params() has. How many there are. Control lock held.
 */
#define EVENT_RECORD (KTR_SDT_ARGS + 2)
unsigned event_record(const struct ktr_site *site, char fmt[EVENT_FORMAT],
		      struct ktr_param params[EVENT_RECORD]);
extern const struct tracefs_file events_dir;
void events_show_all(uintptr_t arg, struct sbuf *out); /* available_events */
void events_show_set(uintptr_t arg, struct sbuf *out); /* set_event */
int events_store_set(uintptr_t arg, char *text);
int events_clear_set(uintptr_t arg);
