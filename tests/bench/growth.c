/*
 * growth.c - the cost of an event as rings grow, and as the number of sites grows.
 * tests/bench/growth.py runs it and computes medians.
 *
 * usage: growth rings|sites  compiled with -DSITES=N, the number of sites in the program
 *
 * rings: `ROUND ENTRIES WHAT TICKS` for each size of the ring. WHAT is record, or floor: a clock
 * read and a store of 64 bytes into as large a ring. sites: `ROUND SITES WHAT TICKS`. WHAT is
 * record: events of all sites in turn; encode: the stream of these; switch: setting and clearing
 * the mask. TICKS are for one event or one site, times SCALE.
 *
 * Locking: one thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/control.h"
#include "ktr/ktr.h"
#include "ktr/ring.h"
#include "ktr/stream.h"
#include "tests/bench/record.h"

#define SCALE     1000u
#define ROUNDS    15u
#define RING_MIN  1024u
#define RING_MAX  (1024u * 1024)
#define EVENTS    200000u
#define ALL_TURNS 4096u

/* Sites without code: the program records their events itself. */
static struct ktr_site sites[SITES] __attribute__((section("ktr_sites"), used)) = {
    [0 ... SITES - 1] = {.file = __FILE__,
			 .func = "growth",
			 .fmt = "growth: a %lu b %lu",
			 .classes = KTR_SPARE2,
			 .line = __LINE__,
			 .nargs = 2},
};

static void
print_line(unsigned round, uint64_t size, const char *what, uint64_t start, uint64_t n)
{
	uint64_t ticks = __builtin_ia32_rdtsc() - start;

	printf("%u %" PRIu64 " %s %" PRIu64 "\n", round, size, what, ticks * SCALE / n);
}

static void
record_turn(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		ktr_record2(&sites[i % SITES], i, n);
}

static void
floor_turn(uint64_t (*slots)[8], uint64_t mask, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		volatile uint64_t *slot = slots[i & mask];

		slot[0] = __builtin_ia32_rdtsc();
		for (unsigned word = 1; word < 8; word++)
			slot[word] = i;
	}
}

static int
measure_ring(unsigned entries)
{
	uint64_t(*slots)[8] = aligned_alloc(4096, entries * sizeof(*slots));
	uint64_t start;

	if (slots == NULL || ktr_resize(entries) != 0)
		return -1;
	/* Touch every page first. */
	record_turn(entries);
	floor_turn(slots, entries - 1, entries);
	for (unsigned round = 0; round < ROUNDS; round++) {
		start = __builtin_ia32_rdtsc();
		record_turn(EVENTS);
		print_line(round, entries, "record", start, EVENTS);
		start = __builtin_ia32_rdtsc();
		floor_turn(slots, entries - 1, EVENTS);
		print_line(round, entries, "floor", start, EVENTS);
	}
	free(slots);
	return 0;
}

/* Encodes all events of the ring and discards the bytes. */
static void
drain(struct ktr_stream *s)
{
	static char buf[65536];

	while (ktr_stream_read(s, buf, sizeof(buf)) > 0)
		;
}

static int
measure_sites(void)
{
	static struct ktr_stream stream;
	/* Each site occurs at least four times, so that the SITE frames do not dominate. */
	uint64_t n = SITES > ALL_TURNS ? SITES * 4ull : ALL_TURNS * 4ull;
	uint64_t start;

	if (ktr_resize((unsigned)(2 * n)) != 0)
		return -1;
	ktr_stream_open(&stream, KTR_STREAM_ACCOUNT);
	for (unsigned round = 0; round < ROUNDS; round++) {
		start = __builtin_ia32_rdtsc();
		record_turn(n);
		print_line(round, SITES, "record", start, n);
		start = __builtin_ia32_rdtsc();
		drain(&stream);
		print_line(round, SITES, "encode", start, n);
		start = __builtin_ia32_rdtsc();
		ktr_mask_set(0);
		ktr_mask_set(KTR_SPARE2);
		print_line(round, SITES, "switch", start, SITES);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";
	int failed = 0;

	bench_cpu = (struct bench_cpu){.ktr_ring = &ktr_ring_none, .tid = 100};
	bench_cpus[0] = &bench_cpu;
	if (ktr_cpu_init(0) != 0)
		return 1;
	ktr_mask_set(KTR_SPARE2);
	if (strcmp(what, "rings") == 0) {
		for (unsigned n = RING_MIN; n <= RING_MAX && failed == 0; n *= 4)
			failed = measure_ring(n);
	} else if (strcmp(what, "sites") == 0) {
		failed = measure_sites();
	} else {
		fprintf(stderr, "usage: growth rings|sites\n");
		return 2;
	}
	if (failed != 0)
		fprintf(stderr, "growth: no memory for the rings\n");
	return failed != 0;
}
