/*
 * tracer.h - tracers: current_tracer, the lists of functions, the function profiler, stack_trace.
 *
 * In: the name of a tracer, lists of functions, and the entries and returns of functions (FBT).
 * Out: events of the sites that are declared here, in the log of the instance; print.c prints them.
 *
 *	probe of a function ──► hook of the tracer ──► functions_traced(), pids_want()
 *	                                                    │ yes
 *	log of the instance ◄── instance_record() ◄─────────┘
 *
 * The latency tracers record as the function tracer does, and keep a copy of the log when a time
 * was the longest so far (snapshot_keep()).
 *
 * Locking: ftrace_lock guards what is switched on. What hooks read changes while they are off, or
 * is atomic; what several of them write has a hook_lock() (latency.c, stack.c).
 *
 * Files, in reading order: functions.c (the lists), tracer.c (function, function_graph), latency.c
 * (irqsoff, wakeup, …), blk.c, threads.c, hwlat.c,
 * osnoise.c, timerlat.c, profile.c, stack.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/ftrace/tracefs.h"
#include "kernel/lib/sbuf.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"
#include "ktr/entry.h"
#include "ktr/hook.h"
#include "ktr/ktr.h"
#include "ktr/site.h"

struct instance;
struct latency;

/* ---- tracer.c: the current tracer ---- */

/* Defines the site of an event that the log records when ftrace says so, with n parameters. */
#define TRACER_SITE(variable, n, format)                                 \
	struct ktr_site variable KTR_SITE_SECTION_ = {.file = __FILE__,  \
						      .func = #variable, \
						      .fmt = (format),   \
						      .line = __LINE__,  \
						      .nargs = (n),      \
						      .kind = KTR_SITE_RECORD}

/* The sites of the events that tracers record. */
extern struct ktr_site tracer_function, tracer_graph_entry, tracer_graph_return, tracer_mark;
extern struct ktr_site tracer_raw, tracer_repeats;

enum tracer {
	TRACER_NOP,
	TRACER_FUNCTION,
	TRACER_GRAPH,
	TRACER_IRQSOFF,
	TRACER_PREEMPTOFF,
	TRACER_PREEMPTIRQSOFF,
	TRACER_WAKEUP,
	TRACER_WAKEUP_RT,
	TRACER_BLK,
	TRACER_HWLAT,
	TRACER_OSNOISE,
	TRACER_TIMERLAT,
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

/* The name of an instance's current tracer: read-only data. */
const char *tracer_name(const struct instance *i);
/* Ends the instance's tracer: the current one is nop then. */
void tracer_stop(struct instance *i);
/* A list of functions has changed. */
void tracer_update(struct instance *i);
/* What is traced has changed: the graph tracer forgets which functions are entered. */
void tracer_forget_calls(const struct instance *i);
void tracer_show_all(struct instance *i, uintptr_t arg, struct sbuf *out); /* available_tracers */
void tracer_show(struct instance *i, uintptr_t arg, struct sbuf *out);     /* current_tracer */
int tracer_store(struct instance *i, uintptr_t arg, char *text);

/* Numbers that hooks read at any time: files of one number each. */
extern uint64_t tracer_max_depth; /* max_graph_depth; 0: none */
extern uint64_t tracer_thresh_ns; /* tracing_thresh: only calls that last as long; 0: all */

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
	bool anew[FUNCTIONS_LISTS];                 /* opened with >: see functions_clear() */
	/* Words of the first two lists about modules that are not there, as Linux keeps them. */
	char waiting[2][128];
};

/* Is it the entry of a function that has a name of that form? See ksym_ask(). */
bool function_is(const struct ktr_site *site, const char *glob);
/* The name by which the function of an entry's site is shown: read-only data. */
const char *function_name(const struct ktr_site *entry);
/* Are there names in a list? Any context. */
bool functions_any(const struct functions *f, enum function_list list);
/* Is the function of this site in a list? Any context. */
bool functions_have(const struct functions *f, enum function_list list,
		    const struct ktr_site *site);
/* Is the function of this site to be traced, as the first two lists say? */
bool functions_traced(const struct functions *f, const struct ktr_site *site);
/* The files: arg is the list. As in Linux the old one counts until somebody writes, or closes. */
void functions_show(struct instance *i, uintptr_t arg, struct sbuf *out);
int functions_store(struct instance *i, uintptr_t arg, char *text);
int functions_clear(struct instance *i, uintptr_t arg);
void functions_close(struct instance *i, uintptr_t arg);
/* available_filter_functions, enabled_functions. */
void functions_show_all(struct instance *i, uintptr_t arg, struct sbuf *out);
void functions_show_enabled(struct instance *i, uintptr_t arg, struct sbuf *out);
/* dyn_ftrace_total_info */
void functions_show_total(struct instance *i, uintptr_t arg, struct sbuf *out);

/* ---- latency.c: the tracers irqsoff, wakeup and wakeup_rt ---- */

extern struct ktr_site latency_point, latency_switch;
ktr_hook_fn irqsoff_fire, wakeup_fire;
/* Nothing was kept yet. */
void latency_start(void);
/* Is one of the latency tracers the current one? Does it want this site? */
bool tracer_is_latency(enum tracer t);
bool latency_is_on(const struct instance *i);
/* Is its trace printed in their format? */
bool latency_layout(const struct instance *i);
bool latency_wants(const struct ktr_site *site);
extern uint64_t latency_longest_ns; /* atomic: tracing_max_latency */
/* Is the latency the longest so far, or as long as tracing_thresh? Any context. */
bool latency_counts(const struct latency *l);
void latency_print_head(struct sbuf *out, const struct instance *i, uint64_t entries,
			uint64_t written);
