/*
 * kprobe_private.h - between the files of kprobes and uprobes: definitions, places, probes.
 *
 * In: definitions (kprobe.h, uprobe.h). Out: events, which fire into the log, hooks and D.
 *
 *	text ──► kprobe_parse.c, kprobe_arg.c ──► struct kdefinition ──► struct kprobe
 *	                                                                     │ on: breakpoints
 *	ktr_fire() ◄── kprobe_fetch.c ◄──┬── kprobe.c, in the kernel ◄───────┤ one is hit
 *	                                 └── uprobe.c, in a program  ◄───────┘
 *
 * Then the instruction in whose place the breakpoint stands is emulated, or runs from a copy.
 *
 * Locking: the control lock guards definitions and lists, and who is on. Handlers of breakpoints
 * read without it, with interrupts off. So what they may read is freed after each CPU has taken an
 * interrupt. uprobe.c has a lock for its table.
 *
 * Files, in reading order: kprobe_parse.c and kprobe_arg.c with kprobe_reader.h (texts),
 * kprobe_place.c (where one may be), kprobe.c (what is made, armed, hit), kprobe_fetch.c (values),
 * kprobe_event.c (probes of one event), kprobe_sysctl.c (sites, debug.kprobe.*), uprobe.c,
 * uprobe_pid.c (in one process). Of the folder's others, fbt.c, calls.c and funcprof.c are about
 * functions; profile.c and rate.c about probes at a rate; sdt.c about the kernel's own; session.c
 * is /dev/probe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/insn.h"
#include "kernel/lib/list.h"
#include "kernel/probe/kprobe.h"
#include "ktr/entry.h"
#include "ktr/site.h"

#define KPROBE_NAME      32 /* of an argument, with NUL */
#define KPROBE_EVENT     64 /* characters of an event's name, and of its group's */
#define KPROBE_TARGET    96 /* characters of the name of the event that an event probe is at */
#define KPROBE_DEREFS    13 /* +OFFSET() in one another; an @ counts as one */
#define KPROBE_ARGS      32 /* arguments of a probe; an event has room for KTR_MAXARGS of them */
#define KPROBE_ARGUMENT  63 /* characters of an argument, without its name */
#define KPROBE_ARRAY     64u
#define KPROBE_MAXACTIVE 4096u
#define KPROBE_STRING    128
#define KPROBE_NOT_PLAIN 255
#define KPLACE_NO_SLOT   UINT32_MAX

/* The groups of events whose definition gives none, by enum kprobe_kind. */
extern const char *const kprobe_groups[3];

struct arch_trapframe;

/* Where a fetched value begins. */
enum kfetch_base {
	KFETCH_REGISTER,
	KFETCH_NUMBER,
	KFETCH_FILE,
	KFETCH_COMM,
	KFETCH_TEXT,
	KFETCH_FIELD
};

enum kfetch_print {
	KFETCH_UNSIGNED,
	KFETCH_SIGNED,
	KFETCH_HEX,
	KFETCH_CHAR,
	KFETCH_STRING,
	KFETCH_SYMBOL
};

struct kfetch {
	char name[KPROBE_NAME];
	enum kfetch_base base;
	enum kfetch_print print;
	unsigned reg; /* index of a word of the trap frame; KFETCH_FIELD: of the event's fields */
	uint64_t number; /* KFETCH_FILE: an offset; KFETCH_TEXT: in the definition, of the text */
	uint16_t text_len;
	uint16_t at, len; /* of FETCH[:TYPE] in the definition */
	uint16_t user;    /* bit N: offset N leads to the program's memory only */
	bool is_value;    /* no memory that the user has named */
	unsigned derefs;
	int64_t offset[KPROBE_DEREFS]; /* in the order of evaluation */
	unsigned size;                 /* bytes of the value: 1, 2, 4, 8 */
	unsigned width, shift;         /* bits; width 0: all of the size */
	unsigned count;                /* elements of an array; 0: it is none */
};

struct kdefinition {
	bool is_return;
	enum kprobe_kind kind;
	unsigned maxactive; /* maxactive as it was given; 0: it was not given */
	char group[KPROBE_EVENT], name[KPROBE_EVENT];
	char function[64];             /* "": address is absolute */
	uintptr_t address;             /* of the function, or of the instruction */
	size_t offset;                 /* of the instruction in the function, or in the file */
	size_t path;                   /* bytes of PATH, or of SYSTEM.EVENT */
	const struct ktr_site *target; /* the event */
	size_t filter;                 /* offset in the text of an event probe's filter; 0: none */
	size_t place_at;               /* offset of PLACE in the text */
	unsigned nargs;
	struct kfetch args[KPROBE_ARGS];
};

/*
 * Parses a definition. 0; or -errno and a sentence. Pure, except that it looks up the kernel's
 * symbols and events.
 */
int kprobe_parse(const char *text, enum kprobe_kind kind, struct kdefinition *d, char *err,
		 size_t errlen);
