/*
 * clock_scale.h - the counter's ticks as nanoseconds, for the kernel and the vDSO. Any context.
 *
 * They are those of ktr_ticks_to_ns(), which ktrdump uses: to the nanosecond for 18 s at 1 GHz, and
 * after it for all but one of 2^64 / ticks times, which is one nanosecond more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds a tick: whole ones, and what is left in 2^-64, rounded up. */
struct clock_scale {
	uint64_t boot_ticks; /* the counter at boot */
	uint64_t whole, fraction;
};

/* Sets both for hz ticks a second; 1 < hz < 2^63. */
static inline void
clock_scale_set(struct clock_scale *s, uint64_t hz)
{
	const uint64_t second = 1000000000;
	uint64_t left = second % hz;

	s->whole = second / hz;
	s->fraction = 0;
	for (unsigned bit = 0; bit < 64; bit++) { /* a long division: there is none of 128 bits */
		bool one = left >= hz - left;

		left = one ? left - (hz - left) : 2 * left;
		s->fraction = s->fraction << 1 | one;
	}
	s->fraction += left > 0;
}

static inline uint64_t
clock_scale_ns(const struct clock_scale *s, uint64_t ticks)
{
	return ticks * s->whole + (uint64_t)((unsigned __int128)ticks * s->fraction >> 64);
}
