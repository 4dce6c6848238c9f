/*
 * md/ktr.h - aarch64: the head word and the thread id are in the block of TPIDR_EL1. A thread is
 * never moved to another CPU inside the record text (kernel/entry.c), so both stay this CPU's.
 */
#pragma once

#include <stdbool.h>

#include "arch/pcpu.h"

#include <md/ktr_site.h>

static inline uint64_t
arch_ktr_head(void)
{
	return __atomic_load_n(&arch_this_pcpu()->ktr_head, __ATOMIC_RELAXED);
}

/* Restartable, in place of exclusives, which an exception would have to clear. */
static inline bool
arch_ktr_claim(uint64_t head, uint64_t next)
{
	uint64_t found;

	__asm__ volatile("1:\tldr %0, [%1, %4]\n\t"
			 "cmp %0, %2\n\t"
			 "b.ne " KTR_RESTART_END "\n\t"
			 "str %3, [%1, %4]\n\t" KTR_RESTART("1b", KTR_RESTART_END)
			 : "=&r"(found)
			 : "r"(arch_this_pcpu()), "r"(head), "r"(next), AARCH64_KTR(head)
			 : "memory", "cc");
	return found == head;
}

static inline uint32_t
arch_ktr_tid(void)
{
	return __atomic_load_n(&arch_this_pcpu()->ktr_turn.tid, __ATOMIC_RELAXED);
}

static inline void
arch_ktr_set_tid(uint32_t tid)
{
	__atomic_store_n(&arch_this_pcpu()->ktr_turn.tid, tid, __ATOMIC_RELAXED);
}

static inline void
arch_ktr_wmb(void)
{
	__asm__ volatile("dmb ishst" ::: "memory");
}
