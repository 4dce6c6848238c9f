/* leftist.c - leftist heaps. Locking: leftist.h. */
#include "kernel/lib/leftist.h"

static uint32_t
fair_rank(const struct leftist *e)
{
	return e != NULL ? e->rank : 0;
}

/* Makes the rank right after a change of a child. True: the rank has changed. */
static bool
leftist_settle(struct leftist *e)
{
	uint32_t old = e->rank;

	if (fair_rank(e->left) < fair_rank(e->right)) {
		struct leftist *l = e->left;

		e->left = e->right;
		e->right = l;
	}
	e->rank = fair_rank(e->right) + 1;
	return e->rank != old;
}

/* Joins two heaps. Of equal times, a's goes first. The depth is at most the sum of the ranks. */
static struct leftist *
leftist_merge(struct leftist *a, struct leftist *b)
{
	if (a == NULL || b == NULL)
		return a != NULL ? a : b;
	if (leftist_earlier(b->at, a->at)) {
		struct leftist *first = b;

		b = a;
		a = first;
	}
	a->right = leftist_merge(a->right, b);
	a->right->up = a;
	leftist_settle(a);
	return a;
}

void
leftist_insert(struct leftist **first, struct leftist *e)
{
	e->left = e->right = e->up = NULL;
	e->rank = 1;
	*first = leftist_merge(*first, e);
	(*first)->up = NULL;
}

void
leftist_remove(struct leftist **first, struct leftist *e)
{
	struct leftist *up = e->up, *rest = leftist_merge(e->left, e->right);

	if (rest != NULL)
		rest->up = up;
	if (up == NULL)
		*first = rest;
	else if (up->left == e)
		up->left = rest;
	else
		up->right = rest;
	while (up != NULL && leftist_settle(up))
		up = up->up;
}

/* The debugger may find a heap in the middle of a change, and ways up that are a circle. */
#define CLIMB_MAX 65536u

struct leftist *
leftist_next(const struct leftist *e)
{
	if (e->left != NULL)
		return e->left;
	for (unsigned n = 0; e->up != NULL && n < CLIMB_MAX; e = e->up, n++)
		if (e->up->right != NULL && e->up->right != e)
			return e->up->right;
	return NULL;
}
