/*
 * md/ktr.h - x86_64: the head word and the thread id sit in the GS block, so one instruction
 * reaches the CPU that executes it.
 */
#pragma once

#include "arch/pcpu.h"

#include <md/ktr_site.h>

static inline uint64_t
arch_ktr_head(void)
{
	uint64_t v;
	X86_GS_READ(v, ktr_head);
	return v;
}

static inline uint32_t
arch_ktr_ident(void)
{
	uint32_t v;
	X86_GS_READ(v, ktr_ident);
	return v;
}

static inline void
arch_ktr_set_ident(uint32_t ident)
{
	__asm__ volatile("movl %0, %%gs:%c1"
			 :
			 : "r"(ident), "i"(offsetof(struct arch_pcpu, ktr_ident))
			 : "memory");
}

static inline void
arch_ktr_wmb(void)
{
	/* Stores are seen in program order (SDM vol. 3A, 8.2.2); only the compiler must keep it. */
	__asm__ volatile("" ::: "memory");
}
