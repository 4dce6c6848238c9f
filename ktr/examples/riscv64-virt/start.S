/*
 * start.S - where every hart begins: its block, its stack, and main.c; hart 0 clears .bss first,
 * the others wait until it has made the rings.
 */
	.section .text.start, "ax"
	.globl	_start
_start:
	.option push
	.option norelax
	la	gp, __global_pointer$
	.option pop
	csrr	a0, mhartid
	la	tp, harts		/* struct hart is 64 bytes: ktr_port.h */
	slli	t0, a0, 6
	add	tp, tp, t0
	la	sp, __stacks
	addi	t0, a0, 1
	slli	t0, t0, 14		/* 16 KiB each: kernel.ld */
	add	sp, sp, t0
	bnez	a0, 2f

	la	t0, __bss_start
	la	t1, __bss_end
1:	sd	zero, 0(t0)
	addi	t0, t0, 8
	bltu	t0, t1, 1b
	j	hart_main

2:	la	t0, harts_go
3:	lbu	t1, 0(t0)
	beqz	t1, 3b
	fence	r, rw			/* acquire: pairs with the release in boot() */
	j	hart_main
