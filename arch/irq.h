/* irq.h - contract: this CPU's interrupt flag. Any context. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Are interrupts on? */
static inline bool arch_irq_enabled(void);
static inline void arch_irq_disable(void);
static inline void arch_irq_enable(void);
/* Turns interrupts off, and on again if they were on. What is saved is for this CPU and port. */
static inline uint64_t arch_irq_save(void);
static inline void arch_irq_restore(uint64_t saved);
/* Turns interrupts on and waits for one, atomically: none is missed in between. */
static inline void arch_irq_enable_and_wait(void);
/* For spin loops: leaves resources to the other hardware thread. */
static inline void arch_relax(void);

#include <md/irq.h>
