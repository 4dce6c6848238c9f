/* span.c - one span is open for each thread and CPU. Each change ends it and begins another. */
#include "ktr/tools/model/span.h"

#include <stdlib.h>
#include <string.h>

#include "ktr/tools/ktrdump.h"
#include "ktr/tools/memory.h"

#define NESTED_MAX 8u

struct open_thread {
	const struct activity_thread *thread; /* NULL: not seen yet */
	enum activity_state state;
	const char *why, *call;
	uint32_t cpu;
	uint64_t from_ns;
	char name[ACTIVITY_NAME];
	const char **functions;
	unsigned depth;
	size_t room;
};

struct open_irq {
	uint32_t number;
	const char *name;
	uint64_t from_ns;
};

struct open_cpu {
	const struct activity_thread *thread;
	bool known; /* from_ns is set */
	uint64_t from_ns;
	/*
	 * Interrupts that have not ended. At a switch, or when there would be too many, their ends
	 * must have been lost, so these interrupts are left out.
	 */
	unsigned nested;
	struct open_irq irqs[NESTED_MAX];
};

struct spans {
	struct span_ops ops;
	void *arg;
	uint64_t since_ns, until_ns; /* the filter's */
	bool any;
	uint64_t first_ns, last_ns;
	unsigned cpu_count;
	struct open_cpu cpus[KTR_DECODE_CPUS];
	struct open_thread *threads; /* by their numbers */
	size_t room;
};

/* Cuts a span to the filter's times. False: nothing is left. */
static bool
cut(const struct spans *s, uint64_t *from_ns, uint64_t *to_ns)
{
	if (*from_ns > s->until_ns || *to_ns < s->since_ns)
		return false;
	*from_ns = *from_ns < s->since_ns ? s->since_ns : *from_ns;
	*to_ns = *to_ns > s->until_ns ? s->until_ns : *to_ns;
	return true;
}

static bool
thread_ends(struct spans *s, const struct open_thread *o, uint64_t ns)
{
	struct span span = {.thread = o->thread,
			    .state = o->state,
			    .why = o->why,
			    .call = o->call,
			    .name = o->name,
			    .functions = o->functions,
			    .depth = o->depth,
			    .cpu = o->cpu,
			    .from_ns = o->from_ns,
			    .to_ns = ns};
	return !cut(s, &span.from_ns, &span.to_ns) || span.from_ns == span.to_ns ||
	       s->ops.thread(s->arg, &span);
}

static struct open_thread *
thread_open(struct spans *s, uint32_t number)
{
	return MEMORY_ROOM(s->threads, s->room, number) ? &s->threads[number] : NULL;
}

static bool
functions_same(const struct open_thread *o, const struct activity_thread *t)
{
	unsigned n = o->depth;
	if (n != t->depth)
		return false;
	while (n > 0 && o->functions[n - 1] == t->calls[n - 1].name)
		n--;
	return n == 0;
}

/* False: no memory. */
static bool
functions_copy(struct open_thread *o, const struct activity_thread *t)
{
	if (!MEMORY_ROOM(o->functions, o->room, t->depth))
		return false;
	for (o->depth = 0; o->depth < t->depth; o->depth++)
		o->functions[o->depth] = t->calls[o->depth].name;
	return true;
}

/* Ends the thread's span if its state, reason, system call, CPU, name or functions have changed. */
static bool
thread_seen(struct spans *s, const struct activity_thread *t, uint64_t ns)
{
	if (t == NULL)
		return true;
	struct open_thread *o = thread_open(s, t->number);
	if (o == NULL)
		return false;
	if (o->thread != NULL && o->state == t->state && o->why == t->why && o->call == t->call &&
	    o->cpu == t->cpu && strcmp(o->name, t->name) == 0 &&
	    (!s->ops.functions || functions_same(o, t)))
		return true;
	if (o->thread != NULL && !thread_ends(s, o, ns))
		return false;
	o->thread = t;
	o->state = t->state;
	o->why = t->why;
	o->call = t->call;
	o->cpu = t->cpu;
	o->from_ns = ns;
	memcpy(o->name, t->name, sizeof(o->name));
	return !s->ops.functions || functions_copy(o, t);
}

static bool
cpu_runs(struct spans *s, uint32_t cpu, const struct activity_thread *t, uint64_t ns)
{
	struct open_cpu *c = &s->cpus[cpu];
	uint64_t from = c->known ? c->from_ns : s->first_ns, to = ns;
	const struct activity_thread *ran = c->thread;
	c->known = true;
	c->thread = t;
	c->from_ns = ns;
	return s->ops.cpu == NULL || !cut(s, &from, &to) || from == to ||
	       s->ops.cpu(s->arg, cpu, ran, from, to);
}

/* Before this, there is nothing to know. */
static void
cpu_starts(struct open_cpu *c, uint64_t ns)
{
	if (c->known)
		return;
	c->known = true;
	c->from_ns = ns;
}

static void
irq_begins(struct open_cpu *c, const struct activity *a)
{
	c->nested = c->nested < NESTED_MAX ? c->nested : 0;
	c->irqs[c->nested++] =
	    (struct open_irq){.number = a->number, .name = a->text, .from_ns = a->ns};
}

