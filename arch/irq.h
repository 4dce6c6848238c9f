/* irq.h - contract: this CPU's interrupt flag. Any context. */
#pragma once

#include <stdbool.h>

/* Are interrupts on? */
static inline bool arch_irq_enabled(void);
static inline void arch_irq_disable(void);
static inline void arch_irq_enable(void);
/* Turns interrupts on and waits for one, with no gap between in which one would be missed. */
static inline void arch_irq_enable_and_wait(void);
/* In a spin loop: gives the other hardware thread room. */
static inline void arch_relax(void);

#include <md/irq.h>
