/*
 * mm_test.c - pages, heap, kernel mappings, user address spaces.
 */
#include "arch/mmu.h"
#include "arch/uaccess.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/string.h"
#include "kernel/mm/area.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/pagetable.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/vm/vm_private.h"
#include "tests/kernel/ktest.h"

KTEST(page_alloc_gives_aligned_blocks_that_do_not_overlap)
{
	enum { N = 64 };
	static char *blocks[N];
	uint64_t before = page_count_free();

	for (unsigned i = 0; i < N; i++) {
		unsigned order = i % 5;
		blocks[i] = page_alloc(order, PAGE_OTHER);
		KT_ASSERT(blocks[i] != NULL);
		KT_EQ((uint64_t)blocks[i] & ((PAGE_SIZE << order) - 1), 0);
		memset(blocks[i], (int)i + 1, PAGE_SIZE << order);
	}
	for (unsigned i = 0; i < N; i++)
		for (uint64_t off = 0; off < PAGE_SIZE << (i % 5); off += 512)
			KT_EQ((uint8_t)blocks[i][off], i + 1);
	for (unsigned i = 0; i < N; i++)
		page_free(blocks[i], i % 5);
	KT_EQ(page_count_free(), before);
}

KTEST(page_alloc_of_all_memory_fails_and_everything_comes_back)
{
	uint64_t before = page_count_free(), taken = 0;
	void *chain = NULL, *p;

	while ((p = page_alloc(4, PAGE_OTHER)) != NULL) {
		*(void **)p = chain;
		chain = p;
		taken++;
	}
	KT_ASSERT(taken > 0);
	KT_ASSERT(page_alloc(PAGE_MAX_ORDER + 1, PAGE_OTHER) == NULL);
	while (chain != NULL) {
		p = chain;
		chain = *(void **)p;
		page_free(p, 4);
	}
	KT_EQ(page_count_free(), before);
	/* Buddies were joined again, so a large block is available. */
	p = page_alloc(8, PAGE_OTHER);
	KT_ASSERT(p != NULL);
	page_free(p, 8);
}

static unsigned
kmap_areas(void)
{
	uintptr_t start = 0, end;
	unsigned n = 0;

	for (; kmap_next_unlocked(&start, &end); start = end)
		n++;
	return n;
}

KTEST(kmap_phys_without_memory_leaves_nothing)
{
	enum { BLOCKS = 8 };
	size_t used = heap_bytes_used(), size;
	unsigned areas = kmap_areas();
	void *chain = NULL, *p, *blocks[BLOCKS];

	p = kmap_alloc(PAGE_SIZE);
	KT_ASSERT(p != NULL);
	size = heap_bytes_used() - used; /* of an area's descriptor */
	kmap_free(p);
	KT_LE(size, 128); /* each thread's stack has one */
	/* There is memory for the descriptor, but none for the page tables. */
	for (unsigned i = 0; i < BLOCKS; i++) {
		blocks[i] = kmalloc(size);
		KT_ASSERT(blocks[i] != NULL);
	}
	while ((p = page_alloc(0, PAGE_OTHER)) != NULL) {
		*(void **)p = chain;
		chain = p;
	}
	kfree(blocks[BLOCKS - 1]);
	p = kmap_phys(PAGE_SIZE, 1ul << 30, MMU_READ);
	while (chain != NULL) {
		void *next = *(void **)chain;
		page_free(chain, 0);
		chain = next;
	}
	for (unsigned i = 0; i < BLOCKS - 1; i++)
		kfree(blocks[i]);
	KT_ASSERT(p == NULL);
	KT_EQ(kmap_areas(), areas);
	KT_EQ(heap_bytes_used(), used);
}

static void
area_note(struct area *a, void *arg)
{
	*(unsigned *)arg += a->start / PAGE_SIZE;
}

/* A walk for an object leaves out areas of none, wherever they are in the tree, and after changes.
 */
