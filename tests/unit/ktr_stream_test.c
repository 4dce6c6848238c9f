/*
 * ktr_stream_test.c - streams over live rings: what a pass covers, where it stops and continues,
 * and what a reader needs to know about sites and threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ktr/intern.h"
#include "ktr/ktr.h"
#include "ktr/port.h"
#include "ktr/stream.h"
#include "tests/unit/ktr_ring_help.h"
#include "tests/unit/ktr_stream_help.h"

static void
pass_covers_what_was_recorded_before_it(void **state)
{
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	assert_true(stream_drain(&account, 100) > 0); /* header and mark, even without events */
	assert_int_equal(stream_drain(&account, 100), 0);
	ring_record(1);
	ring_record(2);
	ktr_host_cpu = 1;
	ring_record(3);
	assert_int_equal(ktr_stream_pending(&account), 3);
	assert_true(stream_drain(&account, 100) > 0);
	assert_int_equal(ktr_stream_pending(&account), 0);
	assert_true(stream_drain(&account, 100) >
		    0); /* the mark up to which the pass is complete */
	assert_int_equal(stream_drain(&account, 100), 0);
	ktr_stream_close(&account, false);
	stream_drain(&account, 100);
	assert_int_equal(stream_drain(&account, 100), 0);
	stream_decode();
	assert_int_equal(seen.events[0], 2);
	assert_int_equal(seen.events[1], 1);
	assert_int_equal(seen.marks, 3);
	assert_int_equal(seen.events_below_mark, 3);
	assert_int_equal(seen.ends, 1);
	assert_int_equal(seen.damages, 0);
}

static void
stream_stops_and_goes_on_at_any_byte(void **state)
{
	for (size_t piece = 1; piece < 30; piece++) {
		stream_len = 0;
		ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
		for (uint64_t i = 0; i < 60; i++)
			ring_record(i);
		stream_drain_to_end(&account, piece);
		stream_decode();
		assert_int_equal(seen.events[0], 60);
		assert_int_equal(seen.damages, 0);
		assert_false(seen.bad_order);
	}
}

static void
reader_that_goes_on_until_0_gets_one_pass_however_busy_the_rings(void **state)
{
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	stream_drain(&account, 100);
	for (uint64_t i = 0; i < 60; i++)
		ring_record(i);
	size_t n;
	unsigned reads = 0;
	while ((n = ktr_stream_read(&account, stream_buf + stream_len, 7)) > 0) {
		stream_len += n;
		ring_record(1000);
		assert_true(++reads < 1000);
	}
	assert_true(ktr_stream_pending(&account) > 0);
}

static bool late;
static unsigned reads_until; /* an interrupt at a read of an entry; 0: none */
static uint64_t late_value;

static void
record_more_than_a_ring(void)
{
	for (unsigned i = 0; i < STREAM_ENTRIES; i++)
		ring_record(++late_value);
}

/* Events are recorded between the time that a pass reads and the events that it covers. */
static uint64_t
late_clock(void)
{
	uint64_t t = ring_clock();
	if (late) {
		late = false;
		record_more_than_a_ring();
	}
	return t;
}

static void
interrupt_of_a_reader(enum ktr_host_step step)
{
	if (step == KTR_HOST_READ && reads_until > 0 && --reads_until == 0)
		record_more_than_a_ring();
}

/* The first loss ends at an event of the pass; then nothing is left of the pass. */
static void
losses_of_a_pass_that_began_earlier_are_in_order(void **state)
{
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	ktr_host_clock = late_clock;
	ktr_host_interrupt = interrupt_of_a_reader;
	for (unsigned n = 1; n < 40; n++) {
		ring_record(++late_value);
		reads_until = n;
		late = true;
		stream_drain(&account, 100);
	}
	ktr_host_clock = ring_clock;
	ktr_host_interrupt = NULL;
	stream_drain_to_end(&account, 100);
	stream_decode();
	assert_true(seen.gaps[KTR_GAP_OVERWRITTEN] > 0);
	assert_false(seen.bad_order);
}

static unsigned reads_that_record;

