/*
 * ktr_ring_test.c - the ring under conditions that only a kernel has: timer interrupts and NMIs,
 * migration, a change of its size.
 */
#include "arch/irq.h"
#include "arch/smp.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"
#include "ktr/ktr.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/ktr_help.h"

#define OTHER_WORK       64
#define RUN_NS           100000000ull
#define READ_DEADLINE_NS 60000000000ull
#define RUN_TICKS        20u
#define RUN_MAX_NS       200000000000ull /* in case the test fails before it ends the run */

static bool run_over; /* atomic */
static unsigned other_work = OTHER_WORK;

/* Records until run_over. */
static void
record_a_while(unsigned i, void *arg)
{
	uint64_t *counts = arg, end = clock_ns() + RUN_MAX_NS;

	for (uint64_t n = 0;
	     !__atomic_load_n(&run_over, __ATOMIC_RELAXED) && (n % 256 != 0 || clock_ns() < end);
	     n++) {
		CTR6(KTR_SPARE2, "test: thread %u n %lu sum %lu a %lu b %lu c %lu", i, n, i + n,
		     n ^ 0x5a, ~n, n * 3);
		counts[i] = n + 1;
		/*
		 * Other work between records, so that CPUs are sometimes stopped outside of a
		 * record.
		 */
		for (unsigned k = 0; k < other_work; k++)
			arch_relax();
	}
}

struct whole {
	uint64_t events, interrupts;
};

/* Checks that an event has the parameters of one call of record_a_while(). */
static void
check_whole(unsigned cpu, const struct ktr_entry *e, void *arg)
{
	const struct ktr_site *site = ktr_site_get(e->site);
	struct whole *w = arg;
	uint64_t n = e->args[1];

	KT_ASSERT(site != NULL);
	if (site->classes != KTR_SPARE2) {
		w->interrupts++;
		return;
	}
	w->events++;
	KT_EQ(e->args[0], cpu);
	KT_EQ(e->args[2], cpu + n);
	KT_EQ(e->args[3], n ^ 0x5a);
	KT_EQ(e->args[4], ~n);
	KT_EQ(e->args[5], n * 3);
}

static uint64_t begin_ticks[MAX_CPUS];

/* Has each CPU recorded more events than its ring holds, and taken timer interrupts meanwhile? */
static bool
all_have_run(void *arg)
{
	const uint64_t *counts = arg;
	bool all = true;

	for (unsigned n = 0; n < ncpus; n++)
		all = all && __atomic_load_n(&counts[n], __ATOMIC_RELAXED) > 1024 &&
		      __atomic_load_n(&pcpus[n]->ticks, __ATOMIC_RELAXED) - begin_ticks[n] >=
			  RUN_TICKS;
	return all;
}

KTEST(ktr_ring_stays_whole_and_ordered_under_timer_interrupts)
{
	static uint64_t counts[MAX_CPUS];
	struct whole w = {0};

	ktr_test_begin(1024);
	memset(counts, 0, sizeof(counts));
	for (unsigned n = 0; n < ncpus; n++)
		begin_ticks[n] = __atomic_load_n(&pcpus[n]->ticks, __ATOMIC_RELAXED);
	ktr_mask_set(KTR_SPARE2 | KTR_INTR);
	run_over = false;
	ktest_start(ncpus, true, record_a_while, counts);
	KT_ASSERT(ktest_wait(all_have_run, counts));
	__atomic_store_n(&run_over, true, __ATOMIC_RELAXED);
	ktest_join();
	ktr_mask_set(0);
	ktr_test_each(check_whole, &w);
	ktr_test_accounting();
	KT_GT(w.events, 0);
	ktr_test_end();
}

/*
 * Reads all rings while they are written. Returns how many entries were read whole. With more CPUs
 * than the host has, it may take long until an entry does not change during its copy.
 */
