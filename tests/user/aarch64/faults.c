/*
 * faults.c - aarch64: instructions that user programs must not execute, and some that they may.
 * Instructions that the assembler rejects with the build's options are given as words.
 */
#include "tests/user/faults.h"

#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/user/raw.h"

static void
semihosting_call(void)
{
	/* SYS_EXIT with status 0: if it worked, it would end the machine. */
	__asm__ volatile("mov w0, #0x18; mov x1, xzr; hlt #0xf000" ::: "x0", "x1");
}

static void
undefined(void)
{
	__asm__ volatile("udf #0");
}

static void
use_fpu(void)
{
	__asm__ volatile(".inst 0x9e6703e0"); /* fmov d0, xzr */
}

static void
read_fpcr(void)
{
	__asm__ volatile(".inst 0xd53b4400"); /* mrs x0, fpcr */
}

static void
use_sve(void)
{
	__asm__ volatile(".inst 0x04bf5020"); /* rdvl x0, #1 */
}

static void
breakpoint(void)
{
	__asm__ volatile("brk #0");
}

static void
branch_unaligned(void)
{
	__asm__ volatile("adr x0, .; add x0, x0, #2; br x0" ::: "x0");
}

static void
exclusive_unaligned(void)
{
	static _Alignas(16) char data[16];
	__asm__ volatile("ldxr x0, [%0]; clrex" : : "r"(data + 1) : "x0", "memory");
}

static void
load_unaligned(void)
{
	static _Alignas(16) const char data[16] = {0, 1, 2, 3, 4};
	unsigned found;

	__asm__ volatile("ldr %w0, [%1]" : "=r"(found) : "r"(data + 1) : "memory");
	if (found != 0x04030201)
		_exit(1);
}

static void
divide(void)
{
	unsigned long quotient;

	__asm__ volatile("udiv %0, %1, xzr" : "=r"(quotient) : "r"(7ul));
	if (quotient != 0)
		_exit(1);
}

static void
read_sctlr(void)
{
	__asm__ volatile("mrs x0, sctlr_el1" ::: "x0");
}

static void
write_sctlr(void)
{
	__asm__ volatile("msr sctlr_el1, xzr");
}

static void
read_table(void)
{
	__asm__ volatile("mrs x0, ttbr0_el1" ::: "x0");
}

static void
write_vectors(void)
{
	__asm__ volatile("msr vbar_el1, xzr");
}

static void
read_midr(void)
{
	__asm__ volatile("mrs x0, midr_el1" ::: "x0");
}

static void
mask_interrupts(void)
{
	__asm__ volatile("msr daifset, #2");
}

static void
write_tpidrro(void)
{
	__asm__ volatile("msr tpidrro_el0, xzr");
}

static void
write_timer(void)
{
	__asm__ volatile("msr cntv_ctl_el0, xzr");
}

static void
invalidate_tlb(void)
{
	__asm__ volatile("tlbi vmalle1");
}

static void
invalidate_data(void)
{
	__asm__ volatile("dc ivac, %0" : : "r"(__builtin_frame_address(0)));
}

static void
return_from_exception(void)
{
	__asm__ volatile("eret");
}

static void
hypervisor_call(void)
{
	__asm__ volatile(".inst 0xd4000002"); /* hvc #0 */
}

static void
monitor_call(void)
{
	__asm__ volatile(".inst 0xd4000003"); /* smc #0 */
}

static void
clear_null(void)
{
	__asm__ volatile("dc zva, xzr");
}

static void
store_kernel(void)
{
	__asm__ volatile("str xzr, [%0]" : : "r"(0xffffffff80200000) : "memory");
}

static void
allowed(void)
{
	static _Alignas(64) int word;
	unsigned long cntvct, ctr;

	__asm__ volatile("sevl; wfe; yield; wfi" ::: "memory");
	__asm__ volatile("dc cvau, %0; dc civac, %0; dsb ish; ic ivau, %0; isb"
			 :
			 : "r"(&word)
			 : "memory");
	__asm__ volatile("mrs %0, cntvct_el0; mrs %1, ctr_el0" : "=r"(cntvct), "=r"(ctr));
	if (cntvct == 0 || ctr == 0)
		_exit(1);
}

