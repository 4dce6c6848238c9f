/* md/debug.h - aarch64. */
#pragma once

#include <stdint.h>

#define ARCH_WATCH_BEFORE 1 /* Arm ARM D2.10: the exception comes before the access */

static inline void
arch_breakpoint(void)
{
	__asm__ volatile("brk #0" ::: "memory");
}

static inline uintptr_t
arch_frame_pointer(void)
{
	uintptr_t fp;
	__asm__ volatile("mov %0, x29" : "=r"(fp));
	return fp;
}
