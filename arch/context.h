/* context.h - contract: a thread's saved registers, and switching between two. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "arch/pcpu.h"

struct arch_context; /* the port's */

#include <md/context.h>

/*
 * Prepares a context that, when switched to, calls fn(arg) on the stack [stack, stack + size),
 * below the place of arch_user_frame(), with interrupts off. fn must not return.
 */
void arch_context_init(struct arch_context *c, void *stack, size_t size, void (*fn)(void *),
		       void *arg);
/* Saves into from, continues to. Interrupts off; the run-queue lock is held across. */
void arch_context_switch(struct arch_context *from, struct arch_context *to);
/*
 * Before the switch to a thread: traps from user mode take their stack at stack_top; tls is the
 * user's thread pointer. Interrupts off.
 */
void arch_context_prepare(uintptr_t stack_top, uint64_t tls);
