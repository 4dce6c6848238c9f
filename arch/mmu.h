/*
 * mmu.h - contract: four-level page tables, with 512 entries of 8 bytes, 4 KiB pages and 2 MiB
 * blocks, as on both ports. kernel/mm/pagetable.c walks them with these functions.
 *
 * The port's header also defines ARCH_DIRECT_BASE, the start of the kernel's half. All RAM is
 * mapped there, at ARCH_DIRECT_BASE + physical address.
 *
 * The protection of a present entry may be changed directly. To change its address, first make it
 * not present and flush the TLB (Arm ARM D8.14.1, break-before-make).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ARCH_VMALLOC_BASE 0xffffc00000000000ul /* start of kernel mappings made at run time */
#define ARCH_VMALLOC_END  0xffffc08000000000ul
#define ARCH_USER_END     0x00007ffffffff000ul /* x86_64's SYSRET needs the last page free */

/* Protection bits. */
#define MMU_READ   1
#define MMU_WRITE  2
#define MMU_EXEC   4
#define MMU_USER   8
#define MMU_DEVICE 16 /* uncached */
#define MMU_GLOBAL 32 /* the same in every address space */

/*
 * An entry that maps pa at a level (0: page, 1: 2 MiB block). prot 0: the entry is not present, but
 * holds pa and is not 0.
 */
static inline uint64_t arch_pte_leaf(uint64_t pa, unsigned prot, unsigned level);
/* An entry that points to the next table. */
static inline uint64_t arch_pte_table(uint64_t pa);
static inline bool arch_pte_present(uint64_t pte);
/* Is a present entry above level 0 a block? */
static inline bool arch_pte_block(uint64_t pte);
static inline uint64_t arch_pte_pa(uint64_t pte);
static inline bool arch_pte_writable(uint64_t pte);
static inline bool arch_pte_executable(uint64_t pte);
static inline bool arch_pte_device(uint64_t pte);
/*
 * Makes earlier stores to page tables visible to the table walks of every CPU. Needed after an
 * entry became present, before an access there that must not fault. Not needed after a flush.
 */
static inline void arch_mmu_sync(void);

/* For the port: defines arch_pte_NAME(), an expression of pte. */
#define ARCH_PTE_IS(type, name, ...)                     \
	static inline type arch_pte_##name(uint64_t pte) \
	{                                                \
		return __VA_ARGS__;                      \
	}

#include <md/mmu.h>

static inline void *
phys_to_virt(uint64_t pa)
{
	return (void *)(ARCH_DIRECT_BASE + pa);
}

/* Only for direct-map addresses. */
static inline uint64_t
virt_to_phys(const void *va)
{
	return (uint64_t)va - ARCH_DIRECT_BASE;
}

/* Prepares the top-level table of a user space: copies the kernel's half if the table has both. */
void arch_mmu_user_root(uint64_t *root, const uint64_t *kernel_root);
/* Physical address of __kernel_start, the first byte of the kernel image. */
uint64_t arch_kernel_phys(void);
/*
 * Makes `root` (physical) the table of this CPU: the kernel's, or one of arch_mmu_user_root(). The
 * TLB then holds nothing that arch_tlb_flush_page() removed from this space, on any CPU. Interrupts
 * off.
 */
void arch_mmu_switch(uint64_t root);
/*
 * Flushes one page from the TLB. A kernel page: on this CPU. A page of the current user space: on
 * this CPU now, and on any other CPU before it runs this space again.
 */
void arch_tlb_flush_page(uintptr_t va);
/* Flushes the whole TLB of this CPU, global entries included. */
void arch_tlb_flush_all(void);
/* Makes [va, va + size), which was written as data, valid as code at any address. Any context. */
void arch_icache_sync(const void *va, uint64_t size);
