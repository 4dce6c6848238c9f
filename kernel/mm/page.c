/*
 * page.c - the buddy allocator: free blocks of 2^order pages, one list for each order.
 *
 * Invariants: a free block is aligned to its size. Two buddies are never both free: they become one
 * block. Only the first page of a free block holds its order. Pages that the allocator never had
 * have refs 1.
 *
 * Locking: page_lock guards lists, orders and `free`; reference counts are atomic.
 */
#include "kernel/mm/page.h"

#include "arch/mmu.h"
#include "kernel/lib/list.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/string.h"
#include "kernel/mm/boot_info.h"
#include "kernel/mm/page_descriptor.h"
#include "kernel/mm/page_poison.h"
#include "kernel/sync/spinlock.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(kmem);
SDT_PROBE_DEFINE_TEXT(kmem, , , mm_page_alloc, "mm_page_alloc", ": page=%p pfn=%#lx order=%u", 3,
		      "struct page *", "unsigned long", "unsigned");
SDT_PROBE_DEFINE_TEXT(kmem, , , mm_page_free, "mm_page_free", ": page=%p pfn=%#lx order=%u", 3,
		      "struct page *", "unsigned long", "unsigned");

#define RESERVE_SHARE 32

static struct spinlock page_lock = SPINLOCK_INIT("page");
static struct list free_lists[PAGE_MAX_ORDER + 1]; /* page_lock */
static struct page *pages; /* one descriptor for each page from page_base to page_top */
static uint64_t page_base,
    page_top; /* number of the first page of memory, and of the first after it */
static uint64_t total_pages, free_pages; /* page_lock */
static uint64_t owned[PAGE_OWNERS];      /* page_lock; pages of each owner */

static struct page *
page_at(uint64_t n)
{
	return &pages[n - page_base];
}

struct page *
page_of(const void *va)
{
	uint64_t n = virt_to_phys(va) >> PAGE_SHIFT;

	return n >= page_base && n < page_top ? page_at(n) : NULL;
}

void *
page_address(const struct page *p)
{
	return phys_to_virt((page_base + (uint64_t)(p - pages)) << PAGE_SHIFT);
}

/* Joins a block with its free buddies and puts it on its list. page_lock held. */
static void
free_block(uint64_t n, unsigned order)
{
	while (order < PAGE_MAX_ORDER) {
		uint64_t buddy = n ^ (1ul << order);

		if (buddy < page_base || buddy >= page_top || !page_at(buddy)->free ||
		    page_at(buddy)->order != order)
			break;
		list_remove(&page_at(buddy)->link);
		page_at(buddy)->free = false;
		n &= ~(1ul << order);
		order++;
	}
	page_at(n)->free = true;
	page_at(n)->order = (uint8_t)order;
	list_append(&free_lists[order], &page_at(n)->link);
}

void *
page_alloc(unsigned order, enum page_owner owner)
{
	struct page *p = NULL;
	unsigned o;

	if (order > PAGE_MAX_ORDER)
		return NULL;
	spin_lock(&page_lock);
	for (o = order; o <= PAGE_MAX_ORDER; o++)
		if (!list_empty(&free_lists[o]))
			break;
	if (o <= PAGE_MAX_ORDER) {
		p = list_entry(free_lists[o].next, struct page, link);
		list_remove(&p->link);
		p->free = false;
		while (o-- > order) { /* put the upper halves back */
			struct page *half = p + (1ul << o);
			half->free = true;
			half->order = (uint8_t)o;
			list_append(&free_lists[o], &half->link);
		}
		p->order = (uint8_t)order;
		p->refs = 1;
		p->owner = (uint8_t)owner;
		p->marked = false;
		free_pages -= 1ul << order;
		owned[owner] += 1ul << order;
	}
	spin_unlock(&page_lock);
	if (p == NULL) {
		CTR1(KTR_VM, "page_alloc: order %u failed", order);
		return NULL;
	}
	if (page_poison != 0)
		page_poison_check(p, order);
	SDT_CTR2(kmem, , , mm_page_alloc, SDT_ARGS3(p, page_base + (uint64_t)(p - pages), order),
		 KTR_VM, "page_alloc: order %u page %p", order, page_address(p));
	return page_address(p);
}

void *
page_alloc_zero(enum page_owner owner)
{
	void *va = page_alloc(0, owner);

	return va != NULL ? memset(va, 0, PAGE_SIZE) : NULL;
}

static void
page_free_for(void *va, unsigned order, const void *caller)
{
	struct page *p = page_of(va);

	if (p == NULL || p->free || p->order != order ||
	    ((uint64_t)va & ((PAGE_SIZE << order) - 1)))
		panic("page_free: %p order %u: not an allocated block of this order", va, order);
	SDT_CTR2(kmem, , , mm_page_free, SDT_ARGS3(p, page_base + (uint64_t)(p - pages), order),
		 KTR_VM, "page_free: order %u page %p", order, va);
	if (page_poison != 0)
		page_poison_block(p, order, caller);
	spin_lock(&page_lock);
	p->refs = 0;
	owned[p->owner] -= 1ul << order;
	p->owner = PAGE_OTHER; /* kfree() finds who frees it twice */
	free_block(page_base + (uint64_t)(p - pages), order);
	free_pages += 1ul << order;
	spin_unlock(&page_lock);
}

