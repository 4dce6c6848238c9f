/*
 * remap.c - mremap and madvise: areas move and grow, and pages are forgotten. Locking: vm.h.
 */
#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/mm/area.h"
#include "kernel/mm/page.h"
#include "kernel/mm/pagetable.h"
#include "kernel/vm/vm_private.h"
#include "ktr/ktr.h"

int
vm_forget(struct vmspace *vm, uint64_t start, uint64_t size)
{
	bool mapped;

	size = page_round_up(size);
	if (!vm_good_range(start, size))
		return -EINVAL;
	mutex_lock(&vm->lock);
	mapped = vm_mapped_within(vm, start, start + size) == size;
	if (mapped)
		vm_drop_pages(vm, start, start + size);
	mutex_unlock(&vm->lock);
	return mapped ? 0 : -ENOMEM;
}

struct move {
	struct vmspace *vm;
	uint64_t by; /* modulo 2^64 */
	bool failed;
};

static void
remap_make_room(uint64_t *pte, uintptr_t va, void *arg)
{
	struct move *m = arg;

	m->failed = m->failed || vm_make_entry(m->vm, va + m->by, 0) == NULL;
}

static void
move_page(uint64_t *pte, uintptr_t va, void *arg)
{
	const struct move *m = arg;

	*pagetable_entry(m->vm->root, va + m->by, 0, NULL) = *pte;
	*pte = 0;
	vm_flush_page(m->vm, va);
}

/* Moves what is at start to a free place, and makes it larger. If that fails, it stays. */
static int64_t
remap_move(struct vmspace *vm, uint64_t start, uint64_t old_size, uint64_t size)
{
	struct move m = {.vm = vm};
	uint64_t to = vm_find_free(vm, 0, size);
	const struct area *a;

	/* First, so that nothing can fail once the pages have moved. */
	if (to == 0 || vm_split(vm, start) != 0 || vm_split(vm, start + old_size) != 0)
		return -ENOMEM;
	a = vm_find(vm, start);
	if (vm_insert(vm, to, to + size, a->prot, &a->from) == NULL)
		return -ENOMEM;
	m.by = to - start;
	pagetable_each(vm->root, start, start + old_size, remap_make_room, &m);
	if (!m.failed)
		pagetable_each(vm->root, start, start + old_size, move_page, &m);
	arch_mmu_sync();
	vm_unmap_locked(vm, m.failed ? to : start, m.failed ? size : old_size);
	return m.failed ? -ENOMEM : (int64_t)to;
}

static int64_t
remap(struct vmspace *vm, uint64_t start, uint64_t old_size, uint64_t size, bool may_move,
      uint64_t limit)
{
	uint64_t end = start + old_size;
	struct area *a = vm_find(vm, start);
	int r;

	if (a == NULL || a->end < end)
		return -EFAULT;
	if (size < old_size) {
		r = vm_unmap_locked(vm, start + size, old_size - size);
		return r != 0 ? r : (int64_t)start;
	}
	if (size == old_size)
		return (int64_t)start;
	if (!vm_may_grow(vm, size - old_size, limit))
		return -ENOMEM;
	if (a->end == end && vm_good_range(start, size) && !vm_overlaps(vm, end, start + size)) {
		vm_set_end(vm, a, start + size);
		return (int64_t)start;
	}
	return may_move ? remap_move(vm, start, old_size, size) : -ENOMEM;
}

int64_t
vm_remap(struct vmspace *vm, uint64_t start, uint64_t old_size, uint64_t size, bool may_move,
	 uint64_t limit)
{
	int64_t r;

	old_size = page_round_up(old_size);
	size = page_round_up(size);
	if (!vm_good_range(start, old_size) || size == 0 || size >= ARCH_USER_END)
		return -EINVAL;
	mutex_lock(&vm->lock);
	r = remap(vm, start, old_size, size, may_move, limit);
	vm_unlock(vm);
	CTR4(KTR_VM, "remap: start %#lx old %#lx to %#lx size %#lx", start, old_size, r, size);
	return r;
}
