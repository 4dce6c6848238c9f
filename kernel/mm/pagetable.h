/*
 * pagetable.h - four-level page tables over arch/mmu.h. A table is named by its physical address.
 *
 * The caller serialises changes to a table, and flushes the TLB. Any context that may allocate.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Finds the entry for va at a level (0 page, 1 block). If made is NULL, missing tables are not
 * made. Otherwise they are, and *made is raised by their number. NULL: no entry, out of memory, or
 * a larger block covers va.
 */
uint64_t *pagetable_entry(uint64_t root, uintptr_t va, unsigned level, unsigned *made);
/*
 * Maps [va, va + size) to pa, all multiples of a page, with 2 MiB blocks where possible. -ENOMEM.
 */
int pagetable_map(uint64_t root, uintptr_t va, uint64_t pa, uint64_t size, unsigned prot);
/* The leaf entry that maps va, and its level in *level. 0: va is not mapped. */
uint64_t pagetable_lookup(uint64_t root, uintptr_t va, unsigned *level);
/* Calls f(entry, va) for each page (level 0) in [start, end), inaccessible pages included. */
void pagetable_each(uint64_t root, uintptr_t start, uintptr_t end,
		    void (*f)(uint64_t *pte, uintptr_t va, void *arg), void *arg);
/* Frees the tables of user space and the root. Does not free the pages that they map. */
void pagetable_destroy_user(uint64_t root);
