/*
 * md/mmu.h - aarch64: VMSAv8-64, 4 KiB granule, 48-bit addresses (Arm ARM D8). TTBR1 has the
 * kernel's half, TTBR0 the user's.
 */
#pragma once

#include <stdint.h>

#define ARCH_DIRECT_BASE 0xffff000000000000ul

/* Descriptor bits (D8.3.2). */
#define A64_PTE_VALID  (1ul << 0)
#define A64_PTE_TABLE  (1ul << 1) /* also set in a page entry */
#define A64_PTE_DEVICE (1ul << 2) /* attribute 1 of MAIR_EL1 (asm.h) */
#define A64_PTE_USER   (1ul << 6)
#define A64_PTE_RDONLY (1ul << 7)
#define A64_PTE_INNER  (3ul << 8)
#define A64_PTE_AF     (1ul << 10)
#define A64_PTE_NG     (1ul << 11)
#define A64_PTE_PXN    (1ul << 53)
#define A64_PTE_UXN    (1ul << 54)
#define A64_PTE_PA     0x0000fffffffff000ul

static inline uint64_t
arch_pte_leaf(uint64_t pa, unsigned prot, unsigned level)
{
	/* The kernel must not execute user pages, nor programs kernel pages. */
	uint64_t xn = !(prot & MMU_EXEC) ? A64_PTE_PXN | A64_PTE_UXN
		      : prot & MMU_USER  ? A64_PTE_PXN
					 : A64_PTE_UXN;

	return pa | (prot ? A64_PTE_VALID : 0) | (level ? 0 : A64_PTE_TABLE) | A64_PTE_AF |
	       A64_PTE_INNER | xn | (prot & MMU_WRITE ? 0 : A64_PTE_RDONLY) |
	       (prot & MMU_USER ? A64_PTE_USER : 0) | (prot & MMU_DEVICE ? A64_PTE_DEVICE : 0) |
	       (prot & MMU_GLOBAL ? 0 : A64_PTE_NG);
}

static inline uint64_t
arch_pte_table(uint64_t pa)
{
	return pa | A64_PTE_VALID | A64_PTE_TABLE;
}

ARCH_PTE_IS(bool, present, (pte & A64_PTE_VALID))
ARCH_PTE_IS(bool, block, !(pte & A64_PTE_TABLE))
ARCH_PTE_IS(uint64_t, pa, (pte & A64_PTE_PA))
ARCH_PTE_IS(bool, writable, !(pte & A64_PTE_RDONLY))
ARCH_PTE_IS(bool, executable, (pte & (A64_PTE_PXN | A64_PTE_UXN)) != (A64_PTE_PXN | A64_PTE_UXN))
ARCH_PTE_IS(bool, device, (pte & A64_PTE_DEVICE))

static inline void
arch_mmu_sync(void)
{
	__asm__ volatile("dsb ishst\n\tisb" ::: "memory");
}
