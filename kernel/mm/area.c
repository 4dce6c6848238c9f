/*
 * area.c - the tree of areas. Every change splits the tree in two at an address and joins two trees
 * into one.
 *
 * All functions recurse as deep as the tree: about 40 calls for 65,000 areas. Invariants and
 * locking: area.h.
 */
#include "kernel/mm/area.h"

#include <stddef.h>

#include "arch/clock.h"

/* A program chooses the order of insertion, so it must not be able to predict the ranks. */
static uint32_t
random_rank(const struct area *a)
{
	uint64_t x = (arch_clock_read() ^ (uintptr_t)a) * 0x9e3779b97f4a7c15ul;

	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ul;
	return (uint32_t)(x >> 32);
}

static uint64_t
area_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t
area_object_bit(const void *object)
{
	return 1ul << ((uintptr_t)object * 0x9e3779b97f4a7c15ul >> 58);
}

static uint64_t
area_own_bits(const struct area *a)
{
	return a->from.object != NULL ? area_object_bit(a->from.object) : 0;
}

/* Recomputes what a node tells of its subtree after its children changed. */
static void
area_update(struct area *a)
{
	a->objects = area_own_bits(a) | (a->left != NULL ? a->left->objects : 0) |
		     (a->right != NULL ? a->right->objects : 0);
	a->low = a->start;
	a->high = a->end;
	a->gap = 0;
	if (a->left != NULL) {
		a->low = a->left->low;
		a->gap = area_max(a->left->gap, a->start - a->left->high);
	}
	if (a->right != NULL) {
		a->high = a->right->high;
		a->gap = area_max(a->gap, area_max(a->right->gap, a->right->low - a->end));
	}
}

/* Splits a tree into the areas that start below va, and the rest. */
static void
area_cut(struct area *tree, uint64_t va, struct area **below, struct area **rest)
{
	if (tree == NULL) {
		*below = *rest = NULL;
	} else if (tree->start < va) {
		area_cut(tree->right, va, &tree->right, rest);
		*below = tree;
		area_update(tree);
	} else {
		area_cut(tree->left, va, below, &tree->left);
		*rest = tree;
		area_update(tree);
	}
}

/* Joins two trees. Every area of a lies below every area of b. */
static struct area *
area_join(struct area *a, struct area *b)
{
	if (a == NULL || b == NULL)
		return a != NULL ? a : b;
	if (a->rank >= b->rank) {
		a->right = area_join(a->right, b);
		area_update(a);
		return a;
	}
	b->left = area_join(a, b->left);
	area_update(b);
	return b;
}

struct area *
area_find(struct area *tree, uint64_t va)
{
	struct area *found = NULL;

	while (tree != NULL) {
		if (va < tree->end) {
			found = tree;
			tree = tree->left;
		} else {
			tree = tree->right;
		}
	}
	return found;
}

void
area_put(struct area **tree, struct area *taken)
{
	struct area *below, *rest;

	if (taken == NULL)
		return;
	area_cut(*tree, taken->low, &below, &rest);
	*tree = area_join(area_join(below, taken), rest);
}

void
area_insert(struct area **tree, struct area *a)
{
	a->left = a->right = NULL;
	a->rank = random_rank(a);
	area_update(a);
	area_put(tree, a);
}

struct area *
area_take(struct area **tree, uint64_t start, uint64_t end)
{
	struct area *below, *taken, *rest;

	area_cut(*tree, start, &below, &taken);
	area_cut(taken, end, &taken, &rest);
	*tree = area_join(below, rest);
	return taken;
}

void
area_each(struct area *tree, void (*f)(struct area *, void *), void *arg)
{
	if (tree == NULL)
		return;
	area_each(tree->left, f, arg);
	f(tree, arg);
	area_each(tree->right, f, arg);
}

static void
area_each_bit(struct area *tree, uint64_t bits, void (*f)(struct area *, void *), void *arg)
{
	if (tree == NULL || !(tree->objects & bits))
		return;
	area_each_bit(tree->left, bits, f, arg);
	if (area_own_bits(tree) & bits)
		f(tree, arg);
	area_each_bit(tree->right, bits, f, arg);
}

void
area_each_object(struct area *tree, const void *object, void (*f)(struct area *, void *), void *arg)
{
	area_each_bit(tree, object != NULL ? area_object_bit(object) : UINT64_MAX, f, arg);
}

void
area_drop(struct area *tree, void (*f)(struct area *, void *), void *arg)
{
	if (tree == NULL)
		return;
	area_drop(tree->left, f, arg);
	area_drop(tree->right, f, arg);
	f(tree, arg);
}

/*
 * Moves *at up, past areas of the tree, to where size bytes are free. Returns false when no such
 * gap lies inside this tree; then *at is at or above its end.
 */
static bool
find_gap(const struct area *tree, uint64_t *at, uint64_t size)
{
	if (tree == NULL || tree->high <= *at)
		return false;
	if (tree->low >= *at && tree->low - *at >= size)
		return true;
	if (tree->low >= *at && tree->gap < size) {
		*at = tree->high;
		return false;
	}
	if (find_gap(tree->left, at, size))
		return true;
	if (tree->start >= *at && tree->start - *at >= size)
		return true;
	*at = area_max(*at, tree->end);
	return find_gap(tree->right, at, size);
}

uint64_t
area_gap(const struct area *tree, uint64_t from, uint64_t size)
{
	find_gap(tree, &from, size);
	return from;
}
