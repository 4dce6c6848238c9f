/* md/mmu.h - x86_64: 4-level paging (SDM vol. 3A, 4.5), NX always on. */
#pragma once

#include <stdint.h>

#define ARCH_DIRECT_BASE 0xffff800000000000ul

#define X86_PTE_P   (1ul << 0)
#define X86_PTE_W   (1ul << 1)
#define X86_PTE_U   (1ul << 2)
#define X86_PTE_PWT (1ul << 3)
#define X86_PTE_PCD (1ul << 4)
#define X86_PTE_PS  (1ul << 7)
#define X86_PTE_G   (1ul << 8)
#define X86_PTE_NX  (1ul << 63)
#define X86_PTE_PA  0x000ffffffffff000ul

static inline uint64_t
arch_pte_leaf(uint64_t pa, unsigned prot, unsigned level)
{
	return pa | (prot ? X86_PTE_P : 0) | (prot & MMU_WRITE ? X86_PTE_W : 0) |
	       (prot & MMU_USER ? X86_PTE_U : 0) | (prot & MMU_EXEC ? 0 : X86_PTE_NX) |
	       (prot & MMU_DEVICE ? X86_PTE_PCD | X86_PTE_PWT : 0) |
	       (prot & MMU_GLOBAL ? X86_PTE_G : 0) | (level ? X86_PTE_PS : 0);
}

static inline uint64_t
arch_pte_table(uint64_t pa)
{
	return pa | X86_PTE_P | X86_PTE_W | X86_PTE_U;
}

ARCH_PTE_IS(bool, present, (pte & X86_PTE_P))
ARCH_PTE_IS(bool, block, (pte & X86_PTE_PS))
ARCH_PTE_IS(uint64_t, pa, (pte & X86_PTE_PA))
ARCH_PTE_IS(bool, writable, (pte & X86_PTE_W))
ARCH_PTE_IS(bool, executable, !(pte & X86_PTE_NX))
ARCH_PTE_IS(bool, device, (pte & X86_PTE_PCD))

static inline void
arch_mmu_sync(void)
{
	/* Page walks observe stores in program order (SDM vol. 3A, 4.10.2.3). */
	__asm__ volatile("" ::: "memory");
}
