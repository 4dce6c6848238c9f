/*
 * md/context.h - x86_64: callee-saved registers are on the stack; a context is its pointer.
 */
#pragma once

#include <stdint.h>

struct arch_context {
	uint64_t sp;
};
