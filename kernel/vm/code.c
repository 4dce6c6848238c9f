/*
 * code.c - code of programs that probes change: copies of a file's pages with breakpoints, and room
 * for instructions that run elsewhere. Locking: vm.h.
 *
 * Invariant: a page that is marked (page_mark()) is a copy with breakpoints, in a private area from
 * which programs execute and into which they cannot write. It is made when it is missing, so to
 * change breakpoints means to take the page away. A page that the program itself has changed has
 * none.
 */
#include "arch/mmu.h"
#include "kernel/lib/string.h"
#include "kernel/mm/area.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/pagetable.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/vm/vm_private.h"
#include "ktr/ktr.h"

#define ROOM_SIZE  (64 * PAGE_SIZE)
#define ROOM_STEPS 16          /* places in a page where a piece of code may be */
#define ROOM_REACH (1ul << 30) /* from the code near which it is */
#define ROOM_BELOW (16ul << 20)

vm_code_patch_fn *vm_code_patch;

/* May an area have breakpoints? */
static bool
is_code(const struct area *a)
{
	return a->from.pager != NULL && !a->from.shared &&
	       (a->prot & (MMU_EXEC | MMU_WRITE)) == MMU_EXEC;
}

void *
vm_code_page(const struct vmspace *vm, const struct area *a, uint64_t va, void *page)
{
	uint64_t index = area_index(a, va);
	void *copy;

	if (vm_code_patch == NULL || !is_code(a) || !vm_code_patch(vm, a->from.object, index, NULL))
		return page;
	copy = vm_copy_page(vm, page);
	if (copy != NULL) {
		vm_code_patch(vm, a->from.object, index, copy);
		page_mark(copy);
		CTR3(KTR_VM, "code copy: va %#lx from %p to %p", va, page, copy);
	}
	page_unref(page);
	return copy;
}

/* Is it the file's page? */
static bool
is_files(const struct area *a, uint64_t index, const void *page)
{
	int error;
	void *files = a->from.pager->page(a->from.object, index, false, &error);

	if (files != NULL)
		page_unref(files);
	return files == page;
}

bool
vm_code_stale(const struct vmspace *vm, uint64_t va, void *page)
{
	const struct area *a = vm_find(vm, va);

	return page_marked(page) || (vm_code_patch != NULL && is_code(a) &&
				     vm_code_patch(vm, a->from.object, area_index(a, va), NULL) &&
				     is_files(a, area_index(a, va), page));
}

bool
vm_code_unmark(struct vmspace *vm, const struct area *a, uint64_t va)
{
	uint64_t *pte = pagetable_entry(vm->root, page_round_down(va), 0, NULL);
	void *copy, *page;
	int error;

	if (pte == NULL || *pte == 0 || !page_marked(phys_to_virt(arch_pte_pa(*pte))))
		return true;
	copy = phys_to_virt(arch_pte_pa(*pte));
	page = a->from.pager->page(a->from.object, area_index(a, va), false, &error);
	if (page == NULL)
		return false;
	arch_icache_sync(page, PAGE_SIZE); /* it may never have been executed */
	*pte = 0;
	kmap_flush_everywhere(); /* other threads of the space may run the copy, on other CPUs */
	*pte = arch_pte_leaf(virt_to_phys(page), MMU_READ | MMU_EXEC | MMU_USER, 0);
	page_unref(copy);
	return true;
}

struct reset {
	struct vmspace *vm;
	const void *object;
	uint64_t index;
};

static void
reset_area(struct area *a, void *arg)
{
	const struct reset *r = arg;
	uint64_t va = a->start + (r->index * PAGE_SIZE - a->from.offset), *pte;
	void *page;

	if (a->from.object != r->object || !is_code(a) || r->index * PAGE_SIZE < a->from.offset ||
	    va >= a->end)
		return;
	pte = pagetable_entry(r->vm->root, va, 0, NULL);
	if (pte == NULL || *pte == 0)
		return;
	page = phys_to_virt(arch_pte_pa(*pte));
	if (!page_marked(page) && !is_files(a, r->index, page))
		return;
	*pte = 0;
	vm_count_gone(r->vm);
	uidinfo_release(r->vm->ui, UIDINFO_PAGE, 1);
	kmap_flush_everywhere(); /* the space is not that of this CPU */
	page_unref(page);
}

