/*
 * ktr.h - contract: what the CPU provides for recording an event. Any context, also NMI.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The id of the thread that runs on this CPU. */
static inline uint32_t arch_ktr_tid(void);
/* Sets it. Interrupts off. */
static inline void arch_ktr_set_tid(uint32_t tid);

/*
 * Of the frame of a function that fbt_entry or fbt_return has called through site->fire (fbt.S):
 * where the probed function returns to, and the frame pointer that its caller has. Any context.
 */
static inline void arch_ktr_probed(const uintptr_t *frame, bool entry, uintptr_t *ret,
				   uintptr_t *fp);
/* The parameters in registers of the probed function, from such a frame at an entry. */
static inline const uint64_t *arch_ktr_parameters(const uintptr_t *frame);
/* Where parameter n, 6 to 9, of the probed function is: a register's place, or the stack. */
static inline const uint64_t *arch_ktr_parameter(const uintptr_t *frame, unsigned n);

/*
 * md/ktr.h also defines ARCH_KTR_IN_HOOK(), a pointer to the ktr_in_hook of this CPU's
 * struct arch_pcpu, valid with interrupts off; KTR_PORT_SITE_ON(site), the patchable branch of a
 * trace point (ktr/ktr.h), and the restartable sequences KTR_PORT_RECORD() and KTR_PORT_TURN()
 * (ktr/port.h), which entry_kernel_return() restarts.
 */
#include <md/ktr.h>
