/*
 * instance.h - what belongs to a log: buffers, tracer, options, lists of threads, filters,
 * triggers, histograms.
 *
 * In: what is written to files of tracefs; firings of probes, by the hooks of the instance's owners
 * (instance_owner()). Out: events in its log, which the files of buffer/ show.
 *
 * Guarded by ftrace_lock unless said otherwise; [lock]: by the instance's own.
 *
 * Files, in reading order: tracefs.c (how a file is read and written), files.c (which there are),
 * instance.c, pids.c (of which threads), options.c, clock.c, error_log.c, readme.c, boot.c (Linux's
 * boot parameters). Folders: buffer/ shows entries, tracer/ records functions, event/ has the
 * events, hist/ the histograms.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/tracefs.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/list.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/sched/sched.h"
#include "kernel/sync/pcpu.h"
#include "ktr/control.h"
#include "ktr/dynamic.h"
#include "ktr/hook.h"
#include "ktr/ring.h"

struct dtrace_consumer;

/* ---- instance.c: what belongs to a log ---- */

/* Lists of threads; each is followed by the list of threads that are left out. */
enum pid_list { PIDS_FUNCTION, PIDS_FUNCTION_NOT, PIDS_EVENT, PIDS_EVENT_NOT, PID_LISTS };
#define PIDS_MAX      1024
#define ERROR_LOG     8 /* entries, as in Linux */
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
	unsigned snapshot_users; /* triggers and histograms that take some */
	uint32_t snapshot_taken; /* atomic: 1 if the last one that was asked for was taken */
	bool snapshot_there;
	uint32_t lock; /* hook_lock(), in hooks and within ktr_hook_without() */
	uint64_t mask,
	    cpus; /* CPUs that record (not of the top); and while it is on; atomic, [lock] */
	uint32_t options; /* atomic; bit N: option N is not as by default */
	unsigned pauses;  /* instance_pause(); [lock] */
	bool resumes;     /* … afterwards tracing is on again; atomic, [lock] */
	unsigned dump;    /* atomic: what is asked for, see dump.c */
	unsigned entries; /* of a ring of its own */
	enum tracer tracer;
	unsigned clock;                      /* trace_clock, see clock.c */
	unsigned tracer_owner, events_owner; /* of its probes; 0: none */
	unsigned fork_owner;                 /* the probes that change its lists of threads */
	struct pids {
		uint32_t pid[PIDS_MAX]; /* atomic; changed under [lock] */
		unsigned n;             /* … */
		unsigned missed;        /* children for whom there was no room; [lock] */
	} pids[PID_LISTS];
	struct error_log {
		unsigned count; /* since it was cleared */
		struct error_logged {
			uint64_t ns;
			char system[128], message[128], command[256];
			size_t at;
		} last[ERROR_LOG];
	} errors;
	struct functions functions;
	struct function_repeats {
		const struct ktr_site *site; /* the function that was called last on this CPU */
		uint64_t parent, last_ns;    /* by whom, and when it was called again */
		uint64_t n;                  /* so often again */
	} repeats[MAX_CPUS];                 /* its CPU's hook: the option func-no-repeats */
	unsigned percent;                    /* atomic: buffer_percent */
	struct list filters, triggers, hists;
	struct list system_filters; /* texts that were written to events/SYSTEM/filter */
	/* Events of ktr_dynamic_sites that were enabled since their definition. */
	uint64_t was_on[(KTR_DYNAMIC_SITES + 63) / 64];
	struct dtrace_consumer *linked; /* of all its histograms that have variables */
};

extern struct instance instance_top;

/* Is the instance still there? i may be the address of one that was removed. ftrace_lock. */
bool instance_is_there(const struct instance *i);
/* Calls f(i, arg) for each instance until it is true. */
bool instances_any(bool (*f)(struct instance *i, const void *arg), const void *arg);
extern const struct tracefs_file instances_dir;
/* clock.c */
/* The name of an instance's clock: read-only data. */
const char *clock_name(const struct instance *i);
/* The number of the clock of this name, or -EINVAL. */
int clock_find(const char *name, size_t len);
void clock_show(struct instance *i, uintptr_t arg, struct sbuf *out);
int clock_store(struct instance *i, uintptr_t arg, char *text);
/* readme.c */
void readme_show(struct instance *i, uintptr_t arg, struct sbuf *out);
/* Makes one. 0 or -errno. */
int instance_make(const char *name, struct instance **made);
/* files.c: the folder of an instance; gives it and its snapshot other buffers. 0 or -errno. */
void tracefs_fill_instance(struct vnode *dir);
int instance_resize_kb(struct instance *i, uint64_t kb);

/* Registers an owner of probes, whose hook, if it has one, works for the instance. Returns its
 * number, or -errno. */
int instance_owner(struct instance *i, const char *name, ktr_hook_fn *hook);
/* Unregisters an owner, which becomes 0. Does nothing if it is 0. */
void instance_disown(unsigned *owner);
extern struct instance *instance_owners[KTR_OWNER_MAX]; /* change while they have no hook */

/* The instance of such a hook. What hooks call is inline, since a function's entry is a probe. */
static inline struct instance *
instance_of(const struct ktr_firing *f)
{
	return instance_owners[f->owner];
}

