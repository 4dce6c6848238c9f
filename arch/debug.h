/* debug.h - contract: functions for the debugger. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_trapframe;
struct thread;

/* A breakpoint or watchpoint of the hardware. */
enum arch_point_kind { ARCH_POINT_EXEC, ARCH_POINT_WRITE, ARCH_POINT_ACCESS };

struct arch_point {
	enum arch_point_kind kind;
	uintptr_t addr; /* of a watchpoint: a multiple of size */
	unsigned size;  /* of a watchpoint: 1, 2, 4 or 8 */
};

/* Executes a breakpoint trap, so that the debugger gets a trap frame. */
static inline void arch_breakpoint(void);
/*
 * The frame pointer of the calling function. On every port it points to the saved frame pointer of
 * its own caller, and the next word is the return address.
 */
static inline uintptr_t arch_frame_pointer(void);

/* Also defines ARCH_WATCH_BEFORE. 1: a watchpoint traps before the access. 0: after it. */
#include <md/debug.h>

/* Where a switched-out thread will continue: its pc, stack and frame pointer. 0: unreadable. */
void arch_context_frame(const struct thread *t, uintptr_t *pc, uintptr_t *sp, uintptr_t *fp);
/*
 * If pc and sp belong to the assembly that called the first C function of a trap, interrupt or
 * system call: the trap frame of the interrupted context. Otherwise NULL.
 */
const struct arch_trapframe *arch_unwind_trap(uintptr_t pc, uintptr_t sp);

/*
 * Makes this CPU watch these kernel addresses and no others. A hit calls entry_debug(); for
 * ARCH_POINT_EXEC before the instruction is executed. False: not enough registers; then nothing is
 * watched. Interrupts off.
 */
bool arch_points_set(const struct arch_point *p, unsigned n);
/* The number of points of a kind that the hardware supports. */
unsigned arch_points_max(enum arch_point_kind kind);
/*
 * If on: the return to tf, a kernel frame, executes one instruction, with no interrupt but an NMI,
 * and then traps into entry_debug(). If not: ends that. One CPU at a time; interrupts off.
 */
void arch_step(struct arch_trapframe *tf, bool on);
/*
 * As arch_step(), but runs until it reaches the instruction at `a` or `b`, with no step. The code
 * must reach one of them soon.
 */
void arch_step_until(struct arch_trapframe *tf, uintptr_t a, uintptr_t b);
