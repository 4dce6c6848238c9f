/* md/regset.h - x86_64: Linux's arch/x86/include/asm/user_64.h. */
#pragma once

#define ARCH_AUDIT       0xc000003eu
#define ARCH_PTRACE_REGS 1

struct arch_regs {
	uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8;
	uint64_t rax, rcx, rdx, rsi, rdi, orig_rax;
	uint64_t rip, cs, eflags, rsp, ss, fs_base, gs_base, ds, es, fs, gs;
};

struct arch_fpregs {
	struct arch_fpu fpu; /* FXSAVE's area */
};
