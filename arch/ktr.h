/*
 * ktr.h - contract: what recording an event needs of the CPU. Any context, also NMI.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The id of the thread that runs on this CPU. */
static inline uint32_t arch_ktr_tid(void);
/* Sets it. Interrupts off. */
static inline void arch_ktr_set_tid(uint32_t tid);

/*
 * Also KTR_PORT_SITE_ON(site), the patchable branch of a trace point (ktr/ktr.h), and the
 * restartable KTR_PORT_RECORD() and KTR_PORT_TURN() (ktr/port.h). entry_kernel_return() restarts
 * them.
 */
#include <md/ktr.h>
