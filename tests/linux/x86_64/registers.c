/* registers.c - x86_64: XMM0 to XMM15; the registers of a signal's frame. */
#define _GNU_SOURCE
#include "tests/linux/linux_test.h"

#include <string.h>
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

bool
frame_tells_fault(const void *context, uintptr_t at)
{
	const greg_t *r = ((const ucontext_t *)context)->uc_mcontext.gregs;

	return r[REG_CR2] == (greg_t)at && r[REG_TRAPNO] == 14 && r[REG_ERR] == 6;
}

void
code_of_call(void *code)
{
	memcpy(code, "\x0f\x05\xc3", 3); /* syscall; ret */
}

long
call_at(const void *code, long nr, uint64_t a, uint64_t b, uint64_t c)
{
	__asm__ volatile("call *%[code]"
			 : "+a"(nr)
			 : [code] "r"(code), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory", "cc");
	return nr;
}

static void
divide(void)
{
	uint32_t low = 1;

	__asm__ volatile("xor %%edx, %%edx; xor %%ecx, %%ecx; div %%ecx"
			 : "+a"(low)
			 :
			 : "ecx", "edx", "cc");
}

/* x87's exceptions are masked by the lowest bits of the control word. */
/* The nop: objdump, with which unit/insn_test compares, takes fwait and fninit for one. */
#define X87(name, unmasked, code)                                                 \
	static void name(void)                                                    \
	{                                                                         \
		uint16_t control = 0x37f & ~(unmasked);                           \
		__asm__ volatile("fninit; fldcw %0; " code "; fwait; nop; fninit" \
				 :                                                \
				 : "m"(control)                                   \
				 : "memory");                                     \
	}

X87(x87_divide, 4, "fld1; fldz; fdivrp")
X87(x87_invalid, 1, "fldz; fldz; fdivrp")
X87(x87_inexact, 0x20, "fld1; fldpi; fdivrp")

static void
sse_divide(void)
{
	uint32_t control = 0x1f80 & ~0x200u, old = 0x1f80;

	__asm__ volatile("ldmxcsr %0; mov $1, %%eax; cvtsi2ss %%eax, %%xmm0; xorps %%xmm1, %%xmm1; "
			 "divss %%xmm1, %%xmm0; ldmxcsr %1"
			 :
			 : "m"(control), "m"(old)
			 : "eax", "xmm0", "xmm1");
}

static void
halt(void)
{
	__asm__ volatile("hlt");
}

static void
no_address_at_all(void)
{
	uint64_t at = 0x8000000000000000u, value;

	__asm__ volatile("mov (%1), %0" : "=r"(value) : "r"(at));
}

const struct port_fault port_faults[] = {
    {divide, SIGFPE, FPE_INTDIV, true, false},
    {x87_divide, SIGFPE, FPE_FLTDIV, true, false},
    {x87_invalid, SIGFPE, FPE_FLTINV, true, false},
    {x87_inexact, SIGFPE, FPE_FLTRES, true, false},
    {sse_divide, SIGFPE, FPE_FLTDIV, true, true},
    {halt, SIGSEGV, SI_KERNEL, false, false},
    {no_address_at_all, SIGSEGV, SI_KERNEL, false, false},
    {undefined_instruction, SIGILL, ILL_ILLOPN, true, false},
    {breakpoint, SIGTRAP, SI_KERNEL, false, false},
    {0},
};

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
