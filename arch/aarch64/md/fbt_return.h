/*
 * md/fbt_return.h - aarch64: every return of a C function is a place for a probe.
 *
 * The compiler includes this file first. It makes `ret` a macro of the assembler: a no-op, which a
 * probe turns into a B, and the return itself. RET must not be changed while it may be executed,
 * NOP may (Arm ARM B2.2.5). The section fbt_return, which is not loaded, has the addresses of the
 * no-ops. kernel/probe/fbt.h has the rest.
 */
#pragma once

__asm__(".macro ret\n"
	"771:\tnop\n\t"
	".pushsection fbt_return, \"\", @progbits\n\t"
	".quad 771b\n\t"
	".popsection\n\t"
	".inst 0xd65f03c0\n" /* RET X30 (C6.2.254) */
	".endm");
