/* registers.c - x86_64: XMM0 to XMM15. */
#include "tests/linux/linux_test.h"

#include <sys/syscall.h>

const size_t fpu_words = 32;

#define ALL(op)                                                                                 \
	op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11) op(12) op(13) \
	    op(14) op(15)
#define LOAD(n)  "movups 16*" #n "(%[in]), %%xmm" #n "\n"
#define STORE(n) "movups %%xmm" #n ", 16*" #n "(%[out])\n"
#define NAME(n)  "xmm" #n,

void
fpu_round_trip(const uint64_t in[FPU_WORDS], uint64_t out[FPU_WORDS], unsigned long turns)
{
	long nr;

	__asm__ volatile(ALL(LOAD) "1: mov %[yield], %%eax\n"
				   "syscall\n"
				   "dec %[turns]\n"
				   "jnz 1b\n" ALL(STORE)
			 : "=&a"(nr), [turns] "+r"(turns)
			 : [in] "r"(in), [out] "r"(out), [yield] "i"(SYS_sched_yield)
			 : ALL(NAME) "rcx", "r11", "memory", "cc");
}

void
fpu_store(uint64_t out[FPU_WORDS])
{
	__asm__ volatile(ALL(STORE) : : [out] "r"(out) : "memory");
}
