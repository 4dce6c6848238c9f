/* page_descriptor.h - what the page allocator and the heap keep of a page, for the debugger, too.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/lib/list.h"

enum page_kind { PAGE_PLAIN, PAGE_SLAB, PAGE_LARGE };

struct page {
	struct list link; /* free list (page.c), or the class's partial pages (heap.c) */
	void *objects;    /* heap: free objects of a slab page, linked through themselves */
	uint32_t refs;
	uint16_t used; /* heap: objects in use */
	uint8_t order;
	uint8_t class; /* heap: size class */
	uint8_t kind;  /* enum page_kind */
	bool free;     /* first page of a free block */
	bool marked;   /* page_mark() */
};

/* NULL: va is not in the memory that the allocator manages. */
struct page *page_of(const void *va);
