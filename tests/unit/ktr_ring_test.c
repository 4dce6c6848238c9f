/*
 * ktr_ring_test.c - the rings: recording, overwriting, and what readers find while threads record.
 * tests/unit/ktr_inject_test.c interrupts record calls.
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

/* Another CPU has begun the boot ring, recorded in it, and cleared it. */
static void
begin_and_clear(enum ktr_host_step step)
{
	ktr_host_interrupt = NULL;
	ring_record(10);
	ktr_clear();
}

static void
boot_ring_is_there_from_the_start(void **state)
{
	/* This test runs first: no ring has been made yet. */
	ktr_host_clock = ring_clock;
	ktr_mask_set(KTR_GEN);
	struct ktr_ring *boot = &ktr_boot_ring.ring;
	*boot = (struct ktr_ring){.entries = 0}; /* as before anybody looked at it */
	ktr_host_interrupt = begin_and_clear;
	uint64_t first = ring_head(0);
	assert_int_equal(first, 1);
	assert_int_equal(boot->check, KTR_RING_CHECK(boot->entries, 0, boot->base, boot->start));
	ring_record(11);
	ring_record(12);
	struct ktr_entry e;
	assert_int_equal(ktr_ring_read(0, first, &e), KTR_READ_OK);
	assert_int_equal(e.args[0], 11);
	/* A CPU without a ring refuses events, and counts them. */
	ktr_host_cpus = 4;
	ktr_host_cpu = 3;
	ring_record(13);
	assert_int_equal(ktr_ring_read(3, 0, &e), KTR_READ_NOCPU);
	/* The events of the boot ring move to the new ring. */
	assert_int_equal(ktr_cpu_init(0), 0);
	assert_int_equal(ktr_cpu_init(3), 0);
	assert_int_equal(ktr_ring_read(0, first + 1, &e), KTR_READ_OK);
	assert_int_equal(e.args[0], 12);
	struct ktr_stats s = ring_stats(3);
	assert_int_equal(s.recorded, 0);
	assert_int_equal(s.suppressed, 1);
	ktr_host_cpu = 0;
}

static void
ring_keeps_what_was_recorded(void **state)
{
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
	for (unsigned n = 1; n <= 40; n++) {
		struct ktr_stats before = ring_stats(0);
		uint64_t first = ring_head(0);
		for (unsigned i = 0; i < n; i++)
			ring_record(i);
		struct ktr_stats s = ring_stats(0);
		assert_int_equal(s.recorded, before.recorded + n);
		assert_int_equal(s.resident,
				 n < RING_KEPT - before.resident ? before.resident + n : RING_KEPT);
		assert_int_equal(s.overwritten - before.overwritten,
				 before.resident + n - s.resident);
		for (unsigned i = 0; i < n; i++) {
			struct ktr_entry e;
			enum ktr_read_status status = ktr_ring_read(0, first + i, &e);
			assert_int_equal(status, i + RING_KEPT < n ? KTR_READ_GONE : KTR_READ_OK);
			if (status == KTR_READ_OK)
				assert_int_equal(e.args[0], i);
		}
	}
}

