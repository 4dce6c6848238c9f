/*
 * pagetable.c - walks, fills and frees page tables; the same code for both architectures.
 */
#include "kernel/mm/pagetable.h"

#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/mm/page.h"

#define TOP_LEVEL  3
#define BLOCK_SIZE (1ul << 21)

static unsigned
pagetable_index(uintptr_t va, unsigned level)
{
	return va >> (PAGE_SHIFT + 9 * level) & 511;
}

uint64_t *
pagetable_entry(uint64_t root, uintptr_t va, unsigned level, unsigned *made)
{
	uint64_t *table = phys_to_virt(root);

	for (unsigned l = TOP_LEVEL; l > level; l--) {
		uint64_t *pte = &table[pagetable_index(va, l)];

		if (!arch_pte_present(*pte)) {
			void *page = made != NULL ? page_alloc_zero(PAGE_TABLE) : NULL;
			if (page == NULL)
				return NULL;
			(*made)++;
			/* release: a walk that finds the table also finds it zeroed */
			__atomic_store_n(pte, arch_pte_table(virt_to_phys(page)), __ATOMIC_RELEASE);
		} else if (arch_pte_block(*pte)) {
			return NULL;
		}
		table = phys_to_virt(arch_pte_pa(*pte));
	}
	return &table[pagetable_index(va, level)];
}

int
pagetable_map(uint64_t root, uintptr_t va, uint64_t pa, uint64_t size, unsigned prot)
{
	unsigned made = 0;

	while (size > 0) {
		unsigned level = ((va | pa) & (BLOCK_SIZE - 1)) == 0 && size >= BLOCK_SIZE;
		uint64_t step = level ? BLOCK_SIZE : PAGE_SIZE;
		uint64_t *pte = pagetable_entry(root, va, level, &made);

		if (pte == NULL)
			return -ENOMEM;
		*pte = arch_pte_leaf(pa, prot, level);
		va += step;
		pa += step;
		size -= step;
	}
	arch_mmu_sync();
	return 0;
}

uint64_t
pagetable_lookup(uint64_t root, uintptr_t va, unsigned *level)
{
	for (unsigned l = 0; l <= 1; l++) {
		uint64_t *pte = pagetable_entry(root, va, l, NULL);
		if (pte != NULL && arch_pte_present(*pte) && (l == 0 || arch_pte_block(*pte))) {
			*level = l;
			return *pte;
		}
	}
	return 0;
}

static void
pagetable_each_level(uint64_t *table, unsigned level, uintptr_t base, uintptr_t start,
		     uintptr_t end, void (*f)(uint64_t *, uintptr_t, void *), void *arg)
{
	unsigned shift = PAGE_SHIFT + 9 * level;
	unsigned i = start > base ? (unsigned)((start - base) >> shift) : 0;
	unsigned last = end - base > 511ul << shift ? 511 : (unsigned)((end - 1 - base) >> shift);

	for (; i <= last; i++) {
		uintptr_t va;

		/* Most entries of most tables are empty. */
		while (i + 8 <= last &&
		       (table[i] | table[i + 1] | table[i + 2] | table[i + 3] | table[i + 4] |
			table[i + 5] | table[i + 6] | table[i + 7]) == 0)
			i += 8;
		if (table[i] == 0)
			continue;
		va = base + ((uintptr_t)i << shift);
		if (level == 0 || arch_pte_block(table[i]))
			f(&table[i], va, arg);
		else
			pagetable_each_level(phys_to_virt(arch_pte_pa(table[i])), level - 1, va,
					     start, end, f, arg);
	}
}

void
pagetable_each(uint64_t root, uintptr_t start, uintptr_t end,
	       void (*f)(uint64_t *, uintptr_t, void *), void *arg)
{
	if (start >= end)
		return;
	/* A kernel address has ones in the bits that the walk does not use. */
	pagetable_each_level(phys_to_virt(root), TOP_LEVEL, start & ~((1ul << 48) - 1), start, end,
			     f, arg);
}

static void
pagetable_destroy_level(uint64_t *table, unsigned level, unsigned entries)
{
	for (unsigned i = 0; level > 0 && i < entries; i++)
		if (arch_pte_present(table[i]))
			pagetable_destroy_level(phys_to_virt(arch_pte_pa(table[i])), level - 1,
						512);
	page_free(table, 0);
}

void
pagetable_destroy_user(uint64_t root)
{
	pagetable_destroy_level(phys_to_virt(root), TOP_LEVEL,
				pagetable_index(ARCH_USER_END, TOP_LEVEL) + 1);
}