KTEST(area_each_object_leaves_out_what_has_none)
{
	enum { AREAS = 1000, EVERY = 250 };
	struct area *areas = kzalloc(AREAS * sizeof(*areas)), *tree = NULL, *taken;
	unsigned sum = 0;

	KT_ASSERT(areas != NULL);
	for (unsigned i = 0; i < AREAS; i++) {
		areas[i].start = i * PAGE_SIZE;
		areas[i].end = areas[i].start + PAGE_SIZE;
		areas[i].from.object = i % EVERY == 1 ? &areas[i / EVERY % 2] : NULL;
		area_insert(&tree, &areas[i]);
	}
	area_each_object(tree, NULL, area_note, &sum);
	KT_EQ(sum, 1 + 251 + 501 + 751);
	taken = area_take(&tree, 251 * PAGE_SIZE, 752 * PAGE_SIZE);
	sum = 0;
	area_each_object(tree, NULL, area_note, &sum);
	KT_EQ(sum, 1);
	area_each_object(taken, NULL, area_note, &sum);
	KT_EQ(sum, 1 + 251 + 501 + 751);
	area_put(&tree, taken);
	sum = 0;
	area_each_object(tree, &areas[0], area_note, &sum); /* and perhaps those of the other one */
	KT_ASSERT(sum == 1 + 501 || sum == 1 + 251 + 501 + 751);
	kfree(areas);
}

/* Unmapped pages lie around each area, and the lowest room is used again. */
KTEST(kmap_alloc_takes_the_lowest_room)
{
	enum { AREAS = 64 };
	unsigned areas = kmap_areas();
	void *p[AREAS], *again;

	for (unsigned i = 0; i < AREAS; i++) {
		p[i] = kmap_alloc((i % 3 + 1) * PAGE_SIZE);
		KT_ASSERT(p[i] != NULL);
		memset(p[i], (int)i, (i % 3 + 1) * PAGE_SIZE);
	}
	KT_EQ(kmap_areas(), areas + AREAS);
	for (unsigned i = 0; i < AREAS; i++) {
		uint64_t at = (uintptr_t)p[i], size = (i % 3 + 1) * PAGE_SIZE;

		KT_ASSERT(!kmap_is_ram(at - PAGE_SIZE) && !kmap_is_ram(at + size));
		KT_EQ(((uint8_t *)p[i])[size - 1], i);
	}
	for (unsigned i = 0; i < AREAS; i += 2)
		kmap_free(p[i]);
	KT_EQ(kmap_areas(), areas + AREAS / 2);
	again = kmap_alloc(PAGE_SIZE);
	KT_ASSERT(again != NULL && again <= p[0]);
	kmap_free(again);
	for (unsigned i = 1; i < AREAS; i += 2)
		kmap_free(p[i]);
	KT_EQ(kmap_areas(), areas);
}

KTEST(page_alloc_counts_for_whom_each_page_is)
{
	const uint64_t large = page_count_of(PAGE_LARGE), mapped = page_count_of(PAGE_MAPPED);
	const uint64_t other = page_count_of(PAGE_OTHER);
	uint64_t in_use = 0;
	void *block = page_alloc(3, PAGE_OTHER), *heap = kmalloc(9 * PAGE_SIZE);
	void *map = kmap_alloc(5 * PAGE_SIZE);

	KT_ASSERT(block != NULL && heap != NULL && map != NULL);
	KT_EQ(page_count_of(PAGE_OTHER), other + 8);
	KT_EQ(page_count_of(PAGE_LARGE), large + 16);
	KT_EQ(page_count_of(PAGE_MAPPED), mapped + 5);
	for (unsigned i = 0; i < PAGE_OWNERS; i++)
		in_use += page_count_of(i);
	KT_EQ(in_use, page_count_total() - page_count_free());
	page_free(block, 3);
	kfree(heap);
	kmap_free(map);
	KT_EQ(page_count_of(PAGE_OTHER), other);
	KT_EQ(page_count_of(PAGE_LARGE), large);
	KT_EQ(page_count_of(PAGE_MAPPED), mapped);
}

