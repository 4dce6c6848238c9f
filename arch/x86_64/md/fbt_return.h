/*
 * md/fbt_return.h - x86_64: every return of a C function is a place for a probe.
 *
 * The compiler includes this file first. It makes `ret` a macro of the assembler: the return, and
 * four bytes that are never executed, so that a probe can put a JMP rel32 in its place. The section
 * fbt_return, which is not loaded, has the addresses. kernel/probe/fbt.h has the rest.
 */
#pragma once

__asm__(".macro ret\n"
	"771:\t.byte 0xc3, 0xcc, 0xcc, 0xcc, 0xcc\n\t" /* RET, INT3 (SDM vol. 2) */
	".pushsection fbt_return, \"\", @progbits\n\t"
	".quad 771b\n\t"
	".popsection\n"
	".endm");
