/*
 * spaces.c - the list of all address spaces, for what becomes of an object's pages in each of them;
 * and who flushes its TLB. Locking: spaces_lock and a space's lock are never held together, since
 * the holder of the latter may wait for a disk. Whoever looks at a space keeps it on the list
 * meanwhile.
 */
#include "arch/mmu.h"
#include "kernel/mm/area.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/page_descriptor.h"
#include "kernel/mm/pagetable.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/smp.h"
#include "kernel/sync/spinlock.h"
#include "kernel/vm/vm_private.h"
#include "ktr/ktr.h"

#define CUTS 64

static struct mutex spaces_lock = {.name = "vm spaces", .innermost = true};
static struct list spaces = LIST_INIT(spaces);
static struct cond visit_ended; /* spaces_lock */

struct vmspace *
vm_ref(struct vmspace *vm)
{
	__atomic_fetch_add(&vm->refs, 1, __ATOMIC_RELAXED);
	return vm;
}

void
vm_unshare(struct vmspace *vm)
{
	mutex_lock(&vm->lock);
	/*
	 * Only this thread uses the space. Whoever shares it again gets a reference first; and a
	 * CPU that ran it uses nothing old when it runs it again (arch_mmu_switch()).
	 */
	if (__atomic_load_n(&vm->refs, __ATOMIC_ACQUIRE) == 1)
		vm->shared = false;
	mutex_unlock(&vm->lock);
}

void
vm_spaces_join(struct vmspace *vm)
{
	mutex_lock(&spaces_lock);
	list_append(&spaces, &vm->all);
	mutex_unlock(&spaces_lock);
}

void
vm_spaces_leave(struct vmspace *vm)
{
	mutex_lock(&spaces_lock);
	while (vm->visits > 0) /* each visit ends soon: nobody else uses the space's lock then */
		cond_wait(&visit_ended, &spaces_lock, "spaces", 0, DEADLINE_NEVER);
	list_remove(&vm->all);
	mutex_unlock(&spaces_lock);
}

/* Begins a visit of the space after the one whose visit ends; NULL: of the first. */
static struct vmspace *
next_space(struct vmspace *last)
{
	struct list *l = last != NULL ? last->all.next : spaces.next;
	struct vmspace *vm = NULL;

	if (last != NULL && --last->visits == 0)
		cond_broadcast(&visit_ended);
	for (; l != &spaces; l = l->next) {
		vm = list_entry(l, struct vmspace, all);
		if (__atomic_load_n(&vm->refs, __ATOMIC_ACQUIRE) != 0)
			break;
	}
	if (l == &spaces)
		return NULL;
	vm->visits++;
	return vm;
}

/* The copy of a space comes after it on the list, and so is visited, too. */
void
vm_spaces_each(void (*f)(struct vmspace *vm, void *arg), void *arg)
{
	struct vmspace *vm = NULL;

	for (;;) {
		mutex_lock(&spaces_lock);
		vm = next_space(vm);
		mutex_unlock(&spaces_lock);
		if (vm == NULL)
			return;
		mutex_lock(&vm->lock);
		f(vm, arg);
		mutex_unlock(&vm->lock);
	}
}

/* What each CPU that runs on the space flushes. */
struct flush {
	uint64_t root;
	uint64_t va;  /* 0: everything */
	unsigned cpu; /* has done it */
};

static void
vm_flush_here(void *arg)
{
	const struct flush *f = arg;

	if (curthread()->root != f->root || arch_cpu() == f->cpu)
		return;
	if (f->va != 0)
		arch_tlb_flush_page(f->va);
	else
		arch_tlb_flush_all();
}

void
vm_flush_all(const struct vmspace *vm)
{
	struct flush f = {vm->root, 0, 0};

	/*
	 * Stay on one CPU: on another one, this CPU would count as flushed after only a page was.
	 * Here the whole TLB is flushed; a CPU that runs the space later flushes before that.
	 */
	irq_push();
	f.cpu = arch_cpu();
	arch_tlb_flush_all();
	arch_tlb_flush_page(VM_LOWEST);
	irq_pop();
	smp_call_users(vm->root, vm_flush_here, &f);
}

void
vm_flush_page(const struct vmspace *vm, uint64_t va)
{
	struct flush f = {vm->root, va, 0};

	irq_push();
	f.cpu = arch_cpu();
	arch_tlb_flush_page(va); /* before another CPU runs the space again */
	irq_pop();
	if (vm->shared)
		smp_call_users(vm->root, vm_flush_here, &f);
}

/* Pages that have left a space; until the flush a CPU may still use them. */
struct cut {
	const void *object; /* NULL, for vm_drop_object(): each */
	uint64_t size;
	uint64_t from, to; /* of the object, for vm_drop_object() and vm_punch_object() */
	void (*area)(struct area *a, void *arg);
	struct vmspace *vm;
	unsigned n;
	void *pages[CUTS];
};

