/*
 * page.h - the physical page allocator: a buddy system over the boot memory map.
 * Locking: one spin lock inside. Any context but NMI; never sleeps.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct boot_info;

#define PAGE_SHIFT     12
#define PAGE_SIZE      4096ul
#define PAGE_MAX_ORDER 16 /* largest block: 2^16 pages, 256 MiB */

/* What a block is for: the account of memory in /proc/meminfo, and in db>'s `show page`. */
enum page_owner {
	PAGE_OTHER,  /* rings of devices; buffers that are needed for a moment */
	PAGE_SLAB,   /* small objects of the heap */
	PAGE_LARGE,  /* large blocks of the heap */
	PAGE_MAPPED, /* kmap_alloc(): stacks of threads, rings of logs, what D and ftrace keep */
	PAGE_TABLE,  /* page tables, of the kernel and of programs */
	PAGE_ANON,   /* memory of programs that is no file's */
	PAGE_FILE,   /* contents of files */
	PAGE_OWNERS
};

static inline uint64_t
page_round_up(uint64_t n)
{
	return (n + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1);
}

static inline uint64_t
page_round_down(uint64_t n)
{
	return n & ~(PAGE_SIZE - 1);
}

/* Takes over all usable memory of bi except the kernel, its modules, and the first MiB. */
void page_init(const struct boot_info *bi);
/* Takes over [start, end): whole pages, in use at page_init() but free now. Any context. */
void page_add(uint64_t start, uint64_t end);
/* 2^order pages, aligned to their size, not zeroed, by direct-map address. NULL: none left. */
void *page_alloc(unsigned order, enum page_owner owner);
/* One zeroed page. */
void *page_alloc_zero(enum page_owner owner);
void page_free(void *va, unsigned order);

/* Reference count of a single (order 0) page; page_alloc() sets 1. */
void page_ref(void *va);
/* Drops a reference and frees the page with the last one. */
void page_unref(void *va);
uint32_t page_refs(void *va);
/* Sets a mark that a page keeps until it is freed; kernel/vm/code.c uses it. */
void page_mark(void *va);
bool page_marked(void *va);

uint64_t page_count_total(void);
uint64_t page_count_free(void);
/* Pages of all blocks of this owner. Over all owners, these are the pages that are not free. */
uint64_t page_count_of(enum page_owner owner);
/* Pages that files, large blocks of the kernel and all users but 0 leave free. */
uint64_t page_count_reserve(void);