KTEST(page_unref_frees_with_the_last_reference)
{
	uint64_t before = page_count_free();
	void *p = page_alloc(0, PAGE_OTHER);

	KT_ASSERT(p != NULL);
	page_ref(p);
	KT_EQ(page_refs(p), 2);
	page_unref(p);
	KT_EQ(page_count_free(), before - 1);
	page_unref(p);
	KT_EQ(page_count_free(), before);
}

KTEST(kmalloc_of_every_size_keeps_its_bytes)
{
	static uint8_t *p[300];
	size_t used = heap_bytes_used();

	for (unsigned i = 0; i < 300; i++) {
		size_t size = 1 + (i * 37) % 5000;
		p[i] = kmalloc(size);
		KT_ASSERT(p[i] != NULL);
		KT_EQ((uint64_t)p[i] % 16, 0);
		memset(p[i], (int)i, size);
	}
	for (unsigned i = 0; i < 300; i++) {
		size_t size = 1 + (i * 37) % 5000;
		KT_EQ(p[i][0], i & 0xff);
		KT_EQ(p[i][size - 1], i & 0xff);
		kfree(p[i]);
	}
	KT_EQ(heap_bytes_used(), used);
}

KTEST(kmalloc_beyond_the_limit_fails)
{
	KT_ASSERT(kmalloc(1ul << 40) == NULL);
}

KTEST(kzalloc_is_zero_after_reuse)
{
	uint8_t *p = kmalloc(128);

	KT_ASSERT(p != NULL);
	memset(p, 0xff, 128);
	kfree(p);
	p = kzalloc(128);
	KT_ASSERT(p != NULL);
	for (unsigned i = 0; i < 128; i++)
		KT_EQ(p[i], 0);
	kfree(p);
}

KTEST(kmap_alloc_has_unmapped_pages_around_it)
{
	uint64_t v, before = page_count_free();
	char *p = kmap_alloc(3 * PAGE_SIZE);

	KT_ASSERT(p != NULL);
	memset(p, 1, 3 * PAGE_SIZE);
	KT_ASSERT(!arch_probe_read(&v, p - 8));
	KT_ASSERT(arch_probe_read(&v, p));
	KT_ASSERT(arch_probe_read(&v, p + 3 * PAGE_SIZE - 8));
	KT_ASSERT(!arch_probe_read(&v, p + 3 * PAGE_SIZE));
	kmap_free(p);
	KT_ASSERT(!arch_probe_read(&v, p));
	KT_ASSERT(page_count_free() + 4 >= before); /* page tables may stay */
}

KTEST(kmap_alloc_leaves_the_reserve_of_pages_free)
{
	uint64_t free = page_count_free(), reserve = page_count_reserve();
	void *p;

	KT_ASSERT(free > 4 * reserve);
	KT_ASSERT(kmap_alloc((free - reserve / 2) * PAGE_SIZE) == NULL);
	KT_ASSERT(page_count_free() + 4 >= free); /* no page tables were made for it */
	p = kmap_alloc((free - 2 * reserve) * PAGE_SIZE);
	KT_ASSERT(p != NULL);
	kmap_free(p);
}

/* Counts pages that are writable and executable: there must be none, at any address. */
static unsigned wx_pages, exec_pages;

static void
look(uint64_t *table, unsigned level, unsigned first)
{
	for (unsigned i = first; i < 512; i++) {
		uint64_t pte = table[i];
		if (!arch_pte_present(pte))
			continue;
		if (level > 0 && !arch_pte_block(pte)) {
			look(phys_to_virt(arch_pte_pa(pte)), level - 1, 0);
			continue;
		}
		exec_pages += arch_pte_executable(pte);
		wx_pages += arch_pte_executable(pte) && arch_pte_writable(pte);
	}
}

