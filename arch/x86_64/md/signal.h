/* md/signal.h - x86_64: Linux's rt_sigframe (arch/x86/include/asm/sigframe.h), with the FPU's area.
 */
#pragma once

#define ARCH_MINSIGSTKSZ 2048

struct arch_fault {
	uint64_t va; /* of the last page fault */
	uint64_t error, vector;
};

struct x86_sigcontext {
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, rflags;
	uint16_t cs, gs, fs, ss;
	uint64_t error, vector, mask, cr2;
	uint64_t fpu; /* address of the FPU's area; 0: none */
	uint64_t reserved[8];
};

struct arch_sigframe {
	uint64_t restorer; /* the return address */
	uint64_t uc_flags, uc_link;
	struct sigaltstack uc_stack;
	struct x86_sigcontext regs;
	uint64_t uc_sigmask;
	struct siginfo info;
	uint8_t fpu[sizeof(struct arch_fpu)];
};

_Static_assert(offsetof(struct arch_sigframe, regs) == 8 + 40, "struct ucontext");
_Static_assert(sizeof(struct x86_sigcontext) == 256, "struct sigcontext");
_Static_assert(offsetof(struct arch_sigframe, fpu) % 16 == 8, "the frame lies at 8 modulo 16");
