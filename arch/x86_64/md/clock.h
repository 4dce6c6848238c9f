/* md/clock.h - x86_64: the time-stamp counter. */
#pragma once

#include <stdint.h>

static inline uint64_t
arch_clock_read(void)
{
	uint32_t lo, hi;
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}
