/* context.h - contract: a thread's saved registers, and switching between two. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "arch/pcpu.h"

struct arch_context; /* defined by the port */

#include <md/context.h>

/*
 * Prepares a context. A switch to it calls fn(arg) with interrupts off, on the stack [stack, stack
 * + size), below arch_user_frame(). fn must not return.
 */
void arch_context_init(struct arch_context *c, void *stack, size_t size, void (*fn)(void *),
		       void *arg);
/* Saves the registers into from and continues in to. Interrupts off; the run-queue lock is held. */
void arch_context_switch(struct arch_context *from, struct arch_context *to);
/*
 * Called before the switch to a thread. Traps from user mode will use the stack at stack_top; tls
 * is the thread pointer of the user program. Interrupts off.
 */
void arch_context_prepare(uintptr_t stack_top, uint64_t tls);
