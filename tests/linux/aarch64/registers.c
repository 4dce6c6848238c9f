/* registers.c - aarch64: V0 to V31; the registers of a signal's frame. */
#define _GNU_SOURCE
#include "tests/linux/linux_test.h"

#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

const size_t fpu_words = 64;

#define ALL(op)                                                                                  \
	op(0, 1) op(2, 3) op(4, 5) op(6, 7) op(8, 9) op(10, 11) op(12, 13) op(14, 15) op(16, 17) \
	    op(18, 19) op(20, 21) op(22, 23) op(24, 25) op(26, 27) op(28, 29) op(30, 31)
#define LOAD(n, m)  "ldp q" #n ", q" #m ", [%[in], #16*" #n "]\n"
#define STORE(n, m) "stp q" #n ", q" #m ", [%[out], #16*" #n "]\n"
#define NAME(n, m)  "v" #n, "v" #m,

void
fpu_round_trip(const uint64_t in[FPU_WORDS], uint64_t out[FPU_WORDS], unsigned long turns)
{
	__asm__ volatile(ALL(LOAD) "1: mov x8, %[yield]\n"
				   "svc #0\n"
				   "subs %[turns], %[turns], #1\n"
				   "b.ne 1b\n" ALL(STORE)
			 : [turns] "+r"(turns)
			 : [in] "r"(in), [out] "r"(out), [yield] "i"(SYS_sched_yield)
			 : ALL(NAME) "x0", "x8", "memory", "cc");
}

void
fpu_store(uint64_t out[FPU_WORDS])
{
	__asm__ volatile(ALL(STORE) : : [out] "r"(out) : "memory");
}

void
undefined_instruction(void)
{
	__asm__ volatile("udf #0");
}

void
frame_take_rights(void *context)
{
	((ucontext_t *)context)->uc_mcontext.pstate |= 0x3c5; /* EL1h, nothing interrupts it */
}

void
frame_set_pc(void *context, uint64_t pc)
{
	((ucontext_t *)context)->uc_mcontext.pc = pc;
}

uint64_t
frame_pc(const void *context)
{
	return ((const ucontext_t *)context)->uc_mcontext.pc;
}

bool
frame_tells_fault(const void *context, uintptr_t at)
{
	return ((const ucontext_t *)context)->uc_mcontext.fault_address == at;
}

void
code_of_call(void *code)
{
	static const uint32_t text[] = {0xd4000001, 0xd65f03c0}; /* svc #0; ret */

	memcpy(code, text, sizeof(text));
}

long
call_at(const void *code, long nr, uint64_t a, uint64_t b, uint64_t c)
{
	register uint64_t x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
	register uint64_t x8 __asm__("x8") = (uint64_t)nr;

	__asm__ volatile("blr %[code]"
			 : "+r"(x0), "+r"(x8)
			 : [code] "r"(code), "r"(x1), "r"(x2)
			 : "x30", "memory", "cc");
	return (long)x0;
}

static void
odd_pc(void)
{
	__asm__ volatile("adr x9, .; add x9, x9, #2; br x9" : : : "x9");
}

const struct port_fault port_faults[] = {
    {undefined_instruction, SIGILL, ILL_ILLOPC, true, false},
    {odd_pc, SIGBUS, BUS_ADRALN, true, false},
    {breakpoint, SIGTRAP, TRAP_BRKPT, true, false},
    {0},
};

void
breakpoint(void)
{
	__asm__ volatile("brk #1");
}

void
skip_breakpoint(void *context)
{
	((ucontext_t *)context)->uc_mcontext.pc += 4;
}

bool
has_rights(void)
{
	return false; /* at EL1 this program's memory could not be executed */
}

void
return_by_frame(uint64_t words[1024])
{
	__asm__ volatile("mov sp, %0; mov x8, %1; svc #0"
			 :
			 : "r"(words + 384), "i"(SYS_rt_sigreturn)
			 : "memory", "x8");
}
