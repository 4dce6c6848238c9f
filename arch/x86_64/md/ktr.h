/* md/ktr.h - x86_64: the per-CPU block in GS holds the ring and the thread id. */
#pragma once

#include "arch/pcpu.h"

#include <md/ktr_site.h>

static inline uint32_t
arch_ktr_tid(void)
{
	uint32_t v;
	X86_GS_READ(v, ktr_tid);
	return v;
}

static inline void
arch_ktr_set_tid(uint32_t tid)
{
	__asm__ volatile("movl %0, %%gs:%c1"
			 :
			 : "r"(tid), "i"(offsetof(struct arch_pcpu, ktr_tid))
			 : "memory");
}
