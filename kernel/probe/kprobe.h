/*
 * kprobe.h - probes at any instruction of a function, made at run time in the language of Linux's
 * kprobe_events:
 *
 *	p[:[GROUP/]NAME] PLACE [ARGUMENT]...	when the instruction at PLACE is about to be
 *executed r[:[GROUP/]NAME] FUNCTION [ARGUMENT]...	when FUNCTION returns
 *
 *	PLACE     FUNCTION, FUNCTION+OFFSET, or an address
 *	ARGUMENT  [NAME=]FETCH[:TYPE], at most six
 *	FETCH     %REGISTER $argN $retval $stack $stackN $comm @ADDRESS @SYMBOL[+-OFFSET]
 *	          +OFFSET(FETCH) -OFFSET(FETCH) \NUMBER
 *	TYPE      u8 to u64, s8 to s64, x8 to x64, bWIDTH@OFFSET/SIZE, char, string, symbol
 *
 * The probe is kprobe:FOLDER:FUNCTION:NAME; GROUP is not used. While it is on, a breakpoint stands
 * in the place of the instruction (arch/insn.h). No probe can be where FBT has none, for the same
 * reasons, and none where a breakpoint would do harm: the message says why.
 *
 * A memory that cannot be read gives 0, or the text "(fault)".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arch_trapframe;
struct ktr_site;
struct sbuf;

/*
 * Makes a probe; user: of programs (uprobe.h). 0, or -errno and a sentence in err, which begins
 * with "character N: " if the definition is wrong there. Thread context; not for the debugger.
 */
int kprobe_add(const char *definition, bool user, char *err, size_t errlen);
/*
 * Removes the probe of that name. As above. After the user has removed one by the sysctl, the hooks
 * of the list kprobe_removed run (kernel/lib/hook.h), in thread context, without locks.
 */
int kprobe_del(const char *name, bool user, char *err, size_t errlen);
/* A line for each probe, after a heading. */
void kprobe_list(struct sbuf *out);

/* What is known of a probe. */
struct kprobe_info {
	const struct ktr_site *site;
	const char *name;
	const char *function; /* where it is: in this function, */
	size_t offset;        /* at this offset; */
	bool is_return;       /* or at all its returns */
	bool user;            /* in a program: offset is in the file */
	const char *definition;
	uint64_t hits, misses;
};

/* Calls f for each probe. Control lock held: so long the texts are valid. */
void kprobe_each(void (*f)(const struct kprobe_info *info, void *arg), void *arg);

/* Puts breakpoints where probes are on, also in programs, and removes the others. Control lock. */
void kprobe_apply(void);
