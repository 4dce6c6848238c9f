/*
 * kmap.h - the kernel's own mappings: the final tables (W^X), and memory mapped at run time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct boot_info;

/* Builds the kernel's tables and changes to them. After page_init(). */
void kmap_init(const struct boot_info *bi);
/* Physical address of the kernel's top table. */
uint64_t kmap_root(void);

/*
 * Zeroed memory of any size, page aligned, in pages of its own, with an unmapped page before and
 * after it. NULL: out of memory or address space. Thread context (or boot); no spin lock held.
 * Freeing makes all CPUs forget the addresses.
 */
void *kmap_alloc(size_t size);
void kmap_free(void *va);
/* The same for n blocks at the price of one. */
void kmap_free_all(void *const *va, unsigned n);
/* For the debugger only, no lock taken: the first area that ends above *start. False: there is
 * none.
 */
bool kmap_next_unlocked(uintptr_t *start, uintptr_t *end);
/* Maps physical memory; never unmapped. prot: MMU_ bits. NULL: out of memory. */
void *kmap_phys(uint64_t pa, size_t size, unsigned prot);
