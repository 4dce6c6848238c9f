/*
 * md/context.h - x86_64: callee-saved registers are on the stack, so a context is the stack
 * pointer.
 */
#pragma once

#include <stdint.h>

struct arch_context {
	uint64_t sp;
};