/* The CPUs that record; 0: tracing is off, or somebody has paused it. Any context. */
uint64_t instance_mask(const struct instance *i);
/* Is tracing on, also if it is paused? Any context. */
bool instance_is_on(const struct instance *i);
/* Where it is; atomic. */
const uint64_t *instance_mask_at(const struct instance *i);
/* Switches tracing: the first anywhere but in hooks, the second in hooks. */
void instance_switch(struct instance *i, bool on);
void instance_switch_in_hook(struct instance *i, bool on);
/* The CPUs that record, now or when tracing is on again. */
void instance_set_cpus(struct instance *i, uint64_t cpus);
/* Counts who wants nothing to be recorded for a while. When the last one has gone, tracing is on
 * if it was on before, or as it was switched meanwhile. */
void instance_pause(struct instance *i, bool pause);
/* buffer_size_kb. 0 or -errno. Another size empties a log that is not the main one. */
int instance_resize(struct instance *i, unsigned entries);
extern unsigned instance_entries_new; /* trace_buf_size= of new instances; 0: it says nothing */
unsigned instance_entries(const struct instance *i);

/* Record an event in the instance's log: as ktr_log_record() does, as ktr_log_record_data()
 * does, and from a firing. Any context. */
void instance_record(struct instance *i, const struct ktr_site *site,
		     const uint64_t args[KTR_MAXARGS]);
bool instance_record_data(struct instance *i, const struct ktr_site *site,
			  const uint64_t args[KTR_MAXARGS], const void *data, size_t len);
void instance_fire(struct instance *i, const struct ktr_firing *f);
/* As events_record(), in each instance that has enabled the event, unless the main log records
 * it by itself. */
void instances_fire(const struct ktr_firing *f);

/* ---- pids.c: of which threads ---- */

/* Has the list, or the next one, any threads? Any context. */
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
/* Is the firing recorded, as the lists of events say? In a hook. */
bool pids_have_event(const struct instance *i, const struct ktr_firing *f);
static inline bool
pids_want_event(const struct instance *i, const struct ktr_firing *f)
{
	return !pids_any(i, PIDS_EVENT) || pids_have_event(i, f);
}
/* An option has changed: a list follows those who fork and exit, or not. 0 or -errno. */
int pids_follow(struct instance *i);
/* The files: arg is the list. */
void pids_show(struct instance *i, uintptr_t arg, struct sbuf *out);
int pids_store(struct instance *i, uintptr_t arg, char *text);
int pids_clear(struct instance *i, uintptr_t arg);

/* ---- options.c: trace_options, options/ ---- */

/* Each row: name, text, and whether the option is on at first. */
#define TRACE_OPTIONS(X)                              \
	X(ANNOTATE, "annotate", true)                 \
	X(BLK_CLASSIC, "blk_classic", false)          \
	X(CONTEXT_INFO, "context-info", true)         \
	X(EVENT_FORK, "event-fork", false)            \
	X(FUNC_NO_REPEATS, "func-no-repeats", false)  \
	X(FUNC_STACK, "func_stack_trace", false)      \
	X(FUNCTION_FORK, "function-fork", false)      \
	X(FUNCTION_TRACE, "function-trace", true)     \
	X(GRAPH_TIME, "graph-time", true)             \
	X(IRQ_INFO, "irq-info", true)                 \
	X(LATENCY_FORMAT, "latency-format", false)    \
	X(MARKERS, "markers", true)                   \
	X(OVERWRITE, "overwrite", true)               \
	X(PAUSE, "pause-on-trace", false)             \
	X(PRINT_PARENT, "print-parent", true)         \
	X(PRINTK_MSG_ONLY, "printk-msg-only", false)  \
	X(RECORD_CMD, "record-cmd", true)             \
	X(RECORD_TGID, "record-tgid", false)          \
	X(SLEEP_TIME, "sleep-time", true)             \
	X(STACKTRACE, "stacktrace", false)            \
	X(SYM_ADDR, "sym-addr", false)                \
	X(SYM_OFFSET, "sym-offset", false)            \
	X(USER_STACK, "userstacktrace", false)        \
	X(GRAPH_ABSTIME, "funcgraph-abstime", false)  \
	X(GRAPH_CPU, "funcgraph-cpu", true)           \
	X(GRAPH_DURATION, "funcgraph-duration", true) \
	X(GRAPH_IRQS, "funcgraph-irqs", true)         \
	X(GRAPH_OVERHEAD, "funcgraph-overhead", true) \
	X(GRAPH_OVERRUN, "funcgraph-overrun", false)  \
	X(GRAPH_PROC, "funcgraph-proc", false)        \
	X(GRAPH_TAIL, "funcgraph-tail", false)

enum trace_option {
#define OPTION(name, text, on) OPTION_##name,
	TRACE_OPTIONS(OPTION)
#undef OPTION
	    OPTIONS
};

/* Any context. */
bool option_on(const struct instance *i, enum trace_option option);
void options_show(struct instance *i, uintptr_t arg, struct sbuf *out);
int options_store(struct instance *i, uintptr_t arg, char *text);
extern const struct tracefs_file options_dir;

/* ---- error_log.c ---- */

/* Notes that a command to the instance was refused: the part of ftrace that refuses it, its
 * message, and the character of the command at which it is wrong. */
void error_log_add(struct instance *i, const char *system, const char *message, const char *command,
		   size_t at);
void error_log_show(struct instance *i, uintptr_t arg, struct sbuf *out);
int error_log_store(struct instance *i, uintptr_t arg, char *text);
int error_log_clear(struct instance *i, uintptr_t arg);
