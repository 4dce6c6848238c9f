/*
 * kprobe.h - probes at any instruction of a function, made at run time in the language of Linux's
 * kprobe_events:
 *
 *	p[:[GROUP/][NAME]] PLACE [ARGUMENT]...		the instruction at PLACE is about to run
 *	r[N][:[GROUP/][NAME]] FUNCTION [ARGUMENT]...	FUNCTION returns; N is not used
 *
 *	PLACE     FUNCTION, FUNCTION+OFFSET, FUNCTION%return, or an address
 *	ARGUMENT  [NAME=]FETCH[:TYPE], at most 32
 *	FETCH     %REGISTER $argN $retval $stack $stackN $comm @ADDRESS @SYMBOL[+-OFFSET]
 *	          +OFFSET(FETCH) -OFFSET(FETCH) \NUMBER \"TEXT"; u before OFFSET: a program's memory
 *	TYPE      u8 to u64, s8 to s64, x8 to x64, char, string, ustring, symbol, and TYPE[COUNT];
 *	          bWIDTH@OFFSET/SIZE
 *
 * and at an event of ftrace
 *
 *	e[:[GROUP/][NAME]] SYSTEM.EVENT [ARGUMENT]... [if FILTER]
 *
 * where FETCH has no registers and no stack, but $FIELD, a field of that event, which FILTER is
 * about, too. There is one such probe of a name only.
 *
 * GROUP/NAME is an event, of one probe or several: a definition of an event that is there adds a
 * probe to it, if kind, and names and types of the arguments, are the same. The event is
 * kprobe:FOLDER:FUNCTION:NAME, where FUNCTION is that of its first probe. While it is on, a
 * breakpoint stands in the place of each instruction (arch/insn.h). No probe can be where FBT has
 * none, for the same reasons, and none where a breakpoint would do harm: the message says why.
 *
 * An entry of the log has room for six arguments. Of more, the first five are there, and a text of
 * up to 255 characters that has all others, called KPROBE_REST.
 *
 * A memory that cannot be read gives 0, or the text "(fault)".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KPROBE_REST "common_args"

struct ktr_site;
struct sbuf;

/* Where a probe is. */
enum kprobe_kind {
	KPROBE_KERNEL,
	KPROBE_USER,     /* in programs (uprobe.h) */
	KPROBE_AT_EVENT, /* at an event */
};

/*
 * Makes a probe. 0; or -errno and a sentence in err, which begins with "character N: " if the
 * definition is wrong there. No such function: -ENOENT; no such event: -ENODEV; -EEXIST if this
 * cannot be one more probe of an event that has the name. Thread context; not for the debugger.
 */
int kprobe_add(const char *definition, enum kprobe_kind kind, char *err, size_t errlen);
/*
 * Removes the probes that `which` means: [GROUP/][NAME][ PLACE[ ARGUMENT...]]; NULL means all. 0;
 * or -errno and a sentence. -EBUSY if one of their events is on for a registered owner
 * (ktr/control.h); then none is removed. Thread context; not for the debugger. After a user has
 * removed some by the sysctl, the hooks of the list kprobe_removed run (kernel/lib/hook.h), in
 * thread context, with the lock of sysctls held.
 */
int kprobe_del(const char *which, enum kprobe_kind kind, char *err, size_t errlen);
/* A line for each probe, after a heading. */
void kprobe_list(struct sbuf *out);

/* What is known of a probe. */
struct kprobe_info {
	struct kprobe *probe;
	const struct ktr_site *site; /* of the event */
	const char *group, *name;
	const char *function; /* the place: in this function */
	size_t offset;        /* the place: this offset in it */
	uintptr_t address;    /* the place: this address, or in the function there */
	bool is_return;       /* the places are the function's returns */
	enum kprobe_kind kind;
	const char *path;              /* of the program, in which offset is; or SYSTEM.EVENT */
	size_t path_size;              /* its bytes */
	const struct ktr_site *target; /* of an event probe: the event */
	const char *filter;            /* of an event probe: the filter, or NULL */
	unsigned fields;               /* so many of the event's first fields are read */
	const char *definition;
	uint64_t hits, misses;
};

/* Removes a probe. 0; -EBUSY: its event is on. Thread context. */
int kprobe_drop(struct kprobe *probe);
/* Evaluates the arguments of an event probe from the fields of its event. Returns how many there
 * are. For hooks. */
unsigned kprobe_fetch_all(struct kprobe *probe, const uint64_t *fields, uint64_t *args);

/* Is the probe one of those that `which` means? Control lock held. */
bool kprobe_matches(const struct kprobe_info *info, const char *which);
/* Prints the definition as Linux lists it. Control lock held. */
void kprobe_print(const struct kprobe_info *info, struct sbuf *out);
/* Prints SYSTEM.EVENT, where an event probe is. Control lock held. */
void kprobe_print_target(const struct kprobe_info *info, struct sbuf *out);
/* The group of a site of a kprobe, or of a uprobe. The text stays for ever. Any context. */
const char *kprobe_group(const struct ktr_site *site);
/* Returns the name of group n, from 0 on, of those that were ever made, not counting kprobes and
 * uprobes. NULL if there were not so many. Any context. */
const char *kprobe_group_at(unsigned n);
/* Set by ftrace: has an event of no kprobe this name? In thread context, control lock held. */
extern bool (*kprobe_name_taken)(const char *group, const char *name);

/* What ftrace knows of events. Set by ftrace; called in thread context, control lock held. */
struct kprobe_events {
	/* The event of these names; NULL: none, or none that may have probes. */
	const struct ktr_site *(*find)(const char *system, const char *event);
	/* Has the event such a field? If so: its number, and whether it is a text. */
	bool (*field)(const struct ktr_site *event, const char *name, unsigned *number,
		      bool *is_text);
	/* May a probe with that filter (NULL: without one) be at the event? 0; or -errno, and
	 * then the error was reported. */
	int (*check)(const struct ktr_site *event, const char *filter);
};
extern const struct kprobe_events *kprobe_events;

/* Calls f for each probe. Control lock held: the texts are valid as long. */
void kprobe_each(void (*f)(const struct kprobe_info *info, void *arg), void *arg);

/* Puts breakpoints where probes are on, also in programs, and removes the others. Control lock. */
void kprobe_apply(void);
