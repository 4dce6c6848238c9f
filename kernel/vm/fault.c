/*
 * fault.c - demand-zero pages, pages of files, copy on write, fork. Locking: vm.h.
 *
 * Invariants: a page of a private area is mapped read-only if other spaces use it, too (page_refs >
 * 1), or if it is or was a file's. A page of a shared area is mapped read-only until it is first
 * written. A page in an area without any access keeps its entry, marked not present: so the
 * kernel's copies to and from user memory fault there too.
 */
#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/string.h"
#include "kernel/mm/area.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/page_descriptor.h"
#include "kernel/mm/pagetable.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/vm/vm_private.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(vminfo);
SDT_PROBE_DEFINE_TEXT(vminfo, , , cow_fault, "cow_fault", ": n %d va %#lx", 2, "int", "uintptr_t");
SDT_PROBE_DEFINE_TEXT(vminfo, , , maj_fault, "maj_fault", ": n %d va %#lx", 2, "int", "uintptr_t");
SDT_PROBE_DEFINE_TEXT(vminfo, , , zfod, "zfod", ": n %d va %#lx", 2, "int", "uintptr_t");

#define GROW_GAP       (256 * PAGE_SIZE) /* what stays free below an area that grows, as on Linux */
#define VM_FAULT_PAGES 4                 /* what one fault may need: a page and three tables */

/* The instruction cache needs care only for executable pages. */
static void
enter_page(uint64_t *pte, void *page, unsigned prot)
{
	if (prot & MMU_EXEC)
		arch_icache_sync(page, PAGE_SIZE);
	/* release: another CPU that finds the entry finds what was written to the page before */
	__atomic_store_n(pte, arch_pte_leaf(virt_to_phys(page), prot != 0 ? prot | MMU_USER : 0, 0),
			 __ATOMIC_RELEASE);
}

void *
vm_copy_page(const struct vmspace *vm, const void *page)
{
	void *copy = NULL;

	if (vm->ui == &uidinfo_root || !uidinfo_memory_short())
		copy = page_alloc(0, PAGE_ANON);
	if (copy != NULL)
		memcpy(copy, page, PAGE_SIZE);
	return copy;
}

/* Must a private area copy the page before it is written? A file's is one even if it left it. */
static bool
is_others(void *page)
{
	return page_refs(page) > 1 || page_of(page)->owner == PAGE_FILE;
}

/* A write to a read-only page: copies the page if it is shared, otherwise makes it writable. */
static enum vm_fault
do_wp_page(const struct vmspace *vm, uint64_t *pte, uint64_t va, unsigned prot)
{
	void *old = phys_to_virt(arch_pte_pa(*pte)), *new = old;

	if (is_others(old)) {
		new = vm_copy_page(vm, old);
		if (new == NULL)
			return VM_FAULT_MEMORY;
		SDT_CTR3(vminfo, , , cow_fault, SDT_ARGS2(1, va), KTR_VM,
			 "cow copy: va %#lx from %p to %p", va, old, new);
	} else {
		CTR1(KTR_VM, "cow reuse: va %#lx", va);
	}
	if (new != old) {
		*pte = 0;
		if (vm->shared && curthread()->root != vm->root)
			kmap_flush_everywhere(); /* a CPU that has left the space may go on with it
						  */
		else
			vm_flush_page(vm, va);
	}
	enter_page(pte, new, prot);
	arch_tlb_flush_page(va); /* elsewhere, a stale entry only faults */
	if (new != old)
		page_unref(old);
	return VM_FAULT_SERVED;
}

bool
vm_allows_locked(const struct vmspace *vm, uint64_t va, unsigned access)
{
	const struct area *a = vm_find(vm, va);

	return a != NULL && (a->prot & access) == access;
}

bool
vm_allows(struct vmspace *vm, uint64_t va, unsigned access)
{
	bool allows;

	mutex_lock(&vm->lock);
	allows = vm_allows_locked(vm, va, access);
	mutex_unlock(&vm->lock);
	return allows;
}

bool
vm_is_mapped(struct vmspace *vm, uint64_t start, uint64_t size)
{
	bool is;

	size = page_round_up(size);
	mutex_lock(&vm->lock);
	is = vm_mapped(vm, start, size) == size;
	mutex_unlock(&vm->lock);
	return is;
}

