/* md/insn.h - aarch64: BRK, and what the procedure call standard says of registers. */
#pragma once

#define ARCH_INSN_MAX    4
#define ARCH_INSN_ALIGN  4
#define ARCH_BREAK_SIZE  4
#define ARCH_USER_SLOT   8 /* instruction, BRK */
#define ARCH_CALL_PUSHES 0
#define ARCH_SLOT_SIZE   24 /* twice: instruction, MSR DAIFCLR, B */

#define ARCH_ARG_REGISTERS                                     \
	{                                                      \
		"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7" \
	}
#define ARCH_RETURN_REGISTER "x0"
#define ARCH_STACK_REGISTER  "sp"
