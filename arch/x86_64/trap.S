/*
 * trap.S - every way into the kernel, the way out, and the context switch.
 *
 * All entries build a struct arch_trapframe (md/trap.h). GS holds the per-CPU block in the kernel and
 * is swapped (SWAPGS) on entry from user mode and on return to it. NMI, double fault, machine check and
 * debug exceptions have stacks of their own (IST). They may come next to a SWAPGS, so their entry reads the
 * GS base to find out whether it is the kernel's.
 */
#include "arch/x86_64/asm.h"

	.macro SAVE_REGS
	push %rax
	push %rbx
	push %rcx
	push %rdx
	push %rsi
	push %rdi
	push %rbp
	push %r8
	push %r9
	push %r10
	push %r11
	push %r12
	push %r13
	push %r14
	push %r15
	.endm

	.macro RESTORE_REGS
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %r11
	pop %r10
	pop %r9
	pop %r8
	pop %rbp
	pop %rdi
	pop %rsi
	pop %rdx
	pop %rcx
	pop %rbx
	pop %rax
	.endm

	/*
	 * Call frame information for gdb: from here on, also while a function is called, the trap frame is at the stack
	 * pointer. Its caller is the interrupted code. (The kernel's own debugger uses arch_unwind_trap() instead.)
	 */
	.macro CFI_TRAP
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_def_cfa %rsp, TF_SIZE
	.set at, -TF_SIZE
	.irp reg, %r15, %r14, %r13, %r12, %r11, %r10, %r9, %r8, %rbp, %rdi, %rsi, %rdx, %rcx, %rbx, %rax
	.cfi_offset \reg, at
	.set at, at + 8
	.endr
	.cfi_offset %rip, TF_RIP - TF_SIZE
	.cfi_offset %rsp, TF_RSP - TF_SIZE
	.endm

	.cfi_sections .debug_frame
	.section .text.traps, "ax"
	.balign 16
	.globl x86_vectors
	/* 256 stubs of 16 bytes. Vectors 8, 10-14, 17, 21, 29, 30 push an error code themselves. */
x86_vectors:
	.set vec, 0
	.rept 256
	.balign 16
	.if (vec != 8) && ((vec < 10) || (vec > 14)) && (vec != 17) && (vec != 21) && (vec != 29) && (vec != 30)
	push $0
	.endif
	.if vec < 128
	push $vec
	.else
	pushq $vec
	.endif
	.if vec == 1
	jmp debug_entry
	.elseif (vec == 2) || (vec == 8) || (vec == 18)
	jmp paranoid_entry
	.else
	jmp trap_entry
	.endif
	.set vec, vec + 1
	.endr

	.balign 16
trap_entry:
	testb $3, 24(%rsp)		/* cs, above vector, error and rip */
	jz trap_on_kernel_stack
	swapgs
trap_from_user:
	SAVE_REGS
	cld
	CFI_TRAP
	call entry_user_leave
	.globl user_left
user_left:
	jmp trap_saved
	.cfi_endproc

trap_on_kernel_stack:
	SAVE_REGS
	cld
	CFI_TRAP
trap_saved:
	mov %rsp, %rdi
	call x86_trap

	.globl trap_return
trap_return:				/* interrupts are off */
	testb $3, TF_CS(%rsp)
	jz 1f
	.cfi_endproc
	RESTORE_REGS
	swapgs
	add $16, %rsp
	iretq
1:	cmpq $3, TF_VECTOR(%rsp)
	jne 1f
	testb $1, TF_RFLAGS + 1(%rsp)	/* TF: the debugger steps from here */
	jz breakpoint_return
1:	RESTORE_REGS
	add $16, %rsp
	iretq

	/*
	 * A breakpoint in the kernel may be a trace site that is being patched, and an NMI handler may have run
	 * into it. IRET would allow the next NMI before that handler is done (SDM vol. 3A, 6.7.1). So this returns
	 * by RET: flags and return address are stored below the top of the interrupted stack. Nothing is there,
	 * since the kernel is compiled without a red zone. Not so with TF set: that would trap after RET, before the
	 * instruction that is to be stepped. An NMI that comes too early then has a stack of its own (trap_nmi()).
	 */
breakpoint_return:
	mov TF_RSP(%rsp), %rax
	mov TF_RIP(%rsp), %rcx
	mov TF_RFLAGS(%rsp), %rdx
	sub $16, %rax
	mov %rcx, 8(%rax)
	mov %rdx, (%rax)
	mov %rax, TF_ERROR(%rsp)
	RESTORE_REGS
	mov 8(%rsp), %rsp		/* error slot: the new stack pointer */
	popfq
	ret

	/*
	 * A debug exception from user mode: a program steps itself. The thread may be switched out before it returns,
	 * and then another thread may use this CPU's debug stack. So the frame is copied to the thread's own stack.
	 */
	.balign 16
