/*
 * ktr_param_test.c - names and values of parameters, from formats.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ktr/param.h"

/* The names of a format's first n parameters, separated by blanks. */
static const char *
names(const char *fmt, unsigned n)
{
	static char text[KTR_PARAM_MAX * (KTR_PARAM_NAME + 1)];
	struct ktr_param p[KTR_PARAM_MAX];
	ktr_params_scan(fmt, p, n);
	text[0] = '\0';
	for (unsigned i = 0; i < n; i++) {
		strcat(text, i > 0 ? " " : "");
		strcat(text, p[i].name);
	}
	return text;
}

static void
test_a_word_before_a_conversion_names_it(void **state)
{
	assert_string_equal(names("fork: parent %d child %d", 2), "parent child");
	assert_string_equal(names("KTRGRAPH group:\"thread\", id:\"%s\", prio:%d", 2), "id prio");
	assert_string_equal(names("100%% of %#lx to %-5u", 2), "of to");
	assert_string_equal(names("x %d, 7 %u y2=%u", 3), "x p2 y2");
}

static void
test_a_conversion_may_have_a_name(void **state)
{
	assert_string_equal(names("%{dev}pD word %{rwbs}s %{n}5u + %u", 4), "dev rwbs n p4");
	assert_string_equal(names("%{0}u %{}u %{a b}u %{c u %u", 1), "u");
}

static void
test_what_has_no_word_is_named_by_its_place(void **state)
{
	assert_string_equal(names("%d %d", 2), "p1 p2");
	assert_string_equal(names("only %u", 3), "only p2 p3");
	assert_string_equal(names("", 6), "p1 p2 p3 p4 p5 p6");
	assert_string_equal(names("pad %*.*u", 3), "p1 p2 pad");
	assert_string_equal(names("bad %q good %u", 1), "good");
}

static void
test_names_of_one_format_differ(void **state)
{
	assert_string_equal(names("cpu %u to cpu %u", 2), "cpu cpu_2");
	assert_string_equal(names("a %u a_2 %u a %u", 3), "a a_2 a_3");
	assert_string_equal(names("p2 %u, %u", 2), "p2 p2_2");
	/* A word longer than a name may be, and its prefix of that length. */
	assert_string_equal(names("abcdefghijklmnopqrstuvwxyz0123456789 %u "
				  "abcdefghijklmnopqrstuvwxyz0123456789 %u",
				  2),
			    "abcdefghijklmnopqrstuvwxyz01234 abcdefghijklmnopqrstuvwxyz012_2");
}

static void
test_values_are_read_as_their_types(void **state)
{
	static const struct {
		const char *fmt;
		uint64_t value, want;
	} cases[] = {
	    {"%d", 0xfffffffeu, (uint64_t)-2},   {"%u", UINT64_MAX, UINT32_MAX},
	    {"%hhd", 0x180, (uint64_t)-128},     {"%hx", 0x12345, 0x2345},
	    {"%ld", (uint64_t)-7, (uint64_t)-7}, {"%p", UINT64_MAX, UINT64_MAX},
	    {"%pI4", UINT64_MAX, UINT32_MAX},    {"%c", 'r', 'r'},
	    {"", UINT64_MAX, UINT64_MAX},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ktr_param p;
		ktr_params_scan(cases[i].fmt, &p, 1);
		assert_int_equal(ktr_param_value(&p, cases[i].value), cases[i].want);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_word_before_a_conversion_names_it),
	    cmocka_unit_test(test_a_conversion_may_have_a_name),
	    cmocka_unit_test(test_what_has_no_word_is_named_by_its_place),
	    cmocka_unit_test(test_names_of_one_format_differ),
	    cmocka_unit_test(test_values_are_read_as_their_types),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
