/* clock.h - time since boot. Any context, also NMI, unless said. */
#pragma once

#include <stdint.h>

#include "kernel/lib/clock_scale.h"

/* Nanoseconds since boot. Monotonic, and the same on all CPUs. */
uint64_t clock_ns(void);
/* Constant after clock_init(). */
extern struct clock_scale clock_scale;
/* The difference of two values of arch_clock_read() in nanoseconds. */
static inline uint64_t
clock_span_ns(uint64_t ticks)
{
	return clock_scale_ns(&clock_scale, ticks);
}
/* clock_ns() at a value of arch_clock_read(). */
static inline uint64_t
clock_ns_of(uint64_t ticks)
{
	/* A counter read on another CPU may be slightly below the boot CPU's value at boot. */
	return clock_span_ns(ticks > clock_scale.boot_ticks ? ticks - clock_scale.boot_ticks : 0);
}
/* A time since boot as one since 1970, UTC, by the clock as it is now; unchanged if never set. */
uint64_t clock_real_ns(uint64_t ns);
/* The time since 1970 now, and setting it: to clock_ns() or later. */
uint64_t clock_real_now_ns(void);
void clock_set_real(uint64_t real_ns);
/* Busy-waits, for hardware that needs a moment. */
void clock_delay_ns(uint64_t ns);
/* Ticks a second; 0 before clock_init(). And the counter's value at boot. */
uint64_t clock_hz(void);
uint64_t clock_boot_ticks(void);

/* Sets the start of time. Before the first event. Boot CPU. */
void clock_note_boot(void);
/* Measures the counter's rate; before this clock_ns() has no meaning. Boot CPU. */
void clock_init(void);
