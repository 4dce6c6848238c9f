/*
 * event.h - events: the folders of events/, and what happens when an event fires.
 *
 * In: texts that somebody writes to `enable`, `filter`, `trigger`, set_event, kprobe_events,
 * uprobe_events, synthetic_events and dynamic_events. Out: events in the log of an instance, and
 * what triggers do.
 *
 *	text ──► filter.c ──► program.c ──► program_attach() ──► the engine (kernel/dtrace)
 *	                                                              │ when the event fires
 *	log of the instance ◄── instance_fire() ◄── event_upcall() ◄────────┘
 *
 * An event that has neither a filter nor triggers has no program: its trace point records into the
 * main log, or calls the hook of its instance (events.c).
 *
 * Locking: ftrace_lock guards everything unless said otherwise. It is taken before dtrace_lock and
 * before the control lock, which guards the probes. What programs and hooks call takes none of
 * them: event_upcall(), record_stack(), synthetic_fire(), eprobe_fire(); some of it takes a
 * hook_lock().
 *
 * Files, in reading order: event_name.c (names, formats), events.c (what is enabled),
 * event_filter.c (an event's program), filter.c and program.c (how one is compiled), upcall.c (what
 * it asks for), trigger.c, trigger_functions.c, kprobes.c, kprobe_print.c, eprobe.c, synthetic.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/ftrace/tracefs.h"
#include "kernel/lib/list.h"
#include "kernel/lib/sbuf.h"
#include "ktr/entry.h"
#include "ktr/event_format.h"
#include "ktr/hook.h"
#include "ktr/intern.h"
#include "ktr/param.h"
#include "ktr/site.h"

struct dif_clause;
struct dtrace_consumer;
struct filter_error;
struct instance;
struct ktr_log;
struct program;

/* ---- event_name.c ---- */

/* Room for the name of an event. */
#define EVENT_NAME KTR_EVENT_NAME
/* The systems of the events of kprobes and uprobes, which are made and removed. */
#define EVENT_KPROBES "kprobes"
#define EVENT_UPROBES "uprobes"
/* The system of the event `print`, which text in trace_marker makes. The event has triggers in
 * the instance where the text was written. */
#define EVENT_MARK "ftrace"
/* The directory of a site's event. NULL: the site has no event. */
const char *event_system(const struct ktr_site *site);
/* Is that the event's directory? Ask for it and the name in one call: probes go at any time. */
bool event_is_in(const struct ktr_site *site, const char *system);
/* Is the event the entry of one system call, or its return? Which number has the call? */
bool event_is_call(const struct ktr_site *site);
uint64_t event_call_number(const struct ktr_site *site);
/* What Linux's files call the event of a site. */
void event_name(const struct ktr_site *site, char name[EVENT_NAME]);
/* For struct ktr_format_out: adds to an sbuf. */
void event_format_put(void *out, const char *text, size_t n);
/* Returns the event of these names, which are no globs, or NULL. An event that was made at run
 * time stays while the control lock is held; others stay for ever. */
struct ktr_site *event_find(const char *system, const char *event);
/*
 * Makes an event's printf format; returns how many parameters it has. as_recorded: the format is
 * for what is in the log, where the last two parameters of seven are one text, and the result of a
 * system call has no name.
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
 * Lists the fields of the event's record for programs, and makes the printf format for them: first
 * the place or places of a kprobe, or the number of a system call, which no text shows; then what
 * event_params() lists. Returns how many fields there are. Control lock held.
 */
#define EVENT_RECORD (KTR_SDT_ARGS + 2)
unsigned event_record(const struct ktr_site *site, char fmt[EVENT_FORMAT],
		      struct ktr_param params[EVENT_RECORD]);

/* ---- events.c ---- */

/* Is an event enabled, with or without a filter? */
bool event_is_enabled(const struct instance *i, const struct ktr_site *site);
/* Has anybody the event on, or any instance triggers for it? Then it cannot be removed. */
bool event_is_used(const struct ktr_site *site);
/* Gives the instance an owner of events, if it has none. 0 or -EBUSY. After that, event_enable() of
 * an event with a program does not fail. */
int events_own(struct instance *i);
/* Disables all, and forgets the owner. */
void events_stop(struct instance *i);
/* Does the log record an instance's events as they are: all threads', without stacks? */
bool events_log_itself(const struct instance *i);
/* Records an event of the instance, as its lists and options want. Any context. */
void events_record(struct instance *i, const struct ktr_firing *f);
/* Call this after the lists of threads or the option stacktrace have changed. 0; after -errno,
 * events are recorded as before the change. */
