/*
 * fbt.S - records the entry or return of a function whose probe is on (kernel/probe/fbt.h).
 *
 * The no-op at an entry, or the return, is now a JMP to the probe's stub, and the stub calls fbt_entry or fbt_return.
 * So the top word of the stack is the address after the stub's CALL, which tells which stub it was; the next word is
 * the return address of the probed function. All registers have the probed function's values, so every register that
 * a C function may change is saved. The flags have no meaning at an entry or a return. Stub n belongs to record n of
 * ktr_patch_fbt.
 *
 * A return that is a jump to another function has a longer stub, in .text.fbt_tails: CALL fbt_tail, the jump, and, 12
 * bytes from its beginning, the distance of its record from the first one.
 */
#include "arch/x86_64/asm.h"

	.cfi_sections .debug_frame
	.text

#define FBT_RAX  (9 * 8)
#define FBT_STUB (10 * 8)

	/* Saves registers, and sets rax to the address after the stub's CALL. 8 bytes align the stack. */
	.macro FBT_BEGIN
	.irp reg, %rax, %rcx, %rdx, %rsi, %rdi, %r8, %r9, %r10, %r11
	SAVE \reg
	.endr
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	mov FBT_STUB(%rsp), %rax
	.endm

	/* Sets rax to the offset of the stub's record from __start_fbt_patch. */
	.macro FBT_OFFSET
	sub $__fbt_stubs + 5, %rax	/* a stub has 8 bytes, a record 12 */
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

	/* to = where a member of the record points, plus add. A member is an offset from itself (struct ktr_patch). */
	.macro FBT_RECORD member, add, to
	movslq __start_fbt_patch + \member(%rax), \to
	lea __start_fbt_patch + \member + \add(%rax, \to), \to
	.endm

	.balign 16
	.globl fbt_entry
fbt_entry:
	.cfi_startproc
	FBT_BEGIN
	FBT_OFFSET
	FBT_RECORD PATCH_AT, 5, %r10
	mov %r10, FBT_STUB(%rsp)	/* RET goes to after the no-op; debuggers see this address */
	FBT_RECORD PATCH_SITE, 0, %r10
	/* site->fire(site, six parameters), as ktr_record6(): the last two on the stack */
	push %r9
	.cfi_adjust_cfa_offset 8
	push %r8
	.cfi_adjust_cfa_offset 8
	mov %rcx, %r8
	mov %rdx, %rcx
	mov %rsi, %rdx
	mov %rdi, %rsi
	mov %r10, %rdi
	call *SITE_FIRE(%rdi)
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
	FBT_OFFSET
	/* site->fire(site, offset of the return, value), as ktr_record2() */
	FBT_RECORD PATCH_AT, 0, %rsi
	FBT_RECORD PATCH_SITE, 0, %rdi
	sub SITE_PC(%rdi), %esi
	mov FBT_RAX(%rsp), %rdx
	call *SITE_FIRE(%rdi)
	FBT_END
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret				/* for the probed function */
	.cfi_endproc

	.balign 16
	.globl fbt_tail
fbt_tail:
	.cfi_startproc
	FBT_BEGIN
	/* site->fire(site, offset of the jump, where it goes), as ktr_record2() */
	movslq 1(%rax), %rdx
	lea 5(%rax, %rdx), %rdx
	mov 7(%rax), %eax
	FBT_RECORD PATCH_AT, 0, %rsi
	FBT_RECORD PATCH_SITE, 0, %rdi
	sub SITE_PC(%rdi), %esi
	call *SITE_FIRE(%rdi)
	FBT_END
	ret				/* to the stub's jump */
	.cfi_endproc
