/*
 * fair.c - who goes next, so that each group gets its share, and each member its share of that.
 *
 * Virtual times are compared by their difference, and so may wrap around. Locking: fair.h.
 */
#include "kernel/lib/fair.h"

#include "kernel/lib/list.h"

static bool
earlier(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0;
}

/* How far one of that weight moves while it has it for ns. */
static uint64_t
virtual_ns(uint64_t ns, uint32_t weight)
{
	return ns * FAIR_WEIGHT / weight;
}

/* ---- the heap ---- */

static uint32_t
rank(const struct fair_entry *e)
{
	return e != NULL ? e->rank : 0;
}

/* Makes the rank right after a change of a child. True: it is another one. */
static bool
fair_settle(struct fair_entry *e)
{
	uint32_t old = e->rank;

	if (rank(e->left) < rank(e->right)) {
		struct fair_entry *l = e->left;

		e->left = e->right;
		e->right = l;
	}
	e->rank = rank(e->right) + 1;
	return e->rank != old;
}

/* Of equal deadlines, a's goes first. The depth is at most the sum of the ranks. */
static struct fair_entry *
heap_merge(struct fair_entry *a, struct fair_entry *b)
{
	if (a == NULL || b == NULL)
		return a != NULL ? a : b;
	if (earlier(b->deadline, a->deadline)) {
		struct fair_entry *first = b;

		b = a;
		a = first;
	}
	a->right = heap_merge(a->right, b);
	a->right->up = a;
	fair_settle(a);
	return a;
}

static void
heap_insert(struct fair_queue *q, struct fair_entry *e)
{
	e->left = e->right = NULL;
	e->rank = 1;
	q->first = heap_merge(q->first, e);
	q->first->up = NULL;
}

static void
heap_remove(struct fair_queue *q, struct fair_entry *e)
{
	struct fair_entry *up = e->up, *rest = heap_merge(e->left, e->right);

	if (rest != NULL)
		rest->up = up;
	if (up == NULL)
		q->first = rest;
	else if (up->left == e)
		up->left = rest;
	else
		up->right = rest;
	while (up != NULL && fair_settle(up))
		up = up->up;
}

/* The one after e, which is after its parent; NULL: e is the last. */
static struct fair_entry *
heap_next(const struct fair_entry *e)
{
	if (e->left != NULL)
		return e->left;
	for (; e->up != NULL; e = e->up)
		if (e->up->right != NULL && e->up->right != e)
			return e->up->right;
	return NULL;
}

/* ---- groups and members ---- */

static struct fair_group *
fair_group_of(struct fair_entry *self)
{
	return container_of(self, struct fair_group, self);
}

static uint64_t
next_deadline(const struct fair_entry *e)
{
	return e->time + virtual_ns(FAIR_SLICE_NS, e->weight);
}

/* Who has waited for long begins a slice before the queue's time, and not earlier. */
static void
catch_up(const struct fair_queue *q, struct fair_entry *e)
{
	uint64_t bonus =
	    virtual_ns(FAIR_SLICE_NS, e->weight > FAIR_WEIGHT ? e->weight : FAIR_WEIGHT);

	if (earlier(e->time, q->time - bonus))
		e->time = q->time - bonus;
	e->deadline = next_deadline(e);
}

static uint32_t
light_part(const struct fair_entry *e)
{
	return e->weight < FAIR_WEIGHT ? e->weight : FAIR_WEIGHT;
}

static bool
is_due(const struct fair_entry *e)
{
	return !earlier(e->time, e->deadline);
}

static void
begin_slice(const struct fair_queue *q, struct fair_entry *e)
{
	e->deadline = next_deadline(e);
}

/* Changes the group's deadline by `begin`. It may wait. */
static void
begin_group_slice(struct fair_queue *top, struct fair_group *g,
		  void (*begin)(const struct fair_queue *, struct fair_entry *))
{
	bool waits = g->members.first != NULL;

	if (waits)
		heap_remove(top, &g->self);
	begin(top, &g->self);
	if (waits)
		heap_insert(top, &g->self);
}

