/*
 * ktr_size_test.c - resizing and clearing rings: what remains can be read, and what is lost is
 * counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ktr/control.h"
#include "ktr/port.h"
#include "ktr/ring.h"
#include "tests/unit/ktr_ring_help.h"

static void
resize_keeps_the_newest_that_fit(void **state)
{
	static const unsigned sizes[] = {64, 16, 1024, 8, 4, 32};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (unsigned n = 0; n < 20; n++)
			ring_record(ring_head(0));
		uint64_t tail, end, tail2, end2;
		struct ktr_stats before = ring_stats(0);
		ktr_ring_window(0, &tail, &end);
		assert_int_equal(ktr_resize(sizes[i]), 0);
		assert_int_equal(ktr_entries_get(), sizes[i]);
		ktr_ring_window(0, &tail2, &end2);
		assert_int_equal(end2, end);
		uint64_t room = sizes[i] - KTR_RING_SPARE;
		uint64_t kept = end - tail < room ? end - tail : room;
		assert_int_equal(end2 - tail2, kept);
		struct ktr_stats s = ring_stats(0);
		assert_int_equal(s.recorded, before.recorded);
		assert_int_equal(s.resident, kept);
		assert_int_equal(s.cleared - before.cleared, before.resident - kept);
		for (uint64_t seq = tail2; seq < end2; seq++) {
			struct ktr_entry e;
			assert_int_equal(ktr_ring_read(0, seq, &e), KTR_READ_OK);
			assert_int_equal(e.args[0], seq);
		}
	}
}

/* While resize_copies_beside_writers() copies. */
static unsigned copied_while_recording, copied_while_waiting, records_left, records_each = 1;

static void
on_copy(enum ktr_host_step step)
{
	if (step != KTR_HOST_READ)
		return;
	*(ktr_host_exchanges ? &copied_while_waiting : &copied_while_recording) += 1;
	for (unsigned n = 0; n < records_each && records_left > 0 && !ktr_host_exchanges; n++) {
		records_left--;
		ring_record(ring_head(0));
	}
}

static void
resize_copies_beside_writers(void **state)
{
	assert_int_equal(ktr_resize(64), 0);
	for (unsigned n = 0; n < 100; n++)
		ring_record(ring_head(0));
	uint64_t before = ring_head(0), tail, head;
	records_left = 50;
	ktr_host_interrupt = on_copy;
	assert_int_equal(ktr_resize(128), 0);
	ktr_host_interrupt = NULL;
	assert_int_equal(ring_head(0), before + 50);
	assert_int_equal(copied_while_waiting, 0);
	assert_true(copied_while_recording >= 64 - KTR_RING_SPARE);
	ktr_ring_window(0, &tail, &head);
	assert_int_equal(head - tail, 64 - KTR_RING_SPARE);
	for (uint64_t seq = tail; seq < head; seq++) {
		struct ktr_entry e;
		assert_int_equal(ktr_ring_read(0, seq, &e), KTR_READ_OK);
		assert_int_equal(e.args[0], seq);
	}
	ring_stats(0);
}

/* Nothing is recorded while CPUs wait; what they have recorded meanwhile is more each time. */
static void
resize_does_not_make_cpus_wait_long(void **state)
{
	assert_int_equal(ktr_resize(1u << 15), 0);
	for (unsigned n = 0; n < 1u << 14; n++)
		ring_record(ring_head(0));
	struct ktr_stats before = ring_stats(0);
	uint64_t tail, head;
	copied_while_recording = copied_while_waiting = 0;
	records_left = UINT32_MAX;
	records_each = 2;
	ktr_host_interrupt = on_copy;
	assert_int_equal(ktr_resize(1u << 16), 0);
	ktr_host_interrupt = NULL;
	records_each = 1;
	assert_true(copied_while_recording > 1u << 16);
	assert_in_range(copied_while_waiting, 1, 1u << 12);
	ktr_ring_window(0, &tail, &head);
	assert_in_range(head - tail, 1u << 10, 1u << 12);
	for (uint64_t seq = tail; seq < head; seq++) {
		struct ktr_entry e;
		assert_int_equal(ktr_ring_read(0, seq, &e), KTR_READ_OK);
		assert_int_equal(e.args[0], seq);
	}
	struct ktr_stats s = ring_stats(0);
	assert_int_equal(s.resident, head - tail);
	assert_int_equal(s.overwritten, s.cleared + s.lost);
	assert_true(s.cleared > before.cleared);
	ktr_resize(RING_ENTRIES);
}

static void
resize_rounds_up_and_refuses_what_is_out_of_range(void **state)
{
	assert_int_equal(ktr_resize(5), 0);
	assert_int_equal(ktr_entries_get(), 8);
	assert_int_equal(ktr_resize(3), -KTR_EINVAL);
	assert_int_equal(ktr_resize(0), -KTR_EINVAL);
	assert_int_equal(ktr_resize((1u << 24) + 1), -KTR_EINVAL);
	assert_int_equal(ktr_entries_get(), 8);
}

static void
resize_without_memory_loses_nothing(void **state)
{
	ring_record(1);
	ring_record(2);
	struct ktr_stats before = ring_stats(0);
	ktr_host_alloc_left = 2; /* for two of the four CPUs */
	assert_int_equal(ktr_resize(1024), -KTR_ENOMEM);
	ktr_host_alloc_left = -1;
	assert_int_equal(ktr_entries_get(), 4);
	struct ktr_stats s = ring_stats(0);
	assert_int_equal(s.resident, before.resident);
	struct ktr_entry e;
	assert_int_equal(ktr_ring_read(0, ring_head(0) - 1, &e), KTR_READ_OK);
	assert_int_equal(e.args[0], 2);
}

static void
clear_empties_and_counts(void **state)
{
	ring_record(1);
	ring_record(2);
	struct ktr_stats before = ring_stats(0);
	ktr_clear();
	struct ktr_stats s = ring_stats(0);
	assert_int_equal(s.resident, 0);
	assert_int_equal(s.recorded, before.recorded);
	assert_int_equal(s.overwritten, before.overwritten + before.resident);
	assert_int_equal(s.cleared, before.cleared + before.resident);
	struct ktr_entry e;
	assert_int_equal(ktr_ring_read(0, ring_head(0) - 1, &e), KTR_READ_GONE);
	ring_record(3);
	assert_int_equal(ktr_ring_read(0, ring_head(0) - 1, &e), KTR_READ_OK);
	assert_int_equal(ring_stats(0).resident, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(resize_keeps_the_newest_that_fit, ring_begin),
	    cmocka_unit_test_setup(resize_copies_beside_writers, ring_begin),
	    cmocka_unit_test_setup(resize_does_not_make_cpus_wait_long, ring_begin),
	    cmocka_unit_test_setup(resize_rounds_up_and_refuses_what_is_out_of_range, ring_begin),
	    cmocka_unit_test_setup(resize_without_memory_loses_nothing, ring_begin),
	    cmocka_unit_test_setup(clear_empties_and_counts, ring_begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
