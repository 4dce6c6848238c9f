/* clock_scale_test.c - the kernel's nanoseconds of a counter are those that the tools print. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernel/lib/clock_scale.h"
#include "ktr/event.h"

/* Rates of counters: aarch64's, what the timers of x86_64 measure, and the ends of the range. */
static const uint64_t rates[] = {
    2,         1000000,    24000000,   62500000,   999999999,
    999998724, 1000000000, 1000000001, 1000001017, 17999999999,
};

static void
same_for_seconds(void **state)
{
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		uint64_t hz = rates[i], most = UINT64_MAX / hz;
		struct clock_scale s;

		clock_scale_set(&s, hz);
		if (most / hz > 1000000000) /* more than 30 years */
			most = hz * 1000000000;
		assert_int_equal(clock_scale_ns(&s, most), ktr_ticks_to_ns(most, hz));
		assert_int_equal(clock_scale_ns(&s, hz), 1000000000);
		srandom(1);
		for (unsigned n = 0; n < 100000; n++) {
			uint64_t ticks = ((uint64_t)random() << 31 | (uint64_t)random()) % most;

			assert_int_equal(clock_scale_ns(&s, ticks), ktr_ticks_to_ns(ticks, hz));
		}
	}
}

/* For a hundred days: of a hundred times less than one is a nanosecond more. */
static void
near_for_days(void **state)
{
	for (size_t i = 1; i < sizeof(rates) / sizeof(rates[0]); i++) {
		uint64_t hz = rates[i];
		uint64_t late = 0;
		struct clock_scale s;

		clock_scale_set(&s, hz);
		srandom(1);
		for (unsigned n = 0; n < 100000; n++) {
			uint64_t ticks =
			    ((uint64_t)random() << 31 | (uint64_t)random()) % (hz * 86400 * 100);
			uint64_t more = clock_scale_ns(&s, ticks) - ktr_ticks_to_ns(ticks, hz);

			assert_in_range(more, 0, 1);
			late += more;
		}
		assert_in_range(late, 0, 1000);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(same_for_seconds),
	    cmocka_unit_test(near_for_days),
	};
	return cmocka_run_group_tests_name("clock_scale", tests, NULL, NULL);
}
