/*
 * crt0.S - where the kernel enters a program: argc, argv, envp stand at the stack pointer.
 */
	.text
	.globl	_start
	.type	_start, @function
_start:
	xorl	%ebp, %ebp		/* the outermost frame: unwinders stop here */
	movq	%rsp, %rdi
	andq	$-16, %rsp
	call	libc_start
	ud2
	.size	_start, . - _start

	.section .note.GNU-stack, "", @progbits
