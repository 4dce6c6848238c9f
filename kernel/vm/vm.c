/* vm.c - address spaces: their areas, and what takes pages and rights away. Locking: vm.h. */
#include "kernel/vm/vm.h"

#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/area.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/pagetable.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/sched/mutex.h"
#include "kernel/sync/spinlock.h"
#include "kernel/vm/vm_private.h"
#include "ktr/ktr.h"

#define MMAP_LOW (ARCH_USER_END / 3) /* Linux, too, looks here for what finds no other room */

_Static_assert(VM_STACK_TOP + 2 * PAGE_SIZE <= ARCH_USER_END, "the vDSO is above the stack");

static int vm_max_areas = 65530;
SYSCTL_INT(vm_max_map_count, "vm.max_map_count", SYSCTL_WR | SYSCTL_TUN, &vm_max_areas, 16,
	   INT32_MAX, "areas that one address space may have");

uint64_t
vm_root(const struct vmspace *vm)
{
	return vm->root;
}

uint64_t
vm_resident(const struct vmspace *vm)
{
	return __atomic_load_n(&vm->resident, __ATOMIC_RELAXED);
}

const struct uidinfo *
vm_user(const struct vmspace *vm)
{
	return vm->ui;
}

struct vmspace *
vm_create(struct uidinfo *ui)
{
	struct vmspace *vm = uidinfo_alloc(ui, sizeof(*vm));
	uint64_t *table = NULL;

	if (vm != NULL && uidinfo_charge(ui, UIDINFO_PAGE, 1)) {
		table = page_alloc_zero(PAGE_TABLE);
		if (table == NULL)
			uidinfo_release(ui, UIDINFO_PAGE, 1);
	}
	if (table == NULL) {
		uidinfo_free(ui, vm);
		return NULL;
	}
	arch_mmu_user_root(table, phys_to_virt(kmap_root()));
	vm->root = virt_to_phys(table);
	vm->refs = vm->holds = 1;
	vm->locked_max = UINT64_MAX;
	mutex_init(&vm->lock, "vm");
	vm->lock.innermost = true;
	vm->tables = 1;
	vm->ui = ui;
	vm_spaces_join(vm);
	return vm;
}

void
vm_share(struct vmspace *vm)
{
	vm->shared = true;
}

struct area *
vm_find(const struct vmspace *vm, uint64_t va)
{
	struct area *a = area_find(vm->areas, va);

	return a != NULL && va >= a->start ? a : NULL;
}

bool
vm_overlaps(const struct vmspace *vm, uint64_t start, uint64_t end)
{
	const struct area *a = area_find(vm->areas, start);

	return a != NULL && a->start < end;
}

/* Is the range some whole pages below the kernel's half? */
static bool
is_range(uint64_t start, uint64_t size)
{
	return size != 0 && (start & (PAGE_SIZE - 1)) == 0 && start < ARCH_USER_END &&
	       size <= ARCH_USER_END - start;
}

bool
vm_good_range(uint64_t start, uint64_t size)
{
	return is_range(start, size) && start >= VM_LOWEST;
}

/* Makes an area that is in no space yet. NULL: there are too many, or no memory. */
static struct area *
vm_area_alloc(struct vmspace *vm, uint64_t start, uint64_t end, unsigned prot,
	      const struct area_source *from)
{
	struct area *a = NULL;

	if (vm->area_count < (unsigned)vm_max_areas)
		a = uidinfo_alloc(vm->ui, sizeof(*a));
	if (a == NULL)
		return NULL;
	a->start = start;
	a->end = end;
	a->prot = prot;
	if (from != NULL)
		a->from = *from;
	return a;
}

static void
vm_area_put(struct vmspace *vm, struct area *a)
{
	vm->has_odd_areas |= a->from.stays || a->from.wiped;
	if (a->from.pager != NULL) {
		a->from.pager->ref(a->from.object, a->from.writes);
		vm->has_shared_areas |= a->from.shared;
	}
	area_insert(&vm->areas, a);
	vm->area_count++;
	vm->size += a->end - a->start;
	vm->locked += a->from.locked ? a->end - a->start : 0;
}

struct area *
vm_insert(struct vmspace *vm, uint64_t start, uint64_t end, unsigned prot,
	  const struct area_source *from)
{
	struct area *a = vm_area_alloc(vm, start, end, prot, from);

	if (a != NULL)
		vm_area_put(vm, a);
	return a;
}

void
vm_set_end(struct vmspace *vm, struct area *a, uint64_t end)
{
	area_take(&vm->areas, a->start, a->end);
	vm->size += end - a->end;
	vm->locked += a->from.locked ? end - a->end : 0;
	a->end = end;
	area_insert(&vm->areas, a);
}

