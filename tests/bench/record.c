/*
 * record.c - what recording an event of six parameters costs on this machine, beside what bounds it
 * and what others do; tests/bench/host.py runs it and makes medians of what it prints.
 *
 * usage: record ROUNDS [SHARED-OBJECT]	with the object that record_lttng.c makes
 *
 * A round measures every subject once, one after the other, so that what the machine does meanwhile
 * hits all alike, and prints `ROUND THREADS SUBJECT TICKS`: ticks of the clock that each of the
 * threads' loops took, their mean. The last line is `hz` and the clock's rate. Thread n is pinned
 * to CPU n; both begin together. A measurement during which a thread lost its CPU is made again.
 *
 * Locking: the barriers pass the plan from thread 0 to thread 1 and the times back.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "ktr/control.h"
#include "ktr/ktr.h"
#include "ktr/ring.h"
#include "tests/bench/record.h"

#define CPUS     2u
#define LOOPS    10000ull
#define ATTEMPTS 1000u

static void
die(const char *what)
{
	fprintf(stderr, "record: %s\n", what);
	exit(1);
}

/* ---- subjects ------------------------------------------------------------------------------ */

static uint64_t floor_slots[CPUS][BENCH_ENTRIES][8] __attribute__((aligned(4096)));

static inline __attribute__((always_inline)) void
floor_store(uint64_t n, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5,
	    uint64_t a6)
{
	volatile uint64_t *slot = floor_slots[bench_cpu.cpu][n % BENCH_ENTRIES];

	slot[0] = __builtin_ia32_rdtsc();
	slot[1] = 1;
	slot[2] = a1;
	slot[3] = a2;
	slot[4] = a3;
	slot[5] = a4;
	slot[6] = a5;
	slot[7] = a6;
}

/* The least that a record of 64 bytes with a time in it can do. */
static __attribute__((noipa)) void
bench_floor(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		floor_store(i, i, n, i + 1, n + 1, i, n);
}

static __attribute__((noipa)) void
floor_call(uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6)
{
	floor_store(a1, a1, a2, a3, a4, a5, a6);
}

/* The same as a function: a site cannot have all that in itself. */
static __attribute__((noipa)) void
bench_floor_called(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		floor_call(i, n, i + 1, n + 1, i, n);
}

static __attribute__((noipa)) void
bench_ktr(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		CTR6(KTR_SPARE2, "bench: a %lu b %lu c %lu d %lu e %lu f %lu", i, n, i + 1, n + 1,
		     i, n);
}

/* Some work that cannot be left away: a step of a generator of random numbers. */
#define WORK(x) ((x) = (x)*6364136223846793005ull + 1)
static volatile uint64_t work_done;

static __attribute__((noipa)) void
bench_no_site(uint64_t n)
{
	uint64_t x = n;

	for (uint64_t i = 0; i < n; i++)
		WORK(x);
	work_done = x;
}

static __attribute__((noipa)) void
bench_site_off(uint64_t n)
{
	uint64_t x = n;

	for (uint64_t i = 0; i < n; i++) {
		WORK(x);
		CTR6(KTR_SPARE3, "bench: a %lu b %lu c %lu d %lu e %lu f %lu", i, n, x, x, i, n);
	}
	work_done = x;
}

static struct subject {
	const char *name;
	bench_loop *loop;  /* NULL: not here */
	unsigned max_cpus; /* as many threads run it at most */
} subjects[] = {
    {"floor", bench_floor, CPUS},        {"floor_called", bench_floor_called, CPUS},
    {"record", bench_ktr, CPUS},         {"shared_index", bench_shared, CPUS},
    {"no_site", bench_no_site, 1},       {"site_off", bench_site_off, 1},
    {"no_site_again", bench_no_site, 1}, {"lttng", NULL, CPUS},
};

#define SUBJECTS    (sizeof(subjects) / sizeof(subjects[0]))
#define LTTNG_INDEX (SUBJECTS - 1)

/* ---- measuring ----------------------------------------------------------------------------- */

static pthread_barrier_t plan_made, plan_done;
static bench_loop *plan; /* NULL: thread 1 ends */
static struct {
	uint64_t ticks;
	bool disturbed;
} taken[CPUS];
static unsigned ready; /* atomic: threads at the start */

