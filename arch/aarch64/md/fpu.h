/*
 * md/fpu.h - aarch64: the 32 vector registers, FPCR and FPSR (Arm ARM B1.2). CPACR_EL1.FPEN makes
 * accesses trap. SVE and SME stay off: programs learn from AT_HWCAP that there is none.
 */
#pragma once

#define AARCH64_FPEN (3ul << 20)

struct arch_fpu {
	uint64_t v[64]; /* V0 to V31, the low half first */
	uint64_t fpsr, fpcr;
} __attribute__((aligned(16)));

static inline void
arch_fpu_init(struct arch_fpu *fpu)
{
	*fpu = (struct arch_fpu){.fpcr = 0};
}

static inline void
arch_fpu_on(void)
{
	__asm__ volatile("msr cpacr_el1, %0; isb" : : "r"(AARCH64_FPEN) : "memory");
}

static inline void
arch_fpu_off(void)
{
	__asm__ volatile("msr cpacr_el1, xzr; isb" ::: "memory");
}

/* An instruction on each pair of registers. */
#define AARCH64_FPU_PAIRS(op)                                                                     \
	op " q0, q1, [%0, #0]\n" op " q2, q3, [%0, #32]\n" op " q4, q5, [%0, #64]\n" op           \
	   " q6, q7, [%0, #96]\n" op " q8, q9, [%0, #128]\n" op " q10, q11, [%0, #160]\n" op      \
	   " q12, q13, [%0, #192]\n" op " q14, q15, [%0, #224]\n" op " q16, q17, [%0, #256]\n" op \
	   " q18, q19, [%0, #288]\n" op " q20, q21, [%0, #320]\n" op " q22, q23, [%0, #352]\n" op \
	   " q24, q25, [%0, #384]\n" op " q26, q27, [%0, #416]\n" op " q28, q29, [%0, #448]\n" op \
	   " q30, q31, [%0, #480]\n"

static inline void
arch_fpu_save(struct arch_fpu *fpu)
{
	__asm__ volatile(AARCH64_FPU_PAIRS("stp") : : "r"(fpu->v) : "memory");
	__asm__ volatile("mrs %0, fpsr" : "=r"(fpu->fpsr));
	__asm__ volatile("mrs %0, fpcr" : "=r"(fpu->fpcr));
}

static inline void
arch_fpu_load(const struct arch_fpu *fpu)
{
	__asm__ volatile(AARCH64_FPU_PAIRS("ldp") : : "r"(fpu->v) : "memory");
	__asm__ volatile("msr fpsr, %0" : : "r"(fpu->fpsr));
	__asm__ volatile("msr fpcr, %0" : : "r"(fpu->fpcr));
}
