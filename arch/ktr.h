/*
 * ktr.h - contract: what recording an event needs of the CPU. Any context, also NMI.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* This CPU's head word: CPU number in the top 8 bits, sequence number below. */
static inline uint64_t arch_ktr_head(void);
/*
 * Advances this CPU's head word from head to head + 1 if it still is head: atomic against this
 * CPU's own interrupts. False: it was not. It never touches another CPU's word, since words of
 * different CPUs are never equal.
 */
static inline bool arch_ktr_claim(uint64_t head);
/* Thread id on this CPU; bit 31 asks for the slow path. */
static inline uint32_t arch_ktr_ident(void);
/* Sets it. Interrupts off. */
static inline void arch_ktr_set_ident(uint32_t ident);
/* Orders the stores before it before those after it, as other CPUs see them. */
static inline void arch_ktr_wmb(void);

/* Also KTR_PORT_SITE_ON(site), the patchable branch of a trace point (ktr/ktr.h). */
#include <md/ktr.h>
