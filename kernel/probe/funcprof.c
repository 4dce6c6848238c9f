/*
 * funcprof.c - the function profiler.
 *
 * Locking: `funcs` changes while no hook counts. Each CPU writes its own counters, and a thread's
 * calls are written by the CPU on which it runs, in a hook: interrupts are off, and hooks do not
 * interrupt each other.
 */
#include "kernel/probe/funcprof.h"

#include <stddef.h>

#include "kernel/abi/errno.h"
#include "kernel/lib/clock.h"
#include "kernel/mm/kmap.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "ktr/site.h"

/*
 * The sites of functions, which mkfbt writes one after the other: entry, return, entry, …. A
 * function that does not return has no site for it; one that jumps to others has one for each of
 * them. Functions have the numbers of their entries.
 */
static struct {
	struct funcprof *counters; /* [CPU][site]; NULL: it does not run */
	const struct ktr_site *first;
	unsigned count; /* of sites */
	uint32_t run;   /* number of this run; calls of others are forgotten */
} funcs;

int
funcprof_start(void)
{
	const struct ktr_site *first = __start_ktr_sites, *end = first + ktr_site_count();
	unsigned count = 0;

	if (funcs.counters != NULL)
		return -EBUSY;
	while (first < end && first->kind != KTR_SITE_ENTRY)
		first++;
	while (first + count < end &&
	       (first[count].kind == KTR_SITE_ENTRY || first[count].kind == KTR_SITE_RETURN))
		count++;
	funcs.first = first;
	funcs.count = count;
	funcs.run++;
	funcs.counters = kmap_alloc(sizeof(struct funcprof) * count * ncpus);
	return funcs.counters != NULL ? 0 : -ENOMEM;
}

void
funcprof_stop(void)
{
	kmap_free(funcs.counters);
	funcs.counters = NULL;
}

static void
funcprof_enter(struct thread_calls *calls, struct funcprof *p, unsigned n)
{
	p->hits++;
	if (calls->depth < THREAD_CALLS)
		calls->call[calls->depth] =
		    (struct thread_call){.function = n, .start_ns = clock_ns()};
	calls->depth++;
}

static void
funcprof_add(struct funcprof *p, uint64_t ns, uint64_t child_ns)
{
	unsigned __int128 square = (unsigned __int128)p->square[1] << 64 | p->square[0];

	square += (unsigned __int128)ns * ns;
	p->timed++;
	p->ns += ns;
	p->self_ns += ns - child_ns;
	p->square[0] = (uint64_t)square;
	p->square[1] = (uint64_t)(square >> 64);
}

/* Calls above the one that returns have not returned: their entry was counted, and no more. */
static void
funcprof_leave(struct thread_calls *calls, struct funcprof *p, unsigned n)
{
	uint32_t depth = calls->depth;

	if (depth > THREAD_CALLS) {
		calls->depth--; /* too deep to be timed; the function may be another, if one did not
				   return */
		return;
	}
	while (depth > 0 && calls->call[depth - 1].function != n)
		depth--;
	if (depth == 0)
		return; /* it was entered before its probe was on */
	struct thread_call *call = &calls->call[depth - 1];
	uint64_t ns = clock_ns() - call->start_ns;

	funcprof_add(p, ns, call->child_ns);
	calls->depth = depth - 1;
	if (depth > 1)
		call[-1].child_ns += ns;
}

void
funcprof_count(const struct ktr_firing *f)
{
	struct thread *t = curthread();
	bool entry = f->site->kind == KTR_SITE_ENTRY;
	size_t n = (size_t)(f->site - funcs.first);

	if (t == NULL || f->site < funcs.first || n >= funcs.count)
		return;
	while (funcs.first[n].kind == KTR_SITE_RETURN)
		n--;
	struct funcprof *p = &funcs.counters[arch_cpu() * funcs.count + n];
	struct thread_calls *calls = &t->calls;

	if (calls->run != funcs.run) {
		calls->run = funcs.run;
		calls->depth = 0;
	}
	if (entry)
		funcprof_enter(calls, p, (unsigned)n);
	else
		funcprof_leave(calls, p, (unsigned)n);
}

const char *
funcprof_get(unsigned n, unsigned cpu, struct funcprof *to)
{
	if (funcs.counters == NULL || n >= funcs.count || cpu >= ncpus)
		return NULL;
	*to = funcs.counters[cpu * funcs.count + n];
	return funcs.first[n].func;
}