static void
flush_cut(struct cut *c)
{
	if (c->n > 0)
		kmap_flush_everywhere();
	while (c->n > 0)
		page_unref(c->pages[--c->n]);
}

static void
cut_page(uint64_t *pte, uintptr_t va, void *arg)
{
	struct cut *c = arg;

	c->pages[c->n++] = phys_to_virt(arch_pte_pa(*pte));
	*pte = 0;
	vm_count_gone(c->vm);
	uidinfo_release(c->vm->ui, UIDINFO_PAGE, 1);
	if (c->n == CUTS)
		flush_cut(c);
}

static void
cut_area(struct area *a, void *arg)
{
	struct cut *c = arg;
	uint64_t kept = c->size > a->from.offset ? c->size - a->from.offset : 0;

	if (a->from.object == c->object && kept < a->end - a->start)
		pagetable_each(c->vm->root, a->start + kept, a->end, cut_page, c);
}

static void
cut_space(struct vmspace *vm, void *arg)
{
	struct cut *c = arg;

	c->vm = vm;
	area_each_object(vm->areas, c->object, c->area, c);
	flush_cut(c);
}

void
vm_cut_object(const void *object, uint64_t size)
{
	struct cut c = {.object = object, .size = page_round_up(size), .area = cut_area};

	CTR2(KTR_VM, "cut: object %p size %#lx", object, size);
	vm_spaces_each(cut_space, &c);
}

/* The address of a byte of an object in the area, or of the next byte that the area has. */
static uint64_t
area_place(const struct area *a, uint64_t at)
{
	uint64_t in = at > a->from.offset ? at - a->from.offset : 0;

	return in < a->end - a->start ? a->start + in : a->end;
}

static void
drop_area(struct area *a, void *arg)
{
	struct cut *c = arg;

	if (a->from.shared && a->from.object != NULL &&
	    (a->prot & (MMU_EXEC | MMU_WRITE)) != MMU_EXEC &&
	    (c->object == NULL || a->from.object == c->object))
		pagetable_each(c->vm->root, area_place(a, c->from), area_place(a, c->to), cut_page,
			       c);
}

void
vm_drop_object(const void *object, uint64_t from, uint64_t to)
{
	struct cut c = {.object = object, .from = from, .to = to, .area = drop_area};

	CTR1(KTR_VM, "drop: object %p", object);
	vm_spaces_each(cut_space, &c);
}

/* Takes only a page of the file, or a copy of it with breakpoints: a program's own page stays. */
static void
punch_page(uint64_t *pte, uintptr_t va, void *arg)
{
	void *page = phys_to_virt(arch_pte_pa(*pte));

	if (page_of(page)->owner == PAGE_FILE || page_marked(page))
		cut_page(pte, va, arg);
}

static void
punch_area(struct area *a, void *arg)
{
	struct cut *c = arg;

	if (a->from.object == c->object)
		pagetable_each(c->vm->root, area_place(a, c->from), area_place(a, c->to),
			       punch_page, c);
}

void
vm_punch_object(const void *object, uint64_t from, uint64_t to)
{
	struct cut c = {.object = object, .from = from, .to = to, .area = punch_area};

	CTR3(KTR_VM, "punch: object %p from %#lx to %#lx", object, from, to);
	vm_spaces_each(cut_space, &c);
}

/* Where programs write to an object. */
struct writable {
	const void *object;
	uint64_t from, to; /* of it */
	struct vmspace *vm;
	bool any; /* an entry was changed */
};

static void
clean_area(struct area *a, void *arg)
{
	struct writable *w = arg;

	if (a->from.object == w->object && a->from.shared)
		w->any |= vm_clean_locked(w->vm, area_place(a, w->from), area_place(a, w->to));
}

static void
clean_space(struct vmspace *vm, void *arg)
{
	struct writable *w = arg;

	w->vm = vm;
	area_each_object(vm->areas, w->object, clean_area, w);
}

void
vm_clean_object(const void *object, uint64_t from, uint64_t to)
{
	struct writable w = {.object = object, .from = from, .to = to};

	CTR1(KTR_VM, "clean: object %p", object);
	vm_spaces_each(clean_space, &w);
	if (w.any)
		kmap_flush_everywhere(); /* the spaces are not those of this CPU */
}

static void
find_written(struct area *a, void *arg)
{
	struct writable *w = arg;

	w->any |= a->from.object == w->object && a->from.shared && !a->from.read_only;
}

static void
find_written_space(struct vmspace *vm, void *arg)
{
	const struct writable *w = arg;

	area_each_object(vm->areas, w->object, find_written, arg);
}

bool
vm_object_is_written(const void *object)
{
	struct writable w = {.object = object};

	vm_spaces_each(find_written_space, &w);
	return w.any;
}
