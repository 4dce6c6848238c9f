/*
 * fpu.h - contract: the floating point and vector registers, which belong to programs alone. The
 * kernel uses none of them. They are off (an access traps) unless the current thread has them.
 */
#pragma once

#include <stdint.h>

struct arch_fpu; /* defined by the port: the contents of all of these registers */

/* Makes the contents that a program starts with. */
static inline void arch_fpu_init(struct arch_fpu *fpu);
/* Lets this CPU use the registers; an access traps no more. Interrupts off. */
static inline void arch_fpu_on(void);
/* An access traps: entry_fpu_off(). Interrupts off. */
static inline void arch_fpu_off(void);
/* Copy the registers, while they are on. */
static inline void arch_fpu_save(struct arch_fpu *fpu);
static inline void arch_fpu_load(const struct arch_fpu *fpu);

#include <md/fpu.h>
