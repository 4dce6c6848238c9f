/*
 * vm.c - areas, demand-zero pages, copy on write.
 *
 * Invariants: a page that more than one space maps (page_refs > 1) is mapped read-only in all of
 * them. A page in an area without any access keeps its entry, marked not present: so the kernel's
 * copies to and from user memory fault there too.
 */
#include "kernel/mm/vm.h"

#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/area.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/pagetable.h"
#include "kernel/mm/uidinfo.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(vminfo);
SDT_PROBE_DEFINE_TEXT(vminfo, , , cow_fault, "cow_fault", ": n %d va %#lx", 2, "int", "uintptr_t");
SDT_PROBE_DEFINE_TEXT(vminfo, , , zfod, "zfod", ": n %d va %#lx", 2, "int", "uintptr_t");

#define MMAP_BASE 0x0000700000000000ul
#define VM_LOWEST 0x10000ul /* the lowest pages stay unmapped, so that null pointers fault */

#define VM_FAULT_PAGES 4 /* what one fault may need: a page and three tables */

struct vmspace {
	uint32_t refs; /* atomic */
	uint64_t root;
	struct area *areas;
	unsigned area_count;
	uint64_t brk_start, brk_end;
	uint64_t size;      /* bytes of all areas */
	uint64_t resident;  /* pages mapped */
	uint64_t tables;    /* pages of the page table */
	struct uidinfo *ui; /* the user to whom the memory is counted */
};

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

uint64_t
vm_size(const struct vmspace *vm)
{
	return vm->size;
}

struct vmspace *
vm_create(struct uidinfo *ui)
{
	struct vmspace *vm = uidinfo_alloc(ui, sizeof(*vm));
	uint64_t *table = NULL;

	if (vm != NULL && uidinfo_charge(ui, UIDINFO_PAGE, 1)) {
		table = page_alloc_zero();
		if (table == NULL)
			uidinfo_release(ui, UIDINFO_PAGE, 1);
	}
	if (table == NULL) {
		uidinfo_free(ui, vm);
		return NULL;
	}
	arch_mmu_user_root(table, phys_to_virt(kmap_root()));
	vm->root = virt_to_phys(table);
	vm->refs = 1;
	vm->tables = 1;
	vm->ui = ui;
	return vm;
}

/* The area that contains va, or NULL. */
static struct area *
find(const struct vmspace *vm, uint64_t va)
{
	struct area *a = area_find(vm->areas, va);

	return a != NULL && va >= a->start ? a : NULL;
}

static bool
overlaps(const struct vmspace *vm, uint64_t start, uint64_t end)
{
	const struct area *a = area_find(vm->areas, start);

	return a != NULL && a->start < end;
}

static bool
good_range(uint64_t start, uint64_t size)
{
	return size != 0 && (start & (PAGE_SIZE - 1)) == 0 && start >= VM_LOWEST &&
	       start < ARCH_USER_END && size <= ARCH_USER_END - start;
}

static struct area *
insert(struct vmspace *vm, uint64_t start, uint64_t end, unsigned prot)
{
	struct area *a = NULL;

	if (vm->area_count < (unsigned)vm_max_areas)
		a = uidinfo_alloc(vm->ui, sizeof(*a));
	if (a == NULL)
		return NULL;
	a->start = start;
	a->end = end;
	a->prot = prot;
	area_insert(&vm->areas, a);
	vm->area_count++;
	vm->size += end - start;
	return a;
}

/* Moves the end of an area. */
static void
set_end(struct vmspace *vm, struct area *a, uint64_t end)
{
	unsigned prot = a->prot;

	area_take(&vm->areas, a->start, a->end);
	vm->size += end - a->end;
	a->end = end;
	a->prot = prot;
	area_insert(&vm->areas, a);
}

static void
forget_area(struct area *a, void *arg)
{
	struct vmspace *vm = arg;

	vm->area_count--;
	vm->size -= a->end - a->start;
	uidinfo_free(vm->ui, a);
}