static void
writer_beside_a_reader(enum ktr_host_step step)
{
	if (step == KTR_HOST_READ && reads_that_record > 0) {
		reads_that_record--;
		ring_record(++late_value);
	}
}

/* A writer outruns the reader for a while. Then events from before the pass can still be read. */
static void
loss_ends_before_the_events_that_are_left(void **state)
{
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	ktr_host_interrupt = writer_beside_a_reader;
	for (unsigned n = 1; n < 3 * STREAM_ENTRIES; n++) {
		for (unsigned i = 0; i < 2 * STREAM_ENTRIES; i++)
			ring_record(++late_value);
		reads_that_record = n;
		stream_drain(&account, 100);
	}
	ktr_host_interrupt = NULL;
	stream_drain_to_end(&account, 100);
	stream_decode();
	assert_true(seen.gaps[KTR_GAP_OVERWRITTEN] > 0);
	assert_false(seen.bad_order);
}

static void
reopened_stream_goes_on_where_the_last_one_stopped(void **state)
{
	for (uint64_t i = 0; i < 5; i++) {
		ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
		ring_record(i);
		stream_drain_to_end(&account, 1000);
		ring_record(i);
	}
	stream_decode();
	assert_int_equal(seen.events[0], 9);
	assert_int_equal(seen.ends, 5);
	assert_int_equal(seen.damages, 0);
}

/* Whatever the values are: two that share a place in the encoder's table do not come in turn. */
static void
string_comes_once(void **state)
{
	const uint64_t golden = 0x9e3779b97f4a7c15u, first = (uintptr_t)ktr_thread_ident(1);
	uint32_t second = 2;
	while (((uintptr_t)ktr_thread_ident(second) * golden) >> 54 != first * golden >> 54)
		second++;
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	for (unsigned n = 0; n < 100; n++) {
		CTR2(KTR_GEN, "%s to %s", ktr_thread_ident(1), ktr_thread_ident(second));
		CTR2(KTR_GEN, "%s to %s", ktr_thread_ident(second), ktr_thread_ident(1));
		if (n % 20 == 0)
			stream_drain(&account, 1000);
	}
	stream_drain_to_end(&account, 1000);
	stream_decode();
	assert_int_equal(seen.events[0], 200);
	assert_true(stream_len < 200 * 12 + 1000);
}

static void
metadata_comes_again_so_that_a_reader_may_begin_in_the_middle(void **state)
{
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	uint64_t n = 0;
	while (stream_len < KTR_STREAM_REPEAT + 600000) {
		for (unsigned i = 0; i < 60; i++, n++)
			CTR6(KTR_GEN, "%lu %lx %lx %lx %lx %s", n, n * 0x123456789abcdef1,
			     n * 0x23456789abcdef12, n * 0x3456789abcdef123, n * 0x456789abcdef1234,
			     "text");
		stream_drain(&account, 1000);
	}
	ktr_stream_close(&account, false);
	stream_drain(&account, 1000);
	size_t cut = KTR_STREAM_REPEAT - 200000;
	memmove(stream_buf, stream_buf + cut, stream_len - cut);
	stream_len -= cut;
	stream_decode();
	assert_true(seen.damages <= 1); /* the frame that was cut; the header came later */
	assert_true(seen.events[0] > 10000);
	assert_true(seen.known);
	assert_false(seen.bad_order);
	assert_int_equal(seen.gaps[KTR_GAP_DAMAGED], 0);
}

/* At the beginning, after a pass in which it was changed, and at the end. */
static void
mask_is_told(void **state)
{
	ktr_mask_set(0);
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	stream_drain(&account, 100);
	ktr_mask_set(KTR_GEN);
	for (unsigned i = 0; i < 3; i++) {
		ring_record(i);
		stream_drain(&account, 100);
	}
	ktr_mask_set(KTR_PROC);
	stream_drain_to_end(&account, 100);
	stream_decode();
	assert_int_equal(seen.damages, 0);
	assert_int_equal(seen.events[0], 3);
	const uint64_t expected[] = {0, KTR_GEN, KTR_PROC, KTR_PROC};
	assert_int_equal(seen.masks, 4);
	assert_memory_equal(seen.mask, expected, sizeof(expected));
}

