/*
 * fixup.h - contract: an instruction that may fault, for assembly. ARCH_FIXUP from, to: a fault at
 * `from` in the kernel goes on at `to` (kernel/entry.c finds the pair in section ex_table).
 */
#pragma once

/* clang-format off */
#ifdef __ASSEMBLER__
	.macro ARCH_FIXUP from, to
	.pushsection ex_table, "a"
	.balign 8
	.quad \from, \to
	.popsection
	.endm
#else
/* The same, inside an asm statement: a string. */
#define ARCH_FIXUP(from, to)              \
	".pushsection ex_table, \"a\"\n\t" \
	".balign 8\n\t"                    \
	".quad " from ", " to "\n\t"       \
	".popsection\n\t"
/* clang-format on */
#endif
