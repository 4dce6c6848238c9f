/* md/irq.h - x86_64: RFLAGS.IF. */
#pragma once

#include <stdint.h>

#define X86_RFLAGS_IF (1ul << 9)

static inline bool
arch_irq_enabled(void)
{
	uint64_t flags;
	__asm__ volatile("pushfq; popq %0" : "=r"(flags));
	return flags & X86_RFLAGS_IF;
}

static inline void
arch_irq_disable(void)
{
	__asm__ volatile("cli" ::: "memory");
}

static inline void
arch_irq_enable(void)
{
	__asm__ volatile("sti" ::: "memory");
}

static inline uint64_t
arch_irq_save(void)
{
	uint64_t flags;
	__asm__ volatile("pushfq; popq %0; cli" : "=r"(flags)::"memory");
	return flags;
}

/* POPF takes longer than a branch. */
static inline void
arch_irq_restore(uint64_t saved)
{
	if (saved & X86_RFLAGS_IF)
		arch_irq_enable();
}

static inline void
arch_irq_enable_and_wait(void)
{
	/* STI holds interrupts off for one more instruction (SDM vol. 2B, STI). */
	__asm__ volatile("sti; hlt" ::: "memory");
}

static inline void
arch_relax(void)
{
	__asm__ volatile("pause" ::: "memory");
}
