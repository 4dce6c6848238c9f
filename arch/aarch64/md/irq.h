/*
 * md/irq.h - aarch64: PSTATE.I. FIQ stays unmasked in the kernel, except in its own handler and in
 * the first and last instructions of an exception, since it is the NMI (intc.c).
 */
#pragma once

#include <stdint.h>

#define AARCH64_PSTATE_I (1ul << 7)

static inline bool
arch_irq_enabled(void)
{
	uint64_t daif;
	__asm__ volatile("mrs %0, daif" : "=r"(daif));
	return !(daif & AARCH64_PSTATE_I);
}

static inline void
arch_irq_disable(void)
{
	__asm__ volatile("msr daifset, #2" ::: "memory");
}

static inline void
arch_irq_enable(void)
{
	__asm__ volatile("msr daifclr, #2" ::: "memory");
}

static inline uint64_t
arch_irq_save(void)
{
	uint64_t daif;
	__asm__ volatile("mrs %0, daif\n\tmsr daifset, #2" : "=r"(daif)::"memory");
	return daif;
}

static inline void
arch_irq_restore(uint64_t saved)
{
	__asm__ volatile("msr daif, %0" ::"r"(saved) : "memory");
}

static inline void
arch_irq_enable_and_wait(void)
{
	/* WFI also wakes for a masked interrupt (Arm ARM D1.6.2), so none is missed. */
	__asm__ volatile("dsb sy\n\twfi\n\tmsr daifclr, #2" ::: "memory");
}

static inline void
arch_relax(void)
{
	__asm__ volatile("yield" ::: "memory");
}
