/*
 * fbt.S - records the entry or return of a function whose probe is on (kernel/probe/fbt.h).
 *
 * The no-op at an entry, or the return, is now a JMP to the probe's stub, and the stub calls fbt_entry or fbt_return.
 * So the top word of the stack is the address after the stub's CALL, which tells which stub it was; the next word is
 * the return address of the probed function. Registers that matter are saved: at an entry those with parameters, at a
 * return those with the value. All others may change in any call, since the compiler is told not to look into callees
 * (-fno-ipa-ra). The flags have no meaning. Stub n belongs to record n of ktr_patch_fbt.
 *
 * A return that is a jump to another function has a longer stub, in .text.fbt_tails: CALL fbt_tail, the jump, and, 12
 * bytes from its beginning, the distance of its record from the first one.
 */
#include "arch/x86_64/asm.h"
#include "arch/fbt_asm.h"

	.cfi_sections .debug_frame
	.text

	/* Saves registers. The first is at the lowest address, and their number aligns the stack. */
	.macro FBT_SAVE regs:vararg
	.irp reg, \regs
	SAVE \reg
	.endr
	.endm

	.macro FBT_RESTORE regs:vararg
	.irp reg, \regs
	RESTORE \reg
	.endr
	.endm

	/* Jumps unless all owners of such probes sleep (ktr/hook.h). */
	.macro FBT_IF_AWAKE to
	testb $1, ktr_functions_naps(%rip)
	jz \to
	.endm

	/*
	 * to = where a member of a record points, plus add; the record is at base + offset. A member is an offset from
	 * itself (struct ktr_patch). If the offset is the address after a stub's CALL, the base is FBT_RECORDS: a stub
	 * is as long as a record.
	 */
	.macro FBT_MEMBER base, offset, member, add, to
	movslq \base + \member(\offset), \to
	lea \base + \member + \add(\offset, \to), \to
	.endm
#define FBT_RECORDS __fbt_records-5

	/*
	 * Jumps if all that fires here asks for a predicate that is known to be false for this thread
	 * (ktr_hook_predicate()). Before registers are saved: that costs more than the rest.
	 */
	.macro FBT_IF_FALSE site, work, to
	mov SITE_PREDICATE(\site), %r11
	test %r11, %r11
	jz 3f
	mov %gs:PCPU_CURTHREAD, \work
	cmp %r11, THREAD_PREDCACHE(\work)
	jne 3f
	cmp %r11b, SITE_HOOK(\site)
	je \to
3:
	.endm

	.balign 16
	.globl fbt_entry
fbt_entry:
	.cfi_startproc
	mov (%rsp), %rax
	FBT_MEMBER FBT_RECORDS, %rax, PATCH_AT, 5, %r10
	mov %r10, (%rsp)	/* RET goes to after the no-op; debuggers see this address */
	FBT_IF_AWAKE 1f
2:
	ret
1:
	FBT_MEMBER FBT_RECORDS, %rax, PATCH_SITE, 0, %r10
	FBT_IF_FALSE %r10, %rax, 2b
	FBT_SAVE %r9, %r8, %rcx, %rdx, %rsi, %rdi
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
	FBT_RESTORE %rdi, %rsi, %rdx, %rcx, %r8, %r9
	ret
	.cfi_endproc

	.balign 16
	.globl fbt_return
fbt_return:
	.cfi_startproc
	FBT_IF_AWAKE 1f
2:
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_adjust_cfa_offset 8
1:
	mov (%rsp), %rcx
	FBT_MEMBER FBT_RECORDS, %rcx, PATCH_SITE, 0, %rdi
	FBT_IF_FALSE %rdi, %rsi, 2b
	FBT_SAVE %rdx, %rax
	/* site->fire(site, offset of the return, value), as ktr_record2() */
	mov %rax, %rdx
	FBT_MEMBER FBT_RECORDS, %rcx, PATCH_AT, 0, %rsi
	sub SITE_PC(%rdi), %esi
	call *SITE_FIRE(%rdi)
	FBT_RESTORE %rax, %rdx
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret				/* for the probed function */
	.cfi_endproc

	.balign 16
	.globl fbt_tail
fbt_tail:
	.cfi_startproc
	FBT_IF_AWAKE 1f
2:
	ret
1:
	mov (%rsp), %rax
	mov 7(%rax), %eax
	FBT_MEMBER __start_fbt_patch, %rax, PATCH_SITE, 0, %r10
	FBT_IF_FALSE %r10, %rax, 2b
	FBT_SAVE %r9, %r8, %rcx, %rdx, %rsi, %rdi
	/* site->fire(site, offset of the jump, where it goes), as ktr_record2() */
	mov 48(%rsp), %rax
	movslq 1(%rax), %rdx
	lea 5(%rax, %rdx), %rdx
	mov 7(%rax), %eax
	FBT_MEMBER __start_fbt_patch, %rax, PATCH_AT, 0, %rsi
	mov %r10, %rdi
	sub SITE_PC(%rdi), %esi
	call *SITE_FIRE(%rdi)
	FBT_RESTORE %rdi, %rsi, %rdx, %rcx, %r8, %r9
	ret				/* to the stub's jump */
	.cfi_endproc
