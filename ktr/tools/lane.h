/*
 * lane.h - what something did over time, in bounded memory: times of one key each, without holes.
 * Where they are many and short, neighbours become one group that has the sum of each key's time.
 * Sums stay exact. Host only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LANE_NOTHING 0u  /* the key of a hole */
#define LANE_OTHER   1u  /* of what had no place of its own in a group */
#define LANE_KEY     2u  /* keys from here on are the caller's */
#define LANE_PARTS   12u /* of a group, at most */

struct lane_part {
	uint64_t ns;
	const char *why; /* NULL: none, or several */
	uint32_t key;
	uint32_t count : 31; /* how many were put in; no more than fit */
	uint32_t more : 1;   /* in one group with the part before */
};

struct lane {
	struct lane_part *parts;
	size_t count, room;
	uint64_t from_ns, to_ns; /* parts follow each other from here to there */
	uint64_t width_ns;       /* of groups; 0: none were made yet */
};

/**
 * Behind what there is; what lies before its end is cut off. At most max parts are kept, of at
 * least 64. False: no memory.
 */
bool lane_add(struct lane *l, size_t max, uint32_t key, const char *why, uint32_t count,
	      uint64_t from_ns, uint64_t to_ns);
/** Makes groups of at least width_ns of neighbours that are shorter. */
void lane_merge(struct lane *l, uint64_t width_ns);
/** How many parts from parts[i] on are one group; its time in *ns. */
size_t lane_group(const struct lane *l, size_t i, uint64_t *ns);
void lane_clear(struct lane *l);
