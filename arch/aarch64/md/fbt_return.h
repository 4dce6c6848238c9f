/*
 * md/fbt_return.h - aarch64: makes room for a probe at every return of a C function.
 *
 * The compiler includes this file before all others. It makes `ret` a macro of the assembler: a
 * NOP, which a probe changes into a B, and then the RET. A NOP may be changed while another CPU
 * executes it, but a RET may not (Arm ARM B2.2.5). The section fbt_return, which is not loaded,
 * lists the addresses of the no-ops. See kernel/probe/fbt.h.
 *
 * A jump to another function is a return, too. So `b` is a macro as well: if the destination is not
 * a label of this file, a no-op precedes the jump, and is listed.
 */
#pragma once

__asm__(".macro ret\n"
	"771:\tnop\n\t"
	".pushsection fbt_return, \"\", @progbits\n\t"
	".quad 771b\n\t"
	".popsection\n\t"
	".inst 0xd65f03c0\n" /* RET X30 (C6.2.254) */
	".endm\n"
	/* The macro removes itself, to emit a jump, and then comes again. */
	".macro fbt_b\n"
	".macro b to:vararg\n"
	".purgem b\n"
	".set fbt_first, 1\n"
	".set fbt_local, 0\n"
	".irpc c, \\to\n"
	".if fbt_first\n"
	".irpc d, .0123456789\n"
	".ifc \\c,\\d\n"
	".set fbt_local, 1\n"
	".endif\n"
	".endr\n"
	".set fbt_first, 0\n"
	".endif\n"
	".endr\n"
	".if fbt_local == 0\n"
	"771:\tnop\n\t"
	".pushsection fbt_return, \"\", @progbits\n\t"
	".quad 771b\n\t"
	".popsection\n"
	".endif\n\t"
	"b \\to\n"
	"fbt_b\n"
	".endm\n"
	".endm\n"
	"fbt_b");
