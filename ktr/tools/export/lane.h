/*
 * lane.h - what a thread or CPU did over time, in bounded memory. A lane is a list of parts, each
 * with a key. A part begins where the part before it ends; a hole is a part, too. Host only.
 *
 * When there are too many parts, short neighbours become a group. A group has one part for each
 * key, with the sum of the times. So sums over the lane stay exact, but the order is lost.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LANE_NOTHING 0u  /* the key of a hole */
#define LANE_OTHER   1u  /* the key of what had no room for its own key in a group */
#define LANE_KEY     2u  /* keys from here on are the caller's */
#define LANE_PARTS   12u /* of a group, at most */

struct lane_part {
	uint64_t ns;
	const char *why; /* of the caller; NULL: none, or several */
	uint32_t key;
	uint32_t count : 31; /* the sum of the counts that were added; stays at its maximum */
	uint32_t more : 1;   /* in one group with the part before */
};

struct lane {
	struct lane_part *parts;
	size_t count, room;
	uint64_t from_ns, to_ns; /* the parts fill this time without a gap */
	uint64_t width_ns;       /* of groups; 0: none were made yet */
};

/**
 * Adds a part at the end. If it begins before the end of the lane, its beginning is cut off. The
 * lane keeps at most max parts; max is at least 64. False: no memory.
 */
bool lane_add(struct lane *l, size_t max, uint32_t key, const char *why, uint32_t count,
	      uint64_t from_ns, uint64_t to_ns);
/** Makes groups of neighbours that are shorter than width_ns, each at least that long. */
void lane_merge(struct lane *l, uint64_t width_ns);
/** The number of parts in the group that begins at parts[i]; *ns is how long they are together. */
size_t lane_group(const struct lane *l, size_t i, uint64_t *ns);
void lane_clear(struct lane *l);
