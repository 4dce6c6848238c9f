/*
 * syscall.S - long syscall_raw(long nr, long a, long b, long c, long d, long e, long f)
 *
 * The one instruction that the C files cannot write. Returns what the kernel returned, errors as
 * -errno. Linux's convention: number in x8, arguments in x0 to x5.
 */
	.text
	.globl	syscall_raw
	.type	syscall_raw, %function
syscall_raw:
	mov	x8, x0
	mov	x0, x1
	mov	x1, x2
	mov	x2, x3
	mov	x3, x4
	mov	x4, x5
	mov	x5, x6
	svc	#0
	ret
	.size	syscall_raw, . - syscall_raw

	.section .note.GNU-stack, "", %progbits
