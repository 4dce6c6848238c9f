/* md/vdso.h - x86_64: what the vDSO's functions are called, and how they make a system call. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define VDSO_NAME(name) __vdso_##name

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