static uint64_t
read_a_while(uint64_t run_ns)
{
	uint64_t tail, head, end = clock_ns() + run_ns, last = clock_ns() + READ_DEADLINE_NS;
	struct whole w = {0};
	struct ktr_entry e;

	for (unsigned cpu = 0; clock_ns() < end || (w.events == 0 && clock_ns() < last);
	     cpu = (cpu + 1) % ncpus) {
		KT_ASSERT(ktr_ring_window(cpu, &tail, &head));
		for (uint64_t seq = tail; seq < head; seq++)
			if (ktr_ring_read(cpu, seq, &e) == KTR_READ_OK)
				check_whole(cpu, &e, &w);
	}
	return w.events;
}

KTEST(ktr_ring_gives_readers_whole_entries_while_all_cpus_record)
{
	static const unsigned sizes[] = {4, 16, 64, 1024};
	static uint64_t counts[MAX_CPUS];

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t whole;

		ktr_test_begin(sizes[i]);
		ktr_mask_set(KTR_SPARE2);
		run_over = false;
		other_work = 0; /* entries are then overwritten as fast as possible */
		ktest_start(ncpus, true, record_a_while, counts);
		whole = read_a_while(RUN_NS);
		__atomic_store_n(&run_over, true, __ATOMIC_RELAXED);
		ktest_join();
		other_work = OTHER_WORK;
		ktr_mask_set(0);
		ktest_note("rings of %u: %lu entries read whole", sizes[i], whole);
		KT_GT(whole, 0);
		ktr_test_accounting();
	}
	ktr_test_end();
}

KTEST(ktr_ring_counts_each_event_that_is_overwritten)
{
	struct ktr_stats before, after;

	ktr_test_begin(64);
	irq_push(); /* stays on this CPU */
	ktr_log_stats_locked(&ktr_main, arch_cpu(), &before);
	irq_pop();
	ktr_mask_set(KTR_SPARE2);
	irq_push();
	ktr_log_stats_locked(&ktr_main, arch_cpu(), &before);
	for (unsigned i = 0; i < 1000; i++)
		CTR1(KTR_SPARE2, "test: overwritten n %u", i);
	ktr_log_stats_locked(&ktr_main, arch_cpu(), &after);
	irq_pop();
	ktr_mask_set(0);
	KT_EQ(after.recorded - before.recorded, 1000);
	KT_EQ(after.resident, 64 - KTR_RING_SPARE);
	KT_EQ(after.overwritten - before.overwritten, 1000 + before.resident - after.resident);
	ktr_test_end();
}

struct nmis {
	uint64_t ours, nmis;
};

static void
count_nmis(unsigned cpu, const struct ktr_entry *e, void *arg)
{
	struct nmis *n = arg;
	const struct ktr_site *site = ktr_site_get(e->site);

	if (site->classes == KTR_SPARE2)
		n->ours++;
	else
		n->nmis += strncmp(site->fmt, "nmi:", 4) == 0;
}

KTEST(ktr_ring_takes_events_from_nmis_and_loses_none)
{
	enum { N = 2000 };
	struct nmis seen = {0};
	uint64_t before, after;

	ktr_test_begin(65536);
	ktr_mask_set(KTR_SPARE2 | KTR_INTR);
	irq_push();
	before = this_pcpu()->nmi_count;
	for (unsigned i = 0; i < N; i++) {
		if (!arch_nmi_send(arch_cpu())) {
			irq_pop();
			ktest_skip("this machine has no NMI");
		}
		for (unsigned k = 0; k < 8; k++) /* the interrupt arrives during these */
			CTR2(KTR_SPARE2, "test: nmi at %u %u", i, k);
	}
	after = this_pcpu()->nmi_count;
	irq_pop();
	ktr_mask_set(0);
	ktr_test_each(count_nmis, &seen);
	KT_EQ(seen.ours, N * 8);
	KT_GT(after - before, 0);
	KT_EQ(seen.nmis, after - before);
	ktr_test_accounting();
	ktr_test_end();
}

#define MIGRANTS   8u
#define MIGRATIONS 1000u