static void
begin_after_first(const struct fair_queue *q, struct fair_entry *e)
{
	begin_slice(q, e);
	if (q->first != NULL && !earlier(q->first->deadline, e->deadline))
		e->deadline = q->first->deadline + 1;
}

static void
begin_sooner(const struct fair_queue *q, struct fair_entry *e)
{
	if (earlier(next_deadline(e), e->deadline))
		begin_slice(q, e);
}

static void
weigh(struct fair_group *g)
{
	g->self.weight = (g->light < FAIR_WEIGHT ? g->light : FAIR_WEIGHT) + g->extra;
}

void
fair_join(struct fair_queue *top, struct fair_group *g, struct fair_entry *e)
{
	uint32_t old = g->self.weight;

	g->light += light_part(e);
	g->extra += e->weight - light_part(e);
	weigh(g);
	if (g->joined++ == 0)
		catch_up(top, &g->self);
	else if (g->self.weight > old)
		begin_group_slice(top, g, begin_sooner);
	if (e->group == NULL)
		e->time += g->members.time;
	e->group = g;
	catch_up(&g->members, e);
}

static void
renew_group(struct fair_queue *top, struct fair_group *g)
{
	if (is_due(&g->self))
		begin_group_slice(top, g, begin_slice);
}

void
fair_leave(struct fair_queue *top, struct fair_entry *e)
{
	struct fair_group *g = e->group;

	g->joined--;
	g->light -= light_part(e);
	g->extra -= e->weight - light_part(e);
	if (g->joined == 0)
		return;
	weigh(g);
	renew_group(top, g);
}

void
fair_detach(struct fair_entry *e)
{
	if (e->group != NULL)
		e->time -= e->group->members.time;
	e->group = NULL;
}

void
fair_renew(struct fair_queue *top, struct fair_entry *e)
{
	if (is_due(e))
		begin_slice(&e->group->members, e);
	renew_group(top, e->group);
}

void
fair_yield(struct fair_queue *top, struct fair_entry *e)
{
	begin_after_first(&e->group->members, e);
	begin_group_slice(top, e->group, begin_after_first);
}

void
fair_put(struct fair_queue *top, struct fair_entry *e)
{
	struct fair_group *g = e->group;

	if (g->members.first == NULL)
		heap_insert(top, &g->self);
	heap_insert(&g->members, e);
}

void
fair_take(struct fair_queue *top, struct fair_entry *e)
{
	struct fair_group *g = e->group;

	heap_remove(&g->members, e);
	if (g->members.first == NULL)
		heap_remove(top, &g->self);
}

struct fair_entry *
fair_first(const struct fair_queue *top)
{
	return top->first != NULL ? fair_group_of(top->first)->members.first : NULL;
}

struct fair_entry *
fair_find(const struct fair_queue *top, bool (*may)(const struct fair_entry *e, const void *arg),
	  const void *arg)
{
	for (struct fair_entry *g = top->first; g != NULL; g = heap_next(g))
		for (struct fair_entry *e = fair_group_of(g)->members.first; e != NULL;
		     e = heap_next(e))
			if (may(e, arg))
				return e;
	return NULL;
}

static void
fair_follow(struct fair_queue *q, const struct fair_entry *e)
{
	if (earlier(q->time, e->time))
		q->time = e->time;
}

void
fair_run(struct fair_queue *top, struct fair_entry *e)
{
	fair_follow(top, &e->group->self);
	fair_follow(&e->group->members, e);
}

void
fair_charge(struct fair_entry *e, uint64_t ns)
{
	e->time += virtual_ns(ns, e->weight);
	e->group->self.time += virtual_ns(ns, e->group->self.weight);
}

bool
fair_before(const struct fair_entry *a, const struct fair_entry *b, uint64_t margin)
{
	if (a->group != b->group)
		return earlier(a->group->self.deadline, b->group->self.deadline);
	return earlier(a->deadline + margin, b->deadline);
}

uint32_t
fair_weight(int nice)
{
	uint32_t w = FAIR_WEIGHT << 12;

	for (; nice < 0; nice++)
		w += w / 4;
	for (; nice > 0; nice--)
		w -= w / 5;
	return (w + (1u << 11)) >> 12;
}