static void
site_that_is_off_evaluates_nothing(void **state)
{
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

/*
 * Two CPUs with a writer each, which the host may preempt anywhere. A reader checks what it gets.
 */
#define STRESS_EVENTS 50000

static bool stress_done;

struct stress_seen {
	uint64_t whole;
	struct ktr_entry mixed; /* the last event that was not whole */
	bool any_mixed;
};

static void *
stress_writer(void *arg)
{
	unsigned id = (unsigned)(uintptr_t)arg;
	if (!ktr_host_enter())
		return NULL;
	ktr_host_tid = id;
	ktr_host_cpu = id - 1;
	for (uint64_t i = 0; i < STRESS_EVENTS; i++) {
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
	ktr_port_lock(); /* keeps the resizing below away, as readers do */
	ktr_ring_window(cpu, &tail, &end);
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
	ktr_host_clock = NULL;
	uint64_t before = ring_stats(0).recorded + ring_stats(1).recorded;
	pthread_t writers[2], reader;
	struct stress_seen seen = {0};
	stress_done = false;
	assert_int_equal(pthread_create(&reader, NULL, stress_reader, &seen), 0);
	for (uintptr_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&writers[i], NULL, stress_writer, (void *)(i + 1)),
				 0);
	for (unsigned i = 0; i < 40; i++) /* 4 to 65536 */
		assert_int_equal(ktr_resize(4u << i % 8 * 2), 0);
	for (unsigned i = 0; i < 2; i++) {
		void *arg;
		pthread_join(writers[i], &arg);
		assert_non_null(arg);
	}
	__atomic_store_n(&stress_done, true, __ATOMIC_RELEASE);
	pthread_join(reader, NULL);
	assert_int_equal(ring_stats(0).recorded + ring_stats(1).recorded,
			 before + 2 * STRESS_EVENTS);
	assert_true(seen.whole > 0);
	if (seen.any_mixed)
		fail_msg("%u: %#lx %#lx %#lx %#lx %#lx %#lx", seen.mixed.tid, seen.mixed.args[0],
			 seen.mixed.args[1], seen.mixed.args[2], seen.mixed.args[3],
			 seen.mixed.args[4], seen.mixed.args[5]);
}

/* Records one more event in a log that fills. */
static bool
fill_record(struct ktr_log *log, uint64_t n)
{
	return ktr_log_record(log, ktr_site_get(0), (uint64_t[KTR_MAXARGS]){n, 1, 2, 3, 4, ~n});
}

static void
log_that_fills_refuses_what_has_no_room(void **state)
{
	static struct ktr_log log = {.name = "test", .policy = KTR_POLICY_FILL};
	struct ktr_entry e;
	struct ktr_stats stats;
	assert_int_equal(ktr_log_open(&log, RING_ENTRIES), 0);
	for (unsigned n = 0; n < 2 * RING_ENTRIES; n++)
		assert_int_equal(fill_record(&log, n), n < RING_KEPT);
	/* A reader has taken the first event, so there is room for one. */
	__atomic_store_n(&log.cpu[0].cursor, 1, __ATOMIC_RELEASE);
	assert_true(fill_record(&log, RING_KEPT));
	assert_false(fill_record(&log, RING_KEPT + 1));
	for (uint64_t seq = 1; seq <= RING_KEPT; seq++) {
		assert_int_equal(ktr_log_read(&log, 0, seq, &e), KTR_READ_OK);
		assert_int_equal(e.args[0], seq);
		assert_int_equal(e.args[5], ~seq);
	}
	assert_true(ktr_log_stats(&log, 0, &stats));
	assert_int_equal(stats.recorded, RING_KEPT + 1);
	assert_int_equal(stats.resident, RING_KEPT);
	assert_int_equal(stats.dropped, 2 * RING_ENTRIES - RING_KEPT + 1);
	ktr_log_close(&log);
}

static struct ktr_log closed_log = {.name = "closed"};
static unsigned closed_waits;

/* Comes where ktr_log_close() waits for those who record. */
static void
closed_log_wait(void)
{
	struct ktr_stats stats;
	closed_waits++;
	assert_false(ktr_log_stats_locked(&closed_log, 0, &stats));
	assert_false(fill_record(&closed_log, 1));
}

static void
log_that_is_closed_waits_for_those_who_record(void **state)
{
	assert_int_equal(ktr_log_open(&closed_log, RING_ENTRIES), 0);
	assert_true(fill_record(&closed_log, 0));
	closed_waits = 0;
	ktr_host_wait = closed_log_wait;
	ktr_log_close(&closed_log);
	ktr_host_wait = NULL;
	assert_int_equal(closed_waits, 1);
	assert_int_equal(closed_log.cpu[0].suppressed, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(boot_ring_is_there_from_the_start),
	    cmocka_unit_test_setup(ring_keeps_what_was_recorded, ring_begin),
	    cmocka_unit_test_setup(ring_overwrite_counts_every_event, ring_begin),
	    cmocka_unit_test_setup(site_that_is_off_evaluates_nothing, ring_begin),
	    cmocka_unit_test_setup(log_that_fills_refuses_what_has_no_room, ring_begin),
	    cmocka_unit_test_setup(log_that_is_closed_waits_for_those_who_record, ring_begin),
	    cmocka_unit_test_setup(stress_every_entry_is_whole_and_counted, ring_begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
