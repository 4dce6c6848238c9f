/*
 * activity.c - keeps the model of activity.h: the state of each thread, and what each CPU runs.
 * activity_meaning.c knows what the events mean.
 *
 * Invariants: if running[cpu] is not NULL, that thread's cpu is this CPU, and no other CPU runs it.
 * A dead thread is in the list of dead threads. It is freed at the first event at which no CPU runs
 * it any more.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/memory.h"
#include "ktr/tools/model/activity_private.h"

#define MANY_MIN 4096u /* threads */

/* Makes room for more threads, each with a number of its own. */
static bool
numbers_grow(struct activity_model *m)
{
	size_t old = m->number_room;
	if (!MEMORY_ROOM(m->numbers, m->number_room, old))
		return false;
	for (size_t i = old; i < m->number_room; i++)
		m->numbers[i] = (uint32_t)i;
	return true;
}

/* An event has told something of t: the next loss of events makes that uncertain. */
static struct activity_thread *
heard(struct activity_model *m, struct activity_thread *t)
{
	if (t->heard_at != NULL)
		return t;
	t->next_heard = m->heard;
	if (m->heard != NULL)
		m->heard->heard_at = &t->next_heard;
	m->heard = t;
	t->heard_at = &m->heard;
	return t;
}

static void
unheard(struct activity_thread *t)
{
	if (t->heard_at == NULL)
		return;
	*t->heard_at = t->next_heard;
	if (t->next_heard != NULL)
		t->next_heard->heard_at = t->heard_at;
	t->heard_at = NULL;
}

/* A thread that is not known yet is made, in the state UNKNOWN. */
struct activity_thread *
activity_thread_get(struct activity_model *m, uint32_t tid)
{
	struct activity_thread *t = ktr_map_get(&m->threads, tid);
	if (t != NULL)
		return heard(m, t);
	if (m->threads.used == m->number_room && !numbers_grow(m))
		return NULL;
	t = calloc(1, sizeof(*t));
	if (t == NULL || !ktr_map_put(&m->threads, tid, t)) {
		free(t);
		return NULL;
	}
	t->tid = tid;
	t->since_ns = m->last_ns;
	t->number = m->numbers[m->threads.used - 1];
	return heard(m, t);
}

void
activity_thread_name(struct activity_thread *t, const char *name, size_t len)
{
	static const char idle[] = "idle/";
	len = len < ACTIVITY_NAME - 1 ? len : ACTIVITY_NAME - 1;
	if (strncmp(t->name, name, len) == 0 && t->name[len] == '\0')
		return;
	memcpy(t->name, name, len);
	t->name[len] = '\0';
	t->idle = strncmp(t->name, idle, sizeof(idle) - 1) == 0 &&
		  isdigit((unsigned char)t->name[sizeof(idle) - 1]);
}

void
activity_thread_state(struct activity_model *m, struct activity_thread *t,
		      enum activity_state state, const char *why, uint64_t ns)
{
	if (state == ACTIVITY_DEAD) {
		t->call = NULL;
		t->depth = 0;
	}
	t->told |= state != ACTIVITY_UNKNOWN;
	t->state = state;
	t->why = why;
	t->since_ns = ns;
	if (state == ACTIVITY_DEAD && !t->listed) {
		t->listed = true;
		t->next = m->dead;
		m->dead = t;
	}
}

static bool
runs(const struct activity_model *m, const struct activity_thread *t)
{
	return m->running[t->cpu] == t;
}

static void
thread_forget(struct activity_model *m, struct activity_thread *t)
{
	if (m->gone != NULL)
		m->gone(m->gone_arg, t);
	unheard(t);
	ktr_map_remove(&m->threads, t->tid);
	m->numbers[m->threads.used] = t->number;
	free(t->calls);
	free(t);
}

/* Frees the dead threads that no CPU runs any more. */
static void
forget_dead(struct activity_model *m)
{
	struct activity_thread **at = &m->dead;
	while (*at != NULL) {
		struct activity_thread *t = *at;
		if (t->state == ACTIVITY_DEAD && runs(m, t)) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		t->listed = false;
		if (t->state == ACTIVITY_DEAD)
			thread_forget(m, t);
	}
}

/*
 * Some traces never tell that a thread is dead. So this frees the threads of which nothing has
 * become known since the last call. It is called again when there are twice as many threads as are
 * left.
 */
static void
forget_unknown(struct activity_model *m)
{
	struct activity_thread *unknown = NULL;
	for (size_t i = 0; i < m->threads.size; i++) {
		struct activity_thread *t = m->threads.pairs[i].value;
		if (t == NULL || t->state != ACTIVITY_UNKNOWN || t->woken || t->listed ||
		    runs(m, t) || t->since_ns >= m->looked_ns)
			continue;
		t->next = unknown;
		unknown = t;
	}
	while (unknown != NULL) {
		struct activity_thread *t = unknown;
		unknown = t->next;
		thread_forget(m, t);
	}
	m->many = m->threads.used * 2 > MANY_MIN ? m->threads.used * 2 : MANY_MIN;
	m->looked_ns = m->last_ns;
}

