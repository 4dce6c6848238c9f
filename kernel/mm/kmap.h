/*
 * kmap.h - the kernel's own mappings: its final page tables (W^X), and memory mapped at run time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct boot_info;

/* Builds the kernel's page tables and switches to them. After page_init(). */
void kmap_init(const struct boot_info *bi);
/* Physical address of the kernel's top table. */
uint64_t kmap_root(void);

/*
 * Allocates zeroed memory of any size: page aligned, in pages of its own, with an unmapped page
 * before and after it. NULL: no address space, or too little memory would be left. Thread context
 * (or boot); no spin lock held. kmap_free() returns after no CPU can reach the memory any more.
 */
void *kmap_alloc(size_t size);
void kmap_free(void *va);
/* Frees what is not NULL of n blocks, with one TLB shoot-down instead of n. */
void kmap_free_all(void *const *va, unsigned n);
/* No CPU uses an old entry of any page table when it returns. Thread context, as smp_call_all(). */
void kmap_flush_everywhere(void);
/* The first area that ends above *start. False: none. Takes no lock: for the debugger only. */
bool kmap_next_unlocked(uintptr_t *start, uintptr_t *end);
/*
 * Is va mapped by the kernel, and to RAM? (Reading a device may have effects.) The answer may be
 * old when it comes: read by arch_probe_copy(). Any context.
 */
bool kmap_is_ram(uintptr_t va);
/* Maps physical memory for good. prot: MMU_ bits. NULL: out of memory. */
void *kmap_phys(uint64_t pa, size_t size, unsigned prot);
