/*
 * area.h - the areas of an address space: ranges that never overlap, in a balanced tree by address.
 *
 * The tree is a treap. From left to right it is ordered by address; from top to bottom it is a heap
 * by random ranks. So its depth is about the logarithm of the number of areas, in whatever order a
 * program maps them. Each node holds the largest gap among the areas below it, so finding free room
 * takes logarithmic time too. The kernel's own areas are in such a tree, too (kmap.c).
 *
 * Locking: the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/mm/page.h"

/* Where the pages of an area come from. NULL: they are new, and zero. */
struct area_source {
	const struct vm_pager *pager; /* kernel/vm/vm.h */
	void *object;                 /* the pager's; a reference */
	uint64_t offset;              /* of the area's start */
	uint64_t grows_to;            /* an area that grows down: bytes that it may have; else 0 */
	uint64_t space_max;           /* ... while the space has no more bytes than this */
	bool shared;                  /* writes go to the object */
	bool read_only;               /* ... and are not allowed */
	bool no_exec;                 /* nobody executes what is there */
	bool writes;                  /* counts with its object: vm_pager.ref */
	bool code;                    /* made by kernel/vm/code.c */
	bool stays;                   /* a copy of the space does not have the area */
	bool wiped;                   /* a copy of the space has it empty */
	bool locked;                  /* mlock(); a copy is not */
};

struct area {
	struct area *left, *right;
	uint64_t start, end;
	uint64_t low, high, gap; /* of the subtree: lowest start, highest end, largest gap */
	uint64_t objects;        /* of the subtree: a bit, of a hash, for each object */
	unsigned prot;
	struct area_source from;
	uint32_t rank; /* at least as high as the ranks of both children */
};

/* The number of the page at va in what the area's pages come from. */
static inline uint64_t
area_index(const struct area *a, uint64_t va)
{
	return (a->from.offset + (va - a->start)) / PAGE_SIZE;
}

/* The first area that ends above va. NULL: there is none. */
struct area *area_find(struct area *tree, uint64_t va);
/* Adds an area. The caller has set start, end and prot, and no other area overlaps the range. */
void area_insert(struct area **tree, struct area *a);
/* Removes the areas in [start, end) and returns them as a tree. No area may cross an edge of it. */
struct area *area_take(struct area **tree, uint64_t start, uint64_t end);
/* Puts back what area_take() removed. The areas around the range must not have changed since. */
void area_put(struct area **tree, struct area *taken);
/* Calls f for each area, in the order of addresses. f may change prot. */
void area_each(struct area *tree, void (*f)(struct area *a, void *arg), void *arg);
/* Calls f for the areas that may map the object. NULL: any object. Few others are looked at. */
void area_each_object(struct area *tree, const void *object, void (*f)(struct area *a, void *arg),
		      void *arg);
/* Calls f for each area. f may free it. */
void area_drop(struct area *tree, void (*f)(struct area *a, void *arg), void *arg);
/*
 * The lowest address, at or above `from`, that size free bytes follow. The tree has no upper limit:
 * the caller checks the result against its own.
 */
uint64_t area_gap(const struct area *tree, uint64_t from, uint64_t size);