void
activity_switch(struct activity_model *m, struct activity *a, struct activity_thread *t)
{
	struct activity_thread *prev = m->running[a->cpu];
	a->kind = prev == t ? ACTIVITY_STATE : ACTIVITY_SWITCH;
	if (prev != t) {
		a->other = prev;
		if (prev != NULL &&
		    (prev->state == ACTIVITY_RUNNING || prev->state == ACTIVITY_SPINNING))
			activity_thread_state(m, prev,
					      prev->idle    ? ACTIVITY_RUNNABLE
					      : prev->exits ? ACTIVITY_DEAD
							    : ACTIVITY_UNKNOWN,
					      NULL, a->ns);
		m->running[a->cpu] = t;
	}
	/* A thread runs on one CPU only. What the CPU that it left runs now, no event has told. */
	if (t->cpu != a->cpu && runs(m, t)) {
		m->running[t->cpu] = NULL;
		a->left = (int)t->cpu;
	}
	activity_thread_state(m, t, ACTIVITY_RUNNING, NULL, a->ns);
	t->cpu = a->cpu;
}

int
activity_event(struct activity_model *m, const struct ktr_decode_event *e,
	       struct activity out[ACTIVITY_MAX], const struct activity_thread **by)
{
	int n = 0;
	uint64_t ns = m->last_ns = activity_ns(m, e->header, e->ticks);
	if (m->dead != NULL)
		forget_dead(m);
	if (m->threads.used >= m->many)
		forget_unknown(m);
	const struct meaning *mean = meaning_of(m, e);
	struct activity_thread *t = activity_thread_get(m, e->tid);
	if (mean == NULL || t == NULL)
		return -1;
	*by = t;
	if (e->thread != NULL)
		activity_thread_name(t, e->thread, strlen(e->thread));
	const struct activity blank = {
	    .cpu = e->cpu, .ns = ns, .event = e, .thread = t, .left = -1};
	out[0] = blank;
	if (m->running[e->cpu] != t && !meaning_is_switch(mean, e)) {
		out[0].inferred = true;
		out[0].before = t->state;
		activity_switch(m, &out[n++], t);
	}
	out[n] = blank;
	if (meaning_tell(m, mean, &out[n]))
		n++;
	return n;
}

const struct activity_thread *
activity_gap(struct activity_model *m, const struct ktr_decode_gap *g,
	     const struct activity_thread **ran)
{
	const struct activity_thread *lost = NULL;
	struct activity_thread *next;
	uint64_t ns = activity_ns(m, g->header, g->from_ticks);
	*ran = m->running[g->cpu];
	m->running[g->cpu] = NULL;
	for (struct activity_thread *t = m->heard; t != NULL; t = next) {
		next = t->next_heard;
		if (runs(m, t)) /* at most one a CPU */
			continue;
		unheard(t);
		t->call = NULL;
		t->depth = 0;
		t->woken = false;
		if (t->state == ACTIVITY_DEAD)
			continue;
		activity_thread_state(m, t, ACTIVITY_UNKNOWN, NULL, ns);
		t->next_lost = lost;
		lost = t;
	}
	return lost;
}

void
activity_pass(struct activity_model *m, const struct ktr_decode_event *e)
{
	m->last_ns = activity_ns(m, e->header, e->ticks);
}

uint64_t
activity_now(const struct activity_model *m)
{
	return m->last_ns;
}

uint64_t
activity_ns(const struct activity_model *m, const struct ktr_decode_header *h, uint64_t ticks)
{
	int64_t ns = ktr_decode_ns(h, ticks);
	return ns < 0 || (uint64_t)ns < m->last_ns ? m->last_ns : (uint64_t)ns;
}

const struct activity_thread *
activity_running(const struct activity_model *m, uint32_t cpu)
{
	return cpu < KTR_DECODE_CPUS ? m->running[cpu] : NULL;
}

void
activity_threads(const struct activity_model *m,
		 void (*fn)(void *arg, const struct activity_thread *t), void *arg)
{
	for (size_t i = 0; i < m->threads.size; i++)
		if (m->threads.pairs[i].value != NULL)
			fn(arg, m->threads.pairs[i].value);
}

const char *
activity_state_name(enum activity_state state)
{
	static const char *const names[] = {
	    [ACTIVITY_UNKNOWN] = "unknown",   [ACTIVITY_RUNNING] = "running",
	    [ACTIVITY_SPINNING] = "spinning", [ACTIVITY_RUNNABLE] = "runnable",
	    [ACTIVITY_SLEEPING] = "sleeping", [ACTIVITY_BLOCKED] = "blocked",
	    [ACTIVITY_DEAD] = "dead",
	};
	return names[state];
}

struct activity_model *
activity_create(activity_gone_fn *gone, void *arg)
{
	struct activity_model *m = calloc(1, sizeof(*m));
	if (m != NULL) {
		m->threads = memory_map();
		m->gone = gone;
		m->gone_arg = arg;
		m->many = MANY_MIN;
	}
	return m;
}

void
activity_destroy(struct activity_model *m)
{
	if (m == NULL)
		return;
	meanings_free(m);
	for (size_t i = 0; i < m->threads.size; i++) {
		struct activity_thread *t = m->threads.pairs[i].value;
		if (t != NULL)
			free(t->calls);
		free(t);
	}
	ktr_map_free(&m->threads);
	free(m->numbers);
	free(m);
}