KTEST(no_kernel_page_is_writable_and_executable)
{
	look(phys_to_virt(kmap_root()), 3, 256);
	KT_ASSERT(exec_pages > 0);
	KT_EQ(wx_pages, 0);
}

KTEST(text_and_rodata_are_read_only_also_in_the_direct_map)
{
	extern char __text_start[], __rodata_end[], __kernel_start[];
	unsigned level;

	for (const char *p = __text_start; p < __rodata_end; p += PAGE_SIZE) {
		uint64_t pa = (uint64_t)(p - __kernel_start) + arch_kernel_phys();
		KT_ASSERT(!arch_pte_writable(pagetable_lookup(kmap_root(), (uintptr_t)p, &level)));
		KT_ASSERT(!arch_pte_writable(
		    pagetable_lookup(kmap_root(), (uintptr_t)phys_to_virt(pa), &level)));
	}
}

/* Maps new pages at a place. 0 or -errno. */
static int
map_new(struct vmspace *vm, uint64_t start, uint64_t size, unsigned prot)
{
	int64_t r = vm_map_any(vm, start, size, prot, VM_IF_FREE, NULL, UINT64_MAX);

	return r < 0 ? (int)r : 0;
}

static void
map_and_unmap(void)
{
	struct vmspace *vm = vm_create(&uidinfo_root);

	KT_ASSERT(vm != NULL);
	KT_EQ(map_new(vm, 0x100000, 0x10000, MMU_READ | MMU_WRITE), 0);
	KT_EQ(map_new(vm, 0x108000, 0x1000, MMU_READ), -EEXIST);
	KT_EQ(map_new(vm, 0x100001, 0x1000, MMU_READ), -EINVAL);
	KT_EQ(map_new(vm, 0, 0x1000, MMU_READ), -EPERM);
	KT_EQ(map_new(vm, ARCH_USER_END - 0x1000, 0x2000, MMU_READ), -ENOMEM);
	KT_EQ(vm_resident(vm), 0);
	KT_EQ(vm_fault(vm, 0x100123, MMU_WRITE), VM_FAULT_SERVED);
	KT_EQ(vm_fault(vm, 0x10ffff, MMU_READ), VM_FAULT_SERVED);
	KT_EQ(vm_fault(vm, 0x110000, MMU_READ), VM_FAULT_NO_AREA);
	KT_EQ(vm_fault(vm, 0x100000, MMU_EXEC), VM_FAULT_DENIED);
	KT_EQ(vm_resident(vm), 2);
	KT_EQ(vm_unmap(vm, 0x100000, 0x8000), 0);
	KT_EQ(vm_resident(vm), 1);
	KT_EQ(vm_fault(vm, 0x100123, MMU_READ), VM_FAULT_NO_AREA);
	vm_destroy(vm);
}

KTEST(vm_pages_come_on_demand_and_go_with_unmap)
{
	uint64_t before = page_count_free();

	/* The heap keeps an empty page now and then; what is lost each time would be 20 pages. */
	for (int i = 0; i < 20; i++)
		map_and_unmap();
	KT_ASSERT(page_count_free() + 2 >= before);
}

KTEST(vm_interrupts_no_cpu_that_does_not_run_the_space)
{
	struct vmspace *vm = vm_create(&uidinfo_root);
	bool quiet = false;

	KT_ASSERT(vm != NULL);
	vm_share(vm);
	/* Another thread may interrupt all CPUs meanwhile, but hardly each time. */
	for (unsigned i = 0; i < 100 && !quiet; i++) {
		uint64_t asked[MAX_CPUS];

		KT_EQ(map_new(vm, 0x100000, 0x10000, MMU_READ | MMU_WRITE), 0);
		KT_EQ(vm_fault(vm, 0x100000, MMU_WRITE), VM_FAULT_SERVED);
		for (unsigned n = 0; n < ncpus; n++)
			asked[n] = pcpus[n]->call_asked;
		KT_EQ(vm_protect(vm, 0x100000, 0x10000, MMU_READ, 0), 0);
		KT_EQ(vm_unmap(vm, 0x100000, 0x10000), 0);
		quiet = true;
		for (unsigned n = 0; n < ncpus; n++)
			quiet &= pcpus[n]->call_asked == asked[n];
	}
	KT_ASSERT(quiet);
	vm_destroy(vm);
}

