/*
 * record_shared.c - a ring with one index that all CPUs share: the algorithm of FreeBSD's
 * ktr_tracepoint(), written anew for the record benchmark.
 *
 * A record marks its thread as tracing, claims an index by a locked compare-and-swap, and fills an
 * entry of 88 bytes; the clock is read after the claim. The size of the entries adds to the cost:
 * 88 bytes lie in two or three cache lines.
 *
 * Locking: none; the index is atomic.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "tests/bench/record.h"

#include <ktr_port.h>

#include "ktr/class.h"

struct shared_entry {
	uint64_t ticks;
	int cpu;
	int line;
	const char *file;
	const char *format;
	const void *thread;
	uint64_t args[6];
};

_Static_assert(sizeof(struct shared_entry) == 88, "as FreeBSD's struct ktr_entry");

static struct shared_entry *shared_ring;
static uint32_t shared_index; /* atomic */
/*
 * Written before there are threads. volatile, since a kernel's record loads these variables each
 * time.
 */
static volatile uint64_t shared_mask = KTR_SPARE2, shared_cpus = ~0ull;
static volatile uint32_t shared_entries = BENCH_ENTRIES;
static _Thread_local volatile bool shared_busy;

static __attribute__((noipa)) void
shared_record(uint64_t classes, const char *file, int line, const char *format, uint64_t a1,
	      uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6)
{
	if ((shared_mask & classes) == 0 || shared_ring == NULL)
		return;
	unsigned cpu = bench_cpu.cpu;
	if ((shared_cpus >> cpu & 1) == 0 || shared_busy)
		return;
	shared_busy = true;

	uint32_t index = __atomic_load_n(&shared_index, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&shared_index, &index, (index + 1) % shared_entries,
					    false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	struct shared_entry *e = &shared_ring[index];
	e->ticks = __builtin_ia32_rdtsc();
	e->cpu = (int)cpu;
	e->thread = &bench_cpu;
	e->file = file;
	e->line = line;
	e->format = format;
	e->args[0] = a1;
	e->args[1] = a2;
	e->args[2] = a3;
	e->args[3] = a4;
	e->args[4] = a5;
	e->args[5] = a6;
	shared_busy = false;
}

void
bench_shared_init(void)
{
	shared_ring = calloc(BENCH_ENTRIES, sizeof(*shared_ring));
	if (shared_ring == NULL)
		abort();
}

void
bench_shared(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		shared_record(KTR_SPARE2, __FILE__, __LINE__,
			      "bench: a %lu b %lu c %lu d %lu e %lu f %lu", i, n, i + 1, n + 1, i,
			      n);
}
