/*
 * ktr_account_test.c - exact accounts: a stream delivers each event or says why not, and the rings
 * count the same.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ktr/control.h"
#include "ktr/port.h"
#include "ktr/stream.h"
#include "tests/unit/ktr_ring_help.h"
#include "tests/unit/ktr_stream_help.h"

static void
overwritten_events_are_reported_and_counted(void **state)
{
	struct ktr_stats before = ring_stats(0);
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	for (uint64_t i = 0; i < 200; i++)
		ring_record(i);
	struct ktr_stats s = ring_stats(0);
	assert_int_equal(s.resident, 64 - KTR_RING_SPARE);
	assert_int_equal(s.overwritten - before.overwritten, 136 + KTR_RING_SPARE);
	stream_drain_to_end(&account, 1000);
	s = ring_stats(0);
	assert_int_equal(s.resident, 0);
	assert_int_equal(s.delivered - before.delivered, 64 - KTR_RING_SPARE);
	assert_int_equal(s.overwritten - before.overwritten, 136 + KTR_RING_SPARE);
	stream_decode();
	assert_int_equal(seen.events[0], 64 - KTR_RING_SPARE);
	assert_int_equal(seen.gaps[KTR_GAP_OVERWRITTEN], 136 + KTR_RING_SPARE);
	assert_int_equal(seen.damages, 0);
}

static void
cleared_events_are_reported_as_such(void **state)
{
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	for (uint64_t i = 0; i < 10; i++)
		ring_record(i);
	ktr_clear();
	ring_record(11);
	stream_drain_to_end(&account, 1000);
	ring_stats(0);
	stream_decode();
	assert_int_equal(seen.gaps[KTR_GAP_CLEARED], 10);
	assert_int_equal(seen.events[0], 1);
}

/* However large the buffer is, each frame's events are accounted for when the frame is taken. */
static void
large_buffer_holds_no_more_frames_than_can_be_counted(void **state)
{
	static uint8_t buf[2 << 20];
	const uint64_t events = 100000;
	const uint8_t *bytes;
	unsigned most = 0;
	assert_int_equal(ktr_resize(1u << 17), 0);
	struct ktr_stats before = ring_stats(0);
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	ktr_stream_buffer(&account, buf, sizeof(buf));
	for (uint64_t i = 0; i < events; i++)
		ring_record(i * 0x9e3779b97f4a7c15u);
	for (size_t n; (n = ktr_stream_peek(&account, &bytes)) > 0;) {
		memcpy(stream_buf + stream_len, bytes, n);
		stream_len += n;
		most = account.frame_count > most ? account.frame_count : most;
		ktr_stream_taken(&account, n - 1);
		ring_stats(0);
		ktr_stream_taken(&account, 1);
	}
	assert_int_equal(most, KTR_STREAM_FRAMES);
	assert_int_equal(ring_stats(0).delivered - before.delivered, events);
	assert_int_equal(ring_stats(0).resident, 0);
	stream_drain_to_end(&account, 1000);
	stream_decode();
	assert_int_equal(seen.events[0], events);
	assert_int_equal(seen.damages, 0);
}

static struct ktr_stream other;

static void
readers_do_not_disturb_the_accounts(void **state)
{
	/* Readers begin where the accounts begin. */
	ktr_clear();
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	stream_drain(&account, 1000);
	stream_len = 0;
	ring_record(1);
	ring_record(2);
	struct ktr_stats before = ring_stats(0);
	ktr_stream_open(&other, KTR_STREAM_LIVE);
	stream_drain(&other, 1000);
	struct ktr_stats s = ring_stats(0);
	assert_int_equal(s.delivered, before.delivered);
	assert_int_equal(s.resident, before.resident);
	stream_decode(); /* a live stream may end after a mark */
	assert_int_equal(seen.damages, 0);
	assert_true(seen.events[0] >= 2);
	/* Only events from here on. */
	ktr_stream_open(&other, KTR_STREAM_LIVE | KTR_STREAM_NOW);
	ring_record(3);
	stream_len = 0;
	stream_drain(&other, 1000);
	stream_decode();
	assert_int_equal(seen.events[0], 1);
}

static void
drain_inside(enum ktr_host_step step)
{
	if (step != KTR_HOST_PUBLISH)
		return;
	ktr_host_interrupt = NULL;
	ktr_host_in_sync = false;
	/* The second pass could use the first pass's time as a mark. */
	stream_drain(&account, 1000);
	stream_drain(&account, 1000);
	ktr_host_in_sync = true;
}

static void
unfinished_event_is_not_in_the_stream(void **state)
{
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	ring_record(1);
	ktr_host_interrupt = drain_inside;
	ring_record(2);
	assert_int_equal(ring_stats(0).resident, 1);
	stream_drain_to_end(&account, 1000);
	assert_int_equal(ring_stats(0).resident, 0);
	stream_decode();
	assert_int_equal(seen.events[0], 2);
	assert_int_equal(seen.before_mark, 0);
	assert_int_equal(seen.damages, 0);
}