static void
reset_space(struct vmspace *vm, void *arg)
{
	struct reset *r = arg;

	r->vm = vm;
	area_each_object(vm->areas, r->object, reset_area, r);
}

void
vm_code_reset(const void *object, uint64_t index)
{
	struct reset r = {.object = object, .index = index};

	vm_spaces_each(reset_space, &r);
}

bool
vm_code_at(struct vmspace *vm, uint64_t va, const void **object, uint64_t *offset)
{
	const struct area *a;
	const uint64_t *pte;
	bool found;

	mutex_lock(&vm->lock);
	a = vm_find(vm, va);
	pte = pagetable_entry(vm->root, page_round_down(va), 0, NULL);
	found = a != NULL && is_code(a) &&
		(pte == NULL || *pte == 0 || page_marked(phys_to_virt(arch_pte_pa(*pte))));
	if (found) {
		*object = a->from.object;
		*offset = a->from.offset + (va - a->start);
	}
	mutex_unlock(&vm->lock);
	return found;
}

/* ---- room for code ---- */

/* Is there room at `base` that was made here, and that the program has not changed? */
static bool
is_room(const struct vmspace *vm, uint64_t base)
{
	const struct area *a = base != 0 ? vm_find(vm, base) : NULL;

	return a != NULL && a->from.code && a->prot == (MMU_READ | MMU_EXEC) && a->start == base &&
	       a->end == base + ROOM_SIZE;
}

/* Where the piece is in the room, or is put. 0: there is no more room, or no memory. */
static uint64_t
put_code(struct vmspace *vm, uint64_t base, const struct vm_code *c)
{
	uint8_t bytes[VM_CODE_MAX], nothing[VM_CODE_MAX] = {0};
	uint64_t slots = PAGE_SIZE / c->size;

	for (uint64_t page = base; page < base + ROOM_SIZE; page += PAGE_SIZE) {
		for (unsigned i = 0; i < ROOM_STEPS; i++) {
			uint64_t at = page + (c->hash + i) % slots * c->size;
			const uint64_t *pte = pagetable_entry(vm->root, at, 0, NULL);
			const uint8_t *there = nothing;

			if (pte != NULL && *pte != 0)
				there = (uint8_t *)phys_to_virt(arch_pte_pa(*pte)) + at % PAGE_SIZE;
			if (!c->make(c, at, bytes))
				return 0;
			if (memcmp(there, bytes, c->size) == 0)
				return at;
			if (memcmp(there, nothing, c->size) == 0)
				return vm_write_locked(vm, at, bytes, c->size) == 0 ? at : 0;
		}
	}
	return 0;
}

/* Makes room near c->near. Returns its address; 0: there is none. */
static uint64_t
code_make_room(struct vmspace *vm, const struct vm_code *c)
{
	static const struct area_source code = {.code = true};
	uint64_t from = c->near > ROOM_BELOW ? c->near - ROOM_BELOW : 0;
	uint64_t at = vm_gap(vm, from, ROOM_SIZE);

	if (at == 0 || at - c->near + ROOM_REACH >= 2 * ROOM_REACH)
		return 0; /* else the next instruction would not find the room again */
	return vm_insert(vm, at, at + ROOM_SIZE, MMU_READ | MMU_EXEC, &code) != NULL ? at : 0;
}

static uint64_t
add_code(struct vmspace *vm, const struct vm_code *c)
{
	unsigned spare = 0;
	uint64_t at;

	for (unsigned i = 0; i < VM_CODE_ROOMS; i++) {
		if (!is_room(vm, vm->code[i])) {
			spare = i;
			continue;
		}
		at = vm->code[i] - c->near + ROOM_REACH < 2 * ROOM_REACH
			 ? put_code(vm, vm->code[i], c)
			 : 0;
		if (at != 0)
			return at;
	}
	at = code_make_room(vm, c);
	if (at == 0)
		return 0;
	vm->code[spare] = at;
	return put_code(vm, at, c);
}

uint64_t
vm_code_add(struct vmspace *vm, const struct vm_code *c)
{
	uint64_t at;

	mutex_lock(&vm->lock);
	at = add_code(vm, c);
	mutex_unlock(&vm->lock);
	return at;
}
