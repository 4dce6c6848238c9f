/*
 * uprobe.h - probes at instructions of programs, made in the language of kprobe.h:
 *
 *	p[:[GROUP/][NAME]] PATH:OFFSET [ARGUMENT]...	the instruction there is about to run
 *	r[:[GROUP/][NAME]] PATH:OFFSET [ARGUMENT]...	the function that begins there returns
 *
 *	PATH:OFFSET  a file, and a number of bytes in it
 *	FETCH        no symbols; also @+OFFSET, what is at that offset of the file. All
 *	             memory is the program's
 *
 * The probe is uprobe:FILE:OFFSET:NAME. It fires in each process that executes the file's code;
 * one in one process (struct uprobe_in) has names of its own, and fires there only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arch_trapframe;
struct kprobe;
struct ktr_site;

/* Gives processes the breakpoints of the probes that are on. Control lock. */
void uprobe_apply(void);
/* A program has hit a breakpoint at `at`. False: it is the program's own. Interrupts off. */
bool uprobe_trap(struct arch_trapframe *tf, uintptr_t at);
/* A probe in one process. */
struct uprobe_in {
	uint32_t pid;
	enum uprobe_kind { UPROBE_ENTRY, UPROBE_RETURN, UPROBE_OFFSET } kind;
	const char *path; /* of the file */
	uint64_t offset;  /* there */
	uint64_t start;   /* where an instruction begins, at or before that; for the check that one
			     begins there */
	const char *module, *function, *name; /* of the probe pidN:MODULE:FUNCTION:NAME */
};

/*
 * Makes a probe and puts it at the head of *to, unless it is in that list. 0; or -errno and a
 * sentence. Thread context.
 */
int uprobe_in_add(const struct uprobe_in *in, struct kprobe **to, char *err, size_t errlen);
/* Removes all of them. Thread context. */
void uprobe_in_free(struct kprobe **all);
/* Is the site's probe in one process, and none of `all`? Control lock. */
bool uprobe_in_other(const struct ktr_site *site, const struct kprobe *all);
