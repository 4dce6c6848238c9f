/*
 * svg_thread.c - chooses which threads the picture keeps, and which of them it draws.
 *
 * Memory is bounded. When the lanes have PARTS_ALL parts, the threads that ran least lose their
 * lanes, and only their sums are kept. A thread that is gone is forgotten when so many others ran
 * more that it will not be drawn, unless a CPU's lane or a kept wakeup names it.
 */
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/memory.h"

#include "ktr/tools/export/svg.h"

#define PARTS_ALL 4000000u
#define MANY_MIN  4096u /* no thread is forgotten while there are fewer */

static uint64_t
active_ns(const struct svg_thread *t)
{
	return t->ns[ACTIVITY_RUNNING] + t->ns[ACTIVITY_SPINNING];
}

static uint64_t
known_ns(const struct svg_thread *t)
{
	uint64_t sum = 0;
	for (unsigned s = ACTIVITY_RUNNING; s < ACTIVITY_DEAD; s++)
		sum += t->ns[s];
	return sum;
}

/* Could the thread have a lane in the picture? */
static bool
is_shown(const struct svg *x, const struct svg_thread *t)
{
	return known_ns(t) > 0 && dump_match_thread(x->filter, t->tid, t->name);
}

/* Compares two threads: those that ran most first, equal ones in the order in which they came. */
static int
thread_compare(const void *a, const void *b)
{
	const struct svg_thread *l = *(struct svg_thread *const *)a,
				*r = *(struct svg_thread *const *)b;
	if (active_ns(l) != active_ns(r))
		return active_ns(l) < active_ns(r) ? 1 : -1;
	return (l->came > r->came) - (l->came < r->came);
}

/* Lists all threads but the idle ones, by thread_compare(). NULL: no memory. */
static struct svg_thread **
threads_sorted(struct svg *x, size_t *count)
{
	struct svg_thread **sorted = malloc((x->thread_count + 1) * sizeof(*sorted));
	*count = 0;
	if (sorted == NULL)
		return NULL;
	for (size_t i = 0; i < x->thread_count; i++) {
		struct svg_thread *t = &x->threads[i];
		if (t->used && t->t != NULL) {
			t->idle = t->t->idle;
			memcpy(t->name, t->t->name, sizeof(t->name));
		}
		if (t->used && !t->idle)
			sorted[(*count)++] = t;
	}
	qsort(sorted, *count, sizeof(struct svg_thread *), thread_compare);
	return sorted;
}

/* Keeps the threads that a CPU's lane or a wakeup names. */
static void
keep_named(struct svg *x)
{
	for (size_t i = 0; i < x->wake_count; i++)
		x->threads[x->wakes[i].waker].kept = x->threads[x->wakes[i].woken].kept = true;
	for (unsigned cpu = 0; cpu < KTR_DECODE_CPUS; cpu++) {
		const struct lane *runs = &x->cpus[cpu].runs;
		for (size_t i = 0; i < runs->count; i++)
			if (runs->parts[i].key >= LANE_KEY)
				x->threads[runs->parts[i].key - LANE_KEY].kept = true;
	}
}

/* The parts that a thread's lanes have room for. */
static size_t
lanes_room(const struct svg_thread *t)
{
	size_t room = t->lane.room;
	for (unsigned i = 0; i < t->levels; i++)
		room += t->calls[i].room;
	return room;
}

void
svg_lanes_clear(struct svg *x, struct svg_thread *t)
{
	x->parts -= lanes_room(t);
	lane_clear(&t->lane);
	for (unsigned i = 0; i < t->levels; i++)
		lane_clear(&t->calls[i]);
	free(t->calls);
	t->calls = NULL;
	t->levels = 0;
}

bool
svg_calls_add(struct svg *x, struct svg_thread *t, const struct span *span)
{
	unsigned depth = span->depth < SVG_LEVELS ? span->depth : SVG_LEVELS;
	x->deeper |= span->depth > SVG_LEVELS;
	if (depth > 0 && t->calls == NULL) {
		t->calls = calloc(SVG_LEVELS, sizeof(*t->calls));
		if (t->calls == NULL)
			return false;
	}
	t->levels = depth > t->levels ? depth : t->levels;
	for (unsigned i = 0; i < depth; i++) {
		struct lane *l = &t->calls[i];
		const char *name = span->functions[i];
		uint32_t hash = (uint32_t)ktr_hash(1, name, strlen(name)) >> 2;
		size_t room = l->room;
		if (!lane_add(l, x->parts_max, LANE_KEY + hash, name, 1, span->from_ns,
			      span->to_ns))
			return false;
		x->parts += l->room - room;
	}
	return true;
}