static void
stopped_machine_is_dumped_without_lock_and_wait(void **state)
{
	ring_record(1);
	ring_record(2);
	ktr_port_lock();
	ktr_host_in_sync = false;
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT | KTR_STREAM_STOPPED);
	stream_drain_to_end(&account, 1000);
	ktr_host_in_sync = true;
	ktr_port_unlock();
	stream_decode();
	assert_int_equal(seen.events[0], 2);
	assert_int_equal(seen.ends, 1);
	assert_int_equal(seen.damages, 0);
}

static void
truncated_stream_says_what_it_leaves(void **state)
{
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	ring_record(1);
	stream_drain(&account, 1000);
	ring_record(2);
	ring_record(3);
	ktr_stream_close(&account, true);
	stream_drain(&account, 1000);
	stream_decode();
	assert_int_equal(seen.events[0], 1);
	assert_int_equal(seen.gaps[KTR_GAP_LEFT], 2);
	assert_int_equal(seen.ends, 1);
}

/* The accounts of both CPUs since `before`. They must add up. */
static struct ktr_stats
account_since(const struct ktr_stats before[2])
{
	struct ktr_stats sum = {0};
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		struct ktr_stats s = ring_stats(cpu);
		sum.recorded += s.recorded - before[cpu].recorded;
		sum.delivered += s.delivered - before[cpu].delivered;
		sum.overwritten += s.overwritten - before[cpu].overwritten;
		sum.resident += s.resident;
	}
	return sum;
}

/* Events on two CPUs: some are overwritten, some cleared, and one is alone in its batch. */
static void
record_some(void)
{
	for (uint64_t i = 0; i < 100; i++)
		ring_record(i);
	ktr_host_cpu = 1;
	for (uint64_t i = 0; i < 10; i++)
		ring_record(i);
	ktr_clear();
	ring_record(10);
	ktr_host_cpu = 0;
	for (uint64_t i = 100; i < 130; i++)
		ring_record(i);
}

/* A sink that accepts `limit` bytes of the accounting stream. True: it accepted all. */
static bool
sink_takes(size_t limit)
{
	const uint8_t *bytes;
	size_t n;
	for (unsigned piece = 1; (n = ktr_stream_peek(&account, &bytes)) > 0;
	     piece = piece * 7 % 61) {
		n = n < piece ? n : piece;
		if (n > limit)
			n = limit;
		memcpy(stream_buf + stream_len, bytes, n);
		stream_len += n;
		limit -= n;
		ktr_stream_taken(&account, n);
		if (limit == 0)
			return false;
	}
	return true;
}

/* The accounts must equal what a reader of the accepted bytes finds. */
static void
account_is_what_the_bytes_say(const struct ktr_stats before[2])
{
	struct ktr_stats sum = account_since(before);
	stream_decode();
	assert_int_equal(sum.delivered, seen.events[0] + seen.events[1]);
	assert_true(sum.overwritten >= seen.gaps[KTR_GAP_OVERWRITTEN] + seen.gaps[KTR_GAP_CLEARED]);
	assert_false(seen.bad_order);
}

static void
sink_that_fails_at_any_byte_leaves_right_accounts(void **state)
{
	bool all = false;
	damage_expected = true;
	for (size_t limit = 1; !all; limit++) {
		stream_begin(state);
		struct ktr_stats before[2] = {ring_stats(0), ring_stats(1)};
		ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
		record_some();
		all = sink_takes(limit);
		account_is_what_the_bytes_say(before);
		/* Later there is another sink, or the same one accepts bytes again. */
		ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
		ring_record(130);
		stream_drain_to_end(&account, 1000);
		account_is_what_the_bytes_say(before);
		struct ktr_stats sum = account_since(before);
		assert_int_equal(sum.resident, 0);
		assert_int_equal(sum.recorded, 142);
		assert_int_equal(sum.recorded, seen.events[0] + seen.events[1] +
						   seen.gaps[KTR_GAP_OVERWRITTEN] +
						   seen.gaps[KTR_GAP_CLEARED]);
		assert_int_equal(seen.gaps[KTR_GAP_DAMAGED], 0);
		assert_true(seen.damages <= 1);
	}
	damage_expected = false;
}

static void
stream_to_a_line_that_stalls_at_any_byte_ends_correctly(void **state)
{
	bool all = false;
	for (size_t limit = 1; !all; limit++) {
		stream_begin(state);
		struct ktr_stats before[2] = {ring_stats(0), ring_stats(1)};
		ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
		record_some();
		all = sink_takes(limit);
		/* The flush gives the sink up, but it accepts the stream's end after all. */
		ktr_stream_close(&account, !all);
		while (!sink_takes(1000))
			;
		struct ktr_stats sum = account_since(before);
		account_is_what_the_bytes_say(before);
		assert_int_equal(seen.damages, 0);
		assert_int_equal(seen.ends, 1);
		assert_int_equal(seen.gaps[KTR_GAP_LEFT], sum.recorded - sum.delivered -
							      seen.gaps[KTR_GAP_OVERWRITTEN] -
							      seen.gaps[KTR_GAP_CLEARED]);
	}
}

