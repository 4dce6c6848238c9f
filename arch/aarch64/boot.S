/*
 * boot.S - from the loader's state (MMU off, EL2 or EL1, x0: device tree) to kernel C at its high
 * address; also for CPUs that PSCI starts.
 *
 * The image runs wherever it was loaded. Until the MMU is on, every address comes from ADRP, which
 * is relative. The boot tables map the kernel image (TTBR1), the memory around it and the device
 * tree in the direct map, and the 1 GiB block of this code to itself (TTBR0).
 */
#include "arch/aarch64/asm.h"

	/* Calls the first C function of a CPU. Tells debuggers that it has no caller. */
	.macro CALL_FIRST function
	.cfi_startproc
	.cfi_undefined x30
	bl \function
	brk #1
	.cfi_endproc
	.endm

	.cfi_sections .debug_frame

	.section .head, "ax"
	/* Linux Documentation/arm64/booting.rst, 4. */
	.globl _start
_start:
	b start
	.long 0
	.quad 0				/* offset from a 2 MiB boundary */
	.quad __image_size
	.quad 1 << 3 | 1 << 1		/* anywhere in memory; 4 KiB pages; little-endian */
	.quad 0, 0, 0
	.ascii "ARM\x64"
	.long 0

start:
	mov x20, x0			/* the device tree */
	bl enter_el1

	/* The loader need not clear the memory after the image. */
	adrp x0, __bss_start
	adrp x1, __bss_end
