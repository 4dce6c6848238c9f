/*
 * ktr_slow_path_test.c - record calls that find their ring closed: events that are refused, masked
 * or printed, and when the fast path opens again.
 *
 * The hosted port's ktr_host_interrupt hook acts in the middle of a call.
 */
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
suppressed_events_are_refused_and_counted(void **state)
{
	struct ktr_stats before = ring_stats(0);
	ktr_host_refuse = true;
	ktr_ring_close(0);
	ring_record(1);
	ring_record(2);
	ktr_host_refuse = false;
	ring_record(3);
	struct ktr_stats s = ring_stats(0);
	assert_int_equal(s.suppressed, before.suppressed + 2);
	assert_int_equal(s.recorded, before.recorded + 1);

	ktr_cpumask_set(~1ull);
	ring_record(4);
	CTR6(KTR_GEN, "%d%d%d%d%d%d", 1, 2, 3, 4, 5, 6);
	ktr_host_cpu = 1;
	uint64_t other = ring_head(1);
	ring_record(5);
	assert_int_equal(ring_head(1), other + 1);
	ktr_host_cpu = 0;
	ktr_cpumask_set(~0ull);
	s = ring_stats(0);
	assert_int_equal(s.suppressed, before.suppressed + 4);
	assert_int_equal(s.recorded, before.recorded + 1);
	ring_record(6);
	assert_int_equal(ring_stats(0).recorded, before.recorded + 2);
}

static void (*meanwhile)(void);
static unsigned
    begins_left; /* the record reads the head, then the slow path does, then the record again */

static void
before_head(enum ktr_host_step step)
{
	if (step == KTR_HOST_BEGIN && --begins_left == 0)
		meanwhile();
}

/* Records on a closed ring, and calls fn when the head is read for the begin-th time. */
static void
record_with(void (*fn)(void), unsigned begin)
{
	ktr_ring_close(0);
	meanwhile = fn;
	begins_left = begin;
	ktr_host_interrupt = before_head;
	ring_record(1);
	ktr_host_interrupt = NULL;
	assert_true(begins_left == 0 || begins_left > begin);
}

static void
mask_off(void)
{
	ktr_cpumask_set(~1ull);
}

static void
print_all(void)
{
	ktr_verbose_set(1);
}

static void
what_begins_during_the_slow_path_has_effect_at_once(void **state)
{
	ktr_host_quiet = true;
	for (unsigned begin = 1; begin <= 3; begin++) {
		struct ktr_stats before = ring_stats(0);
		record_with(mask_off, begin);
		ring_record(2);
		ktr_cpumask_set(~0ull);
		assert_int_equal(ring_stats(0).recorded, before.recorded);
		assert_int_equal(ring_stats(0).suppressed, before.suppressed + 2);

		record_with(print_all, begin);
		ktr_host_verbose_calls = 0;
		ring_record(3);
		ktr_verbose_set(0);
		assert_int_equal(ktr_host_verbose_calls, 1);
	}
}

static void
slow_path_records_all_six_parameters(void **state)
{
	uint64_t first = ring_head(0);
	ktr_host_verbose_calls = 0;
	ktr_host_quiet = true;
	ring_record(1); /* the fast path is open from here on */
	first = ring_head(0);
	assert_int_equal(ktr_verbose_set(2), 0);
	CTR6(KTR_GEN, "%d %d %d %d %d %d", 1, 2, 3, 4, 5, 6);
	CTR5(KTR_GEN, "%d %d %d %d %d", 1, 2, 3, 4, 5);
	assert_int_equal(ktr_verbose_set(0), 0);
	assert_int_equal(ktr_verbose_set(3), -KTR_EINVAL);
	assert_int_equal(ktr_host_verbose_calls, 2);
	struct ktr_entry e;
	assert_int_equal(ktr_ring_read(0, first, &e), KTR_READ_OK);
	assert_int_equal(e.tid, 1);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(e.args[i], i + 1);
	assert_int_equal(ktr_ring_read(0, first + 1, &e), KTR_READ_OK);
	assert_int_equal(e.args[4], 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(suppressed_events_are_refused_and_counted, ring_begin),
	    cmocka_unit_test_setup(what_begins_during_the_slow_path_has_effect_at_once, ring_begin),
	    cmocka_unit_test_setup(slow_path_records_all_six_parameters, ring_begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
