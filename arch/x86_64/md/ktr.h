/*
 * md/ktr.h - x86_64: the head word and the thread id sit in the GS block, so one instruction
 * reaches the CPU that executes it.
 */
#pragma once

#include <stdbool.h>

#include "arch/pcpu.h"

#include <md/ktr_site.h>

static inline uint64_t
arch_ktr_head(void)
{
	uint64_t v;
	X86_GS_READ(v, ktr_head);
	return v;
}

static inline bool
arch_ktr_claim(uint64_t head, uint64_t next)
{
	bool claimed;

	/* One instruction: whole for this CPU without LOCK. */
	__asm__ volatile("cmpxchgq %2, %%gs:%c3"
			 : "=@ccz"(claimed), "+a"(head)
			 : "r"(next), X86_KTR(head)
			 : "memory");
	return claimed;
}

static inline uint32_t
arch_ktr_tid(void)
{
	uint32_t v;
	X86_GS_READ(v, ktr_turn.tid);
	return v;
}

static inline void
arch_ktr_set_tid(uint32_t tid)
{
	__asm__ volatile("movl %0, %%gs:%c1" : : "r"(tid), X86_KTR(turn.tid) : "memory");
}

static inline void
arch_ktr_wmb(void)
{
	/* Stores are seen in program order (SDM vol. 3A, 8.2.2); only the compiler must keep it. */
	__asm__ volatile("" ::: "memory");
}
