/*
 * fbt.S - records the entry or return of a function whose probe is on (kernel/probe/fbt.h).
 *
 * The no-op at the entry, or before the return, is now a B to the probe's stub. The stub branches to fbt_entry or
 * fbt_return with its own address in x17. x9 to x17 are free: no caller expects a function to keep them (AAPCS64
 * 6.1.1). Registers that matter are saved: at an entry those with parameters and x8, at a return those with the value.
 * All others may change in any call, since the compiler is told not to look into callees (-fno-ipa-ra). The flags have
 * no meaning. Stub n belongs to record n of ktr_patch_fbt.
 */
#include "arch/aarch64/asm.h"
#include "arch/fbt_asm.h"

	.cfi_sections .debug_frame
	.text

#define FBT_FRAME  96
#define FBT_AT     88
#define FBT_RETURN 32 /* the frame of fbt_return */

	/* Jumps unless all owners of such probes sleep (ktr/hook.h). */
	.macro FBT_IF_AWAKE to
	adrp x9, ktr_functions_naps
	ldr w9, [x9, :lo12:ktr_functions_naps]
	tbz w9, #0, \to
	.endm

	/* Makes a frame of so many bytes. */
	.macro FBT_BEGIN frame
	stp x29, x30, [sp, #-\frame]!
	.cfi_def_cfa_offset \frame
	.cfi_offset x29, -\frame
	.cfi_offset x30, 8 - \frame
	mov x29, sp
	stp x0, x1, [sp, #16]
	.endm

	.macro FBT_SAVE
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	str x8, [sp, #80]
	.endm

	/* Sets x16 to the address of the record (struct ktr_patch), and x17 to that of the no-op. */
	.macro FBT_RECORD
	movz x16, #:abs_g1:__fbt_records	/* a stub is as long as a record */
	movk x16, #:abs_g0_nc:__fbt_records
	add x16, x16, x17
	ldrsw x17, [x16, #PATCH_AT]	/* a member is an offset from itself (struct ktr_patch) */
	add x17, x17, x16
	.endm

	/* After FBT_RECORD: sets x10 to the site, and x12 to its function. */
	.macro FBT_SITE
	ldrsw x10, [x16, #PATCH_SITE]
	add x16, x16, #PATCH_SITE
	add x10, x10, x16
	ldp x12, x11, [x10, #SITE_FIRE]	/* and SITE_PREDICATE */
	.endm

	/*
	 * After FBT_SITE: jumps if all that fires here asks for a predicate that is known to be false
	 * for this thread (ktr_hook_predicate()). Before registers are saved: that costs more than the rest.
	 */
	.macro FBT_IF_FALSE to
	cbz x11, 3f
	mrs x9, sp_el0			/* the thread */
	ldr x9, [x9, #THREAD_PREDCACHE]
	cmp x11, x9
	b.ne 3f
	ldrb w9, [x10, #SITE_HOOK]
	cmp w9, w11, uxtb
	b.eq \to
3:
	.endm

	.macro FBT_END frame
	ldp x0, x1, [sp, #16]
	ldp x29, x30, [sp], #\frame
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	.endm

	/* After FBT_SAVE: goes on after the no-op. */
	.macro FBT_GO_ON
	ldp x2, x3, [sp, #32]
	ldp x4, x5, [sp, #48]
	ldp x6, x7, [sp, #64]
	ldp x8, x17, [sp, #80]
	FBT_END FBT_FRAME
	br x17
	.endm

	.balign 16
	.globl fbt_entry
fbt_entry:
	.cfi_startproc
	FBT_RECORD
	add x17, x17, #4
	FBT_IF_AWAKE 1f
2:
	br x17
1:
	FBT_SITE
	FBT_IF_FALSE 2b
	FBT_BEGIN FBT_FRAME
	FBT_SAVE
	str x17, [sp, #FBT_AT]
	/* site->fire(site, six parameters), as ktr_record6(): the last two are a pair, in x5 and x6 (AAPCS64 6.8.2, C.12) */
	mov x6, x5
	mov x5, x4
	mov x4, x3
	mov x3, x2
	mov x2, x1
	mov x1, x0
	mov x0, x10
	blr x12
	FBT_GO_ON
	.cfi_endproc

	.balign 16
	.globl fbt_return
fbt_return:
	.cfi_startproc
	FBT_IF_AWAKE 1f
2:
	ret
1:
	FBT_RECORD
	FBT_SITE
	FBT_IF_FALSE 2b
	FBT_BEGIN FBT_RETURN
	/* site->fire(site, offset of the return, value), as ktr_record2() */
	mov x2, x0
	mov x0, x10
	ldr w1, [x0, #SITE_PC]
	sub w1, w17, w1
	blr x12
	FBT_END FBT_RETURN
	ret				/* for the probed function */
	.cfi_endproc

	/* A jump to another function. */
	.balign 16
	.globl fbt_tail
fbt_tail:
	.cfi_startproc
	FBT_RECORD
	add x17, x17, #4
	FBT_IF_AWAKE 1f
2:
	br x17
1:
	FBT_SITE
	FBT_IF_FALSE 2b
	FBT_BEGIN FBT_FRAME
	FBT_SAVE
	str x17, [sp, #FBT_AT]
	/* site->fire(site, offset of the jump's no-op, where it goes), as ktr_record2() */
	ldr w2, [x17]			/* B: a distance of 26 bits, in words (C6.2.25) */
	sbfiz x2, x2, #2, #26
	add x2, x2, x17
	mov x0, x10
	ldr w1, [x0, #SITE_PC]
	sub w1, w17, w1
	sub w1, w1, #4
	blr x12
	FBT_GO_ON
	.cfi_endproc
