/*
 * fixup.h - contract: the port's instructions that may fault, and where the kernel then continues.
 * They form section ex_table, which kernel/entry.c searches by the address of the instruction.
 *
 * ARCH_FIXUP from, to: after a fault at `from` in kernel mode, continue at `to`, whatever the
 * faulting address. ARCH_FIXUP_USER from, to: the same, but only if the faulting address is in user
 * space. A bad kernel address there is an error of the kernel.
 */
#pragma once

/* clang-format off */
#ifdef __ASSEMBLER__
	.macro ARCH_FIXUP from, to, user=0
	.pushsection ex_table, "a"
	.balign 8
	.quad \from, \to, \user
	.popsection
	.endm

	.macro ARCH_FIXUP_USER from, to
	ARCH_FIXUP \from, \to, 1
	.endm
#else
/* clang-format on */
#include <stdint.h>

struct arch_fixup {
	uintptr_t from, to;
	uint64_t user; /* 1: from ARCH_FIXUP_USER */
};

extern const struct arch_fixup __start_ex_table[], __stop_ex_table[];

/* ARCH_FIXUP inside an asm statement: a string. */
#define ARCH_FIXUP(from, to)               \
	".pushsection ex_table, \"a\"\n\t" \
	".balign 8\n\t"                    \
	".quad " from ", " to ", 0\n\t"    \
	".popsection\n\t"
#endif