1:	stp xzr, xzr, [x0], #16
	cmp x0, x1
	b.lo 1b

	/* Maps the 1 GiB block that contains this code to itself. */
	adrp x21, _start
	adrp x0, boot_id_l0
	adrp x1, boot_id_l1
	orr x2, x1, #BOOT_TABLE
	ubfx x3, x21, #39, #9
	str x2, [x0, x3, lsl #3]
	lsr x4, x21, #30
	lsl x4, x4, #30
	mov x5, #BOOT_BLOCK
	orr x6, x4, x5
	ubfx x3, x21, #30, #9
	str x6, [x1, x3, lsl #3]

	/* Top-level table: direct map at 0, device window at 510, image at 511. */
	adrp x0, boot_l0
	adrp x1, boot_direct_l1
	orr x2, x1, #BOOT_TABLE
	str x2, [x0]
	str x6, [x1, x3, lsl #3]
	ubfx x3, x20, #30, #9		/* the device tree's block, in the first 512 GiB */
	lsl x4, x3, #30
	orr x4, x4, x5
	str x4, [x1, x3, lsl #3]
	adrp x1, boot_device_l1
	orr x2, x1, #BOOT_TABLE
	str x2, [x0, #510 * 8]
	adrp x1, boot_image_l1
	orr x2, x1, #BOOT_TABLE
	str x2, [x0, #511 * 8]
	adrp x2, boot_image_l2
	orr x2, x2, #BOOT_TABLE
	str x2, [x1, #510 * 8]
	adrp x1, boot_image_l2
	adrp x2, __kernel_end
	orr x3, x21, x5
1:	str x3, [x1], #8		/* 2 MiB blocks; the loader aligned the image to 2 MiB */
	add x3, x3, #0x200000
	add x21, x21, #0x200000
	cmp x21, x2
	b.lo 1b

	/* The tables were written with the caches off: remove older lines from the caches. */
	adrp x0, boot_tables
	adrp x1, boot_tables_end
	mrs x3, ctr_el0
	ubfx x3, x3, #16, #4		/* DminLine: log2 of words */
	mov x2, #4
	lsl x2, x2, x3
	dmb sy
1:	dc ivac, x0
	add x0, x0, x2
	cmp x0, x1
	b.lo 1b
	dsb sy

	adrp x1, boot_l0
	bl mmu_on
	adrp x21, _start		/* physical address until the jump */
	ldr x1, =1f
	br x1
1:	ldr x0, =aarch64_boot_pcpu
	msr tpidr_el1, x0
	msr sp_el0, xzr			/* no thread yet */
	ldr x0, =__boot_stack_top
	mov sp, x0
	mov x29, xzr
	mov x30, xzr
	mov x0, x20
	mov x1, x21
	CALL_FIRST aarch64_start

	/*
	 * Entry of a CPU that PSCI started. x0: physical address of its struct aarch64_secondary.
	 */
	.globl aarch64_secondary_entry
aarch64_secondary_entry:
	mov x20, x0
	bl enter_el1
	ldr x1, [x20]			/* the kernel's final tables */
	ldp x21, x22, [x20, #8]		/* pcpu, stack */
	bl mmu_on
	ldr x1, =1f
	br x1
1:	msr tpidr_el1, x21
	ldr x0, [x21, #PCPU_CURTHREAD]
	msr sp_el0, x0
	mov sp, x22
	mov x29, xzr
	mov x30, xzr
	CALL_FIRST aarch64_start_secondary

	/*
	 * If the loader entered at EL2, goes to EL1: EL1 controls the machine, nothing traps to
	 * EL2, and the virtual count equals the physical count. Uses x0 to x4. Arm ARM D17.2.
	 */
enter_el1:
	msr daifset, #15
	adr x1, boot_vectors
	msr vbar_el1, x1
	mrs x0, CurrentEL
	cmp x0, #2 << 2
	b.ne 2f
	msr vbar_el2, x1
	mov x0, #1 << 31		/* HCR_EL2.RW: EL1 is AArch64 */
	orr x0, x0, #3 << 40		/* APK, API: pointer authentication does not trap */
	msr hcr_el2, x0
	isb
	mov x0, #3			/* EL1PCTEN, EL1PCEN */
	msr cnthctl_el2, x0
	msr cntvoff_el2, xzr
	mov x0, #0x33ff			/* CPTR_EL2: only its RES1 bits */
	msr cptr_el2, x0
	msr hstr_el2, xzr
	msr vttbr_el2, xzr
	mrs x0, midr_el1
	msr vpidr_el2, x0
	mrs x0, mpidr_el1
	msr vmpidr_el2, x0
	mrs x0, mdcr_el2		/* keep HPMN, disable all traps */
	and x0, x0, #0x1f
	msr mdcr_el2, x0
	mrs x0, id_aa64mmfr0_el1
	ubfx x0, x0, #56, #4		/* FEAT_FGT: trap registers are unknown after reset */
	cbz x0, 1f
	msr S3_4_C1_C1_4, xzr		/* HFGRTR_EL2 */
	msr S3_4_C1_C1_5, xzr		/* HFGWTR_EL2 */
	msr S3_4_C1_C1_6, xzr		/* HFGITR_EL2 */
	msr S3_4_C3_C1_4, xzr		/* HDFGRTR_EL2 */
	msr S3_4_C3_C1_5, xzr		/* HDFGWTR_EL2 */
1:	mrs x0, id_aa64pfr0_el1
	ubfx x0, x0, #24, #4		/* with a GICv3 CPU interface, EL1 may use its registers */
	cbz x0, 1f
icc_sre_read:				/* undefined with a GICv2: boot_exception skips this */
	mrs x0, S3_4_C12_C9_5		/* ICC_SRE_EL2 */
	orr x0, x0, #1			/* SRE */
	orr x0, x0, #8			/* Enable */
	msr S3_4_C12_C9_5, x0
	isb
	mrs x0, S3_4_C12_C9_5
	tbz x0, #0, 1f			/* this GIC can only be used through memory */
	msr S3_4_C12_C11_0, xzr		/* ICH_HCR_EL2 */
1:
no_icc_sre:
	mov x0, #SCTLR_RES1 & 0xffff
	movk x0, #SCTLR_RES1 >> 16, lsl #16
	msr sctlr_el1, x0
	mov x0, #0x3c5			/* EL1h, all masked */
	msr spsr_el2, x0
	msr elr_el2, x30
	eret
2:	ret

	/* Turns the MMU on. x1: physical address of the table for TTBR1. Uses x0 to x4. */
mmu_on:
	msr spsel, #1
	adrp x0, boot_id_l0
	msr ttbr0_el1, x0
	msr ttbr1_el1, x1
	ldr x0, =MAIR_VALUE
	msr mair_el1, x0
	/*
	 * TCR_EL1 (D17.2.131): 48-bit addresses and 4 KiB granule in both halves, walks in inner
	 * shareable write-back memory, physical address size and ASID size of this CPU; programs
	 * may have tags in the top byte of their addresses (TBI0), as on Linux.
	 */
	ldr x0, =(16 | 1 << 8 | 1 << 10 | 3 << 12 | 16 << 16 | 1 << 24 | 1 << 26 | 3 << 28 | 2 << 30)
	mrs x2, id_aa64mmfr0_el1
	and x3, x2, #7
	cmp x3, #5			/* at most 48 bits, with a 4 KiB granule */
	mov x4, #5
	csel x3, x3, x4, lo
	bfi x0, x3, #32, #3
	ubfx x3, x2, #4, #4
	cmp x3, #2
	cset x3, eq
	bfi x0, x3, #36, #1		/* AS: 16-bit ASIDs */
	orr x0, x0, #1 << 37		/* TBI0 */
	msr tcr_el1, x0
	isb
	tlbi vmalle1
	dsb nsh
	ic iallu
	dsb nsh
	isb
	ldr x0, =SCTLR_ON
	msr sctlr_el1, x0
	isb
	ret

	/*
	 * void aarch64_replace_ttbr1(uint64_t root, uint64_t empty), called at its physical
	 * address. TTBR1 points to an empty table while the TLB is flushed (Arm ARM D8.14.1).
	 */
	.globl aarch64_replace_ttbr1
aarch64_replace_ttbr1:
	mrs x2, daif
	msr daifset, #15
	msr ttbr1_el1, x1
	isb
	tlbi vmalle1
	dsb nsh
	isb
	msr ttbr1_el1, x0
	isb
	msr daif, x2
	ret

	/*
	 * Handles exceptions until aarch64_cpu_init() sets the kernel's vectors. Reports the
	 * exception by semihosting, which needs no device, and ends the machine with a panic's
	 * status. One exception is expected and skipped: QEMU's A64FX claims to have GICv3
	 * registers on a machine with a GICv2.
	 */
boot_exception:
	mrs x4, CurrentEL
	lsr x4, x4, #2
	cmp x4, #2
	b.eq 1f
	mrs x5, esr_el1
	mrs x6, elr_el1
	mrs x7, far_el1
	b 2f
1:	adr x0, icc_sre_read
	mrs x6, elr_el2
	cmp x6, x0
	b.eq 5f
	mrs x5, esr_el2
	mrs x7, far_el2
2:	adr x0, 3f
	cmp x6, x0
	b.eq 4f				/* from HLT: there is no semihosting here */
	adr x1, boot_said
	add w4, w4, #'0'
	strb w4, [x1, #SAID_EL]
	add x1, x1, #SAID_ESR
	mov x0, x5
	bl boot_hex
	add x1, x1, #SAID_PC - SAID_ESR - 16
	mov x0, x6
	bl boot_hex
	add x1, x1, #SAID_FAR - SAID_PC - 16
	mov x0, x7
	bl boot_hex
	mov w0, #0x04			/* SYS_WRITE0 (Semihosting for AArch32 and AArch64, 5) */
	adr x1, boot_said
3:	hlt #0xf000
	mov w0, #0x20			/* SYS_EXIT_EXTENDED */
	adr x1, boot_exit
	hlt #0xf000
4:	wfi
	b 4b
5:	adr x0, no_icc_sre
	msr elr_el2, x0
	eret

	/* Stores x0 as 16 hexadecimal digits at x1, and advances x1. Uses x2 and x3. */
boot_hex:
	mov x2, #16
1:	ror x0, x0, #60
	and x3, x0, #15
	cmp x3, #10
	add x3, x3, #'0'
	b.lo 2f
	add x3, x3, #'a' - '0' - 10
2:	strb w3, [x1], #1
	subs x2, x2, #1
	b.ne 1b
	ret

boot_said:
	.ascii "boot: exception at EL"
	.set SAID_EL, . - boot_said
	.ascii "1: ESR 0x"
	.set SAID_ESR, . - boot_said
	.ascii "0123456789abcdef, at 0x"
	.set SAID_PC, . - boot_said
	.ascii "0123456789abcdef, address 0x"
	.set SAID_FAR, . - boot_said
	.asciz "0123456789abcdef\n"
	.balign 8
boot_exit:
	.quad 0x20026, BOOT_EXIT	/* ADP_Stopped_ApplicationExit */

	.balign 0x800
boot_vectors:
	.rept 16
	.balign 0x80
	b boot_exception
	.endr

	.ltorg

	.bss
	.balign 4096
	.globl boot_l0, boot_direct_l1, boot_device_l1
boot_tables:
boot_id_l0:	.skip 4096
boot_id_l1:	.skip 4096
boot_l0:	.skip 4096
boot_direct_l1:	.skip 4096
boot_device_l1:	.skip 4096
boot_image_l1:	.skip 4096
boot_image_l2:	.skip 4096
boot_tables_end:
