/*
 * faults.c - x86_64: instructions that user programs must not execute.
 */
#include "tests/user/faults.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "kernel/abi/syscall.h"
#include "tests/user/raw.h"

static void
use_io_port(void)
{
	__asm__ volatile("outb %%al, $0xf4" : : "a"(0));
}

static void
halt(void)
{
	__asm__ volatile("hlt");
}

static void
undefined(void)
{
	__asm__ volatile("ud2");
}

static void
use_fpu(void)
{
	__asm__ volatile("pxor %%xmm0, %%xmm0" :::);
}

static void
divide(void)
{
	__asm__ volatile("xor %%ecx, %%ecx; div %%ecx" ::: "eax", "ecx", "edx");
}

static void
breakpoint(void)
{
	__asm__ volatile("int3");
}

static void
single_step(void)
{
	__asm__ volatile("pushf; orq $0x100, (%%rsp); popf; nop; nop" ::: "cc", "memory");
}

static void
single_step_system_call(void)
{
	__asm__ volatile("pushf; orq $0x100, (%%rsp); popf; syscall; nop" ::"a"(39)
			 : "cc", "memory", "rcx", "r11");
}

static void
call_kernel_vector(void)
{
	__asm__ volatile("int $0xf0");
}

static void
thread_pointer_into_kernel(void)
{
	/* ARCH_SET_FS */
	if (syscall_raw(NR_arch_prctl, 0x1002, (long)0xffff800000000000, 0, 0, 0, 0) >= 0)
		_exit(1);
}

const struct fault arch_faults[] = {
    {"an I/O port: SIGSEGV", use_io_port, SIGSEGV},
    {"HLT: SIGSEGV", halt, SIGSEGV},
    {"an undefined instruction: SIGILL", undefined, SIGILL},
    {"the FPU: allowed", use_fpu, 0},
    {"a division by zero: SIGFPE", divide, SIGFPE},
    {"a breakpoint: SIGTRAP", breakpoint, SIGTRAP},
    {"a single step: SIGTRAP", single_step, SIGTRAP},
    {"a single step over a system call: SIGTRAP", single_step_system_call, SIGTRAP},
    {"an interrupt vector of the kernel: SIGSEGV", call_kernel_vector, SIGSEGV},
    {"a thread pointer into the kernel: refused", thread_pointer_into_kernel, 0},
    {NULL, NULL, 0},
};
