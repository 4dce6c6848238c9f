/*
 * uaccess.S - copies that may fault. Each instruction that accesses the other side's memory has an
 * entry in ex_table. Only the first two functions make user memory accessible (PAN clear).
 */
#include "arch/fixup.h"

	/* MSR PAN, #value, encoded by hand for assemblers that are set to ARMv8.0; x9 is scratch. */
	.macro SET_PAN value
	adrp x9, aarch64_pan
	ldrb w9, [x9, :lo12:aarch64_pan]
	cbz w9, 9f
	.inst 0xd500409f | \value << 8
9:
	.endm

	.text
	/* bool arch_copy_user(void *dst, const void *src, size_t n) */
	.globl arch_copy_user
arch_copy_user:
	SET_PAN 0
	subs x2, x2, #8
	b.lo 3f
1:	ldr x3, [x1], #8
2:	str x3, [x0], #8
	subs x2, x2, #8
	b.hs 1b
3:	adds x2, x2, #8
	b.eq 6f
4:	ldrb w3, [x1], #1
5:	strb w3, [x0], #1
	subs x2, x2, #1
	b.ne 4b
6:	SET_PAN 1
	mov x0, #1
	ret
7:	SET_PAN 1
	mov x0, #0
	ret
	ARCH_FIXUP_USER 1b, 7b
	ARCH_FIXUP_USER 2b, 7b
	ARCH_FIXUP_USER 4b, 7b
	ARCH_FIXUP_USER 5b, 7b

	/* long arch_copy_user_str(char *dst, const char *src, size_t n) */
	.globl arch_copy_user_str
arch_copy_user_str:
	SET_PAN 0
	mov x3, #0
1:	cmp x3, x2
	b.eq 3f
2:	ldrb w4, [x1, x3]
	strb w4, [x0, x3]
	cbz w4, 3f
	add x3, x3, #1
	b 1b
3:	SET_PAN 1
	mov x0, x3
	ret
4:	SET_PAN 1
	mov x0, #-1
	ret
	ARCH_FIXUP_USER 2b, 4b

	/* bool arch_probe_read(uint64_t *v, const void *src) */
	.globl arch_probe_read
arch_probe_read:
1:	ldr x2, [x1]
	str x2, [x0]
	mov x0, #1
	ret
2:	mov x0, #0
	ret
	ARCH_FIXUP 1b, 2b

	/* bool arch_probe_copy(void *dst, const void *src, size_t n) */
	.globl arch_probe_copy
arch_probe_copy:
	cbz x2, 2f
1:	ldrb w3, [x1], #1
4:	strb w3, [x0], #1
	subs x2, x2, #1
	b.ne 1b
2:	mov x0, #1
	ret
3:	mov x0, #0
	ret
	ARCH_FIXUP 1b, 3b
	ARCH_FIXUP 4b, 3b