/* Takes the lanes from the threads that are gone, but for those that ran most, and forgets a
 * thread if nothing names it. */
static bool
threads_forget(struct svg *x)
{
	size_t count, rank = 0;
	struct svg_thread **sorted = threads_sorted(x, &count);
	if (sorted == NULL)
		return false;
	for (size_t i = 0; i < x->thread_count; i++)
		x->threads[i].kept = x->threads[i].t != NULL;
	keep_named(x);
	for (size_t i = 0; i < count; i++) {
		struct svg_thread *t = sorted[i];
		bool shown = is_shown(x, t);
		rank += shown;
		if (t->t != NULL || (shown && rank <= SVG_LANES_ASKED))
			continue;
		svg_lanes_clear(x, t);
		if (t->kept)
			continue;
		x->threads_gone += shown;
		x->threads_used--;
		t->used = false;
	}
	free(sorted);
	x->thread_free = 0;
	x->threads_many = x->threads_used * 2 > MANY_MIN ? x->threads_used * 2 : MANY_MIN;
	return true;
}

bool
svg_threads_thin(struct svg *x)
{
	size_t count;
	if (x->parts < PARTS_ALL)
		return true;
	struct svg_thread **sorted = threads_sorted(x, &count);
	if (sorted == NULL)
		return false;
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		size_t room = lanes_room(sorted[i]);
		if (kept + room > PARTS_ALL / 2)
			svg_lanes_clear(x, sorted[i]);
		else
			kept += room;
	}
	free(sorted);
	return true;
}

/* Makes an entry for a thread, and returns its id. SVG_NONE: no memory. */
static uint32_t
thread_add(struct svg *x, const struct activity_thread *t)
{
	if (x->threads_used >= (x->threads_many > MANY_MIN ? x->threads_many : MANY_MIN) &&
	    !threads_forget(x))
		return SVG_NONE;
	while (x->thread_free < x->thread_count && x->threads[x->thread_free].used)
		x->thread_free++;
	if (!MEMORY_ROOM(x->threads, x->thread_room, x->thread_free))
		return SVG_NONE;
	if (x->thread_free == x->thread_count)
		x->thread_count++;
	x->threads_used++;
	x->threads[x->thread_free] =
	    (struct svg_thread){.used = true, .tid = t->tid, .t = t, .came = x->threads_came++};
	return (uint32_t)x->thread_free;
}

struct svg_thread *
svg_thread_of(struct svg *x, const struct activity_thread *t)
{
	if (!MEMORY_ROOM(x->ids, x->id_room, t->number))
		return NULL;
	uint32_t *ids = x->ids;
	uint32_t id = ids[t->number] != 0 ? ids[t->number] - 1 : thread_add(x, t);
	if (id == SVG_NONE)
		return NULL;
	ids[t->number] = id + 1;
	return &x->threads[id];
}

void
svg_thread_gone(struct svg *x, const struct activity_thread *t)
{
	if (t->number >= x->id_room || x->ids[t->number] == 0)
		return;
	struct svg_thread *thread = &x->threads[x->ids[t->number] - 1];
	x->ids[t->number] = 0;
	thread->t = NULL;
	thread->idle = t->idle;
	memcpy(thread->name, t->name, sizeof(thread->name));
}

static int
came_compare(const void *a, const void *b)
{
	const struct svg_thread *l = *(struct svg_thread *const *)a,
				*r = *(struct svg_thread *const *)b;
	return (l->came > r->came) - (l->came < r->came);
}

bool
svg_rows_choose(struct svg *x)
{
	size_t count;
	uint32_t rank = 0;
	struct svg_thread **sorted = threads_sorted(x, &count);
	unsigned most = x->filter->thread != NULL ? SVG_LANES_ASKED : SVG_LANES;
	if (sorted == NULL)
		return false;
	for (size_t i = 0; i < x->thread_count; i++)
		x->threads[i].row = SVG_NONE;
	x->threads_left_out = x->threads_gone;
	for (size_t i = 0; i < count; i++) {
		struct svg_thread *t = sorted[i];
		if (!is_shown(x, t))
			continue;
		t->rank = rank++;
		if (x->rows < most && t->lane.count > 0)
			sorted[x->rows++] = t;
		else
			x->threads_left_out++;
	}
	qsort(sorted, x->rows, sizeof(struct svg_thread *), came_compare);
	for (uint32_t row = 0; row < x->rows; row++) {
		sorted[row]->row = row;
		x->row_threads[row] = svg_thread_id(x, sorted[row]);
	}
	free(sorted);
	return true;
}
