/*
 * unwind.h - backtraces of the kernel, one step at a time: for the debugger, panics, D and ftrace.
 * Any context; no locks: what is read may be broken, and no step loops.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arch_trapframe;

/* A place on a stack, with what is needed to find its caller. */
struct unwind_frame {
	uintptr_t pc, fp;
	uintptr_t sp;   /* 0: not known */
	uintptr_t link; /* the link register, if known; 0: not known */
	bool exact;     /* interrupted at pc; otherwise pc is a return address */
	bool user;      /* in user mode: it has no caller */
};

/* Reads words of kernel memory at `from`, which may be any number. False: not readable. */
typedef bool unwind_load_fn(uintptr_t *to, uintptr_t from, unsigned words);

struct unwind_frame unwind_of_trap(const struct arch_trapframe *tf);
/* Is that address in the kernel's text? */
bool unwind_in_text(uintptr_t pc);
/*
 * Moves f to its caller, or from the first function of a trap to the interrupted code. False: there
 * is none, or it is not known. Functions of C have frame pointers, but for a few that record events
 * (ktr/ring.c). `all`: finds callers of those, too, and f->sp; this takes some times longer.
 */
bool unwind_step(struct unwind_frame *f, unwind_load_fn *load, bool all);
/*
 * The return addresses from f on, and where traps interrupted code, up to user mode: at most max.
 * pcs NULL: only counts them. The `size` bytes at `stack` are read without `load`.
 */
unsigned unwind_list(struct unwind_frame f, uintptr_t stack, size_t size, unwind_load_fn *load,
		     uintptr_t *pcs, unsigned max);
