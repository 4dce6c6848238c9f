/* md/regset.h - aarch64: Linux's arch/arm64/include/uapi/asm/ptrace.h. */
#pragma once

#define ARCH_AUDIT       0xc00000b7u
#define ARCH_PTRACE_REGS 0

struct arch_regs {
	uint64_t x[31], sp, pc, pstate;
};

struct arch_fpregs {
	uint8_t v[512];
	uint32_t fpsr, fpcr, reserved[2];
};