static void
forget_area(struct area *a, void *arg)
{
	struct vmspace *vm = arg;

	vm->area_count--;
	vm->size -= a->end - a->start;
	vm->locked -= a->from.locked ? a->end - a->start : 0;
	if (a->from.pager == NULL) {
		uidinfo_free(vm->ui, a);
		return;
	}
	a->left = vm->gone;
	vm->gone = a;
}

static void
release_areas(struct vmspace *vm, struct area *a)
{
	while (a != NULL) {
		struct area *next = a->left;

		a->from.pager->unref(a->from.object, a->from.writes);
		uidinfo_free(vm->ui, a);
		a = next;
	}
}

void
vm_unlock(struct vmspace *vm)
{
	struct area *gone = vm->gone;

	vm->gone = NULL;
	mutex_unlock(&vm->lock);
	release_areas(vm, gone);
}

int
vm_map_area(struct vmspace *vm, uint64_t start, uint64_t size, unsigned prot,
	    const struct area_source *from)
{
	size = page_round_up(size);
	if (!vm_good_range(start, size))
		return -EINVAL;
	if (vm_overlaps(vm, start, start + size))
		return -EEXIST;
	if (vm_insert(vm, start, start + size, prot, from) == NULL)
		return -ENOMEM;
	CTR3(KTR_VM, "map: start %#lx size %#lx prot %#x", start, size, prot);
	return 0;
}

int
vm_split(struct vmspace *vm, uint64_t va)
{
	struct area *a = vm_find(vm, va);
	struct area_source from;
	uint64_t end;

	if (a == NULL || a->start == va)
		return 0;
	end = a->end;
	from = a->from;
	from.offset += va - a->start;
	vm_set_end(vm, a, va);
	if (vm_insert(vm, va, end, a->prot, &from) != NULL)
		return 0;
	vm_set_end(vm, a, end);
	return -ENOMEM;
}

/* Clears an entry. Returns its page, with the entry's reference. */
static void *
vm_clear_entry(struct vmspace *vm, uint64_t *pte)
{
	void *page = phys_to_virt(arch_pte_pa(*pte));

	*pte = 0;
	vm_count_gone(vm);
	uidinfo_release(vm->ui, UIDINFO_PAGE, 1);
	return page;
}

static void
vm_forget_page(uint64_t *pte, uintptr_t va, void *arg)
{
	page_unref(vm_clear_entry(arg, pte));
}

/* Takes a page out of the space, which is arg. For pagetable_each(). */
static void
vm_drop_page(uint64_t *pte, uintptr_t va, void *arg)
{
	void *page = vm_clear_entry(arg, pte);

	vm_flush_page(arg, va);
	page_unref(page); /* after the TLB's flush */
}

/* Would the two areas, of which b comes right after a, be the same as one? */
static bool
areas_agree(const struct area *a, const struct area *b)
{
	const struct area_source *f = &a->from, *g = &b->from;

	return a->end == b->start && a->prot == b->prot && f->pager == g->pager &&
	       f->object == g->object &&
	       (f->pager == NULL || f->offset + (a->end - a->start) == g->offset) &&
	       f->shared == g->shared && f->read_only == g->read_only && f->no_exec == g->no_exec &&
	       f->writes == g->writes && f->stays == g->stays && f->wiped == g->wiped &&
	       f->locked == g->locked && f->grows_to == g->grows_to &&
	       f->space_max == g->space_max && !f->code && !g->code;
}

void
vm_join_areas(struct vmspace *vm, uint64_t start, uint64_t end)
{
	struct area *a = area_find(vm->areas, start - 1), *b;

	while (a != NULL && a->end <= end && (b = area_find(vm->areas, a->end)) != NULL) {
		uint64_t both = b->end;

		if (areas_agree(a, b)) {
			area_drop(area_take(&vm->areas, b->start, both), forget_area, vm);
			vm_set_end(vm, a, both);
		} else {
			a = b;
		}
	}
}

#define DROPS 64

/* Pages that have left a space which threads share; until its flush a CPU may still use them. */
struct drops {
	struct vmspace *vm;
	uint64_t va; /* of the last one */
	unsigned n;
	void *pages[DROPS];
};

static void
flush_drops(struct drops *d)
{
	if (d->n == 1)
		vm_flush_page(d->vm, d->va);
	else if (d->n > 1)
		vm_flush_all(d->vm);
	while (d->n > 0)
		page_unref(d->pages[--d->n]);
}

