/*
 * ktr.h - contract: what recording an event needs of the CPU. Any context, also NMI.
 */
#pragma once

#include <stdint.h>

/* This CPU's head word: CPU number in the top 8 bits, sequence number below. */
static inline uint64_t arch_ktr_head(void);
/* Thread id on this CPU; bit 31 asks for the slow path. */
static inline uint32_t arch_ktr_ident(void);
/* Sets it. Interrupts off. */
static inline void arch_ktr_set_ident(uint32_t ident);
/* Orders the stores before it before those after it, as other CPUs see them. */
static inline void arch_ktr_wmb(void);

/*
 * Also KTR_PORT_SITE_ON(site), the patchable branch of a trace point (ktr/ktr.h), and
 * KTR_PORT_CLAIM_NOW(), which claims a number of this CPU's: restartable (ktr/restart.h), which
 * entry_kernel_return() sees to.
 */
#include <md/ktr.h>
