/* debug.h - contract: what the debugger needs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_trapframe;
struct thread;

/* Enters the debugger through a breakpoint trap, so that it has a frame. */
static inline void arch_breakpoint(void);
/*
 * The caller's own frame pointer. It points to the caller's saved frame pointer, and behind that
 * stands the return address, on every port.
 */
static inline uintptr_t arch_frame_pointer(void);

#include <md/debug.h>

/* Where a thread that is switched out goes on. */
void arch_context_frame(const struct thread *t, uintptr_t *pc, uintptr_t *fp);