int
vm_map(struct vmspace *vm, uint64_t start, uint64_t size, unsigned prot)
{
	size = page_round_up(size);
	if (!good_range(start, size))
		return -EINVAL;
	if (overlaps(vm, start, start + size))
		return -EEXIST;
	if (insert(vm, start, start + size, prot) == NULL)
		return -ENOMEM;
	CTR3(KTR_VM, "map: start %#lx size %#lx prot %#x", start, size, prot);
	return 0;
}

/* If va lies inside an area, splits the area there. */
static int
split(struct vmspace *vm, uint64_t va)
{
	struct area *a = find(vm, va);
	uint64_t end;

	if (a == NULL || a->start == va)
		return 0;
	end = a->end;
	set_end(vm, a, va);
	if (insert(vm, va, end, a->prot) != NULL)
		return 0;
	set_end(vm, a, end);
	return -ENOMEM;
}

static void
forget_page(uint64_t *pte, uintptr_t va, void *arg)
{
	struct vmspace *vm = arg;
	uint64_t pa = arch_pte_pa(*pte);

	*pte = 0;
	vm->resident--;
	uidinfo_release(vm->ui, UIDINFO_PAGE, 1);
	page_unref(phys_to_virt(pa));
}

static void
drop_page(uint64_t *pte, uintptr_t va, void *arg)
{
	void *page = phys_to_virt(arch_pte_pa(*pte));

	page_ref(page); /* keep the page until the TLB is flushed */
	forget_page(pte, va, arg);
	arch_tlb_flush_page(va);
	page_unref(page);
}

int
vm_unmap(struct vmspace *vm, uint64_t start, uint64_t size)
{
	size = page_round_up(size);
	if (!good_range(start, size))
		return -EINVAL;
	if (split(vm, start) != 0 || split(vm, start + size) != 0)
		return -ENOMEM;
	area_drop(area_take(&vm->areas, start, start + size), forget_area, vm);
	pagetable_each(vm->root, start, start + size, drop_page, vm);
	CTR2(KTR_VM, "unmap: start %#lx size %#lx", start, size);
	return 0;
}

static void
protect_page(uint64_t *pte, uintptr_t va, void *arg)
{
	unsigned prot = *(unsigned *)arg;
	uint64_t pa = arch_pte_pa(*pte);

	if (prot & MMU_EXEC)
		arch_icache_sync(phys_to_virt(pa), PAGE_SIZE);
	/* The first write faults. The fault handler then checks whether the page is shared. */
	*pte = arch_pte_leaf(pa, prot != 0 ? (prot & ~(unsigned)MMU_WRITE) | MMU_USER : 0, 0);
	arch_tlb_flush_page(va);
}

static void
set_prot(struct area *a, void *prot)
{
	a->prot = *(unsigned *)prot;
}

int
vm_protect(struct vmspace *vm, uint64_t start, uint64_t size, unsigned prot)
{
	uint64_t at = start;
	struct area *taken;

	size = page_round_up(size);
	if (!good_range(start, size))
		return -EINVAL;
	while (at < start + size) {
		struct area *a = find(vm, at);
		if (a == NULL)
			return -ENOMEM;
		at = a->end;
	}
	if (split(vm, start) != 0 || split(vm, start + size) != 0)
		return -ENOMEM;
	taken = area_take(&vm->areas, start, start + size);
	area_each(taken, set_prot, &prot);
	area_put(&vm->areas, taken);
	pagetable_each(vm->root, start, start + size, protect_page, &prot);
	CTR3(KTR_VM, "protect: start %#lx size %#lx prot %#x", start, size, prot);
	return 0;
}

uint64_t
vm_find_free(struct vmspace *vm, uint64_t hint, uint64_t size)
{
	uint64_t at;

	size = page_round_up(size);
	if (good_range(hint, size) && !overlaps(vm, hint, hint + size))
		return hint;
	at = area_gap(vm->areas, MMAP_BASE, size);
	return good_range(at, size) ? at : 0;
}

void
vm_set_brk_start(struct vmspace *vm, uint64_t start)
{
	vm->brk_start = vm->brk_end = page_round_up(start);
}

uint64_t
vm_brk_end(const struct vmspace *vm)
{
	return vm->brk_end;
}