uint64_t *
vm_make_entry(struct vmspace *vm, uint64_t va, unsigned n)
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

/* As vm_make_entry(), of a page. pte: the entry, or NULL if it has no table yet. */
static uint64_t *
fault_entry(struct vmspace *vm, uint64_t va, uint64_t *pte)
{
	if (pte == NULL)
		return vm_make_entry(vm, va, 1);
	return uidinfo_charge(vm->ui, UIDINFO_PAGE, 1) ? pte : NULL;
}

/* Maps a page of zeroes at va, which has none. pte: as above. */
static enum vm_fault
zero_fill(struct vmspace *vm, uint64_t va, unsigned access, unsigned prot, uint64_t *pte)
{
	void *page;

	pte = fault_entry(vm, va, pte);
	page = pte != NULL ? page_alloc_zero(PAGE_ANON) : NULL;
	if (page == NULL) {
		if (pte != NULL)
			uidinfo_release(vm->ui, UIDINFO_PAGE, 1);
		return VM_FAULT_MEMORY;
	}
	SDT_CTR3(vminfo, , , zfod, SDT_ARGS2(1, va), KTR_VM, "zero fill: va %#lx access %u page %p",
		 va, access, page);
	enter_page(pte, page, prot);
	arch_mmu_sync();
	vm->resident++;
	return VM_FAULT_SERVED;
}

/* Rights of a shared page when a program first comes to it: its first write is to be noticed. */
static unsigned
shared_prot(const struct area *a, void *page, unsigned access)
{
	if (access != MMU_WRITE)
		return a->prot & ~(unsigned)MMU_WRITE;
	a->from.pager->written(a->from.object, page);
	return a->prot;
}

/* Maps the file's page at va, where there is none. */
static enum vm_fault
file_fill(struct vmspace *vm, const struct area *a, uint64_t va, unsigned access, uint64_t *pte)
{
	bool shared = a->from.shared;
	unsigned prot = a->prot;
	int error = 0;
	void *page = a->from.pager->page(a->from.object, area_index(a, va), true, &error);

	if (page == NULL)
		return error == -EFAULT ? VM_FAULT_BEYOND : VM_FAULT_MEMORY;
	page = vm_code_page(vm, a, va, page);
	pte = page != NULL ? fault_entry(vm, va, pte) : NULL;
	if (page == NULL)
		return VM_FAULT_MEMORY;
	if (pte == NULL) {
		page_unref(page);
		return VM_FAULT_MEMORY;
	}
	CTR4(KTR_VM, "file page: va %#lx access %u page %p shared %d", va, access, page, shared);
	enter_page(pte, page, shared ? shared_prot(a, page, access) : prot & ~(unsigned)MMU_WRITE);
	arch_mmu_sync();
	vm->resident++;
	/* A page that cannot be copied now is copied, or fails, at the next fault. */
	return shared || access != MMU_WRITE ? VM_FAULT_SERVED : do_wp_page(vm, pte, va, prot);
}

/* Makes the page at va, which has none. pte: as above. */
static enum vm_fault
vm_fill(struct vmspace *vm, const struct area *a, uint64_t va, unsigned access, uint64_t *pte)
{
	return a->from.pager != NULL ? file_fill(vm, a, va, access, pte)
				     : zero_fill(vm, va, access, a->prot, pte);
}

/* Moves the start of an area that grows down to the page at va. NULL: no area may. */
static struct area *
vm_grow_down(struct vmspace *vm, uint64_t va)
{
	struct area *a = area_find(vm->areas, va);
	uint64_t start = page_round_down(va), old;

	if (a == NULL || a->end - start > a->from.grows_to || start < VM_LOWEST + GROW_GAP ||
	    vm_overlaps(vm, start - GROW_GAP, start) ||
	    !vm_may_grow(vm, a->start - start, 0, a->from.space_max) ||
	    (a->from.locked && !vm_may_lock(vm, a->start - start)))
		return NULL;
	old = a->start;
	area_take(&vm->areas, old, a->end);
	a->start = start;
	area_insert(&vm->areas, a);
	vm->size += old - start;
	vm->locked += a->from.locked ? old - start : 0;
	CTR2(KTR_VM, "grow: start %#lx to %#lx", old, start);
	return a;
}

