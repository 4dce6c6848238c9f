/*
 * md/fbt_return.h - x86_64: makes room for a probe at every return of a C function.
 *
 * The compiler includes this file before all others. It makes `ret` a macro of the assembler: the
 * RET, and four bytes that are never executed. So a probe can write a JMP rel32 in their place. The
 * section fbt_return, which is not loaded, lists the addresses. See kernel/probe/fbt.h.
 *
 * A jump to another function is a return, too. So `jmp` is a macro as well: if the destination is
 * neither a label of this file nor an address in a register or in memory, the jump gets five bytes,
 * and is listed.
 */
#pragma once

__asm__(".macro ret\n"
	"771:\t.byte 0xc3, 0xcc, 0xcc, 0xcc, 0xcc\n\t" /* RET, INT3 (SDM vol. 2) */
	".pushsection fbt_return, \"\", @progbits\n\t"
	".quad 771b\n\t"
	".popsection\n"
	".endm\n"
	/* The macro removes itself, to emit a jump, and then comes again. */
	".macro fbt_jmp\n"
	".macro jmp to:vararg\n"
	".purgem jmp\n"
	".set fbt_first, 1\n"
	".set fbt_local, 0\n"
	".irpc c, \\to\n"
	".if fbt_first\n"
	".irpc d, .*0123456789\n"
	".ifc \\c,\\d\n"
	".set fbt_local, 1\n"
	".endif\n"
	".endr\n"
	".set fbt_first, 0\n"
	".endif\n"
	".endr\n"
	".if fbt_local == 0\n"
	"771:\tjmp.d32 \\to\n\t"
	".pushsection fbt_return, \"\", @progbits\n\t"
	".quad 771b\n\t"
	".popsection\n"
	".else\n\t"
	"jmp \\to\n"
	".endif\n"
	"fbt_jmp\n"
	".endm\n"
	".endm\n"
	"fbt_jmp");
