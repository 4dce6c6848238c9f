/* md/ktr.h - aarch64: the per-CPU block in TPIDR_EL1 holds the ring and the thread id. */
#pragma once

#include "arch/pcpu.h"

#include <md/ktr_site.h>

static inline uint32_t
arch_ktr_tid(void)
{
	return (uint32_t)__atomic_load_n(&arch_this_pcpu()->ktr_tid, __ATOMIC_RELAXED);
}

static inline void
arch_ktr_set_tid(uint32_t tid)
{
	__atomic_store_n(&arch_this_pcpu()->ktr_tid, tid, __ATOMIC_RELAXED);
}

#define ARCH_KTR_IN_HOOK() (&arch_this_pcpu()->ktr_in_hook)

static inline void
arch_ktr_probed(const uintptr_t *frame, bool entry, uintptr_t *ret, uintptr_t *fp)
{
	const uintptr_t *fbt = (const uintptr_t *)frame[0]; /* the frame of fbt.S */

	*ret = fbt[1];
	*fp = fbt[0];
}

static inline const uint64_t *
arch_ktr_parameters(const uintptr_t *frame)
{
	return (const uintptr_t *)frame[0] + 2;
}

static inline const uint64_t *
arch_ktr_parameter(const uintptr_t *frame, unsigned n)
{
	return arch_ktr_parameters(frame) + n + (n < 8 ? 0 : 2); /* above x8 and FBT_AT (fbt.S) */
}
