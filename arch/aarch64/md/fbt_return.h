/*
 * md/fbt_return.h - aarch64: makes room for a probe at every return of a C function.
 *
 * The compiler includes this file before all others. It makes `ret` a macro of the assembler: a
 * NOP, which a probe changes into a B, and then the RET. A NOP may be changed while another CPU
 * executes it, but a RET may not (Arm ARM B2.2.5). The section fbt_return, which is not loaded,
 * lists the addresses of the no-ops. See kernel/probe/fbt.h.
 */
#pragma once

__asm__(".macro ret\n"
	"771:\tnop\n\t"
	".pushsection fbt_return, \"\", @progbits\n\t"
	".quad 771b\n\t"
	".popsection\n\t"
	".inst 0xd65f03c0\n" /* RET X30 (C6.2.254) */
	".endm");