int events_pids_changed(struct instance *i);
/* Makes the log, or the event's program, record it. */
int event_enable(struct instance *i, const struct ktr_site *site);
extern const struct tracefs_file events_dir;
void events_show_all(struct instance *i, uintptr_t arg, struct sbuf *out); /* available_events */
void events_show_set(struct instance *i, uintptr_t arg, struct sbuf *out); /* set_event */
int events_store_set(struct instance *i, uintptr_t arg, char *text);
int events_clear_set(struct instance *i, uintptr_t arg);

/* ---- event_filter.c ---- */

/* Does a program record the event there, since it has a filter, or triggers switch it? */
bool event_filter_has(const struct instance *i, const struct ktr_site *site);
/* Does a site have a filter or triggers that switch it, and is it on? */
bool event_filter_on(const struct instance *i, const struct ktr_site *site);
/* Do triggers switch it? */
bool event_filter_soft(const struct instance *i, const struct ktr_site *site);
/* Makes the program of an event that is about to be switched on. event_filters_unprepare() frees
 * all that were made and not switched on. 0 or -errno. */
int event_filter_prepare(struct instance *i, const struct ktr_site *site);
void event_filters_unprepare(struct instance *i);
/* Switches the event's program on, which is prepared, or off. Without a filter: nothing. */
void event_filter_switch(struct instance *i, const struct ktr_site *site, bool on);
/* events_log_itself() has changed: the programs that are on are made anew. 0 or -errno. */
int event_filters_renew(struct instance *i);
/* Gives a site a filter, in the place of the one it has; NULL: none. -EINVAL: *error says why. */
int event_filter_set(struct instance *i, const struct ktr_site *site, const char *text,
		     struct filter_error *error);
/* Counts one trigger more, or one less (-1), that switches the event by the word *gate, 1 or 0.
 * 0 or -errno; counting one less never fails. */
int event_filter_use(struct instance *i, const struct ktr_site *site, int more, uint32_t **gate);
/* Notes in the instance that the event was enabled, if it may be removed. */
void event_note_on(struct instance *i, const struct ktr_site *site);
/* Drops the filters of an event that is about to go, in all instances. As in Linux, clears the
 * logs that may have it. */
void event_filter_drop(const struct ktr_site *site);
/* Drops filters, triggers and histograms of events that are not there any more, in all instances.
 */
void event_filters_clean(void);
/* Drops all of an instance. */
void event_filters_stop(struct instance *i);
/* Has the site's event another name now? */
bool event_is_gone(const struct ktr_site *site, const char *name);
/* Prints the filter, or "none". */
void event_filter_show(const struct instance *i, const struct ktr_site *site, struct sbuf *out);
/* Appends the code of a filter, after which the program goes on only if the filter is true. */
int filter_compile_for(struct program *p, const struct ktr_site *site, const char *text,
		       struct filter_error *error);
/* Appends code, after which the program goes on if the word is not 0. */
void program_gate(struct program *p, const uint32_t *gate);
/* Appends code, after which the program goes on if the event belongs to the instance. */
void program_instance(struct program *p, const struct instance *i, const struct ktr_site *site);

/* ---- upcall.c ---- */

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

/* Appends to a program a call of event_upcall() for an instance. */
void program_upcall(struct program *p, const struct instance *i, enum upcall what);

/* Records FUNCTION+OFFSET from the probe on, the innermost first, with blanks between. In hooks. */
void record_stack(struct instance *i, const struct ktr_firing *f);
/* Records where the program is, if there is one, as record_stack() does. In hooks. */
void record_user_stack(struct instance *i, const struct ktr_firing *f);
/* Records these return addresses as record_stack() does. */
void record_frames(struct instance *i, const uint64_t *pcs, unsigned n);

/* The text of an entry of `stacktrace`. If its data was overwritten in part, the places that are
 * left. Locks as for print_entry(). */
const char *stack_text(const struct ktr_log *log, unsigned cpu, uint64_t seq, uint64_t word,
		       char text[KTR_STRING_MAX]);
/* The next place of such a text; returns where the one after it is. */
const char *stack_next(const char *text, uintptr_t *at);

extern struct ktr_site trigger_stack; /* of the entries of `stacktrace` */
extern struct ktr_site user_stack;    /* … and of the option userstacktrace */

/* The caller's, until program_free(). NULL: no memory. */
struct program *program_new(void);
void program_free(struct program *p);
/* Runs the program: clause N of it at sites[N]. 0 or -errno. dtrace_detach() ends it. */
int program_attach(const struct program *p, const struct dif_clause *clauses,
		   const struct ktr_site *const *sites, unsigned n, struct dtrace_consumer **to);
/*
 * Completes a program of one clause and attaches it to n sites. `to` NULL: only checks that it can
 * be completed. Frees p in any case. error: what has failed so far; if it is not 0, it is returned,
 * and nothing is attached. 0 or -errno.
 */
