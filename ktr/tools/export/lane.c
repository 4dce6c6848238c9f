/* lane.c - parts and groups of a lane: lane.h. */
#include "ktr/tools/export/lane.h"

#include <stdlib.h>
#include <string.h>

struct group {
	struct lane_part parts[LANE_PARTS];
	size_t count;
	uint64_t ns;
};

size_t
lane_group(const struct lane *l, size_t i, uint64_t *ns)
{
	size_t n = 1;
	*ns = l->parts[i].ns;
	while (i + n < l->count && l->parts[i + n].more)
		*ns += l->parts[i + n++].ns;
	return n;
}

static void
count_add(struct lane_part *p, uint32_t more)
{
	uint32_t sum = (uint32_t)p->count + more;
	p->count = sum < INT32_MAX ? sum : INT32_MAX;
}

static void
group_add(struct group *g, const struct lane_part *p)
{
	uint32_t key = p->key;
	size_t at = 0;
	while (at < g->count && g->parts[at].key != key)
		at++;
	if (at >= LANE_PARTS - 1 && at == g->count && key != LANE_OTHER) {
		struct lane_part other = *p;
		other.key = LANE_OTHER;
		group_add(g, &other);
		return;
	}
	g->ns += p->ns;
	if (at == g->count) {
		g->parts[g->count] = *p;
		g->parts[g->count++].more = at > 0;
		return;
	}
	struct lane_part *same = &g->parts[at];
	if (same->why != p->why)
		same->why = NULL;
	same->ns += p->ns;
	count_add(same, p->count);
}

/* Writes the group back. It has no more parts than went into it, so there is room. */
static size_t
group_end(struct group *g, struct lane_part *to)
{
	size_t n = g->count;
	if (n > 0) /* otherwise `to` may be NULL */
		memcpy(to, g->parts, n * sizeof(*to));
	g->count = 0;
	g->ns = 0;
	return n;
}

void
lane_merge(struct lane *l, uint64_t width_ns)
{
	struct group open = {.count = 0};
	size_t to = 0, n;
	uint64_t ns;
	l->width_ns = width_ns;
	if (l->count == 0)
		return;
	for (size_t i = 0; i < l->count; i += n) {
		n = lane_group(l, i, &ns);
		if (ns >= width_ns) {
			to += group_end(&open, l->parts + to);
			memmove(l->parts + to, l->parts + i, n * sizeof(l->parts[0]));
			to += n;
			continue;
		}
		for (size_t k = i; k < i + n; k++)
			group_add(&open, &l->parts[k]);
		if (open.ns >= width_ns)
			to += group_end(&open, l->parts + to);
	}
	to += group_end(&open, l->parts + to);
	l->count = to;
}

static bool
lane_room(struct lane *l, size_t max)
{
	if (l->count < l->room)
		return true;
	if (l->room < max) {
		size_t room = l->room * 2 + 16 < max ? l->room * 2 + 16 : max;
		struct lane_part *more = realloc(l->parts, room * sizeof(*more));
		if (more == NULL)
			return false;
		l->parts = more;
		l->room = room;
		return true;
	}
	uint64_t width = (l->to_ns - l->from_ns) / max;
	lane_merge(l, width > l->width_ns ? width : l->width_ns);
	while (l->count > l->room / 2 && l->width_ns <= l->to_ns - l->from_ns)
		lane_merge(l, l->width_ns * 2 + 1);
	return l->count < l->room;
}

static bool
lane_put(struct lane *l, size_t max, struct lane_part part)
{
	struct lane_part *last = l->count > 0 ? &l->parts[l->count - 1] : NULL;
	l->to_ns += part.ns;
	if (last != NULL && !last->more && last->key == part.key && last->why == part.why) {
		last->ns += part.ns;
		count_add(last, part.count);
		return true;
	}
	if (!lane_room(l, max))
		return false;
	l->parts[l->count++] = part;
	return true;
}

bool
lane_add(struct lane *l, size_t max, uint32_t key, const char *why, uint32_t count,
	 uint64_t from_ns, uint64_t to_ns)
{
	if (l->count == 0)
		l->from_ns = l->to_ns = from_ns;
	if (from_ns > l->to_ns &&
	    !lane_put(l, max, (struct lane_part){.ns = from_ns - l->to_ns, .key = LANE_NOTHING}))
		return false;
	uint64_t ns = to_ns > l->to_ns ? to_ns - l->to_ns : 0;
	return lane_put(
	    l, max,
	    (struct lane_part){.ns = ns, .why = why, .key = key, .count = count & INT32_MAX});
}

void
lane_clear(struct lane *l)
{
	free(l->parts);
	memset(l, 0, sizeof(*l));
}