/* What is before an event, if the next one is from that time; an event of these tracers. */
void latency_print_context(struct sbuf *out, const struct instance *i, const struct ktr_entry *e,
			   unsigned cpu, uint64_t next_ns);
bool latency_print(struct sbuf *out, const struct ktr_entry *e, unsigned cpu);

/* ---- blk.c: the tracer of that name ---- */

ktr_hook_fn blk_fire;
/* Finds the events. ftrace_lock, before blk_wants(). */
void blk_start(void);
/* Is it one of the events that the tracer prints? Any context. */
bool blk_wants(const struct ktr_site *site);
/* Prints the head of the trace; and what is before an event, with the option blk_classic. */
void blk_print_head(struct sbuf *out);
/* Prints an event of the tracer. False: it is another one. */
bool blk_print(struct sbuf *out, const struct instance *i, const struct ktr_entry *e, unsigned cpu);
/* Makes /sys/block, with a folder for each disk. Once, at boot. */
void blk_make_files(struct vnode *sys);

/* ---- threads.c: threads of a tracer, one a CPU ---- */

struct tracer_thread {
	struct tracer_threads *all; /* NULL: it never was */
	unsigned cpu;
	struct spinlock lock;
	bool woken, alive; /* lock */
};

struct tracer_threads {
	const char *name;  /* what they wait for */
	const char *names; /* a format with the CPU's number */
	uint8_t prio;      /* a real-time thread's is SCHED_FIFO */
	void (*run)(
	    struct tracer_thread *me); /* returns soon after tracer_thread_runs() is false */
	bool running;                  /* atomic */
	struct tracer_thread of[MAX_CPUS];
};

/* On the CPUs of a mask. 0 or -ENOMEM, and then there are none. ftrace_lock; it may sleep. */
int tracer_threads_start(struct tracer_threads *all, uint64_t cpus);
/* Wakes the threads, and waits until they have ended. ftrace_lock; may sleep. */
void tracer_threads_stop(struct tracer_threads *all);
/* Any context. */
bool tracer_thread_runs(const struct tracer_thread *me);
/* Waits for tracer_thread_wake() (true), until then, or for the end. By the thread itself. */
bool tracer_thread_sleep(struct tracer_thread *me, uint64_t until_ns);
/* Any context but NMI. */
void tracer_thread_wake(struct tracer_thread *t);

/* ---- hwlat.c: the tracer of that name ---- */

/* 0 or -ENOMEM. */
int hwlat_start(void);
void hwlat_stop(void);
/* Prints an event of the tracer. False: it is another one. */
bool hwlat_print(struct sbuf *out, const struct ktr_entry *e);
extern struct ktr_site hwlat_site;
extern const struct tracefs_file hwlat_dir; /* hwlat_detector */

/* ---- osnoise.c, timerlat.c: the tracers of these names ---- */

/* Files of osnoise/, in microseconds. The last three are limits; 0: none. */
enum osnoise_setting {
	OSNOISE_PERIOD,
	OSNOISE_RUNTIME,
	OSNOISE_TIMERLAT_PERIOD,
	OSNOISE_PRINT_STACK, /* a thread later than this has its interrupt's stack recorded */
	OSNOISE_STOP,        /* one noise, or a timer's interrupt, that is longer ends tracing */
	OSNOISE_STOP_TOTAL,  /* … a period's noise, or the thread */
	OSNOISE_SETTINGS
};

/*
 * Starts the tracer in one more instance. 0; -ENOMEM; -EBUSY if osnoise is to begin and timerlat is
 * on, or the other way round, if too many instances have it, or if there is no owner of probes
 * left.
 */
int osnoise_start(struct instance *i, enum tracer t);
void osnoise_stop(struct instance *i);
void osnoise_print_head(struct sbuf *out);
/* Prints an event of the tracer. False: it is another one. */
bool osnoise_print(struct sbuf *out, const struct ktr_entry *e);
extern const struct tracefs_file osnoise_dir;

/*
 * For the threads of both tracers, any context but NMI. osnoise_each() calls fn, with interrupts
 * off, for each instance that has the tracer. osnoise_record() records an event in these, unless it
 * is NULL, and stops tracing there if `stop`. osnoise_exceeds(): is the setting not 0, and shorter
 * than ns?
 */
void osnoise_each(void (*fn)(struct instance *i, const void *arg), const void *arg);
void osnoise_record(const struct ktr_site *site, const uint64_t args[KTR_MAXARGS], bool stop);
uint64_t osnoise_setting_ns(enum osnoise_setting setting);
bool osnoise_exceeds(enum osnoise_setting setting, uint64_t ns);

/* What a thread of timerlat does: waits for its timer, and says how late both were. */
void timerlat_run(struct tracer_thread *me);
void timerlat_print_head(struct sbuf *out);
bool timerlat_print(struct sbuf *out, const struct ktr_entry *e);
extern struct ktr_site osnoise_site, timerlat_site;

/* ---- profile.c: the function profiler ---- */

/* A list of functions has changed. */
void profile_update(void);
void profile_show_enabled(struct instance *i, uintptr_t arg, struct sbuf *out);
int profile_store_enabled(struct instance *i, uintptr_t arg, char *text);
extern const struct tracefs_file profile_dir; /* trace_stat */

/* ---- stack.c: the deepest stack ---- */

/* A list of functions has changed. */
void stack_update(void);
void stack_show(struct instance *i, uintptr_t arg, struct sbuf *out);
void stack_show_size(struct instance *i, uintptr_t arg, struct sbuf *out);
int stack_store_size(struct instance *i, uintptr_t arg, char *text);
