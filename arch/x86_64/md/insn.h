/* md/insn.h - x86_64: INT3, and what the ABI says of registers. */
#pragma once

#define ARCH_INSN_MAX   15
#define ARCH_INSN_ALIGN 1
#define ARCH_BREAK_SIZE 1
#define ARCH_SLOT_SIZE  64 /* twice: instruction, STI, JMP rel32 */
#define ARCH_USER_SLOT  16 /* instruction, INT3 */

#define ARCH_CALL_PUSHES 8

#define ARCH_ARG_REGISTERS                             \
	{                                              \
		"rdi", "rsi", "rdx", "rcx", "r8", "r9" \
	}
#define ARCH_RETURN_REGISTER "rax"
#define ARCH_STACK_REGISTER  "rsp"