static enum vm_fault
vm_fault_serve(struct vmspace *vm, uint64_t va, unsigned access)
{
	struct area *a = vm_find(vm, va);
	uint64_t *pte;
	unsigned prot;

	if (a == NULL)
		a = vm_grow_down(vm, va);
	va = page_round_down(va);
	if (a == NULL || !(a->prot & access)) {
		CTR2(KTR_VM, "fault: va %#lx access %u has no area that allows it", va, access);
		return a == NULL ? VM_FAULT_NO_AREA : VM_FAULT_DENIED;
	}
	prot = a->prot;
	pte = pagetable_entry(vm->root, va, 0, NULL);
	if (pte == NULL || *pte == 0)
		return vm_fill(vm, a, va, access, pte);
	if (access == MMU_WRITE && !arch_pte_writable(*pte) && !a->from.shared)
		return do_wp_page(vm, pte, va, a->prot);
	/*
	 * The page is there and the access is allowed. Either the page is shared, and written for
	 * the first time; or the TLB was stale. Write the entry again and flush it.
	 */
	if (a->from.shared && !arch_pte_writable(*pte))
		prot = shared_prot(a, phys_to_virt(arch_pte_pa(*pte)), access);
	else if (!a->from.shared && is_others(phys_to_virt(arch_pte_pa(*pte))))
		prot &= ~(unsigned)MMU_WRITE;
	*pte = arch_pte_leaf(arch_pte_pa(*pte), prot | MMU_USER, 0);
	arch_tlb_flush_page(va);
	return VM_FAULT_SERVED;
}

enum vm_fault
vm_fault(struct vmspace *vm, uint64_t va, unsigned access)
{
	struct thread *t = curthread();
	uint64_t reads = t->page_reads;
	struct pcpu *pc;
	enum vm_fault why;

	mutex_lock(&vm->lock);
	why = vm_fault_serve(vm, va, access);
	mutex_unlock(&vm->lock);
	if (why != VM_FAULT_SERVED)
		return why;
	pc = pcpus[arch_cpu()]; /* another one's, if it is preempted now */
	if (t->page_reads != reads) {
		SDT_PROBE2(vminfo, , , maj_fault, 1, va);
		t->disk_faults++;
		__atomic_fetch_add(&pc->disk_faults, 1, __ATOMIC_RELAXED);
	} else {
		t->faults++;
		__atomic_fetch_add(&pc->faults, 1, __ATOMIC_RELAXED);
	}
	return why;
}

struct cleaning {
	const struct vmspace *vm;
	bool any; /* an entry was changed */
};

static void
clean_page(uint64_t *pte, uintptr_t va, void *arg)
{
	struct cleaning *c = arg;
	const struct area *a;

	if (!arch_pte_writable(*pte))
		return;
	a = vm_find(c->vm, va);
	if (!a->from.shared)
		return;
	*pte = arch_pte_leaf(arch_pte_pa(*pte), (a->prot & ~(unsigned)MMU_WRITE) | MMU_USER, 0);
	c->any = true;
}

bool
vm_clean_locked(struct vmspace *vm, uint64_t start, uint64_t end)
{
	struct cleaning c = {.vm = vm};

	pagetable_each(vm->root, start, end, clean_page, &c);
	return c.any;
}

void
vm_clean(struct vmspace *vm, uint64_t start, uint64_t size)
{
	mutex_lock(&vm->lock);
	if (vm_clean_locked(vm, start, start + page_round_up(size)))
		vm_flush_all(vm);
	mutex_unlock(&vm->lock);
}

bool
vm_bring(struct vmspace *vm, uint64_t va)
{
	const struct area *a = vm_find(vm, va);
	const uint64_t *entry = pagetable_entry(vm->root, page_round_down(va), 0, NULL);

	if (entry != NULL && *entry != 0)
		return true;
	if (a->prot == 0)
		return vm_fill(vm, a, page_round_down(va), MMU_READ, NULL) == VM_FAULT_SERVED;
	return vm_fault_serve(vm, va, a->prot & MMU_WRITE ? MMU_WRITE : a->prot & -a->prot) ==
	       VM_FAULT_SERVED;
}

