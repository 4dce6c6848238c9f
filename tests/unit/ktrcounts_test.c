/*
 * ktrcounts_test.c - what a program of the guest says of lost events: how many, and rings that
 * would have held them, if the kernel has such.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "userland/lib/ktrcounts.c"

static const char *stats;

/* In the place of the guest's. */
ssize_t
sysctl_get(const char *name, char *buf, size_t len)
{
	return snprintf(buf, len, "%s", stats);
}

int
sysctl_get_u64(const char *name, uint64_t *value)
{
	*value = 1;
	return 0;
}

static void
check_said(const char *counts, const char *expected)
{
	char *said = NULL;
	size_t size;
	FILE *f = open_memstream(&said, &size);

	stats = counts;
	assert_non_null(f);
	ktr_losses_print(f, "lost ", NULL);
	fclose(f);
	assert_string_equal(said, expected);
	free(said);
}

static void
rings_are_named_that_the_kernel_has(void **state)
{
	check_said("cpu\n0 5 5 0 0 0 0\n", "");
	check_said("cpu\n0 5 0 0 2 0 2\n1 62 0 0 0 0 0\n",
		   "lost 2 of 67 events so far; debug.ktr.entries=64 holds them\n");
	check_said("cpu\n0 16777214 0 0 0 0 1\n",
		   "lost 1 of 16777214 events so far; debug.ktr.entries=16777216 holds them\n");
	check_said("cpu\n0 16777215 0 0 0 0 1\n", "lost 1 of 16777215 events so far\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rings_are_named_that_the_kernel_has),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