debug_entry:
	testb $3, 24(%rsp)
	jz paranoid_entry
	swapgs
	push %rax
	push %rbx
	mov %gs:8, %rax
	sub $56, %rax
	.irp word, 0, 8, 16, 24, 32, 40, 48
	mov 16+\word(%rsp), %rbx
	mov %rbx, \word(%rax)
	.endr
	pop %rbx
	xchg %rax, (%rsp)
	pop %rsp
	jmp trap_from_user

	/*
	 * These exceptions may come before the handler of a page fault has read CR2, and the debugger, which they
	 * may enter, may fault itself: so CR2 is kept in a register that C functions preserve.
	 */
	.balign 16
paranoid_entry:
	SAVE_REGS
	cld
	mov %cr2, %r12
	mov $0xc0000101, %ecx		/* GS base: kernel addresses have bit 63 */
	rdmsr
	xor %ebx, %ebx
	test %edx, %edx
	js 1f
	swapgs
	inc %ebx
1:	cmpq $1, TF_VECTOR(%rsp)
	jne 1f
	/*
	 * A debug exception of the kernel: what handles it must not meet a point, since the next such exception would
	 * begin at the same top of the debug stack. So the points are off until the return: arch_points_set() only notes
	 * them here. DR7 as it was takes the place of an error code.
	 */
	movb $1, %gs:PCPU_IN_DEBUG
	mov %dr7, %rax
	mov %rax, TF_ERROR(%rsp)
	mov %rax, %gs:PCPU_DR7
	mov $DR7_OFF, %eax
	mov %rax, %dr7
1:	CFI_TRAP
	mov %rsp, %rdi
	call x86_trap
	.globl paranoid_return
paranoid_return:
	cmpq $1, TF_VECTOR(%rsp)
	jne 1f
	movb $0, %gs:PCPU_IN_DEBUG
	mov %gs:PCPU_DR7, %rax
	mov %rax, %dr7
1:	mov %r12, %cr2
	test %ebx, %ebx			/* callee-saved */
	jz 1f
	swapgs
	.cfi_endproc
1:	RESTORE_REGS
	add $16, %rsp
	iretq

	/* SYSCALL: rcx holds the user's rip, r11 its flags; interrupts are off by SFMASK. */
	.balign 16
	.globl x86_syscall_entry
x86_syscall_entry:
	swapgs
	mov %rsp, %gs:16
	mov %gs:8, %rsp
	push $SEL_UDATA
	push %gs:16
	push %r11
	push $SEL_UCODE
	push %rcx
	push %rax			/* the number, in place of an error code */
	push $VEC_SYSCALL
	SAVE_REGS
	CFI_TRAP
	mov %rsp, %rdi
	call x86_syscall
	.globl syscall_return
syscall_return:
	/* SYSRET if the frame is still as SYSCALL made it; otherwise (after execve) IRET. */
	mov TF_RIP(%rsp), %rcx
	cmp %rcx, TF_RCX(%rsp)
	jne trap_return
	mov TF_RFLAGS(%rsp), %r11
	cmp %r11, TF_R11(%rsp)
	jne trap_return
	.cfi_endproc
	RESTORE_REGS
	mov 40(%rsp), %rsp		/* the user's; vector error rip cs rflags lie below */
	swapgs
	sysretq

	/* void arch_return_to_user(struct arch_trapframe *tf) */
	.globl arch_return_to_user
arch_return_to_user:
	mov %rdi, %rsp
	jmp trap_return

	.text				/* no traps from here on */

	/* void arch_context_switch(struct arch_context *from, struct arch_context *to) */
	.globl arch_context_switch
arch_context_switch:
	.cfi_startproc
	SAVE %rbp
	SAVE %rbx
	SAVE %r12
	SAVE %r13
	SAVE %r14
	SAVE %r15
	mov %rsp, (%rdi)
	mov (%rsi), %rsp
	.globl x86_context_resumed
x86_context_resumed:			/* for gdb: where a thread that does not run is */
	RESTORE %r15
	RESTORE %r14
	RESTORE %r13
	RESTORE %r12
	RESTORE %rbx
	RESTORE %rbp
	ret
	.cfi_endproc

	/* First code of a new context: r12 function, r13 argument. */
	.cfi_startproc
	.cfi_undefined %rip		/* nothing called it */
context_start:
	nop				/* debuggers look up the instruction before a return address */
	.globl x86_context_start
x86_context_start:
	xor %ebp, %ebp
	mov %r13, %rdi
	call *%r12
	ud2
	.cfi_endproc
