/*
 * ktr_ring_test.c - the rings: what recording, overwriting, tearing and migrating must hold, and
 * what readers find while threads record.
 *
 * Interrupts are injected into record calls by the hosted port's ktr_host_interrupt hook.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ktr/control.h"
#include "ktr/ktr.h"
#include "ktr/port.h"
#include "ktr/ring.h"
#include "tests/unit/ktr_ring_help.h"

static void
boot_ring_is_there_from_the_start(void **state)
{
	(void)state;
	/* Runs first: no ring was made yet. */
	ktr_host_clock = ring_clock;
	ktr_mask_set(KTR_GEN);
	uint64_t first = ring_head(0);
	ring_record(11);
	ring_record(12);
	struct ktr_entry e;
	assert_int_equal(ktr_ring_read(0, first, &e), KTR_READ_OK);
	assert_int_equal(e.args[0], 11);
	/* A CPU without a ring records into nothing, which is counted. */
	ktr_host_cpus = 4;
	ktr_host_cpu = 3;
	ring_record(13);
	struct ktr_stats s = ring_stats(3);
	assert_int_equal(s.recorded, 1);
	assert_int_equal(s.overwritten, 1);
	assert_int_equal(s.resident, 0);
	/* What the boot ring holds moves along. */
	assert_int_equal(ktr_cpu_init(0), 0);
	assert_int_equal(ktr_cpu_init(3), 0);
	assert_int_equal(ktr_ring_read(0, first + 1, &e), KTR_READ_OK);
	assert_int_equal(e.args[0], 12);
	assert_int_equal(ktr_ring_read(3, 0, &e), KTR_READ_GONE);
	ktr_host_cpu = 0;
}

static void
ring_keeps_what_was_recorded(void **state)
{
	(void)state;
	uint64_t first = ring_head(0);
	ktr_host_tid = 77;
	CTR6(KTR_GEN, "%d %d %d %d %d %d", 1, -2, 3, -4, 5, -6);
	CTR0(KTR_GEN, "none");
	struct ktr_entry e;
	assert_int_equal(ktr_ring_read(0, first, &e), KTR_READ_OK);
	assert_int_equal(e.tid, 77);
	assert_int_equal(e.ticks, ring_ticks - 1);
	for (int i = 0; i < 6; i++)
		assert_int_equal((int64_t)e.args[i], i % 2 == 0 ? i + 1 : -(i + 1));
	const struct ktr_site *site = ktr_site_get(e.site);
	assert_non_null(site);
	assert_string_equal(site->fmt, "%d %d %d %d %d %d");
	assert_string_equal(site->func, __func__);
	assert_string_equal(site->file, __FILE__);
	assert_int_equal(site->nargs, 6);
	assert_int_equal(ktr_ring_read(0, first + 1, &e), KTR_READ_OK);
	assert_string_equal(ktr_site_get(e.site)->fmt, "none");
	assert_int_equal(ktr_ring_read(0, first + 2, &e), KTR_READ_FUTURE);
	assert_int_equal(ktr_ring_read(4, 0, &e), KTR_READ_NOCPU);
	assert_int_equal(ktr_ring_read(KTR_PORT_MAXCPU, 0, &e), KTR_READ_NOCPU);
}

static void
ring_overwrite_counts_every_event(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 40; n++) {
		struct ktr_stats before = ring_stats(0);
		uint64_t first = ring_head(0);
		for (unsigned i = 0; i < n; i++)
			ring_record(i);
		struct ktr_stats s = ring_stats(0);
		assert_int_equal(s.recorded, before.recorded + n);
		assert_int_equal(s.resident, n < 4 - before.resident ? before.resident + n : 4);
		assert_int_equal(s.overwritten - before.overwritten,
				 before.resident + n - s.resident);
		for (unsigned i = 0; i < n; i++) {
			struct ktr_entry e;
			enum ktr_read_status status = ktr_ring_read(0, first + i, &e);
			assert_int_equal(status, i + 4 < n ? KTR_READ_GONE : KTR_READ_OK);
			if (status == KTR_READ_OK)
				assert_int_equal(e.args[0], i);
		}
	}
}

static void
site_that_is_off_evaluates_nothing(void **state)
{
	(void)state;
	int evaluated = 0;
	uint64_t first = ring_head(0);
	CTR1(KTR_NET, "%d", ++evaluated);
	assert_int_equal(evaluated, 0);
	assert_int_equal(ring_head(0), first);
	for (int i = 0; i < 3; i++) {
		ktr_mask_set(i == 1 ? KTR_NET : 0);
		CTR1(KTR_NET, "%d", ++evaluated);
	}
	assert_int_equal(evaluated, 1);
	assert_int_equal(ring_head(0), first + 1);
}

static enum ktr_host_step nest_at;
static unsigned nest_count;

/* Once, at one step: that many events from an interrupt. */
static void
nest(enum ktr_host_step step)
{
	if (step != nest_at)
		return;
	ktr_host_interrupt = NULL;
	for (unsigned i = 0; i < nest_count; i++)
		ring_record(1000 + i);
}

