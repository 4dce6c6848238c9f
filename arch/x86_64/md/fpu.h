/*
 * md/fpu.h - x86_64: x87 and SSE, by FXSAVE (SDM vol. 1, 10.5). CR4.OSXSAVE is clear, so programs
 * find no AVX. CR0.TS makes accesses trap.
 */
#pragma once

#define X86_CR0_TS (1ul << 3)

struct arch_fpu {
	uint16_t control, status;
	uint8_t tag, reserved;
	uint16_t opcode;
	uint64_t ip, data;
	uint32_t mxcsr, mxcsr_mask;
	uint8_t registers[480];
} __attribute__((aligned(16)));

_Static_assert(sizeof(struct arch_fpu) == 512, "FXSAVE's area");

static inline void
arch_fpu_init(struct arch_fpu *fpu)
{
	/* As after FNINIT, and MXCSR as after a reset: no exception traps, round to nearest. */
	*fpu = (struct arch_fpu){.control = 0x37f, .mxcsr = 0x1f80};
}

static inline void
arch_fpu_on(void)
{
	__asm__ volatile("clts" ::: "memory");
}

static inline void
arch_fpu_off(void)
{
	uint64_t cr0;

	__asm__ volatile("mov %%cr0, %0" : "=r"(cr0));
	__asm__ volatile("mov %0, %%cr0" : : "r"(cr0 | X86_CR0_TS) : "memory");
}

static inline void
arch_fpu_save(struct arch_fpu *fpu)
{
	__asm__ volatile("fxsave64 %0" : "=m"(*fpu));
}

static inline void
arch_fpu_load(const struct arch_fpu *fpu)
{
	__asm__ volatile("fxrstor64 %0" : : "m"(*fpu));
}
