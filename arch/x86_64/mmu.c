/*
 * mmu.c - the current page table, and flushing the TLB (SDM vol. 3A, 4.10).
 */
#include "arch/mmu.h"
#include "arch/x86_64/x86.h"
#include "kernel/lib/string.h"

uint64_t
arch_kernel_phys(void)
{
	extern char __kernel_start[];
	return (uint64_t)__kernel_start - KERNEL_BASE;
}

void
arch_mmu_user_root(uint64_t *root, const uint64_t *kernel_root)
{
	memcpy(root + 256, kernel_root + 256, 256 * sizeof(*root));
}

void
arch_mmu_switch(uint64_t root)
{
	__asm__ volatile("mov %0, %%cr3" : : "r"(root) : "memory");
}

void
arch_icache_sync(const void *va, uint64_t size)
{
	/* The hardware keeps instruction caches coherent with stores (SDM vol. 3A, 11.6). */
	(void)va, (void)size;
}

void
arch_tlb_flush_page(uintptr_t va)
{
	__asm__ volatile("invlpg (%0)" : : "r"(va) : "memory");
}

void
arch_tlb_flush_all(void)
{
	uint64_t cr4;

	/* Toggling PGE flushes global entries too (SDM vol. 3A, 4.10.4.1). */
	__asm__ volatile("mov %%cr4, %0" : "=r"(cr4));
	__asm__ volatile("mov %0, %%cr4" : : "r"(cr4 & ~CR4_PGE) : "memory");
	__asm__ volatile("mov %0, %%cr4" : : "r"(cr4) : "memory");
}
