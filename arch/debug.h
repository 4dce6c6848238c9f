/* debug.h - contract: what the debugger needs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_trapframe;
struct thread;

/* A place that hardware watches. */
enum arch_point_kind { ARCH_POINT_EXEC, ARCH_POINT_WRITE, ARCH_POINT_ACCESS };

struct arch_point {
	enum arch_point_kind kind;
	uintptr_t addr; /* of data: a multiple of size */
	unsigned size;  /* of data: 1, 2, 4 or 8 */
};

/* Enters the debugger through a breakpoint trap, so that it has a frame. */
static inline void arch_breakpoint(void);
/*
 * The caller's own frame pointer. It points to the caller's saved frame pointer, and the next word
 * is the return address, on every port.
 */
static inline uintptr_t arch_frame_pointer(void);

/* Also ARCH_WATCH_BEFORE: 1 where a watched access is told of before it is made, 0 after. */
#include <md/debug.h>

/* Where a thread that is switched out goes on, with which stack and frame pointer; 0: unreadable.
 */
void arch_context_frame(const struct thread *t, uintptr_t *pc, uintptr_t *sp, uintptr_t *fp);
/*
 * The frame of what was interrupted, when pc is where the first C function of a trap, interrupt or
 * system call returns to, with that stack pointer; else NULL.
 */
const struct arch_trapframe *arch_unwind_trap(uintptr_t pc, uintptr_t sp);

/*
 * Makes this CPU watch these places in the kernel and no others; entry_debug() tells of a hit,
 * before the instruction that an ARCH_POINT_EXEC names. False, and then it watches none: there are
 * not so many registers. Interrupts off.
 */
bool arch_points_set(const struct arch_point *p, unsigned n);
/* How many places of a kind the hardware can watch at most. */
unsigned arch_points_max(enum arch_point_kind kind);
/*
 * tf, a frame of the kernel, goes on for one instruction, with no interrupt but an NMI, and then
 * traps into entry_debug(); or (on false) as it was. One CPU at a time; interrupts off.
 */
void arch_step(struct arch_trapframe *tf, bool on);
/* The same up to the instruction at `a` or at `b`, one of which it reaches soon: not by single
 * steps. */
void arch_step_until(struct arch_trapframe *tf, uintptr_t a, uintptr_t b);
