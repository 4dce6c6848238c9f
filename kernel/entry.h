/*
 * entry.h - all that the ports may call in the kernel.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arch_trapframe;
struct pcpu;

/* First C function of the kernel. Boot CPU, boot stack, interrupts off; boot_info is filled. */
_Noreturn void kernel_main(void);
/*
 * First C function of another CPU. It has its own idle stack, traps and local interrupt controller;
 * interrupts are off.
 */
_Noreturn void entry_secondary(void);

/* Unless said otherwise, the following run with interrupts off on the thread's kernel stack. */

/*
 * The first call after an entry from user mode: from here on, the thread's time is the kernel's,
 * until entry_user_return(). An NMI need not call it, and then its time is the program's.
 */
void entry_user_leave(void);

/* The cause of an interrupt. */
enum entry_irq {
	ENTRY_IRQ_TIMER, /* the one-shot timer */
	ENTRY_IRQ_IPI,   /* number is enum arch_ipi */
	ENTRY_IRQ_LINE,  /* number is the line (GSI, INTID) */
	ENTRY_IRQ_NMI,   /* as entry_nmi(), delivered as an interrupt */
	ENTRY_IRQ_STRAY  /* unknown */
};
/*
 * Handles a device, timer or interprocessor interrupt. The port has acknowledged it at the
 * controller; interrupts do not nest. vector is the machine's number. May switch threads.
 */
void entry_interrupt(unsigned vector, enum entry_irq what, unsigned number,
		     struct arch_trapframe *tf);
/* Handles a non-maskable interrupt: one that stops this CPU, or any other. NMI context. */
void entry_nmi(struct arch_trapframe *tf);
/* Handles the system call in tf. Interrupts on. */
void entry_syscall(struct arch_trapframe *tf);
/*
 * Handles a page fault at va; access is one MMU_ bit. If va is a user address and the interrupted
 * context may sleep, it is served with interrupts on. Otherwise as entry_fault().
 */
void entry_page_fault(struct arch_trapframe *tf, uintptr_t va, unsigned access);
/*
 * Handles any other fault. From user mode: sends sig, with si_code `code`. In the kernel: continues
 * at the instruction's fix-up (arch/fixup.h), or enters the debugger. what is read-only data.
 */
void entry_fault(struct arch_trapframe *tf, int sig, const char *what, uintptr_t va, int code);
/* The program has executed an instruction, after which it traps: arch_user_step(). */
void entry_step(struct arch_trapframe *tf);
/*
 * Handles an instruction that uses the FPU while it is off (arch/fpu.h). From user mode: gives the
 * thread its registers. Otherwise as entry_fault().
 */
void entry_fpu_off(struct arch_trapframe *tf, int sig, const char *what);
/* Panics because of a fault that cannot be survived. what is read-only data. Any context. */
_Noreturn void entry_dead(struct arch_trapframe *tf, const char *what, uintptr_t va);
enum entry_debug {
	ENTRY_BREAKPOINT, /* an instruction that traps; the pc in tf is after it */
	ENTRY_STEP,       /* a step of arch_step() ended, or the cause is unknown */
	ENTRY_POINT,      /* the pc in tf is at a point of arch_points_set() */
	ENTRY_WATCH,      /* access at or near the address `data`, set by arch_points_set() */
};
/* Handles a debug exception in the kernel: runs the debugger until it lets the machine go on. */
void entry_debug(struct arch_trapframe *tf, enum entry_debug why, uintptr_t data);
/*
 * Handles signals and rescheduling before a return to user mode; from then on, the thread's time is
 * its program's. Interrupts off.
 */
void entry_user_return(struct arch_trapframe *tf);
/*
 * Call it before every return from an exception to the kernel, also from a spurious interrupt. If
 * the exception interrupted a record, the return goes to the record's beginning (ktr/restart.h).
 * The handler records nothing after this call; an NMI may still come. Any context.
 */
void entry_kernel_return(struct arch_trapframe *tf);
/*
 * A breakpoint was hit at `at`. True: it is that of a kprobe, and the interrupted context goes on.
 * False: it is another. Any context.
 */
bool entry_probe(struct arch_trapframe *tf, uintptr_t at);
/* Does the breakpoint of a kprobe stand there? Control lock. */
bool entry_probe_at(uintptr_t at);
/*
 * Services for the port.
 */
/* Maps device registers, uncached: all pages that contain them. NULL: no memory. Boot. */
void *entry_map_device(uint64_t pa, size_t size);
/* Maps firmware tables, read-only. NULL: no memory. Boot. */
const void *entry_map_firmware(uint64_t pa, size_t size);
/* Zeroed memory that is never freed; NULL: no memory. */
void *entry_alloc(size_t size);
/* Physical address of the kernel's own page table. */
uint64_t entry_kernel_root(void);
/*
 * Writes kernel text, which is mapped read-only, through a window. It stays open for further writes
 * to the same page, with interrupts off, until entry_text_close(). An aligned word of 4 bytes is
 * written with one store. One caller at a time.
 */
void entry_text_put(uintptr_t addr, const void *bytes, size_t n);
void entry_text_close(void);
/* One entry_text_put(), and entry_text_close(). */
void entry_text_write(uintptr_t addr, const void *bytes, size_t n);
/* Waits up to a second until a started CPU calls entry_secondary(). False: it did not. */
bool entry_wait_online(struct pcpu *pc);
/* Returns after every CPU has taken an interrupt, which serialises it. As smp_call_all(). */
void entry_sync_cpus(void);