/* Only a page that is copied takes an entry away. Then all CPUs are asked, as it is not current. */
KTEST(vm_poke_interrupts_no_cpu_where_it_changes_no_entry)
{
	struct vmspace *vm = vm_create(&uidinfo_root);
	bool quiet = false;

	KT_ASSERT(vm != NULL);
	KT_EQ(map_new(vm, 0x100000, 0x10000, MMU_READ | MMU_WRITE), 0);
	for (unsigned i = 0; i < 100 && !quiet; i++) {
		uint64_t asked[MAX_CPUS];

		for (unsigned n = 0; n < ncpus; n++)
			asked[n] = pcpus[n]->call_asked;
		KT_EQ(vm_poke(vm, 0x100ffe, "four", 4, 0), 4);
		quiet = true;
		for (unsigned n = 0; n < ncpus; n++)
			quiet &= pcpus[n]->call_asked == asked[n];
	}
	KT_ASSERT(quiet);
	vm_destroy(vm);
}

/* One of three holds the lock of a space, one looks at all spaces, and one takes that one away. */
static struct {
	struct vmspace *vm;
	struct thread *destroyer; /* atomic */
	bool held, release;       /* atomic */
} visited;

static bool
is_true(void *flag)
{
	return __atomic_load_n((bool *)flag, __ATOMIC_ACQUIRE);
}

static bool
visitor_waits(void *arg)
{
	return __atomic_load_n(&visited.vm->lock.waiters, __ATOMIC_ACQUIRE) > 0;
}

static bool
destroyer_waits(void *arg)
{
	const struct thread *t = __atomic_load_n(&visited.destroyer, __ATOMIC_ACQUIRE);

	return t != NULL && __atomic_load_n(&t->chan, __ATOMIC_ACQUIRE) != NULL &&
	       strcmp(t->wmesg, "spaces") == 0;
}

static void
hold_visit_or_destroy(unsigned i, void *arg)
{
	if (i == 0) {
		mutex_lock(&visited.vm->lock);
		__atomic_store_n(&visited.held, true, __ATOMIC_RELEASE);
		KT_ASSERT(ktest_wait(is_true, &visited.release));
		mutex_unlock(&visited.vm->lock);
	} else if (i == 1) {
		KT_ASSERT(ktest_wait(is_true, &visited.held));
		vm_object_is_written(&visited);
	} else {
		KT_ASSERT(ktest_wait(visitor_waits, NULL));
		__atomic_store_n(&visited.destroyer, curthread(), __ATOMIC_RELEASE);
		vm_destroy(visited.vm);
	}
}

KTEST(vm_spaces_come_and_go_while_another_one_waits_for_its_pages)
{
	struct vmspace *other;

	visited.vm = vm_create(&uidinfo_root);
	visited.destroyer = NULL;
	visited.held = visited.release = false;
	KT_ASSERT(visited.vm != NULL);
	ktest_start(3, false, hold_visit_or_destroy, NULL);
	KT_ASSERT(ktest_wait(destroyer_waits, NULL)); /* the space is there until it is not used */
	other = vm_create(&uidinfo_root);
	KT_ASSERT(other != NULL);
	vm_destroy(other);
	__atomic_store_n(&visited.release, true, __ATOMIC_RELEASE);
	ktest_join();
}

static uint8_t
peek(struct vmspace *vm, uint64_t va)
{
	unsigned level;

	return *((uint8_t *)phys_to_virt(arch_pte_pa(pagetable_lookup(vm_root(vm), va, &level))) +
		 (va & (PAGE_SIZE - 1)));
}

