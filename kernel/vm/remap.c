/*
 * remap.c - mremap, madvise and brk: areas move and grow, and pages are forgotten. Locking: vm.h.
 */
#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/mman.h"
#include "kernel/mm/area.h"
#include "kernel/mm/page.h"
#include "kernel/mm/pagetable.h"
#include "kernel/vm/vm_private.h"
#include "ktr/ktr.h"

/* The end of a range, as far as programs may have something there. */
static uint64_t
end_of(uint64_t start, uint64_t size)
{
	return start + size < ARCH_USER_END ? start + size : ARCH_USER_END;
}

/*
 * Where the first area of a range begins that may not be forgotten: it is locked, or, unless files
 * may, one of a file. If there is none, the end of the range.
 */
static uint64_t
first_kept(const struct vmspace *vm, uint64_t start, uint64_t end, bool files)
{
	const struct area *a = area_find(vm->areas, start);

	while (a != NULL && a->start < end && !a->from.locked && (files || a->from.pager == NULL))
		a = area_find(vm->areas, a->end);
	return a == NULL || a->start >= end ? end : a->start > start ? a->start : start;
}

int
vm_forget(struct vmspace *vm, uint64_t start, uint64_t size, bool files)
{
	uint64_t end, stop;
	int r = 0;

	size = page_round_up(size);
	end = end_of(start, size);
	mutex_lock(&vm->lock);
	stop = first_kept(vm, start, end, files);
	if (start < stop)
		vm_drop_pages(vm, start, stop);
	if (stop != end)
		r = -EINVAL;
	else if (vm_mapped(vm, start, size) != size)
		r = -ENOMEM; /* as in Linux: what there was is forgotten all the same */
	mutex_unlock(&vm->lock);
	return r;
}

struct inherit {
	struct vmspace *vm;
	enum vm_inherit how;
};

static void
set_locked(struct vmspace *vm, struct area *a, bool locked)
{
	if (locked != a->from.locked)
		vm->locked += locked ? a->end - a->start : a->start - a->end;
	a->from.locked = locked;
}

static void
set_inherit(struct area *a, void *arg)
{
	const struct inherit *to = arg;

	switch (to->how) {
	case VM_INHERIT:
	case VM_INHERIT_NOTHING:
		a->from.stays = to->how == VM_INHERIT_NOTHING;
		break;
	case VM_WIPE:
	case VM_WIPE_NOT:
		a->from.wiped = to->how == VM_WIPE;
		break;
	case VM_LOCK:
	case VM_LOCK_NOT:
		set_locked(to->vm, a, to->how == VM_LOCK);
		break;
	}
}

static void
find_file(struct area *a, void *found)
{
	*(bool *)found |= a->from.pager != NULL;
}

int
vm_set_inherit(struct vmspace *vm, uint64_t start, uint64_t size, enum vm_inherit how)
{
	struct inherit to = {vm, how};
	bool file = false, whole;
	struct area *taken;
	uint64_t end;
	int error = -ENOMEM;

	size = page_round_up(size);
	end = end_of(start, size);
	if (start >= end)
		return -ENOMEM;
	mutex_lock(&vm->lock);
	whole = vm_mapped(vm, start, size) == size;
	if ((how != VM_LOCK || vm_may_lock(vm, end - start - vm_locked(vm, start, end - start))) &&
	    vm_split(vm, start) == 0 && vm_split(vm, end) == 0) {
		taken = area_take(&vm->areas, start, end);
		if (how == VM_WIPE)
			area_each(taken, find_file, &file);
		if (!file)
			area_each(taken, set_inherit, &to);
		area_put(&vm->areas, taken);
		vm->has_odd_areas |= how != VM_LOCK && how != VM_LOCK_NOT;
		error = file ? -EINVAL : whole ? 0 : -ENOMEM;
	}
	vm_join_areas(vm, start, end);
	vm_unlock(vm);
	return error;
}

