/* page_descriptor.h - what the page allocator, the heap and files keep of a page.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/lib/list.h"

enum page_kind { PAGE_PLAIN, PAGE_SLAB, PAGE_LARGE };

struct page {
	struct list link; /* free list (page.c), or the class's partial pages (heap.c) */
	void *objects;    /* heap: free objects of a slab page, linked through themselves */
	/* Of a file's page (kernel/fs/pagecache.c): the file, and the page's number in it. */
	void *vnode;
	uint64_t index;
	uint32_t refs;
	uint16_t used; /* heap: objects in use */
	uint8_t order;
	uint8_t class; /* heap: size class */
	uint8_t kind;  /* enum page_kind */
	bool free;     /* first page of a free block */
	bool marked;   /* page_mark() */
	/* Of a page of a disk: bit n says that sector n is as on the disk or newer, or newer. */
	uint8_t valid, dirty;
	bool busy;   /* it is being read or written */
	bool recent; /* used since it was last thought of */
	bool shared; /* programs that map it may have changed it */
};

/* NULL: va is not in the memory that the allocator manages. */
struct page *page_of(const void *va);
/* The other way round. */
void *page_address(const struct page *p);
