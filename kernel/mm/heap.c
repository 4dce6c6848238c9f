/*
 * heap.c - kmalloc: size classes of powers of two, each over single pages. Larger blocks come
 * straight from the page allocator. The descriptor of a page holds its class, so objects need no
 * header.
 *
 * Locking: each class has a spin lock over its partial pages, their free objects and counts.
 */
#include "kernel/mm/heap.h"

#include "kernel/lib/panic.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"
#include "kernel/mm/page_descriptor.h"
#include "kernel/mm/page_poison.h"
#include "kernel/sync/spinlock.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(kmem);
SDT_PROBE_DEFINE_TEXT(kmem, , , kmalloc, "kmalloc",
		      ": call_site=%p ptr=%p bytes_req=%lu bytes_alloc=%lu", 4, "void *", "void *",
		      "size_t", "size_t");
SDT_PROBE_DEFINE_TEXT(kmem, , , kfree, "kfree", ": call_site=%p ptr=%p", 2, "void *", "void *");

#define MIN_SHIFT 4
#define MAX_SHIFT 11
#define CLASSES   (MAX_SHIFT - MIN_SHIFT + 1)

/* A free object. The mark reveals a second free. */
struct object {
	struct object *next;
	uint64_t mark;
};

/* What of a free object has the pattern. */
#define OBJECT_REST(class) (((size_t)1 << ((class) + MIN_SHIFT)) - sizeof(struct object))

#define FREE_MARK(o) (0x66726565u ^ (uint64_t)(o))

static struct {
	struct spinlock lock;
	struct list partial; /* pages with a free object */
} classes[CLASSES];

static size_t bytes_used; /* atomic */

static unsigned
class_of(size_t size)
{
	unsigned c = 0;

	while (((size_t)1 << (c + MIN_SHIFT)) < size)
		c++;
	return c;
}

void
heap_init(void)
{
	for (unsigned c = 0; c < CLASSES; c++) {
		spin_init(&classes[c].lock, "heap");
		list_init(&classes[c].partial);
	}
}

static struct page *
new_slab(unsigned c)
{
	char *va = page_alloc(0, PAGE_SLAB);
	size_t size = (size_t)1 << (c + MIN_SHIFT);
	struct page *p;

	if (va == NULL)
		return NULL;
	p = page_of(va);
	p->class = (uint8_t)c;
	p->used = 0;
	p->objects = NULL;
	for (size_t off = PAGE_SIZE; off >= size; off -= size) {
		struct object *o = (struct object *)(va + off - size);
		o->next = p->objects;
		o->mark = FREE_MARK(o);
		p->objects = o;
		if (page_poison != 0)
			page_poison_fill(o + 1, OBJECT_REST(c));
	}
	return p;
}

static void *
alloc_small(unsigned c)
{
	struct object *o;
	struct page *p;

	spin_lock(&classes[c].lock);
	if (list_empty(&classes[c].partial)) {
		p = new_slab(c);
		if (p == NULL) {
			spin_unlock(&classes[c].lock);
			return NULL;
		}
		list_append(&classes[c].partial, &p->link);
	}
	p = list_entry(classes[c].partial.next, struct page, link);
	o = p->objects;
	p->objects = o->next;
	o->mark = 0;
	p->used++;
	if (p->objects == NULL)
		list_remove(&p->link);
	spin_unlock(&classes[c].lock);
	if (page_poison != 0)
		page_poison_look(o + 1, OBJECT_REST(c), NULL);
	return o;
}

static void *
alloc_large(size_t size)
{
	unsigned order = 0;

	while (PAGE_SIZE << order < size)
		if (++order > PAGE_MAX_ORDER)
			return NULL;
	return page_alloc(order, PAGE_LARGE);
}

static size_t
block_size(const struct page *p)
{
	return p->owner == PAGE_SLAB ? (size_t)1 << (p->class + MIN_SHIFT) : PAGE_SIZE << p->order;
}

static void *
heap_alloc(size_t size, const void *caller)
{
	void *va = size <= (size_t)1 << MAX_SHIFT ? alloc_small(class_of(size)) : alloc_large(size);

	if (va == NULL) {
		CTR2(KTR_MALLOC, "malloc: size %lu failed caller %p", size, caller);
		return NULL;
	}
	__atomic_fetch_add(&bytes_used, block_size(page_of(va)), __ATOMIC_RELAXED);
	SDT_CTR3(kmem, , , kmalloc, SDT_ARGS4(caller, va, size, block_size(page_of(va))),
		 KTR_MALLOC, "malloc: size %lu addr %p caller %p", size, va, caller);
	return va;
}

void *
kmalloc(size_t size)
{
	return heap_alloc(size, __builtin_return_address(0));
}

void *
kzalloc(size_t size)
{
	void *va = heap_alloc(size, __builtin_return_address(0));

	return va != NULL ? memset(va, 0, size) : NULL;
}

static bool
heap_is_free(const struct page *p, const struct object *o)
{
	if (o->mark != FREE_MARK(o))
		return false;
	for (const struct object *f = p->objects; f != NULL; f = f->next)
		if (f == o)
			return true;
	return false;
}

static void
free_small(struct page *p, struct object *o)
{
	unsigned c = p->class;
	bool last;

	spin_lock(&classes[c].lock);
	if (heap_is_free(p, o))
		panic("kfree: %p is free already", (void *)o);
	o->mark = FREE_MARK(o);
	o->next = p->objects;
	if (page_poison != 0)
		page_poison_fill(o + 1, OBJECT_REST(c));
	if (p->objects == NULL)
		list_append(&classes[c].partial, &p->link);
	p->objects = o;
	last = --p->used == 0;
	/* Keep one empty page in each class, so that alternate kmalloc() and kfree() are cheap. */
	last = last && p->link.next != p->link.prev;
	if (last)
		list_remove(&p->link);
	spin_unlock(&classes[c].lock);
	if (last)
		page_free((void *)page_round_down((uint64_t)o), 0);
}

void
kfree(void *va)
{
	struct page *p;

	if (va == NULL)
		return;
	p = page_of((void *)page_round_down((uint64_t)va));
	if (p == NULL || p->free || (p->owner != PAGE_SLAB && p->owner != PAGE_LARGE) ||
	    ((uint64_t)va & (block_size(p) < PAGE_SIZE ? block_size(p) - 1 : PAGE_SIZE - 1)))
		panic("kfree: %p is not from kmalloc", va);
	SDT_CTR3(kmem, , , kfree, SDT_ARGS2(__builtin_return_address(0), va), KTR_MALLOC,
		 "free: addr %p size %lu caller %p", va, block_size(p),
		 __builtin_return_address(0));
	__atomic_fetch_sub(&bytes_used, block_size(p), __ATOMIC_RELAXED);
	if (p->owner == PAGE_SLAB)
		free_small(p, va);
	else
		page_free(va, p->order);
}

size_t
kmalloc_size(const void *p)
{
	return block_size(page_of((void *)page_round_down((uint64_t)p)));
}

size_t
heap_bytes_used(void)
{
	return __atomic_load_n(&bytes_used, __ATOMIC_RELAXED);
}
