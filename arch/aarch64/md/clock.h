/* md/clock.h - aarch64: the virtual count of the Generic Timer (Arm ARM D11). */
#pragma once

#include <stdint.h>

static inline uint64_t
arch_clock_read(void)
{
	uint64_t v;

	/* Without ISB the CPU may read the count before earlier instructions complete (D11.2.1). */
	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(v) : : "memory");
	return v;
}
