/* lock.c - waits for locks, and who has the lock meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/memory.h"
#include "ktr/tools/report/report.h"

#define LOCKS_MAX 4096u /* when there are so many, those are forgotten that nobody waits for */

/* A lock that somebody has, or waits for. */
struct lock {
	uint64_t address;
	const char *name;
	unsigned waiters;
	uint64_t seen_ns; /* the others' waiting time up to here is in the holder's row */
	struct report_who holder;
	uint64_t pc; /* where the holder took it; 0: not known */
};

const struct report_who report_not_known = {.name = REPORT_NOT_KNOWN};
static const struct report_who nobody = {.name = "(nobody)"};

static struct ktr_map by_address;
static bool takes_are_told; /* LOCK_TAKE came; without it, the ends of waits are not known */

static void
lock_forget(struct lock *l)
{
	ktr_map_remove(&by_address, l->address);
	free(l);
}

/* A removal may move a pair that comes later into the place that becomes free. */
static void
locks_forget(void)
{
	struct lock *l;
	for (size_t i = 0; i < by_address.size; i++)
		while ((l = by_address.pairs[i].value) != NULL && l->waiters == 0)
			lock_forget(l);
}

/* The lock that an activity is about. NULL: no memory. */
static struct lock *
lock_of(struct report *r, const struct activity *a)
{
	struct lock *l = ktr_map_get(&by_address, a->address);
	if (l != NULL)
		return l;
	if (by_address.realloc == NULL)
		by_address = memory_map();
	if (by_address.used >= LOCKS_MAX)
		locks_forget();
	l = calloc(1, sizeof(*l));
	if (l == NULL || !ktr_map_put(&by_address, a->address, l)) {
		free(l);
		report_no_memory(r);
		return NULL;
	}
	l->address = a->address;
	l->name = a->text;
	l->seen_ns = a->ns;
	l->holder = report_not_known;
	return l;
}

static uint64_t
in_window(const struct report *r, uint64_t ns)
{
	ns = ns < r->since_ns ? r->since_ns : ns;
	return ns > r->until_ns ? r->until_ns : ns;
}

static void
holder_sample(struct report *r, const struct lock *l, enum report_kind kind, unsigned waiters,
	      uint64_t from_ns, uint64_t to_ns)
{
	report_add(r, &(struct report_sample){.kind = kind,
					      .who = &l->holder,
					      .from_ns = from_ns,
					      .to_ns = to_ns,
					      .untimed = true,
					      .text = l->name,
					      .pc = l->pc,
					      .value = waiters});
}

/* Tells that others have waited for the lock, up to ns. */
static void
lock_seen(struct report *r, struct lock *l, uint64_t ns)
{
	uint64_t from = in_window(r, l->seen_ns), to = in_window(r, ns);
	if (l->waiters > 0 && to > from && takes_are_told)
		holder_sample(r, l, SAMPLE_HELD, l->waiters, from, to);
	l->seen_ns = ns;
}

/* Tells that so many begin to wait for the lock's holder. */
static void
lock_taken(struct report *r, const struct lock *l, unsigned waiters, uint64_t ns)
{
	if (waiters > 0 && ns >= r->since_ns && ns <= r->until_ns)
		holder_sample(r, l, SAMPLE_TAKEN, waiters, ns, ns);
}

static void
lock_held(struct report *r, struct lock *l, struct report_who holder, uint64_t pc, uint64_t ns)
{
	l->holder = holder;
	l->pc = pc;
	lock_taken(r, l, l->waiters, ns);
}

static void
wait_ends(struct report *r, struct report_wait *w, bool is_spin, uint64_t ns)
{
	struct lock *l = ktr_map_get(&by_address, w->address);
	const char *name = w->name;
	uint64_t from = in_window(r, w->ns), to = in_window(r, ns);
	w->name = NULL;
	if (!w->counts)
		return;
	if (l != NULL && l->waiters > 0) {
		lock_seen(r, l, ns);
		l->waiters--;
	}
	if (ns < r->since_ns || w->ns > r->until_ns)
		return;
	report_add(r, &(struct report_sample){.kind = SAMPLE_LOCK,
					      .from_ns = from,
					      .to_ns = to,
					      .untimed = !takes_are_told,
					      .text = name,
					      .more = is_spin ? "spin" : "mutex"});
}

