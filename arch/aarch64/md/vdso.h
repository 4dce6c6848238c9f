/* md/vdso.h - aarch64: what the vDSO's functions are called, and how they make a system call. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "arch/clock.h"

#define VDSO_NAME(name) __kernel_##name

static inline uint64_t
vdso_ticks(void)
{
	return arch_clock_read(); /* it waits already */
}

static inline long
vdso_call(long number, uint64_t a, uint64_t b)
{
	register uint64_t x0 __asm__("x0") = a;
	register uint64_t x1 __asm__("x1") = b;
	register uint64_t x2 __asm__("x2") = 0;
	register long x8 __asm__("x8") = number;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x8) : "memory");
	return (long)x0;
}

/* Where handlers return: programs give no SA_RESTORER. 139 is rt_sigreturn. */
__asm__(".pushsection .sigreturn, \"ax\"\n"
	".globl __kernel_rt_sigreturn\n"
	".type __kernel_rt_sigreturn, %function\n"
	"__kernel_rt_sigreturn:\n"
	"mov x8, #139\n"
	"svc #0\n"
	".size __kernel_rt_sigreturn, . - __kernel_rt_sigreturn\n"
	".popsection");
