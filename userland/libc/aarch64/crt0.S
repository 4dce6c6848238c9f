/*
 * crt0.S - where the kernel enters a program: argc, argv, envp stand at the stack pointer.
 */
	.text
	.globl	_start
	.type	_start, %function
_start:
	mov	x29, xzr		/* the outermost frame: unwinders stop here */
	mov	x30, xzr
	mov	x0, sp
	bl	libc_start
	udf	#0
	.size	_start, . - _start

	.section .note.GNU-stack, "", %progbits