uint64_t
vm_brk(struct vmspace *vm, uint64_t end)
{
	uint64_t old = page_round_up(vm->brk_end), new = page_round_up(end);

	if (end < vm->brk_start || end > MMAP_BASE)
		return vm->brk_end;
	if (new > old) {
		struct area *heap = old > vm->brk_start ? find(vm, old - 1) : NULL;

		if (overlaps(vm, old, new))
			return vm->brk_end;
		if (heap != NULL && heap->end == old && heap->prot == (MMU_READ | MMU_WRITE))
			set_end(vm, heap, new);
		else if (vm_map(vm, old, new - old, MMU_READ | MMU_WRITE) != 0)
			return vm->brk_end;
	} else if (new < old && vm_unmap(vm, new, old - new) != 0) {
		return vm->brk_end;
	}
	CTR2(KTR_VM, "brk: from %#lx to %#lx", vm->brk_end, end);
	return vm->brk_end = end;
}

/* The instruction cache needs care only for executable pages. */
static void
enter_page(uint64_t *pte, void *page, unsigned prot)
{
	if (prot & MMU_EXEC)
		arch_icache_sync(page, PAGE_SIZE);
	*pte = arch_pte_leaf(virt_to_phys(page), prot | MMU_USER, 0);
}

/* A write to a read-only page: copies the page if it is shared, otherwise makes it writable. */
static bool
copy_on_write(uint64_t *pte, uint64_t va, unsigned prot)
{
	void *old = phys_to_virt(arch_pte_pa(*pte)), *new = old;

	if (page_refs(old) > 1) {
		new = page_alloc(0);
		if (new == NULL)
			return false;
		memcpy(new, old, PAGE_SIZE);
		SDT_CTR3(vminfo, , , cow_fault, SDT_ARGS2(1, va), KTR_VM,
			 "cow copy: va %#lx from %p to %p", va, old, new);
	} else {
		CTR1(KTR_VM, "cow reuse: va %#lx", va);
	}
	if (new != old) {
		*pte = 0;
		arch_tlb_flush_page(va);
	}
	enter_page(pte, new, prot);
	arch_tlb_flush_page(va);
	if (new != old)
		page_unref(old);
	return true;
}

bool
vm_maps(const struct vmspace *vm, uint64_t va)
{
	return find(vm, va) != NULL;
}

bool
vm_allows(const struct vmspace *vm, uint64_t va, unsigned access)
{
	const struct area *a = find(vm, va);

	return a != NULL && (a->prot & access);
}

/* Makes the page tables for va. Counts them, and n pages more, for the user. */
static uint64_t *
make_entry(struct vmspace *vm, uint64_t va, unsigned n)
{
	unsigned made = 0;
	uint64_t *pte;

	if (!uidinfo_charge(vm->ui, UIDINFO_PAGE, VM_FAULT_PAGES))
		return NULL;
	pte = pagetable_entry(vm->root, va, 0, &made);
	vm->tables += made;
	if (pte == NULL)
		n = 0;
	uidinfo_release(vm->ui, UIDINFO_PAGE, VM_FAULT_PAGES - made - n);
	return pte;
}

/* Maps a page of zeroes at va, which has none. */
static bool
zero_fill(struct vmspace *vm, uint64_t va, unsigned access, unsigned prot)
{
	uint64_t *pte = make_entry(vm, va, 1);
	void *page = pte != NULL ? page_alloc_zero() : NULL;

	if (page == NULL) {
		if (pte != NULL)
			uidinfo_release(vm->ui, UIDINFO_PAGE, 1);
		return false;
	}
	SDT_CTR3(vminfo, , , zfod, SDT_ARGS2(1, va), KTR_VM, "zero fill: va %#lx access %u page %p",
		 va, access, page);
	enter_page(pte, page, prot);
	arch_mmu_sync();
	vm->resident++;
	return true;
}

