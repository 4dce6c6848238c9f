/*
 * ktr.h - contract: what recording an event needs of the CPU. Any context, also NMI.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* This CPU's head word (ktr/ring.h). */
static inline uint64_t arch_ktr_head(void);
/* The head word from head to next, if it still is head: whole for this CPU. */
static inline bool arch_ktr_claim(uint64_t head, uint64_t next);
/* Thread id on this CPU. */
static inline uint32_t arch_ktr_tid(void);
/* Sets it. Interrupts off. */
static inline void arch_ktr_set_tid(uint32_t tid);
/* Orders the stores before it before those after it, as other CPUs see them. */
static inline void arch_ktr_wmb(void);

/*
 * Also KTR_PORT_SITE_ON(site), the patchable branch of a trace point (ktr/ktr.h), and
 * KTR_PORT_CLAIM_NOW(), KTR_PORT_TURN() and KTR_PORT_TURN_OF() (ktr/port.h), of which the first two
 * are restartable, which entry_kernel_return() sees to.
 */
#include <md/ktr.h>