static void
nested_interrupts_keep_order_and_lose_nothing_silently(void **state)
{
	(void)state;
	for (nest_at = KTR_HOST_READ_HEAD; nest_at <= KTR_HOST_CLAIMED; nest_at++) {
		for (nest_count = 0; nest_count <= 9; nest_count++) {
			uint64_t first = ring_head(0), last_ticks = 0;
			unsigned whole = 0;
			ktr_host_interrupt = nest;
			ring_record(5);
			ktr_host_interrupt = NULL;
			assert_int_equal(ring_head(0), first + nest_count + 1);
			uint64_t tail, end;
			ktr_ring_window(0, &tail, &end);
			for (uint64_t seq = tail > first ? tail : first; seq < end; seq++) {
				struct ktr_entry e;
				if (ktr_ring_read(0, seq, &e) != KTR_READ_OK)
					continue;
				whole++;
				assert_true(e.ticks > last_ticks);
				last_ticks = e.ticks;
				assert_int_equal(e.args[1], ~e.args[0]);
				/* The outer event was claimed last, unless it was claimed already.
				 */
				uint64_t outer =
				    nest_at == KTR_HOST_CLAIMED ? first : first + nest_count;
				assert_int_equal(e.args[0] == 5, seq == outer);
			}
			/* An outer writer that is late by a turn spoils one slot, never more. */
			bool lapped = nest_at == KTR_HOST_CLAIMED && nest_count >= 4;
			unsigned kept = nest_count + 1 < 4 ? nest_count + 1 : 4;
			assert_int_equal(whole, kept - lapped);
			ring_stats(0);
		}
	}
}

static void
late_writer_never_shows_its_words_under_a_newer_lap(void **state)
{
	(void)state;
	/* Lapped by whole turns: the slot that the late writer fills belongs to a newer event by
	 * then. */
	for (nest_count = 4; nest_count <= 16; nest_count += 4) {
		nest_at = KTR_HOST_CLAIMED;
		uint64_t first = ring_head(0);
		ktr_host_interrupt = nest;
		ring_record(5);
		struct ktr_entry e;
		assert_int_equal(ktr_ring_read(0, first, &e), KTR_READ_GONE);
		assert_int_equal(ktr_ring_read(0, first + nest_count, &e), KTR_READ_UNPUBLISHED);
	}
}

static void
torn_event_is_never_read(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		uint64_t first = ring_head(0);
		ring_record(1);
		ring_record_torn();
		ring_record(2);
		struct ktr_entry e;
		assert_int_equal(ktr_ring_read(0, first, &e), KTR_READ_OK);
		assert_int_equal(ktr_ring_read(0, first + 1, &e), KTR_READ_UNPUBLISHED);
		assert_int_equal(ktr_ring_read(0, first + 2, &e), KTR_READ_OK);
		assert_int_equal(e.args[0], 2);
	}
}

static unsigned migrate_to;
static enum ktr_host_step migrate_at;

static void
migrate(enum ktr_host_step step)
{
	if (step != migrate_at)
		return;
	ktr_host_interrupt = NULL;
	ktr_host_cpu = migrate_to;
}

static void
migration_inside_a_record_call_harms_nothing(void **state)
{
	(void)state;
	for (migrate_at = KTR_HOST_READ_HEAD; migrate_at <= KTR_HOST_CLAIMED; migrate_at++) {
		ktr_clear();
		migrate_to = 2;
		ktr_host_cpu = 1;
		/* Same sequence numbers on both: only the CPU in the word tells them apart. */
		while (ring_head(1) != ring_head(2)) {
			ktr_host_cpu = ring_head(1) < ring_head(2) ? 1 : 2;
			ring_record(0);
		}
		ktr_host_cpu = 1;
		uint64_t seq = ring_head(1);
		ktr_host_interrupt = migrate;
		ring_record(42);
		ktr_host_interrupt = NULL;
		/* Claimed on 1 before it moved, or on 2 after it: that CPU's ring has it, whole. */
		unsigned cpu = migrate_at == KTR_HOST_CLAIMED ? 1 : 2;
		assert_int_equal(ring_head(cpu), seq + 1);
		assert_int_equal(ring_head(3 - cpu), seq);
		struct ktr_entry e;
		assert_int_equal(ktr_ring_read(cpu, seq, &e), KTR_READ_OK);
		assert_int_equal(e.args[0], 42);
		assert_int_equal(e.args[1], ~42ull);
		ring_stats(1);
		ring_stats(2);
		ktr_host_cpu = 0;
	}
}