KTEST(vm_fork_shares_until_one_side_writes)
{
	uint64_t before = page_count_free();
	struct vmspace *a = vm_create(&uidinfo_root), *b;
	static const char one[] = "one", two[] = "two";

	KT_ASSERT(a != NULL);
	KT_EQ(map_new(a, 0x200000, 0x4000, MMU_READ | MMU_WRITE), 0);
	KT_EQ(vm_write(a, 0x200000, one, 3), 0);
	b = vm_fork(a, &uidinfo_root);
	KT_ASSERT(b != NULL);
	KT_EQ(vm_resident(b), 1);
	KT_EQ(peek(b, 0x200000), 'o');
	KT_EQ(vm_fault(b, 0x200000, MMU_WRITE), VM_FAULT_SERVED); /* copies the page */
	KT_EQ(vm_write(b, 0x200000, two, 3), 0);
	KT_EQ(peek(a, 0x200000), 'o');
	KT_EQ(peek(b, 0x200000), 't');
	KT_EQ(vm_fault(a, 0x200000, MMU_WRITE), VM_FAULT_SERVED); /* the only user now: no copy */
	vm_destroy(a);
	KT_EQ(peek(b, 0x200000), 't');
	vm_destroy(b);
	KT_EQ(page_count_free(), before);
}

/* What user 0 may use when memory is short, others do not get by writing to what they share. */
KTEST(vm_copies_on_write_leave_the_reserve_of_pages_free)
{
	struct uidinfo *ui = uidinfo_enter(4712), *of[] = {&uidinfo_root, ui};
	void *chain = NULL, **p;

	KT_ASSERT(ui != NULL);
	for (unsigned i = 0; i < 2; i++) {
		struct vmspace *a = vm_create(of[i]), *b;

		KT_ASSERT(a != NULL);
		KT_EQ(map_new(a, 0x200000, 0x4000, MMU_READ | MMU_WRITE), 0);
		KT_EQ(vm_write(a, 0x200000, "one", 3), 0);
		b = vm_fork(a, of[i]);
		KT_ASSERT(b != NULL);
		for (bool was_short = false; !was_short;) { /* and one more, as others free some */
			was_short = uidinfo_memory_short();
			p = page_alloc(6, PAGE_OTHER);
			KT_ASSERT(p != NULL);
			*p = chain;
			chain = p;
		}
		KT_EQ(vm_fault(b, 0x200000, MMU_WRITE), i == 0 ? VM_FAULT_SERVED : VM_FAULT_MEMORY);
		while ((p = chain) != NULL) {
			chain = *p;
			page_free(p, 6);
		}
		KT_EQ(vm_fault(b, 0x200000, MMU_WRITE), VM_FAULT_SERVED);
		vm_destroy(b);
		vm_destroy(a);
	}
	uidinfo_leave(ui);
}

KTEST(vm_denied_pages_are_kept_and_freed)
{
	uint64_t before = page_count_free();
	struct vmspace *a = vm_create(&uidinfo_root), *b;
	unsigned level;

	KT_ASSERT(a != NULL);
	KT_EQ(map_new(a, 0x200000, 0x3000, MMU_READ | MMU_WRITE), 0);
	KT_EQ(vm_write(a, 0x200ffe, "four", 4), 0);
	KT_EQ(vm_protect(a, 0x200000, 0x2000, 0, 0), 0);
	KT_EQ(pagetable_lookup(vm_root(a), 0x200000, &level), 0);
	KT_EQ(vm_fault(a, 0x200000, MMU_READ), VM_FAULT_DENIED);
	KT_EQ(vm_fault(a, 0x200000, MMU_WRITE), VM_FAULT_DENIED);
	b = vm_fork(a, &uidinfo_root);
	KT_ASSERT(b != NULL);
	KT_EQ(vm_resident(b), 2);
	KT_EQ(vm_protect(b, 0x200000, 0x2000, MMU_READ | MMU_WRITE, 0), 0);
	KT_EQ(vm_fault(b, 0x201000, MMU_WRITE), VM_FAULT_SERVED); /* copies the page */
	KT_EQ(vm_write(b, 0x201000, "x", 1), 0);
	KT_EQ(vm_unmap(a, 0x200000, 0x1000), 0);
	KT_EQ(vm_resident(a), 1);
	KT_EQ(vm_protect(a, 0x201000, 0x1000, MMU_READ, 0), 0);
	KT_EQ(peek(a, 0x201000), 'u');
	KT_EQ(peek(b, 0x200fff), 'o');
	KT_EQ(peek(b, 0x201000), 'x');
	KT_EQ(vm_protect(a, 0x201000, 0x1000, 0, 0), 0);
	vm_destroy(a);
	vm_destroy(b);
	KT_EQ(page_count_free(), before);
}

