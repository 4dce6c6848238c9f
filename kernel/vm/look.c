/* look.c - what others may ask of an address space. Locking: vm.h. */
#include "arch/mmu.h"
#include "kernel/lib/string.h"
#include "kernel/mm/area.h"
#include "kernel/mm/page.h"
#include "kernel/mm/pagetable.h"
#include "kernel/vm/vm_private.h"

void
vm_set_args(struct vmspace *vm, uint64_t start, uint64_t end, uint64_t env_end)
{
	vm->args = start;
	vm->args_end = end;
	vm->env_end = env_end;
}

void
vm_info_get(struct vmspace *vm, struct vm_info *info)
{
	mutex_lock(&vm->lock);
	*info = (struct vm_info){.size = vm->size,
				 .brk_start = vm->brk_start,
				 .brk_end = page_round_up(vm->brk_end),
				 .args = vm->args,
				 .args_end = vm->args_end,
				 .env_end = vm->env_end};
	mutex_unlock(&vm->lock);
	info->resident = vm_resident(vm);
}

bool
vm_range_next(struct vmspace *vm, struct vm_range *r)
{
	const struct area *a;

	mutex_lock(&vm->lock);
	a = area_find(vm->areas, r->end);
	if (a != NULL) {
		*r = (struct vm_range){a->start,       a->end,         a->prot,
				       a->from.shared, a->from.offset, a->from.object};
		if (r->object != NULL)
			a->from.pager->ref(r->object, false);
	}
	mutex_unlock(&vm->lock);
	return a != NULL;
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