static void
thread_s_new_name_is_reported(void **state)
{
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	ktr_thread_name(1, "before");
	ring_record(1);
	stream_drain(&account, 1000);
	stream_decode();
	assert_string_equal(seen.thread, "before");
	ktr_thread_name(1, "after");
	ring_record(2);
	stream_drain(&account, 1000);
	stream_decode();
	assert_string_equal(seen.thread, "after");
}

static unsigned
stream_count(const char *text)
{
	unsigned n = 0;
	for (size_t at = 0; at + strlen(text) <= stream_len; at++)
		n += memcmp(stream_buf + at, text, strlen(text)) == 0;
	return n;
}

static void
names_of_threads_that_run_in_turn_come_once(void **state)
{
	static const uint32_t tids[] = {5, 5 + KTR_ENCODER_THREADS};
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	ktr_thread_name(tids[0], "the parent");
	ktr_thread_name(tids[1], "the child");
	for (unsigned i = 0; i < 1000; i++) {
		ktr_host_tid = tids[i % 2];
		ring_record(i);
		stream_drain(&account, 1000);
	}
	ktr_host_tid = 1;
	assert_int_equal(stream_count("the parent"), 1);
	assert_int_equal(stream_count("the child"), 1);
}

#define TEXT_64 "a text that has 64 bytes and none of them is zero, four times o"
static void
frame_with_a_long_run_of_bytes_that_are_not_zero_is_read(void **state)
{
	static const char text[] = TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64;
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	CTR0(KTR_GEN, TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64);
	stream_drain_to_end(&account, 1000);
	stream_decode();
	assert_int_equal(seen.damages, 0);
	assert_int_equal(seen.fmt_len,
			 strlen(text) < KTR_WIRE_FMT_MAX ? strlen(text) : KTR_WIRE_FMT_MAX);
}

static void
every_event_of_a_damaged_frame_is_missed(void **state)
{
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	stream_drain(&account, 1000);
	size_t header = stream_len;
	for (uint64_t i = 0; i < 3; i++) {
		ring_record(i);
		stream_drain(&account, 1000);
	}
	ktr_stream_close(&account, false);
	stream_drain(&account, 1000);
	unsigned missed = 0;
	damage_expected = true;
	for (size_t at = header; at < stream_len; at++) {
		stream_buf[at] ^= 0x10;
		stream_decode();
		stream_buf[at] ^= 0x10;
		assert_int_equal(seen.events[0] + seen.gaps[KTR_GAP_DAMAGED], 3);
		missed += seen.gaps[KTR_GAP_DAMAGED] == 1;
	}
	damage_expected = false;
	assert_true(missed > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(pass_covers_what_was_recorded_before_it, stream_begin),
	    cmocka_unit_test_setup(stream_stops_and_goes_on_at_any_byte, stream_begin),
	    cmocka_unit_test_setup(reader_that_goes_on_until_0_gets_one_pass_however_busy_the_rings,
				   stream_begin),
	    cmocka_unit_test_setup(losses_of_a_pass_that_began_earlier_are_in_order, stream_begin),
	    cmocka_unit_test_setup(loss_ends_before_the_events_that_are_left, stream_begin),
	    cmocka_unit_test_setup(reopened_stream_goes_on_where_the_last_one_stopped,
				   stream_begin),
	    cmocka_unit_test_setup(string_comes_once, stream_begin),
	    cmocka_unit_test_setup(metadata_comes_again_so_that_a_reader_may_begin_in_the_middle,
				   stream_begin),
	    cmocka_unit_test_setup(mask_is_told, stream_begin),
	    cmocka_unit_test_setup(thread_s_new_name_is_reported, stream_begin),
	    cmocka_unit_test_setup(names_of_threads_that_run_in_turn_come_once, stream_begin),
	    cmocka_unit_test_setup(frame_with_a_long_run_of_bytes_that_are_not_zero_is_read,
				   stream_begin),
	    cmocka_unit_test_setup(every_event_of_a_damaged_frame_is_missed, stream_begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