void
report_waits_end(struct report *r, struct report_thread *is, uint64_t ns)
{
	for (unsigned i = 0; i < 2; i++)
		if (is->waits[i].name != NULL)
			wait_ends(r, &is->waits[i], i == 1, ns);
}

static void
wait_begins(struct report *r, const struct activity *a, struct report_thread *is)
{
	bool is_spin = a->number == 1;
	struct report_wait *w = &is->waits[is_spin];
	if (w->name != NULL)
		wait_ends(r, w, is_spin, a->ns);
	struct lock *l = lock_of(r, a);
	if (l == NULL)
		return;
	lock_seen(r, l, a->ns);
	bool counts = report_wants(r, a->thread, a->cpu);
	*w = (struct report_wait){.name = a->text,
				  .address = a->address,
				  .ns = a->ns,
				  .counts = counts};
	if (a->value >= 0 && l->holder.serial == 0) {
		const struct activity_thread *t = activity_running(r->model, (uint32_t)a->value);
		if (t != NULL)
			lock_held(r, l, report_who(r, t), 0, a->ns);
	}
	if (!counts)
		return;
	l->waiters++;
	lock_taken(r, l, 1, a->ns);
}

static void
lock_changes(struct report *r, const struct activity *a, struct report_thread *is)
{
	bool takes = a->kind == ACTIVITY_LOCK_TAKE;
	takes_are_told |= takes;
	struct lock *l = ktr_map_get(&by_address, a->address);
	if (l == NULL && (!takes || (l = lock_of(r, a)) == NULL))
		return;
	for (unsigned i = 0; i < 2 && takes; i++)
		if (is->waits[i].name != NULL && is->waits[i].address == a->address)
			wait_ends(r, &is->waits[i], i == 1, a->ns);
	lock_seen(r, l, a->ns);
	if (!takes && l->waiters == 0)
		lock_forget(l);
	else if (takes)
		lock_held(r, l, report_who(r, a->thread), a->pc, a->ns);
	else
		lock_held(r, l, nobody, 0, a->ns);
}

void
report_lock_activity(struct report *r, const struct activity *a)
{
	struct report_thread *is = report_thread_of(r, a->thread);
	if (a->kind == ACTIVITY_LOCK_WAIT)
		wait_begins(r, a, is);
	else if (a->kind == ACTIVITY_LOCK_TAKE || a->kind == ACTIVITY_LOCK_FREE)
		lock_changes(r, a, is);
	else if (a->kind == ACTIVITY_STATE && a->thread->state == ACTIVITY_DEAD)
		report_waits_end(r, is, a->ns);
}

/* After a loss, locks may have other holders. */
void
report_locks_lost(struct report *r, const struct export_gap *gap)
{
	for (const struct activity_thread *t = gap->lost; t != NULL; t = t->next_lost)
		report_waits_end(r, report_thread_of(r, t), gap->from_ns);
	locks_forget();
	for (size_t i = 0; i < by_address.size; i++) {
		struct lock *l = by_address.pairs[i].value;
		if (l == NULL)
			continue;
		lock_seen(r, l, gap->from_ns);
		l->holder = report_not_known;
		l->pc = 0;
	}
}

/* A wait that no event ends lasts until the trace ends, which a loss may end. */
void
report_locks_end(struct report *r)
{
	uint64_t from, to;
	spans_range(r->spans, &from, &to);
	for (size_t i = 0; i < r->room; i++)
		report_waits_end(r, &r->threads[i], to);
	locks_forget();
	ktr_map_free(&by_address);
	takes_are_told = false;
}
