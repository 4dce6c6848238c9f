/*
 * signal.h - contract: what lies on a program's stack while a signal handler runs, in Linux's
 * layout of the architecture. Pure functions; any context.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/fpu.h"
#include "arch/trap.h"
#include "kernel/abi/signal.h"

struct arch_sigframe; /* defined by the port: the part that is written */
struct arch_fault;    /* defined by the port: what a frame tells of the last fault */

#include <md/signal.h>

/* What a handler gets. */
struct arch_signal {
	int sig;
	uint64_t handler;
	uint64_t restorer; /* where the handler returns to */
	uint64_t mask;     /* to be restored */
	struct siginfo info;
	struct sigaltstack stack;
	struct arch_fault fault;
	bool has_fpu; /* has the thread FPU registers? */
	struct arch_fpu fpu;
};

/* The program of the frame tf has made a fault, by an access to va if that is one of memory. */
void arch_fault_note(struct arch_fault *f, const struct arch_trapframe *tf, uintptr_t va);
/* Where a frame lies whose stack ends at sp. */
uintptr_t arch_sigframe_place(uintptr_t sp);
/* Fills a frame that will lie at `at`: the registers in tf, and what the handler gets. */
void arch_sigframe_fill(struct arch_sigframe *f, uintptr_t at, const struct arch_trapframe *tf,
			const struct arch_signal *s);
/* Makes tf start the handler, over the frame at `at`. */
void arch_sigframe_call(struct arch_trapframe *tf, uintptr_t at, const struct arch_signal *s);
/* Where the frame lies, in the call of rt_sigreturn(). */
uintptr_t arch_sigframe_find(const struct arch_trapframe *tf);
/*
 * Takes registers, mask and FPU registers from a frame, which can hold anything: tf gets no rights.
 * False: no program can run with such registers.
 */
bool arch_sigframe_restore(const struct arch_sigframe *f, struct arch_trapframe *tf,
			   struct arch_signal *s);
/* Has the vDSO a place where handlers without SA_RESTORER return? Else programs always have one. */
extern const bool arch_sigreturn_in_vdso;
