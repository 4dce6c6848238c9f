/* registers.c - x86_64: XMM0 to XMM15; the registers of a signal's frame. */
#define _GNU_SOURCE
#include "tests/linux/linux_test.h"

#include <sys/syscall.h>
#include <ucontext.h>

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

#define FLAGS_RIGHTS 0x7000ul /* IOPL, NT */

void
undefined_instruction(void)
{
	__asm__ volatile("ud2");
}

void
frame_take_rights(void *context)
{
	ucontext_t *u = context;

	u->uc_mcontext.gregs[REG_EFL] |= FLAGS_RIGHTS;
	u->uc_mcontext.gregs[REG_EFL] &= ~0x200l; /* interrupts off */
	u->uc_mcontext.gregs[REG_CSGSFS] = 0x08;  /* the kernel's code segment */
}

void
frame_set_pc(void *context, uint64_t pc)
{
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] = (long long)pc;
}

uint64_t
frame_pc(const void *context)
{
	return (uint64_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

void
breakpoint(void)
{
	__asm__ volatile("int3");
}

void
skip_breakpoint(void *context)
{
	(void)context; /* the pc is after it */
}

bool
has_rights(void)
{
	uint64_t flags, cs;

	__asm__ volatile("pushfq; pop %0; mov %%cs, %1" : "=r"(flags), "=r"(cs));
	return (flags & FLAGS_RIGHTS) != 0 || !(flags & 0x200) || (cs & 3) != 3;
}

void
return_by_frame(uint64_t words[1024])
{
	__asm__ volatile("mov %0, %%rsp; syscall"
			 :
			 : "r"(words + 512), "a"(SYS_rt_sigreturn)
			 : "memory");
}
