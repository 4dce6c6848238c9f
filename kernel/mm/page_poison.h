/* page_poison.h - finds who writes to memory that is free: page_poison.c, for page.c and heap.c. */
#pragma once

#include <stddef.h>

struct page;

extern int page_poison; /* debug.mm.poison; constant after the boot */

/* Fills a block that `caller` frees. */
void page_poison_block(struct page *p, unsigned order, const void *caller);
/* Panics if somebody has written to the block since then. */
void page_poison_check(struct page *p, unsigned order);
/* page_poison_check() for a part of an object of the heap. of: its page, or NULL */
void page_poison_fill(void *va, size_t n);
void page_poison_look(const void *va, size_t n, const struct page *of);
