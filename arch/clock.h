/* clock.h - contract: the time counter and the one-shot timer. */
#pragma once

#include <stdint.h>

/* Raw ticks, 64 bits, constant rate, agreed between CPUs. Any context. */
static inline uint64_t arch_clock_read(void);

#include <md/clock.h>

/* Ticks a second; known after arch_clock_init(). */
uint64_t arch_clock_hz(void);
/* Finds the counter's rate against a known clock. Boot CPU, interrupts off. */
void arch_clock_init(void);
/* This CPU's timer interrupts once, delta_ns (1,000 to 1,000,000,000) from now. Interrupts off. */
void arch_timer_set(uint64_t delta_ns);