static void
lap_that_wraps_is_not_taken_for_this_turn(void **state)
{
	(void)state;
	/* 32768 turns of 4 give the same lap: the head tells. */
	uint64_t first = ring_head(0);
	ring_record(1);
	for (uint64_t i = 0; i < 32768ull * 4 - 1; i++)
		ring_record(2);
	ring_record(3);
	struct ktr_entry e;
	assert_int_equal(ring_head(0), first + 32768ull * 4 + 1);
	assert_int_equal(ktr_ring_read(0, first, &e), KTR_READ_GONE);
	assert_int_equal(ktr_ring_read(0, first + 32768ull * 4, &e), KTR_READ_OK);
	assert_int_equal(e.args[0], 3);
}

/*
 * Writers on two CPUs, threads on each that the host preempts anywhere; a reader checks whatever it
 * gets. It waits as a stream does: without, a writer that is late by a turn in the middle of its
 * fill may show it a mixed entry (ktr_inject_test).
 */
#define STRESS_EVENTS 200000

static bool stress_done;

struct stress_seen {
	uint64_t whole;
	struct ktr_entry mixed; /* the last one that was not */
	bool any_mixed;
};

static void *
stress_writer(void *arg)
{
	unsigned id = (unsigned)(uintptr_t)arg;
	if (!ktr_host_enter())
		return NULL;
	ktr_host_tid = id;
	for (uint64_t i = 0; i < STRESS_EVENTS; i++) {
		ktr_host_cpu = (unsigned)(id + (i >> 8)) % 2;
		uint64_t v = i << 8 | id;
		CTR6(KTR_GEN, "%lu %lu %lu %lu %lu %lu", v, v + 1, v + 2, v + 3, v + 4, v + 5);
		ktr_host_pass();
	}
	ktr_host_leave();
	return arg;
}

static void
stress_look(unsigned cpu, struct stress_seen *seen)
{
	uint64_t tail, end;
	ktr_port_lock(); /* against the resizing below, as readers do */
	ktr_ring_window(cpu, &tail, &end);
	ktr_port_quiesce();
	for (uint64_t seq = tail; seq < end; seq++) {
		struct ktr_entry e;
		if (ktr_ring_read(cpu, seq, &e) != KTR_READ_OK)
			continue;
		bool whole = (e.args[0] & 0xff) == e.tid;
		for (unsigned i = 1; i < 6; i++)
			whole = whole && e.args[i] == e.args[0] + i;
		seen->whole += whole;
		if (!whole) {
			seen->mixed = e;
			seen->any_mixed = true;
		}
	}
	ktr_port_unlock();
}

static void *
stress_reader(void *arg)
{
	bool last;
	do {
		last = __atomic_load_n(&stress_done, __ATOMIC_ACQUIRE);
		for (unsigned cpu = 0; cpu < 2; cpu++)
			stress_look(cpu, arg);
	} while (!last);
	return NULL;
}

static void
stress_every_entry_is_whole_and_counted(void **state)
{
	(void)state;
	ktr_host_clock = NULL;
	uint64_t before = ring_stats(0).recorded + ring_stats(1).recorded;
	pthread_t writers[4], reader;
	struct stress_seen seen = {0};
	stress_done = false;
	assert_int_equal(pthread_create(&reader, NULL, stress_reader, &seen), 0);
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&writers[i], NULL, stress_writer, (void *)(i + 1)),
				 0);
	for (unsigned i = 0; i < 100;
	     i++) /* 4 to 65536: some hold what is recorded while it waits */
		assert_int_equal(ktr_resize(4u << i % 8 * 2), 0);
	for (unsigned i = 0; i < 4; i++) {
		void *arg;
		pthread_join(writers[i], &arg);
		assert_non_null(arg);
	}
	__atomic_store_n(&stress_done, true, __ATOMIC_RELEASE);
	pthread_join(reader, NULL);
	assert_int_equal(ring_stats(0).recorded + ring_stats(1).recorded,
			 before + 4 * STRESS_EVENTS);
	assert_true(seen.whole > 0);
	if (seen.any_mixed)
		fail_msg("%u: %#lx %#lx %#lx %#lx %#lx %#lx", seen.mixed.tid, seen.mixed.args[0],
			 seen.mixed.args[1], seen.mixed.args[2], seen.mixed.args[3],
			 seen.mixed.args[4], seen.mixed.args[5]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(boot_ring_is_there_from_the_start),
	    cmocka_unit_test_setup(ring_keeps_what_was_recorded, ring_begin),
	    cmocka_unit_test_setup(ring_overwrite_counts_every_event, ring_begin),
	    cmocka_unit_test_setup(site_that_is_off_evaluates_nothing, ring_begin),
	    cmocka_unit_test_setup(nested_interrupts_keep_order_and_lose_nothing_silently,
				   ring_begin),
	    cmocka_unit_test_setup(late_writer_never_shows_its_words_under_a_newer_lap, ring_begin),
	    cmocka_unit_test_setup(torn_event_is_never_read, ring_begin),
	    cmocka_unit_test_setup(migration_inside_a_record_call_harms_nothing, ring_begin),
	    cmocka_unit_test_setup(lap_that_wraps_is_not_taken_for_this_turn, ring_begin),
	    cmocka_unit_test_setup(stress_every_entry_is_whole_and_counted, ring_begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
