/*
 * kmap.c - the kernel's address space.
 *
 * Text is mapped read and execute, read-only data read, all else read and write. The direct map
 * also contains text and read-only data: there they are mapped read-only. No page is both writable
 * and executable. To change text, the kernel maps it writable in a window for that moment.
 *
 * Locking: kmap_lock guards the areas and the tables under ARCH_VMALLOC_BASE.
 * entry_text_put() has one caller at a time, which owns the window until it closes it.
 */
#include "kernel/mm/kmap.h"

#include "arch/mmu.h"
#include "kernel/entry.h"
#include "kernel/lib/list.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/string.h"
#include "kernel/mm/area.h"
#include "kernel/mm/boot_info.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/pagetable.h"
#include "kernel/sync/smp.h"
#include "kernel/sync/spinlock.h"
#include "ktr/ktr.h"

#define WINDOW (ARCH_VMALLOC_END - PAGE_SIZE)
#define PIECE  (512 * PAGE_SIZE) /* bytes unmapped at a time with interrupts off */

enum kmap_kind {
	AREA_PHYS,  /* maps devices, or memory that belongs to others */
	AREA_PAGES, /* maps pages that are freed with the area */
	AREA_GOING, /* as AREA_PAGES, and a kmap_free() already works on it */
};

/*
 * An area's `prot` is its enum kmap_kind, and `from.object` the next one on the list that
 * kmap_release_areas() works on. Each thread's stack has one.
 */
_Static_assert(sizeof(struct area) <= 128, "a larger one takes 256 bytes of the heap");

extern char __text_start[], __text_end[], __rodata_start[], __rodata_end[], __data_start[],
    __bss_end[], __ksyms_start[], __ksyms_end[], __kernel_start[];

static struct spinlock kmap_lock = SPINLOCK_INIT("kmap");
static struct area *areas; /* kmap_lock */
static uint64_t root;      /* 0 until kmap_init() */

uint64_t
kmap_root(void)
{
	return root;
}

static uint64_t
image_phys(const char *p)
{
	return (uint64_t)(p - __kernel_start) + arch_kernel_phys();
}

static void
must_map(uintptr_t va, uint64_t pa, uint64_t size, unsigned prot)
{
	if (pagetable_map(root, va, pa, size, prot | MMU_GLOBAL) != 0)
		panic("kmap: no memory for page tables");
}

static void
map_image(const char *start, const char *end, unsigned prot)
{
	must_map((uintptr_t)start, image_phys(start), page_round_up((uint64_t)(end - start)), prot);
}

/* Maps [start, end) into the direct map: text and read-only data read-only, the rest writable. */
static void
map_direct(uint64_t start, uint64_t end)
{
	const struct {
		uint64_t start, end;
	} fixed[] = {{image_phys(__text_start), image_phys(__rodata_end)},
		     {image_phys(__ksyms_start), image_phys(__ksyms_end)}};

	start = page_round_down(start);
	end = page_round_up(end);
	if (end > ARCH_VMALLOC_BASE - ARCH_DIRECT_BASE) /* firmware may reserve any address */
		end = ARCH_VMALLOC_BASE - ARCH_DIRECT_BASE;
	while (start < end) {
		uint64_t next = end;
		unsigned prot = MMU_READ | MMU_WRITE;

		for (unsigned i = 0; i < 2; i++) {
			if (start >= fixed[i].start && start < fixed[i].end) {
				prot = MMU_READ;
				next = end < fixed[i].end ? end : fixed[i].end;
			} else if (start < fixed[i].start && fixed[i].start < next) {
				next = fixed[i].start;
			}
		}
		must_map(ARCH_DIRECT_BASE + start, start, next - start, prot);
		start = next;
	}
}

void
kmap_init(const struct boot_info *bi)
{
	void *top = page_alloc_zero(PAGE_TABLE);
	unsigned made = 0;

	if (top == NULL)
		panic("kmap: no memory for page tables");
	root = virt_to_phys(top);
	for (unsigned i = 0; i < bi->range_count; i++)
		map_direct(bi->ranges[i].start, bi->ranges[i].end);
	map_image(__text_start, __text_end, MMU_READ | MMU_EXEC);
	map_image(__rodata_start, __rodata_end, MMU_READ);
	map_image(__data_start, __bss_end, MMU_READ | MMU_WRITE);
	map_image(__ksyms_start, __ksyms_end, MMU_READ);
	/*
	 * Makes the top-level entry, which every user table copies, and the tables of the window.
	 */
	if (pagetable_entry(root, WINDOW, 0, &made) == NULL)
		panic("kmap: no memory for page tables");
	arch_mmu_switch(root);
	CTR1(KTR_INIT, "kmap_init: root %#lx", root);
}

/* Finds room for a, with an unmapped page on both sides. False: there is none. kmap_lock held. */
static bool
kmap_reserve(struct area *a, size_t size)
{
	uint64_t at = area_gap(areas, ARCH_VMALLOC_BASE, size + 2 * PAGE_SIZE) + PAGE_SIZE;

	if (at + size + PAGE_SIZE > WINDOW)
		return false;
	a->start = at;
	a->end = at + size;
	area_insert(&areas, a);
	return true;
}

