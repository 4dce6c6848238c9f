/*
 * trap.S - every way into the kernel, the way out, and the context switch.
 *
 * All entries build a struct arch_trapframe (md/trap.h) on the kernel stack, SP_EL1. In the kernel, SP_EL0
 * holds the current thread. The program's TPIDR_EL0 is saved in its frame, so the kernel may use that
 * register: the first instructions of an exception from EL1 keep x0 there. No other exception can come then.
 */
#include "arch/aarch64/asm.h"

	/* x0 and x1 are saved already. */
	.macro SAVE_REGS
	stp x2, x3, [sp, #16 * 1]
	stp x4, x5, [sp, #16 * 2]
	stp x6, x7, [sp, #16 * 3]
	stp x8, x9, [sp, #16 * 4]
	stp x10, x11, [sp, #16 * 5]
	stp x12, x13, [sp, #16 * 6]
	stp x14, x15, [sp, #16 * 7]
	stp x16, x17, [sp, #16 * 8]
	stp x18, x19, [sp, #16 * 9]
	stp x20, x21, [sp, #16 * 10]
	stp x22, x23, [sp, #16 * 11]
	stp x24, x25, [sp, #16 * 12]
	stp x26, x27, [sp, #16 * 13]
	stp x28, x29, [sp, #16 * 14]
	.endm

	/* x0: as interrupted, x21: the interrupted stack pointer, x22: its TPIDR_EL0. */
	.macro SAVE_STATE
	stp x30, x21, [sp, #TF_X30]
	mrs x23, elr_el1
	mrs x24, spsr_el1
	mrs x25, esr_el1
	mrs x26, far_el1
	stp x23, x24, [sp, #TF_PC]
	stp x25, x26, [sp, #TF_ESR]
	stp x22, x0, [sp, #TF_TLS]
	.endm

	.macro FROM_EL0 kind
	.balign 0x80
	sub sp, sp, #TF_SIZE
	stp x0, x1, [sp]
	mov x1, #\kind
	b from_el0
	.endm

	/* Is there room for a frame, or does sp point into the guard page below the stack? */
	.macro FROM_EL1 kind
	.balign 0x80
	msr tpidr_el0, x0
	mrs x0, tpidr_el1
	ldr x0, [x0, #PCPU_KSTACK]
	sub x0, sp, x0
	add x0, x0, #1, lsl #12
	sub x0, x0, #TF_SIZE
	lsr x0, x0, #12
	cbz x0, stack_overflow
	mrs x0, tpidr_el0
	sub sp, sp, #TF_SIZE
	stp x0, x1, [sp]
	mov x1, #\kind
	b from_el1
	.endm

	/*
	 * Call frame information for gdb: from here on, also while a function is called, the trap frame is at the stack
	 * pointer. Its caller is the interrupted code. (The kernel's own debugger uses arch_unwind_trap() instead.)
	 */
	.macro CFI_TRAP
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_return_column DWARF_PC
	.cfi_def_cfa sp, TF_SIZE
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30
	.cfi_offset x\n, 8 * \n - TF_SIZE
	.endr
	.cfi_offset sp, TF_SP - TF_SIZE
	.cfi_offset DWARF_PC, TF_PC - TF_SIZE
	.endm

	.cfi_sections .debug_frame
	.section .text.traps, "ax"
	.balign 0x800
	.globl aarch64_vectors
aarch64_vectors:			/* Arm ARM D1.3.1 */
	FROM_EL1 TRAP_BAD		/* EL1 on SP_EL0: never */
	FROM_EL1 TRAP_BAD
	FROM_EL1 TRAP_BAD
	FROM_EL1 TRAP_BAD
	FROM_EL1 TRAP_SYNC
	FROM_EL1 TRAP_IRQ
	FROM_EL1 TRAP_FIQ
	FROM_EL1 TRAP_SERROR
	FROM_EL0 TRAP_SYNC
	FROM_EL0 TRAP_IRQ
	FROM_EL0 TRAP_FIQ
	FROM_EL0 TRAP_SERROR
	FROM_EL0 TRAP_BAD		/* AArch32: programs are A64 */
	FROM_EL0 TRAP_BAD
	FROM_EL0 TRAP_BAD
	FROM_EL0 TRAP_BAD

from_el0:
	SAVE_REGS
	mrs x21, sp_el0
	mrs x22, tpidr_el0
	SAVE_STATE
	mrs x0, tpidr_el1
	ldr x0, [x0, #PCPU_CURTHREAD]
	msr sp_el0, x0
	mov x29, xzr			/* a backtrace ends here */
	mov x30, xzr
	CFI_TRAP
	mov x19, x1
	bl entry_user_leave
	.globl user_left
user_left:
	mov x1, x19
	mov x0, sp
	bl aarch64_trap
	b trap_return
	.cfi_endproc

from_el1:
	SAVE_REGS
	add x21, sp, #TF_SIZE
	mov x22, xzr
	SAVE_STATE
	CFI_TRAP
	mov x0, sp
	bl aarch64_trap

	.globl trap_return
trap_return:				/* sp: the frame */
	msr daifset, #15
	ldp x23, x24, [sp, #TF_PC]
	msr elr_el1, x23
	msr spsr_el1, x24
	tst x24, #0xf
	b.ne 1f
	ldr x21, [sp, #TF_SP]
	ldr x22, [sp, #TF_TLS]
	msr sp_el0, x21
	msr tpidr_el0, x22
1:	ldp x0, x1, [sp, #16 * 0]
	ldp x2, x3, [sp, #16 * 1]
	ldp x4, x5, [sp, #16 * 2]
	ldp x6, x7, [sp, #16 * 3]
	ldp x8, x9, [sp, #16 * 4]
	ldp x10, x11, [sp, #16 * 5]
	ldp x12, x13, [sp, #16 * 6]
	ldp x14, x15, [sp, #16 * 7]
	ldp x16, x17, [sp, #16 * 8]
	ldp x18, x19, [sp, #16 * 9]
	ldp x20, x21, [sp, #16 * 10]
	ldp x22, x23, [sp, #16 * 11]
	ldp x24, x25, [sp, #16 * 12]
	ldp x26, x27, [sp, #16 * 13]
	ldp x28, x29, [sp, #16 * 14]
	ldr x30, [sp, #TF_X30]
	.cfi_endproc
	add sp, sp, #TF_SIZE
	eret

	/* The frame goes onto a stack that is kept for this; there is no way back. TPIDR_EL0: x0. */
stack_overflow:
	mov x0, sp
	msr tpidrro_el0, x0
	mrs x0, tpidr_el1
	ldr x0, [x0, #PCPU_OVERFLOW_TOP]
	sub sp, x0, #TF_SIZE
	mrs x0, tpidr_el0
	stp x0, x1, [sp]
	SAVE_REGS
	mrs x21, tpidrro_el0
	mov x22, xzr
	SAVE_STATE
	CFI_TRAP
	mov x0, sp
	mov x1, #TRAP_STACK
	bl aarch64_trap
	.globl stack_overflow_return
stack_overflow_return:			/* never: for backtraces */
	brk #1
	.cfi_endproc

	/* void arch_return_to_user(struct arch_trapframe *tf): tf is at the top of the kernel stack */
	.globl arch_return_to_user
arch_return_to_user:
	mov sp, x0
	b trap_return

	.text				/* no traps from here on */

	/* void arch_context_switch(struct arch_context *from, struct arch_context *to) */
	.globl arch_context_switch
arch_context_switch:
	.cfi_startproc
	stp x19, x20, [x0, #16 * 0]
	stp x21, x22, [x0, #16 * 1]
	stp x23, x24, [x0, #16 * 2]
	stp x25, x26, [x0, #16 * 3]
	stp x27, x28, [x0, #16 * 4]
	mov x9, sp
	stp x29, x9, [x0, #16 * 5]
	str x30, [x0, #CTX_PC]
	ldp x19, x20, [x1, #16 * 0]
	ldp x21, x22, [x1, #16 * 1]
	ldp x23, x24, [x1, #16 * 2]
	ldp x25, x26, [x1, #16 * 3]
	ldp x27, x28, [x1, #16 * 4]
	ldp x29, x9, [x1, #16 * 5]
	ldr x30, [x1, #CTX_PC]
	mov sp, x9
	ret
	.cfi_endproc

	/* First code of a new context: x19 function, x20 argument. */
	.cfi_startproc
	.cfi_undefined x30		/* nothing called it */
context_start:
	nop				/* debuggers look up the instruction before a return address */
	.globl aarch64_context_start
aarch64_context_start:
	mov x0, x20
	mov x30, xzr
	blr x19
	brk #1
	.cfi_endproc