static void
become_cpu(unsigned n)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(n, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set) != 0)
		die("two CPUs are needed, 0 and 1");
	bench_cpu = (struct bench_cpu){.ktr_ring = &ktr_ring_none, .tid = 100 + n, .cpu = n};
	bench_cpus[n] = &bench_cpu;
	if (ktr_cpu_init(n) != 0 || ktr_entries_get() != BENCH_ENTRIES)
		die("no ring of the expected size");
}

static long
switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nivcsw + usage.ru_nvcsw;
}

static void
run_part(unsigned n, unsigned threads, bench_loop *loop)
{
	long before = switches();

	loop(BENCH_ENTRIES); /* whatever ran before, the ring is in the cache */
	__atomic_fetch_add(&ready, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < threads)
		;
	uint64_t start = __builtin_ia32_rdtsc();
	loop(LOOPS);
	taken[n].ticks = __builtin_ia32_rdtsc() - start;
	taken[n].disturbed = switches() != before;
}

static void *
second_thread(void *arg)
{
	(void)arg;
	become_cpu(1);
	for (;;) {
		pthread_barrier_wait(&plan_made);
		if (plan == NULL)
			return NULL;
		run_part(1, CPUS, plan);
		pthread_barrier_wait(&plan_done);
	}
}

/* Ticks of one thread's loop, or of both, the mean; 0 when a thread lost its CPU. */
static uint64_t
measure_once(bench_loop *loop, unsigned threads)
{
	ready = 0;
	if (threads == 1) {
		run_part(0, 1, loop);
		return taken[0].disturbed ? 0 : taken[0].ticks;
	}
	plan = loop;
	pthread_barrier_wait(&plan_made);
	run_part(0, CPUS, loop);
	pthread_barrier_wait(&plan_done);
	return taken[0].disturbed || taken[1].disturbed ? 0 : (taken[0].ticks + taken[1].ticks) / 2;
}

static uint64_t
measure(bench_loop *loop, unsigned threads)
{
	for (unsigned i = 0; i < ATTEMPTS; i++) {
		uint64_t ticks = measure_once(loop, threads);
		if (ticks != 0)
			return ticks;
	}
	die("the machine is too busy: no measurement during which no thread lost its CPU");
	return 0;
}

static void
make_round(unsigned long round)
{
	for (unsigned threads = 1; threads <= CPUS; threads++)
		for (struct subject *s = subjects; s < &subjects[SUBJECTS]; s++)
			if (s->loop != NULL && threads <= s->max_cpus)
				printf("%lu %u %s %" PRIu64 "\n", round, threads, s->name,
				       measure(s->loop, threads));
}

static uint64_t
clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
make_rounds(unsigned long rounds)
{
	uint64_t ns = clock_ns(), ticks = __builtin_ia32_rdtsc();

	for (unsigned long round = 0; round < rounds; round++)
		make_round(round);
	ticks = __builtin_ia32_rdtsc() - ticks;
	ns = clock_ns() - ns;
	printf("loops %llu\nhz %llu\n", LOOPS,
	       (unsigned long long)((unsigned __int128)ticks * 1000000000u / ns));
}

static void
load_lttng(const char *path)
{
	void *object = dlopen(path, RTLD_NOW);

	if (object != NULL)
		*(void **)&subjects[LTTNG_INDEX].loop = dlsym(object, BENCH_LTTNG);
	if (subjects[LTTNG_INDEX].loop == NULL)
		die(dlerror());
}

int
main(int argc, char **argv)
{
	pthread_t thread;
	char *end = NULL;
	unsigned long rounds = argc == 2 || argc == 3 ? strtoul(argv[1], &end, 10) : 0;

	if (rounds == 0 || *end != 0) {
		fprintf(stderr, "usage: record ROUNDS [SHARED-OBJECT]\n");
		return 2;
	}
	if (argc == 3)
		load_lttng(argv[2]);
	bench_shared_init();
	become_cpu(0);
	ktr_mask_set(KTR_SPARE2);
	pthread_barrier_init(&plan_made, NULL, CPUS);
	pthread_barrier_init(&plan_done, NULL, CPUS);
	if (pthread_create(&thread, NULL, second_thread, NULL) != 0)
		die("no thread");
	for (struct subject *s = subjects; s < &subjects[SUBJECTS]; s++)
		if (s->loop != NULL)
			measure(s->loop, CPUS); /* touches every page */
	make_rounds(rounds);
	plan = NULL;
	pthread_barrier_wait(&plan_made);
	pthread_join(thread, NULL);
	return 0;
}
