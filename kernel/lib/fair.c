/*
 * fair.c - who goes next, so that each group gets its share, and each member its share of that.
 *
 * Virtual times are compared by their difference, and so may wrap around. Locking: fair.h.
 */
#include "kernel/lib/fair.h"

#include "kernel/lib/list.h"

/* How far the time of an entry of that weight moves while it has the CPU for ns. */
static uint64_t
virtual_ns(uint64_t ns, uint32_t weight)
{
	return ns * FAIR_WEIGHT / weight;
}

/* ---- groups and members ---- */

static struct fair_entry *
fair_entry_of(struct leftist *node)
{
	return node != NULL ? container_of(node, struct fair_entry, node) : NULL;
}

static struct fair_group *
fair_group_of(struct leftist *self)
{
	return container_of(self, struct fair_group, self.node);
}

static uint64_t
next_deadline(const struct fair_entry *e)
{
	return e->time + virtual_ns(FAIR_SLICE_NS, e->weight);
}

/* An entry that has waited for long begins its slice no earlier than the queue's time. */
static void
catch_up(const struct fair_queue *q, struct fair_entry *e)
{
	uint64_t bonus =
	    virtual_ns(FAIR_SLICE_NS, e->weight > FAIR_WEIGHT ? e->weight : FAIR_WEIGHT);

	if (leftist_earlier(e->time, q->time - bonus))
		e->time = q->time - bonus;
	e->node.at = next_deadline(e);
}

static uint32_t
light_part(const struct fair_entry *e)
{
	return e->weight < FAIR_WEIGHT ? e->weight : FAIR_WEIGHT;
}

static bool
is_due(const struct fair_entry *e)
{
	return !leftist_earlier(e->time, e->node.at);
}

/* Would its slice be over before somebody looks again? */
static bool
ends_soon(const struct fair_entry *e)
{
	return is_due(e) || (e->node.at - e->time) * e->weight < FAIR_LOOK_NS * FAIR_WEIGHT;
}

#define HURRY_NS (1ul << 40) /* more than any deadline is before a group's time */

static void
begin_slice(const struct fair_queue *q, struct fair_entry *e)
{
	e->node.at = next_deadline(e);
}

/* The deadline of an entry that is where the queue is, and of ordinary weight. */
static void
begin_as_ordinary(const struct fair_queue *q, struct fair_entry *e)
{
	uint64_t from = leftist_earlier(q->time, e->time) ? q->time : e->time;

	if (leftist_earlier(from + FAIR_SLICE_NS, e->node.at))
		e->node.at = from + FAIR_SLICE_NS;
}

/* Changes the group's deadline by `begin`. It may wait. */
static void
begin_group_slice(struct fair_queue *top, struct fair_group *g,
		  void (*begin)(const struct fair_queue *, struct fair_entry *))
{
	bool waits = g->members.first != NULL;

	if (waits)
		leftist_remove(&top->first, &g->self.node);
	begin(top, &g->self);
	if (g->hurries > 0)
		begin_as_ordinary(top, &g->self);
	if (waits)
		leftist_insert(&top->first, &g->self.node);
}

static void
begin_after_first(const struct fair_queue *q, struct fair_entry *e)
{
	begin_slice(q, e);
	if (q->first != NULL && !leftist_earlier(q->first->at, e->node.at))
		e->node.at = q->first->at + 1;
}

static void
begin_sooner(const struct fair_queue *q, struct fair_entry *e)
{
	if (leftist_earlier(next_deadline(e), e->node.at))
		begin_slice(q, e);
}

static void
fair_weigh_group(struct fair_group *g)
{
	g->self.weight = (g->light < FAIR_WEIGHT ? g->light : FAIR_WEIGHT) + g->extra;
}

void
fair_join(struct fair_queue *top, struct fair_group *g, struct fair_entry *e)
{
	uint32_t old = g->self.weight;

	g->light += light_part(e);
	g->extra += e->weight - light_part(e);
	fair_weigh_group(g);
	if (g->joined++ == 0)
		catch_up(top, &g->self);
	else if (g->self.weight > old)
		begin_group_slice(top, g, begin_sooner);
	if (e->group == NULL)
		e->time += g->members.time;
	e->group = g;
	catch_up(&g->members, e);
}

/* While a member hurries, the group may be far ahead of the queue, which it does not wait for. */
static void
renew_group(struct fair_queue *top, struct fair_group *g)
{
	if (g->hurries > 0 ? !leftist_earlier(top->time, g->self.node.at) : is_due(&g->self))
		begin_group_slice(top, g, begin_slice);
}