void
vm_limit_locks(struct vmspace *vm, uint64_t bytes)
{
	__atomic_store_n(&vm->locked_max, bytes, __ATOMIC_RELAXED);
}

int
vm_lock_all(struct vmspace *vm, bool now, bool later)
{
	struct inherit to = {vm, now ? VM_LOCK : VM_LOCK_NOT};
	bool may;

	mutex_lock(&vm->lock);
	may = !now || vm_may_lock(vm, vm->size - vm->locked);
	if (may && (now || !later)) {
		area_each(vm->areas, set_inherit, &to);
		vm_join_areas(vm, VM_LOWEST, ARCH_USER_END);
	}
	if (may)
		vm->locks_new = later;
	vm_unlock(vm);
	return may ? 0 : -ENOMEM;
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
	if (!m->vm->shared)
		vm_flush_page(m->vm, va);
}

/*
 * Moves what is at start to `to`, where nothing is, and makes it larger. With MREMAP_DONTUNMAP the
 * old place stays, and is empty. All that may fail comes before the first page moves.
 */
static int64_t
remap_move(struct vmspace *vm, const struct remap *r)
{
	struct move m = {.vm = vm, .by = r->to - r->start};
	const struct area *a;

	if (vm_split(vm, r->start) != 0 || vm_split(vm, r->start + r->old_size) != 0)
		return -ENOMEM;
	a = vm_find(vm, r->start);
	if (vm_insert(vm, r->to, r->to + r->size, a->prot, &a->from) == NULL)
		return -ENOMEM;
	pagetable_each(vm->root, r->start, r->start + r->old_size, remap_make_room, &m);
	if (m.failed) {
		vm_unmap_locked(vm, r->to, r->size);
		return -ENOMEM;
	}
	pagetable_each(vm->root, r->start, r->start + r->old_size, move_page, &m);
	arch_mmu_sync();
	if (vm->shared) /* one for all pages: until then an old entry finds its page */
		vm_flush_all(vm);
	if (!(r->flags & MREMAP_DONTUNMAP))
		vm_unmap_locked(vm, r->start, r->old_size);
	else if (r->old_size != 0)
		set_locked(vm, vm_find(vm, r->start), false);
	return (int64_t)r->to;
}

/* Moves the area to where the caller wants it, whatever is there. */
static int64_t
remap_to(struct vmspace *vm, struct remap *r)
{
	uint64_t last = r->start + (r->old_size != 0 ? r->old_size - 1 : 0);
	int error;

	if (!vm_good_range(r->to, r->size) || (r->to <= last && r->start < r->to + r->size))
		return -EINVAL;
	if (r->size < r->old_size) {
		error = vm_unmap_locked(vm, r->start + r->size, r->old_size - r->size);
		if (error != 0)
			return error;
		r->old_size = r->size;
	}
	error = vm_unmap_locked(vm, r->to, r->size);
	return error != 0 ? error : remap_move(vm, r);
}

