/*
 * md/ktr.h - aarch64: the head word and the thread id are in the block of TPIDR_EL1. A thread is
 * never moved to another CPU inside the record text (kernel/entry.c), so both stay this CPU's.
 */
#pragma once

#include "arch/pcpu.h"

#include <md/ktr_site.h>

static inline uint64_t
arch_ktr_head(void)
{
	return __atomic_load_n(&arch_this_pcpu()->ktr_head, __ATOMIC_RELAXED);
}

static inline uint32_t
arch_ktr_ident(void)
{
	return *(volatile uint32_t *)&aarch64_ktr_pcpu()->ktr_ident;
}

static inline void
arch_ktr_set_ident(uint32_t ident)
{
	__atomic_store_n(&arch_this_pcpu()->ktr_ident, ident, __ATOMIC_RELAXED);
}

static inline void
arch_ktr_wmb(void)
{
	__asm__ volatile("dmb ishst" ::: "memory");
}
