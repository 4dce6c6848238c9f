/* md/signal.h - aarch64: Linux's rt_sigframe (arch/arm64/include/uapi/asm/sigcontext.h). */
#pragma once

#define ARCH_MINSIGSTKSZ 5120

#define AARCH64_FPSIMD_MAGIC 0x46508001u

struct arch_fault {
	uint64_t va; /* of an abort */
};

struct aarch64_fpsimd {
	uint32_t magic, size, fpsr, fpcr;
	uint64_t v[64];
};

struct arch_sigframe {
	struct siginfo info;
	uint64_t uc_flags, uc_link;
	struct sigaltstack uc_stack;
	uint64_t uc_sigmask, uc_unused[15], uc_pad;
	uint64_t fault_address, x[31], sp, pc, pstate, pad;
	/* Here begin 4096 bytes of records; one with magic and size 0 ends them. */
	struct aarch64_fpsimd fpsimd;
	uint64_t end;
	uint64_t record[2]; /* for unwinders: frame pointer and return address */
	uint64_t rest;
};

/* Bytes of stack: all of the records. */
#define AARCH64_SIGFRAME_SIZE (offsetof(struct arch_sigframe, fpsimd) + 4096)

_Static_assert(offsetof(struct arch_sigframe, uc_flags) == 128, "struct rt_sigframe");
_Static_assert(offsetof(struct arch_sigframe, fault_address) == 128 + 176, "struct ucontext");
_Static_assert(offsetof(struct arch_sigframe, fpsimd) == 128 + 176 + 288, "struct sigcontext");
_Static_assert(sizeof(struct aarch64_fpsimd) == 528, "struct fpsimd_context");
