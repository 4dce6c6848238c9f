/*
 * uaccess.S - copies that may fault. Each instruction that accesses the other side's memory has an
 * entry in ex_table. With SMAP, STAC makes user memory accessible, and CLAC ends that.
 */
#include "arch/fixup.h"

	.macro USER_OPEN
	cmpb $0, x86_smap(%rip)
	je 9f
	stac
9:
	.endm

	.macro USER_CLOSE
	cmpb $0, x86_smap(%rip)
	je 9f
	clac
9:
	.endm

	.text
	/* bool arch_copy_user(void *dst, const void *src, size_t n) */
	.globl arch_copy_user
arch_copy_user:
	USER_OPEN
	mov %rdx, %rcx
	shr $3, %rcx
1:	rep movsq
	mov %edx, %ecx
	and $7, %ecx
2:	rep movsb
	USER_CLOSE
	mov $1, %eax
	ret
3:	USER_CLOSE
	xor %eax, %eax
	ret
	ARCH_FIXUP_USER 1b, 3b
	ARCH_FIXUP_USER 2b, 3b

	/* long arch_copy_user_str(char *dst, const char *src, size_t n) */
	.globl arch_copy_user_str
arch_copy_user_str:
	USER_OPEN
	xor %eax, %eax
1:	cmp %rdx, %rax
	je 3f
2:	movb (%rsi,%rax), %cl
	movb %cl, (%rdi,%rax)
	inc %rax
	test %cl, %cl
	jnz 1b
	dec %rax
3:	USER_CLOSE
	ret
4:	USER_CLOSE
	mov $-1, %rax
	ret
	ARCH_FIXUP_USER 2b, 4b

	/* bool arch_probe_read(uint64_t *v, const void *src) */
	.globl arch_probe_read
arch_probe_read:
1:	mov (%rsi), %rax
	mov %rax, (%rdi)
	mov $1, %eax
	ret
2:	xor %eax, %eax
	ret
	ARCH_FIXUP 1b, 2b

	/* bool arch_probe_copy(void *dst, const void *src, size_t n) */
	.globl arch_probe_copy
arch_probe_copy:
	mov %rdx, %rcx
1:	rep movsb
	mov $1, %eax
	ret
2:	xor %eax, %eax
	ret
	ARCH_FIXUP 1b, 2b