KTEST(vm_brk_grows_and_shrinks)
{
	struct vmspace *vm = vm_create(&uidinfo_root);
	uint64_t start = 0x500000;

	KT_ASSERT(vm != NULL);
	vm_set_brk_start(vm, start);
	KT_EQ(vm_brk(vm, 0, MMU_READ | MMU_WRITE, UINT64_MAX), start);
	KT_EQ(vm_brk(vm, start + 100, MMU_READ | MMU_WRITE, UINT64_MAX), start + 100);
	KT_EQ(vm_fault(vm, start + 50, MMU_WRITE), VM_FAULT_SERVED);
	KT_EQ(vm_brk(vm, start + 0x5000, MMU_READ | MMU_WRITE, UINT64_MAX), start + 0x5000);
	KT_EQ(vm_fault(vm, start + 0x4fff, MMU_WRITE), VM_FAULT_SERVED);
	KT_EQ(vm_brk(vm, start + 100, MMU_READ | MMU_WRITE, UINT64_MAX), start + 100);
	KT_EQ(vm_fault(vm, start + 0x4fff, MMU_WRITE), VM_FAULT_NO_AREA);
	KT_EQ(vm_resident(vm), 1);
	vm_destroy(vm);
}

KTEST(vm_protect_takes_write_away_and_gives_it_back)
{
	struct vmspace *vm = vm_create(&uidinfo_root);

	KT_ASSERT(vm != NULL);
	KT_EQ(map_new(vm, 0x300000, 0x3000, MMU_READ | MMU_WRITE), 0);
	KT_EQ(vm_fault(vm, 0x301000, MMU_WRITE), VM_FAULT_SERVED);
	KT_EQ(vm_protect(vm, 0x301000, 0x1000, MMU_READ, 0), 0);
	KT_EQ(vm_fault(vm, 0x301000, MMU_WRITE), VM_FAULT_DENIED);
	KT_EQ(vm_fault(vm, 0x302000, MMU_WRITE), VM_FAULT_SERVED);
	KT_EQ(vm_protect(vm, 0x301000, 0x1000, MMU_READ | MMU_WRITE, 0), 0);
	KT_EQ(vm_fault(vm, 0x301000, MMU_WRITE), VM_FAULT_SERVED);
	KT_EQ(vm_protect(vm, 0x302000, 0x2000, MMU_READ, 0), -ENOMEM);
	vm_destroy(vm);
}

static unsigned
depth(const struct area *a)
{
	unsigned left, right;

	if (a == NULL)
		return 0;
	left = depth(a->left);
	right = depth(a->right);
	return 1 + (left > right ? left : right);
}

#define MANY_AREAS 20000u

/* Areas in the order of their addresses are what makes a simple tree, or a list, slow. */
KTEST(area_tree_stays_flat)
{
	struct area *all = kmap_alloc(MANY_AREAS * sizeof(*all)), *tree = NULL;

	KT_ASSERT(all != NULL);
	for (unsigned i = 0; i < MANY_AREAS; i++) {
		all[i] =
		    (struct area){.start = 2ul * i * PAGE_SIZE, .end = (2ul * i + 1) * PAGE_SIZE};
		area_insert(&tree, &all[i]);
	}
	KT_LT(depth(tree), 64);
	for (unsigned i = 0; i < MANY_AREAS; i++)
		KT_ASSERT(area_find(tree, 2ul * i * PAGE_SIZE) == &all[i]);
	kmap_free(all);
}