int program_finish(struct program *p, int error, const struct ktr_site *const *sites, unsigned n,
		   struct dtrace_consumer **to);

/* ---- trigger.c ---- */

/* The file `trigger`: the event's triggers, or which commands there are. */
void trigger_show(struct instance *i, uintptr_t arg, struct sbuf *out); /* arg: the event's site */
int trigger_store(struct instance *i, uintptr_t arg, char *text);
int trigger_clear(struct instance *i, uintptr_t arg);
/* Drops the triggers of events that are not there any more. */
void triggers_clean(struct instance *i);
/* Drops all, and all histograms. */
void triggers_stop(struct instance *i);
/* Has the event triggers? */
bool triggers_on(const struct instance *i, const struct ktr_site *site);
/* Makes the programs of these triggers anew, after a histogram was added or removed. 0 or -errno.
 */
int triggers_update(struct instance *i, const struct ktr_site *site);
/* In set_ftrace_filter: [!]FUNCTION:COMMAND[:…]. 0 or -errno. */
int trigger_store_function(struct instance *i, char *word);
void triggers_show_functions(const struct instance *i, struct sbuf *out);

/* ---- kprobes.c, kprobe_print.c: arg says of which probes ---- */

enum { PROBES_KERNEL, PROBES_USER, PROBES_EVENT, PROBES_ALL }; /* as enum kprobe_kind */

/* kprobe_events, uprobe_events, dynamic_events: the definitions. */
void kprobes_show(struct instance *i, uintptr_t arg,
		  struct sbuf *out); /* kprobe_events, dynamic_events, … */
int kprobes_store(struct instance *i, uintptr_t arg, char *text);
int kprobes_clear(struct instance *i, uintptr_t arg);
/* Does anybody use an event of any kind, apart from event probes? */
bool kprobes_any_used(void);
/* Takes a line: makes a probe, or removes some, of all only with PROBES_ALL. 0 or -errno. */
int kprobes_command(uintptr_t of, char *line);
void kprobes_show_profile(struct instance *i, uintptr_t arg, struct sbuf *out);
/* Fills /sys/kernel/debug/kprobes. */
void kprobes_fill(struct vnode *dir);
/* FUNCTION+OFFSET/SIZE. */
void print_address(struct sbuf *out, uintptr_t at);
/* Makes the format of an event of a kprobe as kprobes_print() prints it, without the place.
 * False if it is an event of another kind. */
bool kprobe_event_format(const struct ktr_site *site, const char *from, char *fmt);
/* How many places an event of a kprobe has: one, its instruction; or two, the function and where
 * it returns to. 0 if it is an event of another kind. Control lock held. */
unsigned kprobe_event_places(const struct ktr_site *site);
/* Sets v[] to the addresses of these places; 0: not known. Control lock held. */
void kprobes_places(const struct ktr_site *site, const struct ktr_entry *e, uint64_t v[2]);
/* Prints place and arguments of an event of a kprobe. False if it is an event of another kind.
 * Control lock held. */
bool kprobes_print(struct sbuf *out, const struct ktr_site *site, const struct ktr_entry *e);

/* ---- eprobe.c: probes at events ---- */

struct eprobe;
/* Fires an event probe, with those fields of its event. In hooks. */
void eprobe_fire(const struct eprobe *e, const struct ktr_firing *f, const uint64_t *fields);
/* Gives the event probe that was just made its program. 0; or -errno, and the probe is removed. */
int eprobe_attach(void);
/* As event_is_used(), but does not count event probes at the event. Nobody knows whether D uses
 * an event that has such probes. */
bool eprobes_apart_used(const struct ktr_site *site);
/* Detaches the programs of the event probes that kprobe_del() is about to remove. */
void eprobes_detach(const char *which);

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

/* Finds an event, or returns NULL. ftrace_lock, and its users, keep it from being removed. */
struct synthetic *synthetic_find(const char *name);
/* Records the event, and runs its triggers, in a firing. Texts: their addresses. In hooks. */
void synthetic_fire(const struct synthetic *s, const struct ktr_firing *f, const uint64_t *values);
void synthetic_show(struct instance *i, uintptr_t arg, struct sbuf *out);
int synthetic_store(struct instance *i, uintptr_t arg, char *text);
int synthetic_clear(struct instance *i, uintptr_t arg);
/* As kprobes_any_used(). */
bool synthetic_any_used(void);
/* NAME FIELDS; or !NAME, which removes it. 0 or -errno. */
int synthetic_command(char *text);
/* s:[synthetic/]NAME FIELDS */
int synthetic_command_dynamic(char *text);
/* As dynamic_events has them. */
void synthetic_show_dynamic(struct sbuf *out);