/* Gets the page at va for this space alone; makes it if there is none. */
static int
own_page(struct vmspace *vm, uint64_t va, uint64_t *pte)
{
	const struct area *a = vm_find(vm, va);
	uint64_t *entry;

	if (a == NULL)
		return -EFAULT;
	if (!vm_bring(vm, va))
		return -ENOMEM;
	entry = pagetable_entry(vm->root, va, 0, NULL);
	if (a->from.shared && !arch_pte_writable(*entry))
		a->from.pager->written(a->from.object, phys_to_virt(arch_pte_pa(*entry)));
	if (!a->from.shared && is_others(phys_to_virt(arch_pte_pa(*entry))) &&
	    do_wp_page(vm, entry, va, a->prot) != VM_FAULT_SERVED)
		return -ENOMEM;
	*pte = *entry;
	return 0;
}

int
vm_write_locked(struct vmspace *vm, uint64_t va, const void *src, uint64_t n)
{
	while (n > 0) {
		uint64_t off = va & (PAGE_SIZE - 1);
		uint64_t part = n < PAGE_SIZE - off ? n : PAGE_SIZE - off, pte;
		int r = own_page(vm, va - off, &pte);

		if (r != 0)
			return r;
		memcpy((char *)phys_to_virt(arch_pte_pa(pte)) + off, src, part);
		if (arch_pte_executable(pte))
			arch_icache_sync((char *)phys_to_virt(arch_pte_pa(pte)) + off, part);
		va += part;
		src = (const char *)src + part;
		n -= part;
	}
	return 0;
}

int
vm_write(struct vmspace *vm, uint64_t va, const void *src, uint64_t n)
{
	int r;

	mutex_lock(&vm->lock);
	r = vm_write_locked(vm, va, src, n);
	mutex_unlock(&vm->lock);
	return r;
}

struct fork_arg {
	const struct vmspace *parent;
	struct vmspace *child;
	bool failed;
};

static void
copy_area(struct area *a, void *arg)
{
	struct area_source from = a->from;
	struct fork_arg *f = arg;

	from.locked = false;
	if (!f->failed && !a->from.stays)
		f->failed = vm_insert(f->child, a->start, a->end, a->prot, &from) == NULL;
}

static void
share_page(uint64_t *pte, uintptr_t va, void *arg)
{
	struct fork_arg *f = arg;
	uint64_t pa = arch_pte_pa(*pte), *copy;

	if (page_marked(phys_to_virt(pa)))
		return; /* the child may want other breakpoints */
	if (f->parent->has_odd_areas) {
		const struct area *a = vm_find(f->parent, va);

		if (a->from.stays || a->from.wiped)
			return;
	}
	copy = f->failed ? NULL : vm_make_entry(f->child, va, 1);
	if (copy == NULL) {
		f->failed = true;
		return;
	}
	*copy = *pte;
	if (arch_pte_writable(*pte)) {
		unsigned exec = arch_pte_executable(*pte) ? MMU_EXEC : 0;

		*copy = arch_pte_leaf(pa, MMU_READ | MMU_USER | exec, 0);
		if (!(f->parent->has_shared_areas && vm_find(f->parent, va)->from.shared)) {
			*pte = *copy;
			if (!f->parent->shared)
				arch_tlb_flush_page(va);
		}
	}
	page_ref(phys_to_virt(pa));
	f->child->resident++;
}

struct vmspace *
vm_fork(struct vmspace *vm, struct uidinfo *ui)
{
	struct fork_arg f = {.parent = vm, .child = vm_create(ui)};

	if (f.child == NULL)
		return NULL;
	mutex_lock(&vm->lock);
	/* The child is on the list of spaces already. Nobody else holds two of these locks. */
	f.child->lock.below = true;
	mutex_lock(&f.child->lock);
	f.child->brk_start = vm->brk_start;
	f.child->brk_end = vm->brk_end;
	memcpy(f.child->code, vm->code, sizeof(vm->code));
	vm_set_args(f.child, vm->args, vm->args_end, vm->env_end, vm->stack, vm->auxv);
	area_each(vm->areas, copy_area, &f);
	pagetable_each(vm->root, 0, ARCH_USER_END, share_page, &f);
	f.child->lock.below = false;
	mutex_unlock(&f.child->lock);
	if (vm->shared) /* nobody may write to a page that the child has now */
		vm_flush_all(vm);
	mutex_unlock(&vm->lock);
	if (f.failed) {
		vm_destroy(f.child);
		return NULL;
	}
	return f.child;
}
