/* asm.h - constants for the .S files. Assertions beside the C structures compare them. */
#pragma once

#define TF_R11    (4 * 8)
#define TF_RCX    (12 * 8)
#define TF_VECTOR (15 * 8)
#define TF_ERROR  (16 * 8)
#define TF_RIP    (17 * 8)
#define TF_CS     (18 * 8)
#define TF_RFLAGS (19 * 8)
#define TF_RSP    (20 * 8)
#define TF_SIZE   (22 * 8)

/* DR7 without points: bit 10 reads as 1 (SDM vol. 3B, 17.2.4). */
#define DR7_OFF 0x400

#define PCPU_CURTHREAD 24
#define PCPU_DR7       72
#define PCPU_IN_DEBUG  80

#define KERNEL_BASE 0xffffffff80000000

/* Selectors of boot.S's own segments. */
#define SEL_BOOT_CODE64 0x08
#define SEL_BOOT_DATA   0x10
#define SEL_BOOT_CODE32 0x18

#define SEL_UDATA   0x23
#define SEL_UCODE   0x2b
#define VEC_SYSCALL 0x100

#ifdef __ASSEMBLER__
/* clang-format off */
/* A push and a pop, with the call frame information that goes with them. */
	.macro SAVE reg
	push \reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \reg, 0
	.endm

	.macro RESTORE reg
	pop \reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore \reg
	.endm
/* clang-format on */
#endif