void
page_free(void *va, unsigned order)
{
	page_free_for(va, order, __builtin_return_address(0));
}

void
page_ref(void *va)
{
	__atomic_fetch_add(&page_of(va)->refs, 1, __ATOMIC_RELAXED);
}

void
page_unref(void *va)
{
	/* acq_rel: the last user sees what the earlier users wrote before it frees the page */
	if (__atomic_sub_fetch(&page_of(va)->refs, 1, __ATOMIC_ACQ_REL) == 0)
		page_free_for(va, 0, __builtin_return_address(0));
}

uint32_t
page_refs(void *va)
{
	return __atomic_load_n(&page_of(va)->refs, __ATOMIC_ACQUIRE);
}

void
page_mark(void *va)
{
	page_of(va)->marked = true;
}

bool
page_marked(void *va)
{
	return page_of(va)->marked;
}

uint64_t
page_count_total(void)
{
	return total_pages;
}

uint64_t
page_count_free(void)
{
	return __atomic_load_n(&free_pages, __ATOMIC_RELAXED);
}

uint64_t
page_count_of(enum page_owner owner)
{
	return __atomic_load_n(&owned[owner], __ATOMIC_RELAXED);
}

uint64_t
page_count_reserve(void)
{
	return total_pages / RESERVE_SHARE;
}

/* Puts [start, end), which nobody uses, on the lists in the largest blocks. page_lock held. */
static void
add_free(uint64_t start, uint64_t end)
{
	while (start < end) {
		unsigned order = PAGE_MAX_ORDER;

		while (order > 0 &&
		       ((start & ((PAGE_SIZE << order) - 1)) || start + (PAGE_SIZE << order) > end))
			order--;
		free_block(start >> PAGE_SHIFT, order);
		total_pages += 1ul << order;
		free_pages += 1ul << order;
		start += PAGE_SIZE << order;
	}
}

void
page_add(uint64_t start, uint64_t end)
{
	CTR2(KTR_VM, "page_add: pages %lu at %#lx", (end - start) >> PAGE_SHIFT, start);
	spin_lock(&page_lock);
	add_free(start, end);
	spin_unlock(&page_lock);
}

/* Finds room for the page array in memory that the boot tables map. */
static uint64_t
place_array(const struct boot_info *bi, uint64_t size)
{
	struct boot_range r;

	for (unsigned i = 0; i < bi->range_count; i++) {
		uint64_t at = page_round_up(bi->ranges[i].start);

		if (bi->ranges[i].kind != BOOT_RAM)
			continue;
		while (at + size <= bi->ranges[i].end && at + size <= bi->mapped_end) {
			if (!boot_in_use(bi, at, at + size, &r))
				return at;
			at = r.end;
		}
	}
	panic("no room for %lu bytes of page descriptors below %#lx", size, bi->mapped_end);
}

/* Gives the free parts of [start, end) to the allocator. page_lock held. */
static void
page_add_usable(const struct boot_info *bi, uint64_t start, uint64_t end)
{
	struct boot_range r;

	while (start < end) {
		uint64_t stop = end;

		if (boot_in_use(bi, start, start + PAGE_SIZE, &r)) {
			start = r.end;
			continue;
		}
		/* The first page from start on that is in use. */
		while (boot_in_use(bi, start, stop, &r))
			stop = r.start;
		add_free(start, stop);
		start = stop;
	}
}

void
page_init(const struct boot_info *bi)
{
	struct boot_info own = *bi; /* a copy, with the page array as one more range in use */
	uint64_t size, at, bottom = UINT64_MAX, top = 0;

	for (unsigned i = 0; i < bi->range_count; i++)
		if (bi->ranges[i].kind == BOOT_RAM) {
			if (bi->ranges[i].start < bottom)
				bottom = bi->ranges[i].start;
			if (bi->ranges[i].end > top)
				top = bi->ranges[i].end;
		}
	if (bottom > top)
		panic("%s reported no memory", bi->loader);
	page_base = bottom >> PAGE_SHIFT;
	page_top = top >> PAGE_SHIFT;
	size = page_round_up((page_top - page_base) * sizeof(struct page));
	at = place_array(bi, size);
	pages = phys_to_virt(at);
	memset(pages, 0, size);
	if (own.reserved_count == BOOT_MAX_RESERVED)
		panic("too many reserved ranges");
	own.reserved[own.reserved_count++] = (struct boot_range){at, at + size, BOOT_RAM};

	for (unsigned o = 0; o <= PAGE_MAX_ORDER; o++)
		list_init(&free_lists[o]);
	for (uint64_t n = page_base; n < page_top; n++)
		page_at(n)->refs = 1;
	spin_lock(&page_lock);
	for (unsigned i = 0; i < bi->range_count; i++)
		if (bi->ranges[i].kind == BOOT_RAM)
			page_add_usable(&own, page_round_up(bi->ranges[i].start),
					page_round_down(bi->ranges[i].end));
	spin_unlock(&page_lock);
	CTR2(KTR_INIT, "page_init: pages %lu top %#lx", total_pages, top);
}
