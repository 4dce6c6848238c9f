/* debug.h - contract: what the debugger needs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_trapframe;
struct thread;

/* Enters the debugger through a breakpoint trap, so that it has a frame. */
static inline void arch_breakpoint(void);
/* The caller's own frame pointer. */
static inline uintptr_t arch_frame_pointer(void);

#include <md/debug.h>

/*
 * One step up a chain of frames: reads *fp and the return address. False at its end or when
 * unreadable. Any context.
 */
bool arch_unwind(uintptr_t *fp, uintptr_t *pc);
/* Where a thread that is switched out goes on. */
void arch_context_frame(const struct thread *t, uintptr_t *pc, uintptr_t *fp);