#define MODEL_PAGES 64

static void
count_area(struct area *a, void *arg)
{
	uint8_t *seen = arg;

	for (uint64_t at = a->start; at < a->end; at++)
		seen[at]++;
}

static void
forget(struct area *a, void *arg)
{
	*(unsigned *)arg += 1;
	kfree(a);
}

/*
 * Compares the tree with an array that has one byte for each address. A fixed seed chooses the
 * steps.
 */
KTEST(area_tree_does_what_an_array_does)
{
	uint8_t model[MODEL_PAGES] = {0}, seen[MODEL_PAGES];
	struct area *tree = NULL;
	uint32_t x = 1;
	unsigned n = 0;

	for (unsigned turn = 0; turn < 20000; turn++) {
		uint64_t at, size;

		x = x * 1664525 + 1013904223;
		at = x >> 8 & (MODEL_PAGES - 1);
		size = 1 + (x >> 16 & 3);
		if ((x >> 20 & 3) == 0) { /* single areas, so that none crosses an edge */
			struct area *a = area_find(tree, at);

			if (a != NULL && a->start <= at) {
				memset(model + a->start, 0, a->end - a->start);
				area_drop(area_take(&tree, a->start, a->end), forget, &n);
			}
			continue;
		}
		at = area_gap(tree, at, size);
		for (uint64_t i = at; i < at + size && i < MODEL_PAGES; i++)
			KT_EQ(model[i], 0);
		if (at + size <= MODEL_PAGES) {
			struct area *a = kzalloc(sizeof(*a));

			a->start = at;
			a->end = at + size;
			memset(model + at, 1, size);
			area_insert(&tree, a);
		}
		memset(seen, 0, sizeof(seen));
		area_each(tree, count_area, seen);
		KT_EQ(memcmp(seen, model, sizeof(model)), 0);
	}
	KT_GT(n, 100);
	area_drop(tree, forget, &n);
}

struct seen {
	uintptr_t va[16];
	unsigned n;
};

static void
see_entry(uint64_t *pte, uintptr_t va, void *arg)
{
	struct seen *s = arg;

	if (s->n < 16)
		s->va[s->n] = va;
	s->n++;
}

/* Entries at the edges of tables, and next to each other, in tables that are otherwise empty. */
KTEST(pagetable_each_finds_the_entries_of_a_range_and_no_other)
{
	static const uintptr_t at[] = {0x1000,         0x7000,        0x8000,        0x9000,
				       0x1ff000,       0x200000,      0x3fffffff000, 0x7f0000000000,
				       0x7ffffffff000, 0x7ffffffff000};
	enum { N = sizeof(at) / sizeof(at[0]) - 1 };
	void *root = page_alloc_zero(PAGE_TABLE), *page = page_alloc_zero(PAGE_OTHER);
	uint64_t top;

	KT_ASSERT(root != NULL && page != NULL);
	top = virt_to_phys(root);
	for (unsigned i = 0; i < N; i++)
		KT_EQ(pagetable_map(top, at[i], virt_to_phys(page), PAGE_SIZE, MMU_READ), 0);
	for (unsigned from = 0; from < N; from++)
		for (unsigned to = from; to < N; to++) {
			struct seen s = {.n = 0};

			pagetable_each(top, at[from], at[to], see_entry, &s);
			KT_EQ(s.n, to - from);
			for (unsigned i = 0; i < s.n; i++)
				KT_EQ(s.va[i], at[from + i]);
			s.n = 0;
			pagetable_each(top, at[from] + PAGE_SIZE, at[to] + PAGE_SIZE, see_entry,
				       &s);
			KT_EQ(s.n, to - from);
		}
	pagetable_destroy_user(top);
	page_free(page, 0);
}
