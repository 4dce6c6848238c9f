/* md/vdso.h - x86_64: what the vDSO's functions are called, and how they make a system call. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "arch/clock.h"

#define VDSO_NAME(name) __vdso_##name

static inline uint64_t
vdso_ticks(void)
{
	__asm__ volatile("lfence" : : : "memory"); /* RDTSC does not wait for loads (SDM 4.3) */
	return arch_clock_read();
}

static inline long
vdso_call(long number, uint64_t a, uint64_t b)
{
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "0"(number), "D"(a), "S"(b), "d"(0)
			 : "rcx", "r11", "memory");
	return r;
}
