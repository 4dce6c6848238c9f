/*
 * fbt.S - a function's entry or return was reached whose probe is on (kernel/probe/fbt.h).
 *
 * The no-op at an entry, or the return, is a JMP to the probe's stub, and the stub calls here. So at the stack
 * pointer are: the address after the stub's call, which says which stub it was, and the return address of the probed
 * function. Every register has its value there: all that a C function may change are saved. Stub n belongs to
 * record n of ktr_patch_fbt. The flags mean nothing at either place.
 */
#include "arch/x86_64/asm.h"

	.cfi_sections .debug_frame
	.text

#define FBT_RAX  (9 * 8)
#define FBT_STUB (10 * 8)

	/* Leaves in rax where the record of the stub is, from __start_fbt_patch; 8 (%rsp) aligns the stack. */
	.macro FBT_BEGIN
	.irp reg, %rax, %rcx, %rdx, %rsi, %rdi, %r8, %r9, %r10, %r11
	SAVE \reg
	.endr
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	mov FBT_STUB(%rsp), %rax
	sub $__fbt_stubs + 5, %rax	/* 8 bytes a stub, 12 a record */
	lea (%rax, %rax, 2), %rax
	shr %rax
	.endm

	.macro FBT_END
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	.irp reg, %r11, %r10, %r9, %r8, %rdi, %rsi, %rdx, %rcx, %rax
	RESTORE \reg
	.endr
	.endm

	/* A member of the record that is at rax: an offset from itself (struct ktr_patch). */
	.macro FBT_RECORD member, add, to
	movslq __start_fbt_patch + \member(%rax), \to
	lea __start_fbt_patch + \member + \add(%rax, \to), \to
	.endm

	.balign 16
	.globl fbt_entry
fbt_entry:
	.cfi_startproc
	FBT_BEGIN
	FBT_RECORD PATCH_AT, 5, %r10
	mov %r10, FBT_STUB(%rsp)	/* returns to after the no-op; and is what debuggers see */
	FBT_RECORD PATCH_SITE, 0, %r10
	/* ktr_record6(site, six parameters): the last two on the stack */
	push %r9
	.cfi_adjust_cfa_offset 8
	push %r8
	.cfi_adjust_cfa_offset 8
	mov %rcx, %r8
	mov %rdx, %rcx
	mov %rsi, %rdx
	mov %rdi, %rsi
	mov %r10, %rdi
	call ktr_record6
	add $16, %rsp
	.cfi_adjust_cfa_offset -16
	FBT_END
	ret
	.cfi_endproc

	.balign 16
	.globl fbt_return
fbt_return:
	.cfi_startproc
	FBT_BEGIN
	/* ktr_record2(site, offset of the return, value) */
	FBT_RECORD PATCH_AT, 0, %rsi
	FBT_RECORD PATCH_SITE, 0, %rdi
	sub SITE_PC(%rdi), %esi
	mov FBT_RAX(%rsp), %rdx
	call ktr_record2
	FBT_END
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret				/* in the place of the function's */
	.cfi_endproc