static void
drop_later(uint64_t *pte, uintptr_t va, void *arg)
{
	struct drops *d = arg;

	d->va = va;
	d->pages[d->n++] = vm_clear_entry(d->vm, pte);
	if (d->n == DROPS)
		flush_drops(d);
}

void
vm_drop_pages(struct vmspace *vm, uint64_t start, uint64_t end)
{
	struct drops d;

	if (!vm->shared) {
		pagetable_each(vm->root, start, end, vm_drop_page, vm);
		return;
	}
	d.vm = vm;
	d.n = 0;
	pagetable_each(vm->root, start, end, drop_later, &d);
	flush_drops(&d);
}

/* Splits areas at both places, or at none. The mutex held. 0 or -ENOMEM. */
static int
split_both(struct vmspace *vm, uint64_t start, uint64_t end)
{
	if (vm_split(vm, start) == 0 && vm_split(vm, end) == 0)
		return 0;
	vm_join_areas(vm, start, end);
	return -ENOMEM;
}

int
vm_unmap_locked(struct vmspace *vm, uint64_t start, uint64_t size)
{
	size = page_round_up(size);
	if (!is_range(start, size))
		return -EINVAL;
	if (split_both(vm, start, start + size) != 0)
		return -ENOMEM;
	area_drop(area_take(&vm->areas, start, start + size), forget_area, vm);
	vm_drop_pages(vm, start, start + size);
	CTR2(KTR_VM, "unmap: start %#lx size %#lx", start, size);
	return 0;
}

int
vm_unmap(struct vmspace *vm, uint64_t start, uint64_t size)
{
	int r;

	mutex_lock(&vm->lock);
	r = vm_unmap_locked(vm, start, size);
	vm_unlock(vm);
	return r;
}

struct protection {
	struct vmspace *vm;
	unsigned prot, how;
};

static void
protect_page(uint64_t *pte, uintptr_t va, void *arg)
{
	const struct protection *p = arg;
	unsigned prot = p->how & VM_PROTECT_EXEC ? vm_find(p->vm, va)->prot : p->prot;
	uint64_t pa = arch_pte_pa(*pte);

	if (vm_code_stale(p->vm, va, phys_to_virt(pa))) {
		vm_drop_page(pte, va, p->vm);
		return;
	}
	if (prot & MMU_EXEC)
		arch_icache_sync(phys_to_virt(pa), PAGE_SIZE);
	/* The first write faults. The fault handler then checks whether the page is shared. */
	*pte = arch_pte_leaf(pa, prot != 0 ? (prot & ~(unsigned)MMU_WRITE) | MMU_USER : 0, 0);
	if (!p->vm->shared)
		arch_tlb_flush_page(va);
}

static void
set_prot(struct area *a, void *arg)
{
	const struct protection *p = arg;

	a->prot = p->prot | (p->how & VM_PROTECT_EXEC && !a->from.no_exec ? MMU_EXEC : 0);
}

static int
vm_protect_locked(struct vmspace *vm, uint64_t start, uint64_t size, unsigned prot, unsigned how)
{
	struct protection p = {vm, prot, how};
	const struct area *first;
	uint64_t end = start;
	struct area *taken;
	int error = 0;

	size = page_round_up(size);
	if (!vm_good_range(start, size))
		return -ENOMEM; /* nothing is mapped there */
	first = how & VM_PROTECT_DOWN ? area_find(vm->areas, start) : NULL;
	if (first != NULL && first->start < start + size) {
		if (first->from.grows_to == 0)
			return -EINVAL;
		size += start - first->start;
		start = end = first->start;
	}
	while (end < start + size && error == 0) {
		struct area *a = vm_find(vm, end);

		if (a == NULL)
			error = -ENOMEM;
		else if (((prot & MMU_WRITE) && a->from.read_only) ||
			 ((prot & MMU_EXEC) && a->from.no_exec))
			error = -EACCES;
		else
			end = a->end < start + size ? a->end : start + size;
	}
	if (end == start)
		return error;
	if (split_both(vm, start, end) != 0)
		return -ENOMEM;
	taken = area_take(&vm->areas, start, end);
	area_each(taken, set_prot, &p);
	area_put(&vm->areas, taken);
	pagetable_each(vm->root, start, end, protect_page, &p);
	vm_join_areas(vm, start, end);
	if (vm->shared)
		vm_flush_all(vm); /* once, and not for each page */
	CTR3(KTR_VM, "protect: start %#lx size %#lx prot %#x", start, end - start, prot);
	return error;
}

int
vm_protect(struct vmspace *vm, uint64_t start, uint64_t size, unsigned prot, unsigned how)
{
	int r;

	mutex_lock(&vm->lock);
	r = vm_protect_locked(vm, start, size, prot, how);
	vm_unlock(vm);
	return r;
}

