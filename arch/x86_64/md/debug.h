/* md/debug.h - x86_64. */
#pragma once

#include <stdint.h>

#define ARCH_WATCH_BEFORE 0 /* SDM vol. 3B, 17.2.4: data breakpoints are traps */

static inline void
arch_breakpoint(void)
{
	__asm__ volatile("int3" ::: "memory");
}

static inline uintptr_t
arch_frame_pointer(void)
{
	uintptr_t fp;
	__asm__ volatile("mov %%rbp, %0" : "=r"(fp));
	return fp;
}
