/*
 * md/fbt_return.h - x86_64: makes room for a probe at every return of a C function.
 *
 * The compiler includes this file before all others. It makes `ret` a macro of the assembler: the
 * RET, and four bytes that are never executed. So a probe can write a JMP rel32 in their place. The
 * section fbt_return, which is not loaded, lists the addresses. See kernel/probe/fbt.h.
 */
#pragma once

__asm__(".macro ret\n"
	"771:\t.byte 0xc3, 0xcc, 0xcc, 0xcc, 0xcc\n\t" /* RET, INT3 (SDM vol. 2) */
	".pushsection fbt_return, \"\", @progbits\n\t"
	".quad 771b\n\t"
	".popsection\n"
	".endm");