/* The sentence of an error at an offset of the text. Returns -EINVAL. */
int kprobe_refuse(char *err, size_t errlen, size_t at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The fetching of a probe's arguments. */
struct kfetching {
	union {
		const struct arch_trapframe *tf;
		const uint64_t *fields; /* of the event, at an event */
	};
	const char *definition;
	uintptr_t file; /* where byte 0 of the file would be */
	/* How often memory could not be read. Begins below 0 where as many reads have been given up
	 * before. */
	int64_t faults;
	uintptr_t missing; /* where the fault was that made `faults` 1 */
};
/* The value for the log. Any context, interrupts off. */
uint64_t kprobe_fetch(const struct kfetch *f, struct kfetching *in);
/*
 * If an event has more arguments than an entry of the log has room for, the sixth in the log is a
 * text that has all from the sixth on. It is called KPROBE_REST, which no argument may be called.
 */
#define KPROBE_FIRST (KTR_MAXARGS - 1u)
static inline unsigned
kprobe_first(const struct kdefinition *d)
{
	return d->nargs > KTR_MAXARGS ? KPROBE_FIRST : d->nargs;
}
/* The text of the arguments that have no room in an event. Any context, interrupts off. */
uint64_t kprobe_fetch_rest(const struct kdefinition *d, struct kfetching *in);
/* All values for the log. Returns how many. */
unsigned kprobe_fetch_values(const struct kdefinition *d, struct kfetching *in,
			     uint64_t args[KTR_MAXARGS]);

struct place {
	struct place *next; /* in its bucket */
	struct kprobe *probe;
	uintptr_t at;
	const struct ktr_patch *patch; /* the instruction is one that is patched; or NULL */
	uint32_t slot;                 /* KPLACE_NO_SLOT: it is emulated */
	bool armed;                    /* a breakpoint is there, and the place is in its bucket */
	uint8_t insn[ARCH_INSN_MAX];   /* without any breakpoint */
};

/* Where a probe of programs is. */
struct uprobe {
	struct uprobe *next; /* in its bucket */
	struct kprobe *probe;
	struct vnode *vn; /* NULL: the probe is in the kernel */
	uint64_t offset;
	uint32_t pid;                /* the process in which it fires; 0: all */
	uint64_t number;             /* in the order in which they came into the table */
	bool on;                     /* atomic: its breakpoint is wanted */
	bool entry;                  /* the place is known to be the start of a function */
	struct kprobe *mine;         /* the next one of the same owner, if pid is not 0 */
	uint8_t insn[ARCH_INSN_MAX]; /* without any breakpoint */
};

/* Probes that have the same site are one event, whose definitions differ in the place only. */
struct kprobe {
	struct list link;
	struct ktr_site *site;
	bool gone; /* the probe is about to be freed: no breakpoint is wanted */
	/* atomic: its events tell something after what the format shows: where the probe was (of
	 * returns, and if its event has had more than one probe); or the arguments beyond the
	 * fifth */
	bool tells_more;
	unsigned nargs;                /* kprobe_first() */
	uint64_t hits, misses, faults; /* atomic */
	uint8_t plain[KTR_MAXARGS]; /* the register that an argument is; KPROBE_NOT_PLAIN: none */
	bool frameless;             /* at the entry or the returns: the frame is the caller's */
	struct kdefinition def;
	char *text;         /* the definition */
	uintptr_t function; /* the function of the kernel in which the probe is */
	struct uprobe user;
	unsigned count;
	struct place places[];
};

extern struct list kprobes; /* [control lock] */

/* Where an error is told: at which offset of the definition. */
struct ktold {
	char *err;
	size_t errlen, at;
};

/* Is a breakpoint wanted? Control lock. */
bool kprobe_wanted(const struct kprobe *k);

/* ---- kprobe_event.c: events, each of one probe or several ---- */

/* The event's probes record where they are, from now on. Control lock, as for the others. */
void kprobe_event_is_several(const struct ktr_site *site);
/* The event's first probe, or NULL. */
struct kprobe *kprobe_event_find(const char *group, const char *name);
/* May a probe of that definition be one more of the event? 0, or -EEXIST and a sentence. */
int kprobe_event_check(const struct kprobe *event, const struct kdefinition *d, const char *text,
		       struct ktold *t);
/* Removes the probes that are `gone`. Those of programs are put on a list, for kprobe_free_all():
 * without the control lock, as the last reference of a file may remove it from its disk. */
void kprobe_remove_marked(struct list *closing);
void kprobe_free_all(struct list *closing);
/* Gives a new event's site the group. 0; -ENOSPC, and a sentence; -ENOMEM. */
int kprobe_group_set(const struct ktr_site *site, const char *group, char *err, size_t errlen);

/* Copies text as it is without the breakpoints of kprobes. Control lock. */
void kprobe_read_text(uintptr_t from, uint8_t *to, size_t n);
/* The site of the probe. NULL: too many, or texts too long, and err says so. Control lock. */
struct ktr_site *kprobe_site(const struct kprobe *k, char *err, size_t errlen);

/* Checks that a probe may be at an instruction of a function. *p becomes the place. */
int kplace_check(struct ktold *t, const char *name, uintptr_t function, size_t offset,
		 struct place *p);
/* Fills in how the instruction of a place is run. False: no slot is free. */
bool kplace_prepare(struct place *p);
void kplace_release(struct place *p);
/* Counts the returns of a function, and fills in as many places if that is not NULL. */
unsigned kplace_returns(uintptr_t function, struct place *places);
/* Makes a uprobe that has no site yet. It reads the file, so the control lock is not held. */
int uprobe_make(const struct kdefinition *d, const char *text, struct ktold *t,
		struct kprobe **made);
/* Frees a probe without a site. Control lock, unless nobody else knows of it. */
void kprobe_free(struct kprobe *k);
/* Finds the file, and fills in the rest of a uprobe whose offset is known. 0 or -errno. */
int uprobe_open(struct uprobe *u, const char *path, struct ktold *t);
void uprobe_close(struct uprobe *u);