static void
wild_stack(void)
{
	long pid;

	/*
	 * While sp is 1, interrupts and a system call come: the kernel must neither use it nor
	 * change it.
	 */
	__asm__ volatile("mov x9, sp; mov x10, #1; mov sp, x10; mov x11, #0x1000000\n"
			 "1:\tsubs x11, x11, #1; b.ne 1b\n\t"
			 "mov x8, %[nr]; svc #0; mov %[pid], x0\n\t"
			 "mov x10, sp; mov sp, x9; cmp x10, #1; csel %[pid], %[pid], xzr, eq"
			 : [pid] "=&r"(pid)
			 : [nr] "i"(NR_getpid)
			 : "x0", "x8", "x9", "x10", "x11", "cc", "memory");
	if (pid <= 0)
		_exit(1);
}

static void
svc_immediate(void)
{
	long pid;

	__asm__ volatile("mov x8, %[nr]; svc #0xffff; mov %0, x0"
			 : "=r"(pid)
			 : [nr] "i"(NR_getpid)
			 : "x0", "x8", "memory");
	if (pid != getpid())
		_exit(1);
}

static void
thread_pointer(void)
{
	unsigned long own, found;

	/* Children inherit it, and then change their own. Meanwhile the libc has no thread: only
	 * system calls work. */
	__asm__ volatile("mrs %0, tpidr_el0" : "=r"(own));
	__asm__ volatile("msr tpidr_el0, %0" : : "r"(0x123456789abcdef0));
	for (int i = 0; i < 3; i++) {
		long pid = SYSCALL1(clone, SIGCHLD);

		if (pid == 0) {
			__asm__ volatile("mrs %0, tpidr_el0" : "=r"(found));
			__asm__ volatile("msr tpidr_el0, xzr");
			SYSCALL1(exit_group, found != 0x123456789abcdef0);
		}
		int status = -1;
		if (SYSCALL3(wait4, pid, &status, 0) != pid || status != 0)
			SYSCALL1(exit_group, 1);
		__asm__ volatile("mrs %0, tpidr_el0" : "=r"(found));
		if (found != 0x123456789abcdef0)
			SYSCALL1(exit_group, 1);
	}
	__asm__ volatile("msr tpidr_el0, %0" : : "r"(own));
}

/* Loads through an unaligned stack pointer are missing here: QEMU 7.2 ignores SCTLR_EL1.SA0. */
const struct fault arch_faults[] = {
    {"a semihosting call: SIGILL", semihosting_call, SIGILL},
    {"an undefined instruction: SIGILL", undefined, SIGILL},
    {"the FPU: allowed", use_fpu, 0},
    {"a register of the FPU: allowed", read_fpcr, 0},
    {"the vector unit, which programs have not: SIGILL", use_sve, SIGILL},
    {"a breakpoint: SIGTRAP", breakpoint, SIGTRAP},
    {"a branch to an address that is not aligned: SIGBUS", branch_unaligned, SIGBUS},
    {"an exclusive load that is not aligned: SIGBUS", exclusive_unaligned, SIGBUS},
    {"any other load that is not aligned: allowed", load_unaligned, 0},
    {"a division by zero, which is 0: allowed", divide, 0},
    {"reading SCTLR_EL1: SIGILL", read_sctlr, SIGILL},
    {"writing SCTLR_EL1: SIGILL", write_sctlr, SIGILL},
    {"reading TTBR0_EL1: SIGILL", read_table, SIGILL},
    {"writing VBAR_EL1: SIGILL", write_vectors, SIGILL},
    {"reading MIDR_EL1: SIGILL", read_midr, SIGILL},
    {"masking interrupts: SIGILL", mask_interrupts, SIGILL},
    {"writing TPIDRRO_EL0: SIGILL", write_tpidrro, SIGILL},
    {"writing the timer: SIGILL", write_timer, SIGILL},
    {"TLBI: SIGILL", invalidate_tlb, SIGILL},
    {"DC IVAC, which throws data away: SIGILL", invalidate_data, SIGILL},
    {"ERET: SIGILL", return_from_exception, SIGILL},
    {"HVC: SIGILL", hypervisor_call, SIGILL},
    {"SMC: SIGILL", monitor_call, SIGILL},
    {"DC ZVA at a null pointer: SIGSEGV", clear_null, SIGSEGV},
    {"a store to kernel memory: SIGSEGV", store_kernel, SIGSEGV},
    {"waiting, cache maintenance for code, the virtual count: allowed", allowed, 0},
    {"a wild stack pointer that nothing is stored by: allowed", wild_stack, 0},
    {"SVC with an immediate, which means nothing: allowed", svc_immediate, 0},
    {"the thread pointer is the thread's own: allowed", thread_pointer, 0},
    {NULL, NULL, 0},
};