static struct area *
new_area(size_t size, enum kmap_kind kind)
{
	struct area *a = kzalloc(sizeof(*a));
	bool got;

	if (a == NULL || size == 0 || size > ARCH_VMALLOC_END - ARCH_VMALLOC_BASE) {
		kfree(a);
		return NULL;
	}
	a->prot = kind;
	spin_lock(&kmap_lock);
	got = kmap_reserve(a, size);
	spin_unlock(&kmap_lock);
	if (!got)
		kfree(a);
	return got ? a : NULL;
}

static void
free_page(uint64_t *pte, uintptr_t va, void *list)
{
	void *page = phys_to_virt(arch_pte_pa(*pte)), **head = list;

	*pte = 0;
	*(void **)page = *head; /* collected here, and freed after no CPU can reach it any more */
	*head = page;
}

static void
kmap_forget_page(uint64_t *pte, uintptr_t va, void *arg)
{
	*pte = 0;
}

static void
kmap_flush_here(void *arg)
{
	arch_tlb_flush_all();
}

__attribute__((noinline)) void
kmap_flush_everywhere(void)
{
	smp_call_all(kmap_flush_here, NULL);
}

/* Clears an area's entries, a piece at a time. Nobody else works on the area. */
static void
unmap_area(const struct area *a, void **pages)
{
	CTR2(KTR_PMAP, "kmap release: start %#lx end %#lx", a->start, a->end);
	for (uint64_t va = a->start, end; va < a->end; va = end) {
		end = a->end - va < PIECE ? a->end : va + PIECE;
		spin_lock(&kmap_lock);
		pagetable_each(root, va, end, a->prot == AREA_PHYS ? kmap_forget_page : free_page,
			       pages);
		spin_unlock(&kmap_lock);
	}
}

/* Unmaps and frees the areas linked by from.object, with one TLB shoot-down for all of them. */
static void
kmap_release_areas(struct area *list)
{
	void *pages = NULL;

	for (const struct area *a = list; a != NULL; a = a->from.object)
		unmap_area(a, &pages);
	CTR1(KTR_PMAP, "tlb shootdown: start %#lx", list->start);
	kmap_flush_everywhere();
	while (list != NULL) {
		struct area *next = list->from.object;

		spin_lock(&kmap_lock);
		area_take(&areas, list->start, list->end);
		spin_unlock(&kmap_lock);
		kfree(list);
		list = next;
	}
	while (pages != NULL) {
		void *next = *(void **)pages;
		page_free(pages, 0);
		pages = next;
	}
}

/*
 * A block leaves as many pages free as it takes, up to the reserve. So a request for more memory
 * than there is does not take all of it for a moment, in which other programs would be killed.
 */
static bool
leaves_enough(uint64_t pages)
{
	uint64_t reserve = page_count_reserve();

	return page_count_free() >= pages + (pages < reserve ? pages : reserve);
}

void *
kmap_alloc(size_t size)
{
	struct area *a = NULL;

	if (leaves_enough(page_round_up(size) / PAGE_SIZE))
		a = new_area(page_round_up(size), AREA_PAGES);
	if (a == NULL)
		return NULL;
	for (uintptr_t va = a->start; va < a->end; va += PAGE_SIZE) {
		void *page = page_alloc_zero(PAGE_MAPPED);
		int r = -1;

		if (page != NULL) {
			spin_lock(&kmap_lock);
			r = pagetable_map(root, va, virt_to_phys(page), PAGE_SIZE,
					  MMU_READ | MMU_WRITE | MMU_GLOBAL);
			spin_unlock(&kmap_lock);
		}
		if (r != 0) {
			if (page != NULL)
				page_free(page, 0);
			kmap_release_areas(a);
			return NULL;
		}
	}
	CTR2(KTR_PMAP, "kmap_alloc: addr %#lx size %lu", a->start, size);
	return (void *)a->start;
}

/* Finds the area that begins at va, and claims it for the caller. NULL: there is none. */
static struct area *
claim_area(const void *va)
{
	struct area *a;

	spin_lock(&kmap_lock);
	a = area_find(areas, (uintptr_t)va);
	if (a != NULL && (a->start != (uintptr_t)va || a->prot != AREA_PAGES))
		a = NULL;
	if (a != NULL)
		a->prot = AREA_GOING;
	spin_unlock(&kmap_lock);
	return a;
}

void
kmap_free_all(void *const *va, unsigned n)
{
	struct area *list = NULL;

	for (unsigned i = 0; i < n; i++) {
		struct area *a = va[i] != NULL ? claim_area(va[i]) : NULL;

		if (va[i] == NULL)
			continue;
		if (a == NULL)
			panic("kmap_free: %p is not from kmap_alloc", va[i]);
		CTR2(KTR_PMAP, "kmap_free: addr %p size %lu", va[i], a->end - a->start);
		a->from.object = list;
		list = a;
	}
	if (list != NULL)
		kmap_release_areas(list);
}

