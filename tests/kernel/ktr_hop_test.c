/*
 * ktr_hop_test.c - threads that are moved to another CPU at any point of recording an event.
 *
 * In rings of four entries, every fourth event takes the slow path, a part of which is preemptible.
 * On each CPU a thread of higher priority, whose own events are suppressed, wakes and sleeps at
 * random times. Each recording thread counts its events; the sum must equal what the rings counted.
 */
#include <ktr_port.h>

#include "arch/irq.h"
#include "kernel/lib/clock.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "ktr/ktr.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/ktr_help.h"

#define ENTRIES  4
#define HOPPERS  3u
#define TIME_NS  1000000000ull
#define SLEEP_NS 100000u /* sleeps up to five times as long, is busy up to three times as long */

static uint64_t counts[HOPPERS];
static uint64_t end_ns;
static unsigned shakers; /* atomic */

static void
hop(unsigned i, void *arg)
{
	do {
		for (unsigned n = 0; n < 100; n++) {
			CTR2(KTR_SPARE2, "test: hopper %u n %u", i, n);
			counts[i]++;
		}
	} while (clock_ns() < end_ns);
}

static void
shake(void *arg)
{
	uint64_t random = (uintptr_t)arg;

	do {
		uint64_t busy;

		random = random * 6364136223846793005ull + 1442695040888963407ull;
		thread_sleep_ns(SLEEP_NS + (random >> 40) % (4 * SLEEP_NS), 0, "shake");
		busy = clock_ns() + SLEEP_NS + (random >> 30) % (2 * SLEEP_NS);
		do {
			CTR0(KTR_SPARE2, "test: suppressed");
			arch_relax();
		} while (clock_ns() < busy);
	} while (clock_ns() < end_ns);
	__atomic_fetch_sub(&shakers, 1, __ATOMIC_RELEASE);
	thread_exit();
}

static bool
all_still(void *arg)
{
	return __atomic_load_n(&shakers, __ATOMIC_ACQUIRE) == 0;
}

KTEST(ktr_ring_counts_every_event_of_threads_that_lose_their_cpu_anywhere)
{
	struct ktr_stats before, after;
	uint64_t sum = 0;

	if (ncpus == 1)
		ktest_skip("threads move between CPUs");
	ktr_test_begin(ENTRIES);
	ktr_test_sum(&before);
	ktr_mask_set(KTR_SPARE2);
	end_ns = clock_ns() + TIME_NS;
	shakers = ncpus;
	for (unsigned cpu = 0; cpu < ncpus; cpu++) {
		struct thread *t = thread_alloc("shaker", PRIO_KERN, shake, (void *)(uintptr_t)cpu);

		KT_ASSERT(t != NULL);
		t->cpu = cpu;
		t->cpus = 1ul << t->cpu;
		t->ktr_suppress = true;
		wake_up_new_task(t);
	}
	for (unsigned i = 0; i < HOPPERS; i++)
		counts[i] = 0;
	ktest_start(HOPPERS, false, hop, NULL);
	ktest_join();
	KT_ASSERT(ktest_wait(all_still, NULL));
	ktr_mask_set(0);
	ktr_test_sum(&after);
	for (unsigned i = 0; i < HOPPERS; i++)
		sum += counts[i];
	KT_EQ(after.recorded - before.recorded, sum);
	KT_GT(after.suppressed - before.suppressed, 0);
	ktr_test_end();
}
