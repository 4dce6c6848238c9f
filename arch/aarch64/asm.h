/* asm.h - constants for the .S files. Assertions beside the C structures compare them. */
#pragma once

/* struct arch_trapframe */
#define TF_X30  (30 * 8)
#define TF_SP   (31 * 8)
#define TF_PC   (32 * 8)
#define TF_ESR  (34 * 8)
#define TF_TLS  (36 * 8)
#define TF_SIZE (38 * 8)

/* struct arch_pcpu */
#define PCPU_CURTHREAD    16
#define PCPU_KSTACK       24
#define PCPU_OVERFLOW_TOP 32

/* The program counter, to debuggers (DWARF for the Arm 64-bit architecture, 4.1). */
#define DWARF_PC 32

/* struct arch_context */
#define CTX_PC 96

/* The kind of exception: second argument of aarch64_trap(). */
#define TRAP_SYNC   0
#define TRAP_IRQ    1
#define TRAP_FIQ    2
#define TRAP_SERROR 3
#define TRAP_STACK  4 /* the kernel stack is full */
#define TRAP_BAD    5 /* an exception from a state that the kernel never uses */

/* Exit status 101, that of a panic, in the form that arch_poweroff() gives to the emulator. */
#define BOOT_EXIT 103

#define KERNEL_BASE 0xffffffff80000000

/* SCTLR_EL1 (Arm ARM D17.2.118): bits that are 1 unless an extension defines them. */
#define SCTLR_RES1 0x30d00800
#define SCTLR_M    (1 << 0)
#define SCTLR_C    (1 << 2)
#define SCTLR_SA   (1 << 3)
#define SCTLR_SA0  (1 << 4)
#define SCTLR_I    (1 << 12)
#define SCTLR_DZE  (1 << 14)
#define SCTLR_UCT  (1 << 15)
#define SCTLR_NTWI (1 << 16)
#define SCTLR_NTWE (1 << 18)
#define SCTLR_SPAN (1 << 23)
#define SCTLR_UCI  (1 << 26)
/* As Linux sets it: programs may use DC ZVA, CTR_EL0, cache maintenance by address, WFI and WFE. */
#define SCTLR_ON                                                                                   \
	(SCTLR_RES1 | SCTLR_M | SCTLR_C | SCTLR_SA | SCTLR_SA0 | SCTLR_I | SCTLR_DZE | SCTLR_UCT | \
	 SCTLR_NTWI | SCTLR_NTWE | SCTLR_UCI)

/* MAIR_EL1: attribute 0 is normal write-back memory, 1 is Device-nGnRE. */
#define MAIR_VALUE 0x04ff

/* Descriptors of the boot tables (Arm ARM D8.3): valid block, accessed, inner shareable. */
#define BOOT_BLOCK  (1 | 1 << 10 | 3 << 8)
#define BOOT_DEVICE (1 | 1 << 10 | 1 << 2)
#define BOOT_TABLE  3
