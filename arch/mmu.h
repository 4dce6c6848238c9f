/*
 * mmu.h - contract: page tables of four levels with 512 entries of 8 bytes, 4 KiB pages and 2 MiB
 * blocks (true of both ports). The walk is kernel/mm/pagetable.c, over these.
 *
 * The port's header also gives ARCH_DIRECT_BASE, the start of the kernel's half: all RAM is mapped
 * from here, at ARCH_DIRECT_BASE + physical address.
 *
 * An entry that is present may change what it allows; it changes where it points only by way of one
 * that is not present, with a flush between (Arm ARM D8.14.1, break-before-make).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ARCH_VMALLOC_BASE 0xffffc00000000000ul /* kernel mappings made at run time */
#define ARCH_VMALLOC_END  0xffffc08000000000ul
#define ARCH_USER_END     0x00007ffffffff000ul /* x86_64's last page stays free: SYSRET needs it */

/* Protection bits. */
#define MMU_READ   1
#define MMU_WRITE  2
#define MMU_EXEC   4
#define MMU_USER   8
#define MMU_DEVICE 16 /* uncached */
#define MMU_GLOBAL 32 /* same in every address space */

/*
 * An entry that maps pa with the given protection at a level (0: page, 1: 2 MiB block). With none
 * it keeps pa and is not present, but is not 0 either.
 */
static inline uint64_t arch_pte_leaf(uint64_t pa, unsigned prot, unsigned level);
/* An entry that points to the next table. */
static inline uint64_t arch_pte_table(uint64_t pa);
static inline bool arch_pte_present(uint64_t pte);
/* Does a present entry above level 0 map a block? */
static inline bool arch_pte_block(uint64_t pte);
static inline uint64_t arch_pte_pa(uint64_t pte);
static inline bool arch_pte_writable(uint64_t pte);
static inline bool arch_pte_executable(uint64_t pte);
/*
 * Entries stored before are what any CPU's walk finds after. Needed between making an entry that
 * was not present and its first use where no fault may come; not after a flush.
 */
static inline void arch_mmu_sync(void);

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

/* A new user table begins as this makes it: with the kernel's half where one table holds both. */
void arch_mmu_user_root(uint64_t *root, const uint64_t *kernel_root);
/* Physical address of the kernel image's own first byte, __kernel_start. */
uint64_t arch_kernel_phys(void);
/*
 * Makes `root` (physical) this CPU's table: the kernel's, or one that arch_mmu_user_root() made.
 * Nothing that the space lost by arch_tlb_flush_page(), here or elsewhere, is remembered.
 */
void arch_mmu_switch(uint64_t root);
/*
 * Forgets one page. A kernel's: on this CPU. A user's: in the current space, on this CPU, and on
 * any other before that runs the space again.
 */
void arch_tlb_flush_page(uintptr_t va);
/* Forgets everything on this CPU, global entries too. */
void arch_tlb_flush_all(void);
/* [va, va + size) was written as data and will be executed, at whatever address. Any context. */
void arch_icache_sync(const void *va, uint64_t size);