/* e does not hurry any more. */
static void
hurry_ends(struct fair_entry *e)
{
	e->group->hurries -= e->hurries;
	e->hurries = false;
}

void
fair_leave(struct fair_queue *top, struct fair_entry *e)
{
	struct fair_group *g = e->group;

	hurry_ends(e);
	g->joined--;
	g->light -= light_part(e);
	g->extra -= e->weight - light_part(e);
	if (g->joined == 0)
		return;
	fair_weigh_group(g);
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
	if (ends_soon(e) && !e->hurries)
		begin_slice(&e->group->members, e);
	renew_group(top, e->group);
}

void
fair_yield(struct fair_queue *top, struct fair_entry *e)
{
	hurry_ends(e);
	begin_after_first(&e->group->members, e);
	begin_group_slice(top, e->group, begin_after_first);
}

void
fair_hurry(struct fair_queue *top, struct fair_entry *e)
{
	if (e->hurries)
		return;
	e->hurries = true;
	e->group->hurries++;
	/* before all who wait, and all who will come while it hurries */
	e->node.at = e->group->members.time - HURRY_NS;
	begin_group_slice(top, e->group, begin_as_ordinary);
}

void
fair_calm(struct fair_queue *top, struct fair_entry *e)
{
	if (!e->hurries)
		return;
	hurry_ends(e);
	begin_slice(&e->group->members, e);
	renew_group(top, e->group);
}

void
fair_put(struct fair_queue *top, struct fair_entry *e)
{
	struct fair_group *g = e->group;

	if (g->members.first == NULL)
		leftist_insert(&top->first, &g->self.node);
	leftist_insert(&g->members.first, &e->node);
}

void
fair_take(struct fair_queue *top, struct fair_entry *e)
{
	struct fair_group *g = e->group;

	leftist_remove(&g->members.first, &e->node);
	if (g->members.first == NULL)
		leftist_remove(&top->first, &g->self.node);
}

struct fair_entry *
fair_first(const struct fair_queue *top)
{
	return top->first != NULL ? fair_entry_of(fair_group_of(top->first)->members.first) : NULL;
}

struct fair_entry *
fair_find(const struct fair_queue *top, bool (*may)(const struct fair_entry *e, const void *arg),
	  const void *arg)
{
	unsigned left = FAIR_LOOKS, groups = FAIR_LOOKS;

	for (struct leftist *g = top->first; g != NULL && groups-- > 0; g = leftist_next(g)) {
		struct leftist *e = fair_group_of(g)->members.first;
		unsigned n = left / 2 + 1; /* so that no group takes all */

		for (; n > 0 && e != NULL; e = leftist_next(e), n--) {
			if (may(fair_entry_of(e), arg))
				return fair_entry_of(e);
			left -= left > 0;
		}
	}
	return NULL;
}

/* An entry that hurries, and runs on after its deadline, may be far ahead of all others. */
static bool
runs_ahead(const struct fair_queue *q, const struct fair_entry *e)
{
	return is_due(e) && leftist_earlier(q->time, e->time);
}

static void
fair_follow(struct fair_queue *q, const struct fair_entry *e)
{
	if (leftist_earlier(q->time, e->time) && !is_due(e))
		q->time = e->time;
}

void
fair_run(struct fair_queue *top, struct fair_entry *e)
{
	fair_follow(top, &e->group->self);
	fair_follow(&e->group->members, e);
}

/* An entry that runs ahead takes the queue's time along, and does not come further ahead. */
static void
fair_move(struct fair_queue *q, struct fair_entry *e, uint64_t ns)
{
	bool ahead = runs_ahead(q, e);

	ns = virtual_ns(ns, ahead && e->weight < FAIR_WEIGHT ? FAIR_WEIGHT : e->weight);
	e->time += ns;
	if (ahead)
		q->time += ns;
}

void
fair_charge(struct fair_queue *top, struct fair_entry *e, uint64_t ns)
{
	fair_move(&e->group->members, e, ns);
	fair_move(top, &e->group->self, ns);
}

bool
fair_before(const struct fair_entry *a, const struct fair_entry *b, uint64_t margin)
{
	if (a->group != b->group)
		return leftist_earlier(a->group->self.node.at, b->group->self.node.at);
	return leftist_earlier(a->node.at + margin, b->node.at);
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
