/* md/debug.h - aarch64. */
#pragma once

#include <stdint.h>

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