uint64_t
vm_gap(const struct vmspace *vm, uint64_t from, uint64_t size)
{
	uint64_t at =
	    area_gap(vm->areas, from > VM_LOWEST ? page_round_down(from) : VM_LOWEST, size);

	return vm_good_range(at, size) ? at : 0;
}

uint64_t
vm_find_free(struct vmspace *vm, uint64_t hint, uint64_t size)
{
	uint64_t at;

	if (vm_good_range(hint, size) && !vm_overlaps(vm, hint, hint + size))
		return hint;
	at = vm_gap(vm, MMAP_BASE, size);
	return at != 0 ? at : vm_gap(vm, MMAP_LOW, size);
}

bool
vm_may_grow(const struct vmspace *vm, uint64_t more, uint64_t less, uint64_t limit)
{
	uint64_t left = vm->size - less;

	return left <= limit && more <= limit - left;
}

/* Maps a range in place of what is there. If that fails, what is there stays. */
static int
vm_replace(struct vmspace *vm, uint64_t start, uint64_t size, unsigned prot,
	   const struct area_source *from, uint64_t limit)
{
	struct area *a;

	if (!vm_may_grow(vm, size, vm_mapped(vm, start, size), limit) ||
	    split_both(vm, start, start + size) != 0)
		return -ENOMEM;
	a = vm_area_alloc(vm, start, start + size, prot, from);
	if (a == NULL) {
		vm_join_areas(vm, start, start + size);
		return -ENOMEM;
	}
	vm_unmap_locked(vm, start, size); /* no area has to be split, so this cannot fail */
	vm_area_put(vm, a);
	CTR3(KTR_VM, "map: start %#lx size %#lx prot %#x", start, size, prot);
	return 0;
}

/* Linux's error for a place that a program cannot have, checked in its order. 0: it can have it. */
static int
vm_check_place(uint64_t start, uint64_t size)
{
	if (size > ARCH_USER_END || start > ARCH_USER_END - size)
		return -ENOMEM;
	if (start % PAGE_SIZE != 0)
		return -EINVAL;
	return start < VM_LOWEST ? -EPERM : 0;
}

int64_t
vm_map_any(struct vmspace *vm, uint64_t start, uint64_t size, unsigned prot, enum vm_place place,
	   const struct area_source *from, uint64_t limit)
{
	struct area_source source = from != NULL ? *from : (struct area_source){.offset = 0};
	int64_t r;

	size = page_round_up(size);
	mutex_lock(&vm->lock);
	source.locked |= vm->locks_new;
	if (place == VM_ANYWHERE)
		start = vm_find_free(vm, page_round_down(start), size);
	r = start == 0 && place == VM_ANYWHERE ? -ENOMEM : vm_check_place(start, size);
	if (r == 0 && source.locked && !vm_may_lock(vm, size))
		r = -EAGAIN;
	if (r == 0 && place == VM_REPLACE)
		r = vm_replace(vm, start, size, prot, &source, limit);
	else if (r == 0)
		r = vm_may_grow(vm, size, 0, limit) ? vm_map_area(vm, start, size, prot, &source)
						    : -ENOMEM;
	if (r == 0)
		vm_join_areas(vm, start, start + size);
	vm_unlock(vm);
	return r != 0 ? r : (int64_t)start;
}

void
vm_destroy(struct vmspace *vm)
{
	if (__atomic_sub_fetch(&vm->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	vm_spaces_leave(vm);
	/* No CPU uses this table any more, so the TLB needs no flush. */
	pagetable_each(vm->root, 0, ARCH_USER_END, vm_forget_page, vm);
	area_drop(vm->areas, forget_area, vm);
	release_areas(vm, vm->gone);
	pagetable_destroy_user(vm->root);
	uidinfo_release(vm->ui, UIDINFO_PAGE, vm->tables);
	vm_unhold(vm);
}

struct vmspace *
vm_hold(struct vmspace *vm)
{
	__atomic_fetch_add(&vm->holds, 1, __ATOMIC_RELAXED);
	return vm;
}

bool
vm_enter(struct vmspace *vm)
{
	uint32_t refs = __atomic_load_n(&vm->refs, __ATOMIC_RELAXED);

	while (refs != 0 && !__atomic_compare_exchange_n(&vm->refs, &refs, refs + 1, false,
							 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		;
	return refs != 0;
}

void
vm_unhold(struct vmspace *vm)
{
	if (__atomic_sub_fetch(&vm->holds, 1, __ATOMIC_ACQ_REL) == 0)
		uidinfo_free(vm->ui, vm);
}