void
kmap_free(void *va)
{
	kmap_free_all(&va, 1);
}

void *
kmap_phys(uint64_t pa, size_t size, unsigned prot)
{
	uint64_t off = pa & (PAGE_SIZE - 1);
	struct area *a = new_area(page_round_up(off + size), AREA_PHYS);

	if (a == NULL)
		return NULL;
	spin_lock(&kmap_lock);
	int r = pagetable_map(root, a->start, pa - off, a->end - a->start, prot | MMU_GLOBAL);
	spin_unlock(&kmap_lock);
	if (r != 0) {
		kmap_release_areas(a);
		return NULL;
	}
	CTR3(KTR_PMAP, "kmap_phys: pa %#lx size %lu addr %#lx", pa, size, a->start + off);
	return (void *)(a->start + off);
}

bool
kmap_next_unlocked(uintptr_t *start, uintptr_t *end)
{
	const struct area *a = area_find(areas, *start);

	if (a != NULL) {
		*start = a->start;
		*end = a->end;
	}
	return a != NULL;
}

bool
kmap_is_ram(uintptr_t va)
{
	unsigned level;
	uint64_t pte = va >= ARCH_DIRECT_BASE ? pagetable_lookup(root, va, &level) : 0;
	uint64_t pa = virt_to_phys((const void *)va);

	if (pte == 0 || !arch_pte_present(pte) || arch_pte_device(pte))
		return false;
	if (va >= ARCH_VMALLOC_BASE)
		return true;
	/* The direct map has all that firmware reserves, also for devices. */
	for (unsigned i = 0; i < boot_info.range_count; i++) {
		const struct boot_range *r = &boot_info.ranges[i];

		if (r->kind == BOOT_RAM && pa >= r->start && pa < r->end)
			return true;
	}
	return false;
}

void *
entry_map_device(uint64_t pa, size_t size)
{
	return kmap_phys(pa, size, MMU_READ | MMU_WRITE | MMU_DEVICE);
}

const void *
entry_map_firmware(uint64_t pa, size_t size)
{
	unsigned level;

	/* The direct map covers what the loader reported. Most tables are there already. */
	for (uint64_t at = page_round_down(pa); at < pa + size; at += PAGE_SIZE)
		if (pagetable_lookup(root, ARCH_DIRECT_BASE + at, &level) == 0)
			return kmap_phys(pa, size, MMU_READ);
	return phys_to_virt(pa);
}

void *
entry_alloc(size_t size)
{
	return kzalloc(size);
}

uint64_t
entry_kernel_root(void)
{
	return root;
}

/* Other CPUs may fetch the instruction at the same time, so a word is written with one store. */
static void
kmap_store(void *to, const void *bytes, size_t n)
{
	uint32_t word;

	if (n != sizeof(word) || (uintptr_t)to % sizeof(word) != 0) {
		memcpy(to, bytes, n);
		return;
	}
	memcpy(&word, bytes, sizeof(word));
	__atomic_store_n((uint32_t *)to, word, __ATOMIC_RELAXED);
}

static uint64_t text_page; /* the page of text in the window; 0: it is closed */
static unsigned text_cpu;  /* whose window it is then */

/* Only this CPU uses the window until it is closed: interrupts are off. */
static void
kmap_text_open(uint64_t page)
{
	if (text_page != 0 && text_cpu != arch_cpu())
		panic("two CPUs change text: CPU %u and another one", text_cpu);
	if (text_page == page)
		return;
	entry_text_close();
	irq_push();
	text_page = page;
	text_cpu = arch_cpu();
	/* Another CPU may have used the window: drop what this CPU's TLB may hold of it. */
	arch_tlb_flush_page(WINDOW);
	*pagetable_entry(root, WINDOW, 0, NULL) = arch_pte_leaf(page, MMU_READ | MMU_WRITE, 0);
	arch_mmu_sync();
}

void
entry_text_close(void)
{
	if (text_page == 0)
		return;
	*pagetable_entry(root, WINDOW, 0, NULL) = 0;
	arch_tlb_flush_page(WINDOW);
	text_page = 0;
	irq_pop();
}

void
entry_text_put(uintptr_t addr, const void *bytes, size_t n)
{
	uint64_t pa = image_phys((const char *)addr);

	if (root == 0) { /* the boot tables map all of the text writable */
		kmap_store(phys_to_virt(pa), bytes, n);
		return;
	}
	for (size_t done = 0; done < n;) {
		uint64_t off = (pa + done) & (PAGE_SIZE - 1);
		size_t part = n - done < PAGE_SIZE - off ? n - done : PAGE_SIZE - off;

		kmap_text_open(page_round_down(pa + done));
		kmap_store((char *)WINDOW + off, (const char *)bytes + done, part);
		done += part;
	}
}

void
entry_text_write(uintptr_t addr, const void *bytes, size_t n)
{
	entry_text_put(addr, bytes, n);
	entry_text_close();
}
