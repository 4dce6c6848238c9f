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

#define ARCH_KTR_IN_HOOK() ((bool __seg_gs *)offsetof(struct arch_pcpu, ktr_in_hook))

extern const char fbt_tail[]; /* the last in fbt.S */

static inline void
arch_ktr_probed(const uintptr_t *frame, bool entry, uintptr_t *ret, uintptr_t *fp)
{
	/* From the frame upwards: RBP, return address; of an entry two parameters; saved registers,
	 * and the stub's return address (fbt.S). */
	*ret = frame[2 + (entry ? 2 + 6 : frame[1] > (uintptr_t)fbt_tail ? 6 : 2) + 1];
	*fp = frame[0];
}

static inline const uint64_t *
arch_ktr_parameters(const uintptr_t *frame)
{
	return frame + 4;
}

static inline const uint64_t *
arch_ktr_parameter(const uintptr_t *frame, unsigned n)
{
	return arch_ktr_parameters(frame) + n + 2; /* above two return addresses */
}
