/*
 * clock_scale.h - the counter's ticks as nanoseconds, for the kernel and the vDSO. Any context.
 *
 * They are those of ktr_ticks_to_ns(), which ktrdump uses: to the nanosecond for 18 s at 1 GHz, and
 * after it for all but one of 2^64 / ticks times, which is one nanosecond more.
 */
#pragma once

#include <stdint.h>

/* Nanoseconds a tick: whole ones, and what is left in 2^-64, rounded up. */
struct clock_scale {
	uint64_t boot_ticks; /* the counter at boot */
	uint64_t whole, fraction;
};

/* Sets both for hz ticks a second; 1 < hz. */
static inline void
clock_scale_set(struct clock_scale *s, uint64_t hz)
{
	const uint64_t second = 1000000000;

	s->whole = second / hz;
	s->fraction = (uint64_t)((((unsigned __int128)(second % hz) << 64) + hz - 1) / hz);
}

static inline uint64_t
clock_scale_ns(const struct clock_scale *s, uint64_t ticks)
{
	return ticks * s->whole + (uint64_t)((unsigned __int128)ticks * s->fraction >> 64);
}