bool
vm_fault(struct vmspace *vm, uint64_t va, unsigned access)
{
	struct area *a = find(vm, va);
	uint64_t *pte;

	va = page_round_down(va);
	if (a == NULL || !(a->prot & access)) {
		CTR2(KTR_VM, "fault: va %#lx access %u has no area that allows it", va, access);
		return false;
	}
	pte = pagetable_entry(vm->root, va, 0, NULL);
	if (pte == NULL || *pte == 0)
		return zero_fill(vm, va, access, a->prot);
	if (access == MMU_WRITE && !arch_pte_writable(*pte))
		return copy_on_write(pte, va, a->prot);
	/* The page is mapped and allowed: the TLB was stale. Write the entry again and flush it. */
	if (page_refs(phys_to_virt(arch_pte_pa(*pte))) > 1)
		*pte = arch_pte_leaf(arch_pte_pa(*pte), (a->prot & ~(unsigned)MMU_WRITE) | MMU_USER,
				     0);
	else
		*pte = arch_pte_leaf(arch_pte_pa(*pte), a->prot | MMU_USER, 0);
	arch_tlb_flush_page(va);
	return true;
}

int
vm_write(struct vmspace *vm, uint64_t va, const void *src, uint64_t n)
{
	while (n > 0) {
		uint64_t off = va & (PAGE_SIZE - 1);
		uint64_t part = n < PAGE_SIZE - off ? n : PAGE_SIZE - off;
		unsigned level;
		uint64_t pte = pagetable_lookup(vm->root, va, &level);

		if (pte == 0) {
			struct area *a = find(vm, va);
			if (a == NULL)
				return -EFAULT;
			if (!vm_fault(vm, va, a->prot & MMU_WRITE ? MMU_WRITE : a->prot & -a->prot))
				return -ENOMEM;
			pte = pagetable_lookup(vm->root, va, &level);
		}
		memcpy((char *)phys_to_virt(arch_pte_pa(pte)) + off, src, part);
		if (arch_pte_executable(pte))
			arch_icache_sync((char *)phys_to_virt(arch_pte_pa(pte)) + off, part);
		va += part;
		src = (const char *)src + part;
		n -= part;
	}
	return 0;
}

struct fork_arg {
	struct vmspace *child;
	bool failed;
};

static void
copy_area(struct area *a, void *arg)
{
	struct fork_arg *f = arg;

	if (!f->failed)
		f->failed = insert(f->child, a->start, a->end, a->prot) == NULL;
}

static void
share_page(uint64_t *pte, uintptr_t va, void *arg)
{
	struct fork_arg *f = arg;
	uint64_t *copy = f->failed ? NULL : make_entry(f->child, va, 1);
	uint64_t pa = arch_pte_pa(*pte);

	if (copy == NULL) {
		f->failed = true;
		return;
	}
	if (arch_pte_writable(*pte)) {
		unsigned exec = arch_pte_executable(*pte) ? MMU_EXEC : 0;
		*pte = arch_pte_leaf(pa, MMU_READ | MMU_USER | exec, 0);
		arch_tlb_flush_page(va);
	}
	page_ref(phys_to_virt(pa));
	*copy = *pte;
	f->child->resident++;
}

struct vmspace *
vm_fork(struct vmspace *vm, struct uidinfo *ui)
{
	struct fork_arg f = {.child = vm_create(ui)};

	if (f.child == NULL)
		return NULL;
	f.child->brk_start = vm->brk_start;
	f.child->brk_end = vm->brk_end;
	area_each(vm->areas, copy_area, &f);
	pagetable_each(vm->root, 0, ARCH_USER_END, share_page, &f);
	if (f.failed) {
		vm_destroy(f.child);
		return NULL;
	}
	return f.child;
}

struct vmspace *
vm_ref(struct vmspace *vm)
{
	__atomic_fetch_add(&vm->refs, 1, __ATOMIC_RELAXED);
	return vm;
}

void
vm_destroy(struct vmspace *vm)
{
	if (__atomic_sub_fetch(&vm->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	/* No CPU uses this table any more, so the TLB needs no flush. */
	pagetable_each(vm->root, 0, ARCH_USER_END, forget_page, vm);
	area_drop(vm->areas, forget_area, vm);
	pagetable_destroy_user(vm->root);
	uidinfo_release(vm->ui, UIDINFO_PAGE, vm->tables);
	uidinfo_free(vm->ui, vm);
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