static bool
irq_ends(struct spans *s, uint32_t cpu, uint64_t ns)
{
	struct open_cpu *c = &s->cpus[cpu];
	if (c->nested == 0) /* its begin was lost */
		return true;
	const struct open_irq *o = &c->irqs[--c->nested];
	uint64_t from = o->from_ns, to = ns;
	return s->ops.irq == NULL || !cut(s, &from, &to) ||
	       s->ops.irq(s->arg, cpu, c->thread, o->number, o->name, from, to);
}

static bool
irqs_end(struct spans *s, uint32_t cpu, uint64_t ns)
{
	bool good = true;
	while (good && s->cpus[cpu].nested > 0)
		good = irq_ends(s, cpu, ns);
	return good;
}

static void
time_seen(struct spans *s, uint64_t from_ns, uint64_t to_ns)
{
	if (!s->any || from_ns < s->first_ns)
		s->first_ns = from_ns;
	if (!s->any || to_ns > s->last_ns)
		s->last_ns = to_ns;
	s->any = true;
}

static void
cpu_seen(struct spans *s, uint32_t cpu)
{
	if (cpu >= s->cpu_count)
		s->cpu_count = cpu + 1;
}

static bool
activity_seen(struct spans *s, const struct activity *a)
{
	if (!thread_seen(s, a->thread, a->ns) || !thread_seen(s, a->other, a->ns))
		return false;
	if (a->kind == ACTIVITY_SWITCH) {
		if (a->starts)
			cpu_starts(&s->cpus[a->cpu], a->ns);
		s->cpus[a->cpu].nested = 0;
		return (a->left < 0 || cpu_runs(s, (uint32_t)a->left, NULL, a->ns)) &&
		       cpu_runs(s, a->cpu, a->thread, a->ns);
	}
	if (a->kind == ACTIVITY_IRQ_ENTER)
		irq_begins(&s->cpus[a->cpu], a);
	return a->kind != ACTIVITY_IRQ_EXIT || irq_ends(s, a->cpu, a->ns);
}

bool
spans_event(struct spans *s, const struct export_event *ev)
{
	time_seen(s, ev->ns, ev->ns);
	cpu_seen(s, ev->e->cpu);
	for (unsigned i = 0; i < ev->count; i++)
		if (!activity_seen(s, &ev->activities[i]))
			return false;
	return true;
}

bool
spans_gap(struct spans *s, const struct export_gap *gap)
{
	uint32_t cpu = gap->g->cpu;
	uint64_t from = gap->from_ns, to = gap->to_ns;
	time_seen(s, from, to);
	cpu_seen(s, cpu);
	for (const struct activity_thread *t = gap->lost; t != NULL; t = t->next_lost) {
		/* Nothing was known before of a thread without a span. */
		if (t->number < s->room && s->threads[t->number].thread != NULL &&
		    !thread_seen(s, t, from))
			return false;
	}
	if (!irqs_end(s, cpu, from) || !cpu_runs(s, cpu, NULL, from))
		return false;
	return s->ops.lost == NULL || !cut(s, &from, &to) ||
	       s->ops.lost(s->arg, cpu, gap->g->count, from, to);
}

bool
spans_gone(struct spans *s, const struct activity_thread *t)
{
	struct open_thread *o = t->number < s->room ? &s->threads[t->number] : NULL;
	bool good = o == NULL || o->thread == NULL || thread_ends(s, o, s->last_ns);
	if (o != NULL)
		o->thread = NULL;
	return good;
}

bool
spans_end(struct spans *s)
{
	bool good = true;
	for (size_t i = 0; i < s->room && good; i++)
		if (s->threads[i].thread != NULL)
			good = thread_ends(s, &s->threads[i], s->last_ns);
	for (unsigned cpu = 0; cpu < s->cpu_count && good; cpu++)
		good = irqs_end(s, cpu, s->last_ns) && cpu_runs(s, cpu, NULL, s->last_ns);
	return good;
}

void
spans_range(const struct spans *s, uint64_t *from_ns, uint64_t *to_ns)
{
	*from_ns = s->first_ns;
	*to_ns = s->last_ns;
	if (!cut(s, from_ns, to_ns))
		*from_ns = *to_ns = 0;
}

unsigned
spans_cpus(const struct spans *s)
{
	return s->cpu_count;
}

void
spans_begin(struct spans *s, void *arg, const struct ktr_decode_header *h)
{
	s->arg = arg;
	if (h->ncpu > s->cpu_count && h->ncpu <= KTR_DECODE_CPUS)
		s->cpu_count = (unsigned)h->ncpu;
}

struct spans *
spans_create(const struct span_ops *ops, const struct dump_filter *filter)
{
	struct spans *s = calloc(1, sizeof(*s));
	if (s == NULL)
		return NULL;
	s->ops = *ops;
	s->since_ns = filter->since_ns < 0 ? 0 : (uint64_t)filter->since_ns;
	s->until_ns = filter->until_ns < 0 ? 0 : (uint64_t)filter->until_ns;
	return s;
}

void
spans_destroy(struct spans *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->room; i++)
		free(s->threads[i].functions);
	free(s->threads);
	free(s);
}
