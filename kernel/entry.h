/*
 * entry.h - the only way from a port up into the kernel.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arch_trapframe;
struct boot_info;
struct pcpu;

/* First C function of the kernel: boot CPU, boot stack, interrupts off; boot_info is filled. */
_Noreturn void kernel_main(void);
/* Another CPU arrives: its own idle stack, traps and local interrupt controller set up, interrupts
 * off. */
_Noreturn void entry_secondary(void);

/* All of these run with interrupts off on the thread's kernel stack unless said. */

/* What has interrupted. */
enum entry_irq {
	ENTRY_IRQ_TIMER, /* the one-shot timer */
	ENTRY_IRQ_IPI,   /* number is enum arch_ipi */
	ENTRY_IRQ_LINE,  /* number is the line (GSI, INTID) */
	ENTRY_IRQ_NMI,   /* entry_nmi() by other means */
	ENTRY_IRQ_STRAY  /* nobody knows */
};
/*
 * Every device, timer and interprocessor interrupt, when the controller was told that it is taken:
 * none nests. vector is what the machine calls it. May switch threads.
 */
void entry_interrupt(unsigned vector, enum entry_irq what, unsigned number,
		     struct arch_trapframe *tf);
/* An interrupt that stops CPUs, or another that no masking holds off. NMI context. */
void entry_nmi(struct arch_trapframe *tf);
/* System call from tf; interrupts on. */
void entry_syscall(struct arch_trapframe *tf);
/*
 * Page fault at va; `access` is one MMU_ bit. Served, with interrupts on meanwhile, when va is a
 * user's and the interrupted context may sleep; else as entry_fault().
 */
void entry_page_fault(struct arch_trapframe *tf, uintptr_t va, unsigned access);
/*
 * Any other fault. From user mode: sig is sent. From the kernel: tf goes on at the fix-up of an
 * access that may fault (arch/fixup.h), else the debugger. what is read-only data.
 */
void entry_fault(struct arch_trapframe *tf, int sig, const char *what, uintptr_t va);
/* A fault that nobody survives, wherever it struck: panics. what is read-only data. Any context. */
_Noreturn void entry_dead(struct arch_trapframe *tf, const char *what, uintptr_t va);
enum entry_debug {
	ENTRY_BREAKPOINT, /* an instruction that traps; tf is behind it */
	ENTRY_STEP,       /* arch_step(); or nobody knows why */
	ENTRY_POINT,      /* tf is at a place of arch_points_set() */
	ENTRY_WATCH,      /* data that arch_points_set() names: at the address `data`, or near it */
};
/* A debug exception in the kernel: enters the debugger, and goes on when that lets it. */
void entry_debug(struct arch_trapframe *tf, enum entry_debug why, uintptr_t data);
/* Before return to user mode, interrupts off: signals and rescheduling. */
void entry_user_return(struct arch_trapframe *tf);
/*
 * Call it before every return from an exception to the kernel, also from a spurious interrupt. If
 * the exception interrupted a record, the return goes to the record's beginning (ktr/restart.h).
 * The handler records nothing after this call; an NMI may still come. Any context.
 */
void entry_kernel_return(struct arch_trapframe *tf);
/*
 * Services for the port.
 */
/* Device registers, uncached. Page aligned size is taken. NULL: no memory. Boot. */
void *entry_map_device(uint64_t pa, size_t size);
/* Firmware tables, read-only. NULL: no memory. Boot. */
const void *entry_map_firmware(uint64_t pa, size_t size);
/* Zeroed memory that is never freed, or NULL. */
void *entry_alloc(size_t size);
/* Physical address of the kernel's own page table. */
uint64_t entry_kernel_root(void);
/*
 * Stores into kernel text, which is mapped read-only; an aligned word of 4 bytes in one store. One
 * caller at a time.
 */
void entry_text_write(uintptr_t addr, const void *bytes, size_t n);
/* Waits a second for a CPU that was started to call entry_secondary(). False: it did not. */
bool entry_wait_online(struct pcpu *pc);
/* Every CPU executes a serialising interrupt before this returns. As smp_call_all(). */
void entry_sync_cpus(void);
