/* md/context.h - aarch64: what a called function must keep (AAPCS64, 6.1.1). */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arch_context {
	uint64_t x19_x29[11];
	uint64_t sp, pc;
};

_Static_assert(offsetof(struct arch_context, sp) == 88, "asm.h");
_Static_assert(offsetof(struct arch_context, pc) == 96, "asm.h");
