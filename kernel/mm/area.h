/*
 * area.h - the areas of an address space: ranges that never overlap, in a balanced tree by address.
 *
 * The tree is a treap: ordered by address from left to right, and a heap by random ranks from top
 * to bottom, so that its depth is about the logarithm of the number of areas whatever the order in
 * which a program maps them. Each node knows the largest gap among the areas below it, so that free
 * room is found in the same time.
 *
 * Locking: the owner's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct area {
	struct area *left, *right;
	uint64_t start, end;
	uint64_t low, high, gap; /* of this subtree: first and last address, largest gap inside */
	unsigned prot;
	uint32_t rank; /* not lower than the children's */
};

/* The first area that ends after va; NULL: there is none. */
struct area *area_find(struct area *tree, uint64_t va);
/* Adds an area with start, end and prot set, where no other is. */
void area_insert(struct area **tree, struct area *a);
/* Takes the areas out that lie in [start, end), and returns their tree; none lies across an edge.
 */
struct area *area_take(struct area **tree, uint64_t start, uint64_t end);
/* Puts areas back that area_take() took out and whose neighbours did not change. */
void area_put(struct area **tree, struct area *taken);
/* Calls f for each area in the order of addresses. f may change prot. */
void area_each(struct area *tree, void (*f)(struct area *a, void *arg), void *arg);
/* Calls f for each area, which f may free: nothing is looked at afterwards. */
void area_drop(struct area *tree, void (*f)(struct area *a, void *arg), void *arg);
/* The first address from `from` on that is followed by size free bytes; there may be no end to
 * them. */
uint64_t area_gap(const struct area *tree, uint64_t from, uint64_t size);
