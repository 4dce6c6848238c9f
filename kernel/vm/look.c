/* look.c - what others may ask of an address space. Locking: vm.h. */
#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/string.h"
#include "kernel/mm/area.h"
#include "kernel/mm/page.h"
#include "kernel/mm/pagetable.h"
#include "kernel/vm/vm_private.h"

void
vm_set_args(struct vmspace *vm, uint64_t start, uint64_t end, uint64_t env_end, uint64_t stack,
	    uint64_t auxv)
{
	vm->args = start;
	vm->args_end = end;
	vm->env_end = env_end;
	vm->stack = stack;
	vm->auxv = auxv;
}

uint64_t
vm_peak(const struct vmspace *vm)
{
	uint64_t now = vm_resident(vm), peak = __atomic_load_n(&vm->peak, __ATOMIC_RELAXED);

	return peak > now ? peak : now;
}

void
vm_info_get(struct vmspace *vm, struct vm_info *info)
{
	mutex_lock(&vm->lock);
	*info = (struct vm_info){.size = vm->size,
				 .locked = vm->locked,
				 .brk_start = vm->brk_start,
				 .brk_end = page_round_up(vm->brk_end),
				 .args = vm->args,
				 .args_end = vm->args_end,
				 .env_end = vm->env_end,
				 .stack = vm->stack,
				 .auxv = vm->auxv};
	mutex_unlock(&vm->lock);
	info->resident = vm_resident(vm);
	info->peak = vm_peak(vm);
}

static uint64_t
count_bytes(const struct vmspace *vm, uint64_t start, uint64_t size, bool locked)
{
	uint64_t end = start + size < start ? UINT64_MAX : start + size, n = 0;
	const struct area *a = area_find(vm->areas, start);

	for (; a != NULL && a->start < end; a = area_find(vm->areas, a->end))
		if (!locked || a->from.locked)
			n += (a->end < end ? a->end : end) - (a->start > start ? a->start : start);
	return n;
}

uint64_t
vm_mapped(const struct vmspace *vm, uint64_t start, uint64_t size)
{
	return count_bytes(vm, start, size, false);
}

uint64_t
vm_locked(const struct vmspace *vm, uint64_t start, uint64_t size)
{
	return count_bytes(vm, start, size, true);
}

bool
vm_range_next(struct vmspace *vm, struct vm_range *r)
{
	const struct area *a;

	mutex_lock(&vm->lock);
	a = area_find(vm->areas, r->end);
	if (a != NULL) {
		*r = (struct vm_range){a->start,       a->end,         a->prot,
				       a->from.shared, a->from.locked, a->from.offset,
				       a->from.object, a->from.pager};
		if (r->object != NULL)
			a->from.pager->ref(r->object, false);
	}
	mutex_unlock(&vm->lock);
	return a != NULL;
}

static void
count_page(uint64_t *pte, uintptr_t va, void *arg)
{
	uint32_t refs = page_refs(phys_to_virt(arch_pte_pa(*pte)));
	struct vm_pages *n = arg;

	n->resident++;
	n->shared += refs > 1;
	n->share += PAGE_SIZE / (refs > 0 ? refs : 1);
}

void
vm_range_pages(struct vmspace *vm, const struct vm_range *r, struct vm_pages *n)
{
	*n = (struct vm_pages){0};
	mutex_lock(&vm->lock);
	pagetable_each(vm->root, r->start, r->end, count_page, n);
	mutex_unlock(&vm->lock);
}

int
vm_range_unmap(struct vmspace *vm, const struct vm_range *r)
{
	const struct area *a;
	int error = -ENOENT;

	mutex_lock(&vm->lock);
	a = area_find(vm->areas, r->start);
	if (a != NULL && a->start == r->start && a->end == r->end && a->from.object == r->object &&
	    a->from.pager == r->pager)
		error = vm_unmap_locked(vm, r->start, r->end - r->start);
	vm_unlock(vm);
	return error;
}

