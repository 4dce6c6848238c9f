/*
 * pagetable.h - the walk over four levels of tables, written once over arch/mmu.h.
 * The caller serialises changes to a table and flushes translations. Any context that may allocate.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A table is named by its physical address. */

/*
 * The entry for va at level (0 page, 1 block). made NULL: missing tables are not made; else they
 * are, and *made counts them. NULL: none, or out of memory, or a larger block covers va.
 */
uint64_t *pagetable_entry(uint64_t root, uintptr_t va, unsigned level, unsigned *made);
/* Maps [va, va + size) to pa, page multiples, by 2 MiB blocks where both allow. -ENOMEM. */
int pagetable_map(uint64_t root, uintptr_t va, uint64_t pa, uint64_t size, unsigned prot);
/* The leaf entry that maps va, 0 when none does; *level gets its level. */
uint64_t pagetable_lookup(uint64_t root, uintptr_t va, unsigned *level);
/* Calls f(entry, va) for each page (level 0) in [start, end), also one that nobody may touch. */
void pagetable_each(uint64_t root, uintptr_t start, uintptr_t end,
		    void (*f)(uint64_t *pte, uintptr_t va, void *arg), void *arg);
/* Frees the tables (not the pages) of user space, and the root. */
void pagetable_destroy_user(uint64_t root);
