/*
 * syscall.S - long syscall_raw(long nr, long a, long b, long c, long d, long e, long f)
 *
 * The one instruction that the C files cannot write. Returns what the kernel returned, errors as
 * -errno. Linux's convention: number in rax, arguments in rdi rsi rdx r10 r8 r9; rcx and r11 change.
 */
	.text
	.globl	syscall_raw
	.type	syscall_raw, @function
syscall_raw:
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	%r8, %r10
	movq	%r9, %r8
	movq	8(%rsp), %r9
	syscall
	ret
	.size	syscall_raw, . - syscall_raw

	.section .note.GNU-stack, "", @progbits