size_t
vm_read(struct vmspace *vm, uint64_t va, void *to, size_t n)
{
	size_t done = 0;

	mutex_lock(&vm->lock);
	while (done < n && vm_find(vm, va) != NULL) {
		size_t off = va & (PAGE_SIZE - 1);
		size_t part = n - done < PAGE_SIZE - off ? n - done : PAGE_SIZE - off;
		unsigned level;
		uint64_t pte = pagetable_lookup(vm->root, va, &level);

		if (pte == 0)
			break;
		memcpy((char *)to + done, (char *)phys_to_virt(arch_pte_pa(pte)) + off, part);
		done += part;
		va += part;
	}
	mutex_unlock(&vm->lock);
	return done;
}

/* Copies from one page, whether it is in memory or not. False: nothing is mapped. */
static bool
peek_page(struct vmspace *vm, uint64_t va, void *to, size_t n)
{
	const struct area *a = vm_find(vm, va);
	const uint64_t *entry = pagetable_entry(vm->root, page_round_down(va), 0, NULL);
	uint64_t off = va & (PAGE_SIZE - 1), pte = entry != NULL ? *entry : 0;
	int error = 0;
	void *page = NULL;

	if (a == NULL)
		return false;
	if (pte != 0 && page_marked(phys_to_virt(arch_pte_pa(pte))))
		pte = 0; /* what the program itself has there, without the probes' breakpoints */
	if (pte == 0 && a->from.pager != NULL)
		page = a->from.pager->page(a->from.object, area_index(a, va), false, &error);
	if (pte != 0)
		memcpy(to, (char *)phys_to_virt(arch_pte_pa(pte)) + off, n);
	else if (page != NULL)
		memcpy(to, (char *)page + off, n);
	else
		memset(to, 0, n);
	if (page != NULL)
		page_unref(page);
	return error == 0;
}

static bool
poke_page(struct vmspace *vm, uint64_t va, const void *from, size_t n)
{
	const struct area *a = vm_find(vm, va);

	if (a == NULL || (a->from.shared && !(a->prot & MMU_WRITE)))
		return false;
	return vm_bring(vm, va) && vm_code_unmark(vm, a, va) &&
	       vm_write_locked(vm, va, from, n) == 0;
}

/* The part of n bytes at va that is in the same page. */
static size_t
in_page(uint64_t va, size_t n)
{
	size_t part = PAGE_SIZE - (va & (PAGE_SIZE - 1));

	return n < part ? n : part;
}

size_t
vm_peek(struct vmspace *vm, uint64_t va, void *to, size_t n, unsigned access)
{
	size_t done = 0, part;

	mutex_lock(&vm->lock);
	for (; done < n; done += part) {
		part = in_page(va + done, n - done);
		if (!vm_allows_locked(vm, va + done, access) ||
		    !peek_page(vm, va + done, (char *)to + done, part))
			break;
	}
	mutex_unlock(&vm->lock);
	return done;
}

size_t
vm_poke(struct vmspace *vm, uint64_t va, const void *from, size_t n, unsigned access)
{
	size_t done = 0, part;

	mutex_lock(&vm->lock);
	vm_share(vm); /* from now on, what is flushed is flushed on all CPUs that run it */
	for (; done < n; done += part) {
		part = in_page(va + done, n - done);
		if (!vm_allows_locked(vm, va + done, access) ||
		    !poke_page(vm, va + done, (const char *)from + done, part))
			break;
	}
	mutex_unlock(&vm->lock);
	return done;
}

bool
vm_shared_at(struct vmspace *vm, uint64_t va, uint64_t *id, uint64_t *offset)
{
	const struct area *a;
	bool shared;

	mutex_lock(&vm->lock);
	a = vm_find(vm, va);
	shared = a != NULL && a->from.shared;
	if (shared) {
		*id = a->from.pager->id(a->from.object);
		*offset = a->from.offset + (va - a->start);
	}
	mutex_unlock(&vm->lock);
	return shared;
}

bool
vm_next_unlocked(const struct vmspace *vm, uint64_t *start, uint64_t *end, unsigned *prot)
{
	const struct area *a = area_find(vm->areas, *start);

	if (a == NULL)
		return false;
	*start = a->start;
	*end = a->end;
	*prot = a->prot;
	return true;
}