static int64_t
vm_remap_locked(struct vmspace *vm, struct remap *r, uint64_t limit)
{
	uint64_t end = r->start + r->old_size,
		 more = r->size > r->old_size ? r->size - r->old_size : 0;
	struct area *a = vm_find(vm, r->start);
	int error;

	if (a == NULL)
		return -EFAULT;
	if (r->old_size == 0 && !a->from.shared)
		return -EINVAL;
	if (r->size <= r->old_size && !(r->flags & (MREMAP_FIXED | MREMAP_DONTUNMAP))) {
		error = r->size == r->old_size
			    ? 0
			    : vm_unmap_locked(vm, r->start + r->size, r->old_size - r->size);
		return error != 0 ? error : (int64_t)r->start;
	}
	if (r->flags & MREMAP_FIXED && !(r->flags & MREMAP_DONTUNMAP) && r->size < r->old_size)
		end = r->start + r->size; /* the rest only goes */
	if (a->end < end)
		return -EFAULT;
	if (a->from.offset + (r->start - a->start) + r->size < a->from.offset)
		return -EINVAL; /* a file has no such bytes */
	if (a->from.locked && !vm_may_lock(vm, more))
		return -EAGAIN;
	if (r->flags & MREMAP_DONTUNMAP)
		more = r->size;
	if (more > 0 &&
	    !vm_may_grow(vm, more, r->flags & MREMAP_FIXED ? vm_mapped(vm, r->to, r->size) : 0,
			 limit))
		return -ENOMEM;
	if (r->flags & MREMAP_FIXED)
		return remap_to(vm, r);
	if (!(r->flags & MREMAP_DONTUNMAP) && a->end == end && vm_good_range(r->start, r->size) &&
	    !vm_overlaps(vm, end, r->start + r->size)) {
		vm_set_end(vm, a, r->start + r->size);
		return (int64_t)r->start;
	}
	r->to = vm_find_free(vm, r->flags & MREMAP_DONTUNMAP ? r->to : 0, r->size);
	return (r->flags & MREMAP_MAYMOVE) && r->to != 0 ? remap_move(vm, r) : -ENOMEM;
}

int64_t
vm_remap(struct vmspace *vm, struct remap r, uint64_t limit)
{
	int64_t result;

	r.old_size = page_round_up(r.old_size);
	r.size = page_round_up(r.size);
	if ((r.flags & ~(unsigned)(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)) ||
	    ((r.flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) && !(r.flags & MREMAP_MAYMOVE)) ||
	    ((r.flags & MREMAP_DONTUNMAP) && r.old_size != r.size))
		return -EINVAL;
	if (r.start % PAGE_SIZE != 0 || r.size == 0 || r.size >= ARCH_USER_END)
		return -EINVAL;
	if (r.start >= ARCH_USER_END)
		return -EFAULT;
	if (r.old_size > ARCH_USER_END - r.start)
		return -EINVAL;
	mutex_lock(&vm->lock);
	result = vm_remap_locked(vm, &r, limit);
	vm_join_areas(vm, r.start, r.start + r.old_size); /* what it has cut, also in vain */
	if (result >= 0)
		vm_join_areas(vm, (uint64_t)result, (uint64_t)result + r.size);
	vm_unlock(vm);
	CTR4(KTR_VM, "remap: start %#lx old %#lx to %#lx size %#lx", r.start, r.old_size, result,
	     r.size);
	return result;
}

void
vm_set_brk_start(struct vmspace *vm, uint64_t start)
{
	vm->brk_start = vm->brk_end = page_round_up(start);
}

/* Moves the end of the heap, if that is possible. */
static void
move_brk(struct vmspace *vm, uint64_t end, unsigned prot, uint64_t limit)
{
	uint64_t old = page_round_up(vm->brk_end), new = page_round_up(end);
	const struct area_source added = {.locked = vm->locks_new};

	if (end < vm->brk_start || end > MMAP_BASE)
		return;
	if (new > old) {
		if (!vm_may_grow(vm, new - old, 0, limit) ||
		    (added.locked && !vm_may_lock(vm, new - old)) ||
		    vm_map_area(vm, old, new - old, prot, &added) != 0)
			return;
		if (old > vm->brk_start) /* the heap begins as an area of its own */
			vm_join_areas(vm, old, new);
	} else if (new < old && vm_unmap_locked(vm, new, old - new) != 0) {
		return;
	}
	CTR2(KTR_VM, "brk: from %#lx to %#lx", vm->brk_end, end);
	vm->brk_end = end;
}

uint64_t
vm_brk(struct vmspace *vm, uint64_t end, unsigned prot, uint64_t limit)
{
	mutex_lock(&vm->lock);
	move_brk(vm, end, prot, limit);
	end = vm->brk_end;
	vm_unlock(vm);
	return end;
}
