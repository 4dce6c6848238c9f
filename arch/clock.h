/* clock.h - contract: the time counter and the one-shot timer. */
#pragma once

#include <stdint.h>

/* Raw ticks: 64 bits, constant rate, the same on all CPUs. Any context. */
static inline uint64_t arch_clock_read(void);

#include <md/clock.h>

/* Ticks a second; known after arch_clock_init(). */
uint64_t arch_clock_hz(void);
/* Measures the counter's rate. Boot CPU, interrupts off. */
void arch_clock_init(void);
/*
 * Seconds since 1970, UTC, by the machine's real-time clock; 0: it has none. Boot CPU, after
 * arch_machine_init().
 */
uint64_t arch_rtc_read(void);
/*
 * Makes this CPU's timer interrupt once, after delta_ns (1,000 to 1,000,000,000). Interrupts off.
 */
void arch_timer_set(uint64_t delta_ns);
