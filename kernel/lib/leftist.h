/*
 * leftist.h - leftist heaps (Crane 1972): who is first of those that come and go. To join two takes
 * logarithmic time, and so does all that follows from it.
 *
 * Times are compared by their difference, and so may wrap around: all in a heap are less than 2^63
 * apart. Pure code. Locking: the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct leftist {
	struct leftist *left, *right, *up; /* a parent's time is not later */
	uint32_t rank; /* 1 more than the right child's, which is at most the left child's */
	uint64_t at;   /* the user's to set while it is in no heap */
};

static inline bool
leftist_earlier(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0;
}

/* *first: the earliest, NULL: there is none. */
void leftist_insert(struct leftist **first, struct leftist *e);
void leftist_remove(struct leftist **first, struct leftist *e);
/* The element after e, in no order but that parents come before children. NULL: e is the last. */
struct leftist *leftist_next(const struct leftist *e);
