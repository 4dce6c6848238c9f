/* insn.h - x86_64: an instruction in parts. Pure; tests compare it with objdump. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct x86_insn {
	uint8_t length;
	uint8_t rex;    /* 0: none */
	uint8_t map;    /* of the opcode: 0; 1: after 0f; 0x38, 0x3a: after 0f and this */
	uint8_t opcode; /* its last byte */
	uint8_t modrm;  /* offset; 0: none */
	uint8_t disp;   /* rip: offset of the displacement */
	uint8_t imm;    /* offset of the immediate operand, which goes to the end */
	bool rip;       /* an operand is at RIP + displacement */
	bool segment;   /* a prefix FS or GS */
	bool address32; /* a prefix 67 */
};

/* What becomes of an instruction in whose place a breakpoint stands. */
enum x86_insn_kind {
	X86_COPY, /* runs from a copy */
	X86_JUMP, /* these are emulated */
	X86_JCC,
	X86_CALL,
	X86_INDIRECT, /* JMP or CALL to an address in a register or in memory */
	X86_RET,
	X86_REFUSED
};

/* False: not known. code has 15 bytes. */
bool x86_insn_decode(const uint8_t *code, struct x86_insn *in);
enum x86_insn_kind x86_insn_kind(const uint8_t *code, const struct x86_insn *in);
