/* page_descriptor.h - what the page allocator, the heap and files keep of a page.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/lib/list.h"

struct page {
	struct list link; /* free list (page.c), partial pages (heap.c), or cache (pagecache.c) */
	union {
		void *objects; /* heap: free objects of a slab page, linked through themselves */
		void *vnode;   /* of a file's page: the file */
	};
	uint32_t refs;
	uint32_t
	    index; /* of a file's page: its number in the file; those after 2^32 are not kept */
	union {
		uint16_t used; /* heap: objects in use */
		/* Of a page of a disk: bit n says that sector n is valid: as on the disk, or
		 * newer; that it is newer. */
		struct {
			uint8_t valid, dirty;
		};
	};
	uint8_t order;
	union {
		uint8_t class;           /* heap: size class */
		struct {                 /* of a file's page */
			bool busy : 1;   /* it is being read or written */
			bool recent : 1; /* used since it was last thought of */
			bool shared : 1; /* programs that map it may have changed it */
		};
	};
	uint8_t owner; /* enum page_owner; of an allocated block's first page */
	bool free;     /* first page of a free block */
	bool marked;   /* page_mark() */
	bool poisoned; /* the page is free, and has the pattern (page_poison.c) */
};

_Static_assert(sizeof(struct page) == 40, "there is one for each page of memory");

/* NULL: va is not in the memory that the allocator manages. */
struct page *page_of(const void *va);
/* The other way round. */
void *page_address(const struct page *p);
