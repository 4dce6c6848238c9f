/*
 * funcprof.c - the function profiler.
 *
 * Locking: `funcs` changes while no hook counts. Each CPU writes its own counters.
 */
#include "kernel/probe/funcprof.h"

#include "kernel/abi/errno.h"
#include "kernel/lib/clock.h"
#include "kernel/mm/kmap.h"
#include "kernel/probe/calls.h"
#include "kernel/sync/pcpu.h"
#include "ktr/site.h"

/* Functions have the numbers of their entries, among the sites of all functions. */
static struct {
	struct funcprof *counters; /* [CPU][site]; NULL: it does not run */
	const struct ktr_site *first;
	unsigned count; /* of sites */
	bool paused;    /* atomic */
} funcs;

int
funcprof_start(void)
{
	const struct ktr_site *first = __start_ktr_sites, *end = first + ktr_site_count();
	unsigned count = 0;

	if (!calls_start())
		return -EBUSY;
	while (first < end && first->kind != KTR_SITE_ENTRY)
		first++;
	while (first + count < end &&
	       (first[count].kind == KTR_SITE_ENTRY || first[count].kind == KTR_SITE_RETURN))
		count++;
	funcs.first = first;
	funcs.count = count;
	funcs.counters = kmap_alloc(sizeof(struct funcprof) * count * ncpus);
	funcprof_pause(false);
	if (funcs.counters != NULL)
		return 0;
	calls_stop();
	return -ENOMEM;
}

void
funcprof_stop(void)
{
	kmap_free(funcs.counters);
	funcs.counters = NULL;
	calls_stop();
}

static void
funcprof_square(uint64_t sum[2], uint64_t ns)
{
	unsigned __int128 square = (unsigned __int128)sum[1] << 64 | sum[0];

	square += (unsigned __int128)ns * ns;
	sum[0] = (uint64_t)square;
	sum[1] = (uint64_t)(square >> 64);
}

static void
funcprof_add(struct funcprof *p, uint64_t ns, uint64_t child_ns)
{
	p->timed++;
	p->ns += ns;
	p->self_ns += ns - child_ns;
	funcprof_square(p->square, ns);
	funcprof_square(p->self_square, ns - child_ns);
}

static void
funcprof_leave(struct thread_calls *calls, struct funcprof *p, unsigned n)
{
	struct thread_call *call = calls_leave(calls, n);

	if (call == NULL)
		return;
	uint64_t ns = clock_ns() - call->start_ns;

	funcprof_add(p, ns, call->child_ns);
	if (calls->depth > 0)
		call[-1].child_ns += ns;
}

void
funcprof_count(const struct ktr_firing *f)
{
	struct thread_calls *calls = calls_mine();

	if (calls == NULL || __atomic_load_n(&funcs.paused, __ATOMIC_RELAXED) ||
	    f->site < funcs.first || f->site >= funcs.first + funcs.count)
		return;
	unsigned n = (unsigned)(calls_function(f->site) - funcs.first);
	struct funcprof *p = &funcs.counters[arch_cpu() * funcs.count + n];

	if (f->site->kind == KTR_SITE_ENTRY) {
		p->hits++;
		calls_enter(calls, n);
	} else {
		funcprof_leave(calls, p, n);
	}
}

void
funcprof_pause(bool paused)
{
	__atomic_store_n(&funcs.paused, paused, __ATOMIC_RELAXED);
}

const char *
funcprof_get(unsigned n, unsigned cpu, struct funcprof *to)
{
	if (funcs.counters == NULL || n >= funcs.count || cpu >= ncpus)
		return NULL;
	*to = funcs.counters[cpu * funcs.count + n];
	return funcs.first[n].func;
}