/* Events of frames that are dropped are lost when they are overwritten, also before the next
 * stream.
 */
static void
dropped_frames_do_not_hide_what_is_lost(void **state)
{
	struct ktr_stats before = ring_stats(0);
	const uint8_t *bytes;
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	for (uint64_t i = 0; i < 40; i++)
		ring_record(i);
	assert_true(ktr_stream_peek(&account, &bytes) > 0); /* they are in frames */
	ktr_stream_close(&account, true);
	for (uint64_t i = 40; i < 100; i++)
		ring_record(i);
	uint64_t lost = 100 - (64 - KTR_RING_SPARE);
	struct ktr_stats s = ring_stats(0);
	assert_int_equal(s.overwritten - before.overwritten, lost);
	assert_int_equal(s.lost - before.lost, lost);
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	assert_int_equal(ring_stats(0).lost - before.lost, lost);
}

/* Recording goes on while the accounting stream is drained, and rings are resized and cleared. */
#define STRESS_EVENTS 100000

static void *
stress_writer(void *arg)
{
	ktr_host_tid = (uint32_t)(uintptr_t)arg;
	ktr_host_cpu = ktr_host_tid % 2;
	assert_true(ktr_host_enter());
	for (uint64_t i = 0; i < STRESS_EVENTS; i++) {
		ring_record(i);
		ktr_host_pass();
	}
	ktr_host_leave();
	return NULL;
}

static bool stress_over;

/* Accounts requested meanwhile must be exact, too. */
static void *
stress_accountant(void *arg)
{
	uint64_t *wrong = arg;
	for (unsigned cpu = 0; !__atomic_load_n(&stress_over, __ATOMIC_ACQUIRE); cpu = !cpu) {
		struct ktr_stats s;
		*wrong += !ktr_stats_get(cpu, &s) ||
			  s.recorded != s.delivered + s.resident + s.overwritten;
	}
	return NULL;
}

static void
stress_accounts_hold_to_the_last_event(void **state)
{
	struct ktr_stats before[2] = {ring_stats(0), ring_stats(1)};
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	pthread_t writers[2];
	for (uintptr_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&writers[i], NULL, stress_writer, (void *)(i + 2)),
				 0);
	pthread_t accountant;
	uint64_t wrong = 0;
	stress_over = false;
	assert_int_equal(pthread_create(&accountant, NULL, stress_accountant, &wrong), 0);
	uint64_t recorded = 0;
	for (unsigned round = 0; recorded < 2 * STRESS_EVENTS; round++) {
		stream_drain(&account, 4096);
		if (round % 16 == 5)
			ktr_resize(16u << round % 5);
		if (round % 64 == 9)
			ktr_clear();
		recorded = ring_stats(0).recorded - before[0].recorded + ring_stats(1).recorded -
			   before[1].recorded;
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(writers[i], NULL);
	__atomic_store_n(&stress_over, true, __ATOMIC_RELEASE);
	pthread_join(accountant, NULL);
	assert_int_equal(wrong, 0);
	stream_drain_to_end(&account, 4096);
	stream_decode();
	assert_int_equal(seen.damages, 0);
	assert_false(seen.bad_order);
	uint64_t lost = 0;
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		struct ktr_stats s = ring_stats(cpu);
		assert_int_equal(s.recorded - before[cpu].recorded, STRESS_EVENTS);
		assert_int_equal(s.resident, 0);
		assert_int_equal(s.delivered - before[cpu].delivered, seen.events[cpu]);
		lost += s.overwritten - before[cpu].overwritten;
	}
	assert_int_equal(lost, seen.gaps[KTR_GAP_OVERWRITTEN] + seen.gaps[KTR_GAP_CLEARED]);
	assert_int_equal(seen.events[0] + seen.events[1] + lost, 2 * STRESS_EVENTS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(overwritten_events_are_reported_and_counted, stream_begin),
	    cmocka_unit_test_setup(large_buffer_holds_no_more_frames_than_can_be_counted,
				   stream_begin),
	    cmocka_unit_test_setup(cleared_events_are_reported_as_such, stream_begin),
	    cmocka_unit_test_setup(readers_do_not_disturb_the_accounts, stream_begin),
	    cmocka_unit_test_setup(unfinished_event_is_not_in_the_stream, stream_begin),
	    cmocka_unit_test_setup(stopped_machine_is_dumped_without_lock_and_wait, stream_begin),
	    cmocka_unit_test_setup(truncated_stream_says_what_it_leaves, stream_begin),
	    cmocka_unit_test_setup(sink_that_fails_at_any_byte_leaves_right_accounts, stream_begin),
	    cmocka_unit_test_setup(stream_to_a_line_that_stalls_at_any_byte_ends_correctly,
				   stream_begin),
	    cmocka_unit_test_setup(dropped_frames_do_not_hide_what_is_lost, stream_begin),
	    cmocka_unit_test_setup(stress_accounts_hold_to_the_last_event, stream_begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