static void
record_and_move(unsigned i, void *arg)
{
	for (unsigned n = 0; n < MIGRATIONS; n++) {
		CTR2(KTR_SPARE2, "test: migrant %u n %u", i, n);
		if (n % 16 == 0)
			thread_sleep_ns(1000, 0, "migrate");
		else
			sched_yield();
	}
}

struct migrants {
	uint8_t seen[MIGRANTS][MIGRATIONS];
	uint64_t cpus[MIGRANTS];
};

static void
count_migrants(unsigned cpu, const struct ktr_entry *e, void *arg)
{
	struct migrants *m = arg;

	KT_LT(e->args[0], MIGRANTS);
	KT_LT(e->args[1], MIGRATIONS);
	m->seen[e->args[0]][e->args[1]]++;
	m->cpus[e->args[0]] |= 1ull << cpu;
}

KTEST(ktr_ring_loses_nothing_of_threads_that_migrate)
{
	static struct migrants m;
	unsigned moved = 0;

	memset(&m, 0, sizeof(m));
	ktr_test_begin(MIGRANTS * MIGRATIONS);
	ktr_mask_set(KTR_SPARE2);
	ktest_start(MIGRANTS, false, record_and_move, NULL);
	ktest_join();
	ktr_mask_set(0);
	ktr_test_each(count_migrants, &m);
	for (unsigned i = 0; i < MIGRANTS; i++) {
		for (unsigned n = 0; n < MIGRATIONS; n++)
			KT_EQ(m.seen[i][n], 1);
		moved += (m.cpus[i] & (m.cpus[i] - 1)) != 0;
	}
	ktest_note("%u of %u threads recorded on more than one CPU", moved, MIGRANTS);
	ktr_test_accounting();
	ktr_test_end();
}

KTEST(ktr_resize_under_load_keeps_the_accounting_exact)
{
	static const unsigned sizes[] = {16, 4096, 64, 16384, 4, 1024, 128, 8192};
	static uint64_t counts[MAX_CPUS];
	struct ktr_stats before[MAX_CPUS], after;
	struct whole w = {0};
	unsigned resized = 0;
	uint64_t end;

	ktr_test_begin(256);
	memset(counts, 0, sizeof(counts));
	for (unsigned cpu = 0; cpu < ncpus; cpu++)
		KT_ASSERT(ktr_stats_get(cpu, &before[cpu]));
	ktr_mask_set(KTR_SPARE2);
	end = clock_ns() + RUN_NS;
	run_over = false;
	ktest_start(ncpus, true, record_a_while, counts);
	/* Each resize stops all CPUs, which takes long on a slow host. */
	while (resized < 4 || (resized < 64 && clock_ns() < end)) {
		thread_sleep_ns(1000000, 0, "resize");
		KT_EQ(ktr_resize(sizes[resized++ % 8]), 0);
	}
	__atomic_store_n(&run_over, true, __ATOMIC_RELAXED);
	ktest_join();
	ktr_mask_set(0);
	ktest_note("%u sizes", resized);
	for (unsigned cpu = 0; cpu < ncpus; cpu++) {
		KT_ASSERT(ktr_stats_get(cpu, &after));
		KT_EQ(after.recorded - before[cpu].recorded, counts[cpu]);
	}
	ktr_test_each(check_whole, &w);
	ktr_test_accounting();
	ktr_test_end();
}

KTEST(ktr_resize_beyond_memory_keeps_the_rings)
{
	struct ktr_stats before, after;

	ktr_test_begin(128);
	ktr_mask_set(KTR_SPARE2);
	for (unsigned i = 0; i < 100; i++)
		CTR1(KTR_SPARE2, "test: keep n %u", i);
	ktr_mask_set(0);
	ktr_test_sum(&before);
	KT_EQ(ktr_resize(KTR_ENTRIES_MAX), -KTR_ENOMEM); /* would need 1 GiB for each CPU */
	KT_EQ(ktr_entries_get(), 128);
	ktr_test_sum(&after);
	KT_EQ(after.recorded, before.recorded);
	KT_EQ(after.resident, before.resident);
	KT_EQ(after.resident, 100);
	ktr_test_end();
}
