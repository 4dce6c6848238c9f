/*
 * ktr_class_test.c - input of users: masks, CPU sets, globs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ktr/class.h"
#include "ktr/glob.h"
#include "ktr/word.h"

static char err[200];

static uint64_t
mask(const char *text)
{
	uint64_t value = 0x1234567;
	assert_int_equal(ktr_mask_parse(text, &value, err, sizeof(err)), 0);
	return value;
}

static const char *
mask_error(const char *text)
{
	uint64_t value = 0x1234567;
	memset(err, 0, sizeof(err));
	assert_int_equal(ktr_mask_parse(text, &value, err, sizeof(err)), -22);
	assert_int_equal(value, 0x1234567);
	return err;
}

static void
mask_reads_names_prefixes_case_and_separators(void **state)
{
	assert_int_equal(mask("SCHED"), 0x20000000);
	assert_int_equal(mask("sched,Proc"), 0x20001000);
	assert_int_equal(mask("KTR_SCHED|ktr_proc"), 0x20001000);
	assert_int_equal(mask("  GEN , SYSC | INTR\n"), 0x2201);
	assert_int_equal(mask("PTRACE"), 0x80000000);
	assert_int_equal(mask("ALL"), UINT64_MAX);
	assert_int_equal(mask("none"), 0);
	assert_int_equal(mask("SCHED,SCHED,NONE"), 0x20000000);
}

static void
mask_reads_numbers(void **state)
{
	assert_int_equal(mask("0"), 0);
	assert_int_equal(mask("12"), 12);
	assert_int_equal(mask("0x20000000"), 0x20000000);
	assert_int_equal(mask("0X1f|GEN"), 0x1f);
	assert_int_equal(mask("0xffffffffffffffff"), UINT64_MAX);
	assert_int_equal(mask("18446744073709551615"), UINT64_MAX);
	assert_int_equal(mask("0x100000000"), 0x100000000);
}

static void
mask_changes_are_words_with_signs(void **state)
{
	static const struct {
		const char *text;
		uint64_t on, off;
	} cases[] = {
	    {"+LOCK", KTR_LOCK, 0},
	    {"-CALLOUT", 0, KTR_CALLOUT},
	    {"+LOCK,-CALLOUT | -proc", KTR_LOCK, KTR_CALLOUT | KTR_PROC},
	    {"+LOCK,VM", KTR_LOCK | KTR_VM, 0},
	    {"+LOCK,-LOCK", 0, KTR_LOCK},
	    {"-LOCK,+LOCK", KTR_LOCK, 0},
	    {"-ALL,+SCHED", KTR_SCHED, ~(uint64_t)KTR_SCHED},
	    {"+0x3,-0x1", 2, 1},
	    {"SCHED,PROC", KTR_SCHED | KTR_PROC, ~(uint64_t)(KTR_SCHED | KTR_PROC)},
	    {"ALL,-CALLOUT", ~(uint64_t)KTR_CALLOUT, KTR_CALLOUT},
	    {"NONE", 0, KTR_ALL},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t on = 1234, off = 1234;
		assert_int_equal(ktr_mask_parse_change(cases[i].text, &on, &off, err, sizeof(err)),
				 0);
		assert_int_equal(on, cases[i].on);
		assert_int_equal(off, cases[i].off);
	}
	assert_int_equal(mask("ALL,-CALLOUT"), ~(uint64_t)KTR_CALLOUT);
	assert_int_equal(mask("SCHED,PROC,-SCHED"), KTR_PROC);
}

static void
mask_errors_say_what_was_found_and_meant(void **state)
{
	assert_string_equal(mask_error("SCHD"), "no class \"SCHD\"; did you mean SCHED?");
	assert_string_equal(mask_error("PROC,SYSCC"), "no class \"SYSCC\"; did you mean SYSC?");
	assert_string_equal(mask_error("KTR_MALOC"),
			    "no class \"KTR_MALOC\"; did you mean MALLOC?");
	assert_string_equal(mask_error("SHCED"), "no class \"SHCED\"; did you mean SCHED?");
	assert_non_null(strstr(mask_error("elephants"), "no class \"elephants\"; expected names"));
	assert_non_null(strstr(mask_error(""), "empty class name"));
	assert_non_null(strstr(mask_error("SCHED,"), "empty class name"));
	assert_non_null(
	    strstr(mask_error("18446744073709551616"), "is not a number of at most 64"));
	assert_non_null(strstr(mask_error("0x"), "is not a number"));
	assert_non_null(strstr(mask_error("12ab"), "is not a number"));
	assert_non_null(strstr(mask_error("-1"), "\"-1\" changes a mask, and there is none"));
	assert_non_null(strstr(mask_error("+LOCK"), "expected names"));
	assert_string_equal(mask_error("ALL,-SCHD"), "no class \"SCHD\"; did you mean SCHED?");
	assert_non_null(strstr(mask_error("-"), "no class \"-\""));
}

static void
mask_survives_long_and_wild_text(void **state)
{
	static char big[100000];
	uint64_t value;
	memset(big, 'A', sizeof(big) - 1);
	assert_true(strlen(mask_error(big)) < 150);
	uint32_t x = 1;
	for (int i = 0; i < 20000; i++) {
		char text[32];
		for (size_t j = 0; j < sizeof(text); j++) {
			x = x * 1664525 + 1013904223;
			text[j] = (char)(x >> 24);
		}
		text[x % sizeof(text)] = '\0';
		text[sizeof(text) - 1] = '\0';
		int result = ktr_mask_parse(text, &value, err, sizeof(err));
		assert_true(result == 0 || (result == -22 && strlen(err) < sizeof(err) - 1));
	}
	assert_int_equal(ktr_mask_parse("x", &value, NULL, 0), -22);
}

static void
mask_prints_what_it_reads(void **state)
{
	char buf[200];
	ktr_mask_print(0x20001000, buf, sizeof(buf));
	assert_string_equal(buf, "PROC,SCHED");
	ktr_mask_print(0, buf, sizeof(buf));
	assert_string_equal(buf, "NONE");
	ktr_mask_print(UINT64_MAX, buf, sizeof(buf));
	assert_string_equal(buf, "ALL");
	ktr_mask_print(0x8000000000000001, buf, sizeof(buf));
	assert_string_equal(buf, "GEN,0x8000000000000000");
	for (unsigned bit = 0; bit < 64; bit++) {
		ktr_mask_print(1ull << bit, buf, sizeof(buf));
		assert_int_equal(mask(buf), 1ull << bit);
	}
	assert_int_equal(ktr_mask_print(0x20001000, buf, 5), 10);
	assert_string_equal(buf, "PROC");
}

static void
classes_are_freebsd_s(void **state)
{
	assert_int_equal(ktr_class_count, 33);
	assert_int_equal(KTR_SCHED, 0x20000000);
	assert_int_equal(KTR_PTRACE, 0x80000000u);
	assert_int_equal(KTR_TICK, 0x100000000); /* ours, as all that follows */
	for (unsigned i = 0; i < ktr_class_count; i++)
		assert_int_equal(ktr_classes[i].bit, 1ull << i);
}

static void
cpumask_reads_and_prints_sets(void **state)
{
	static const struct {
		const char *text, *printed;
		uint64_t value;
	} good[] = {
	    {"all", "all", UINT64_MAX}, {"none", "none", 0},         {"0", "0", 1},
	    {"0-3,5", "0-3,5", 0x2f},   {"5, 0-3", "0-3,5", 0x2f},   {"63", "63", 1ull << 63},
	    {"0x2f", "0-3,5", 0x2f},    {"0-63", "all", UINT64_MAX}, {"1-1", "1", 2},
	};
	static const char *const bad[] = {"",   "64",   "3-1",  "a",   "0-",
					  "-1", "0,,1", "0-64", "1 2", "0x"};
	char buf[100];
	uint64_t value;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(ktr_cpumask_parse(good[i].text, &value, err, sizeof(err)), 0);
		assert_int_equal(value, good[i].value);
		ktr_cpumask_print(value, buf, sizeof(buf));
		assert_string_equal(buf, good[i].printed);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err[0] = '\0';
		value = 77;
		assert_int_equal(ktr_cpumask_parse(bad[i], &value, err, sizeof(err)), -22);
		assert_non_null(strstr(err, "expected CPUs such as 0-3,5"));
		assert_int_equal(value, 77);
	}
}

static void
numbers_are_whole_words_of_at_most_64_bits(void **state)
{
	static const struct {
		const char *text;
		unsigned base;
		enum ktr_number kind;
		uint64_t value;
	} cases[] = {
	    {"0", 0, KTR_NUMBER_OK, 0},
	    {"18446744073709551615", 0, KTR_NUMBER_OK, UINT64_MAX},
	    {"18446744073709551616", 0, KTR_NUMBER_HUGE, 0},
	    {"99999999999999999999999", 0, KTR_NUMBER_HUGE, 0},
	    {"0xffffffffffffffff", 0, KTR_NUMBER_OK, UINT64_MAX},
	    {"0X1f", 0, KTR_NUMBER_OK, 31},
	    {"0x10000000000000000", 0, KTR_NUMBER_HUGE, 0},
	    {"0x", 0, KTR_NUMBER_NOT, 0},
	    {"", 0, KTR_NUMBER_NOT, 0},
	    {"12a", 0, KTR_NUMBER_NOT, 0},
	    {"-1", 0, KTR_NUMBER_NOT, 0},
	    {" 1", 0, KTR_NUMBER_NOT, 0},
	    {"1f", 16, KTR_NUMBER_OK, 31},
	    {"0x1f", 16, KTR_NUMBER_NOT, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t v = 0;
		enum ktr_number kind =
		    ktr_number(cases[i].text, strlen(cases[i].text), cases[i].base, &v);
		if (kind != cases[i].kind || v != cases[i].value)
			fail_msg("\"%s\": found %d %#llx", cases[i].text, kind,
				 (unsigned long long)v);
	}
}

static void
glob_matches_as_the_shell_does(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool match;
	} cases[] = {
	    {"", "", true},
	    {"", "a", false},
	    {"*", "", true},
	    {"*", "anything/at:all", true},
	    {"a*c", "abbbc", true},
	    {"a*c", "abbbd", false},
	    {"a?c", "abc", true},
	    {"a?c", "ac", false},
	    {"[a-c]x", "bx", true},
	    {"[!a-c]x", "bx", false},
	    {"[!a-c]x", "dx", true},
	    {"[]]", "]", true},
	    {"[a", "[a", true},
	    {"[a]*[b[c", "ax[b[c", true},
	    {"*[ab[\\]", "x[ab[]", true},
	    {"*[a][", "[ba[", true},
	    {"\\*", "*", true},
	    {"\\*", "x", false},
	    {"*.c:12", "sched.c:12", true},
	    {"*.c:12", "sched.c:123", false},
	    {"*a*b*c*", "xxaxxbxxcxx", true},
	    {"*a*b*c*", "xxaxxcxxbxx", false},
	    {"sched*", "sched_switch", true},
	    {"[a-]z", "-z", true},
	    {"**", "x", true},
	    {"[\\]]", "]", true},
	    {"[a\\-z]", "m", false},
	    {"[a\\-z]", "-", true},
	    {"[a-\\z]", "m", true},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (ktr_glob(cases[i].pattern, cases[i].text) != cases[i].match)
			fail_msg("\"%s\" on \"%s\": expected %d", cases[i].pattern, cases[i].text,
				 cases[i].match);
	}
	char inside[16];
	ktr_glob_inside(inside, sizeof(inside), "b\\");
	assert_true(ktr_glob(inside, "ab\\c") && !ktr_glob(inside, "ab*"));
	ktr_glob_inside(inside, sizeof(inside), "b\\\\");
	assert_true(ktr_glob(inside, "ab\\c") && !ktr_glob(inside, "abc"));
	ktr_glob_inside(inside, sizeof(inside), "[bc]");
	assert_true(ktr_glob(inside, "ac.") && !ktr_glob(inside, "ad."));
	/* Quadratic in the worst case, not exponential. */
	char text[2001];
	memset(text, 'a', 2000);
	text[2000] = '\0';
	assert_false(ktr_glob("*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
	/* So, too, if each '[' looks for its ']' in vain: the cube would take an hour. */
	static char open[10000] = "*", opened[2 * sizeof(open)];
	memset(open + 1, '[', sizeof(open) - 3);
	open[sizeof(open) - 2] = 'x';
	memset(opened, '[', sizeof(opened) - 1);
	assert_false(ktr_glob(open, opened));
	opened[sizeof(opened) - 2] = 'x';
	assert_true(ktr_glob(open, opened));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(mask_reads_names_prefixes_case_and_separators),
	    cmocka_unit_test(mask_reads_numbers),
	    cmocka_unit_test(mask_changes_are_words_with_signs),
	    cmocka_unit_test(mask_errors_say_what_was_found_and_meant),
	    cmocka_unit_test(mask_survives_long_and_wild_text),
	    cmocka_unit_test(mask_prints_what_it_reads),
	    cmocka_unit_test(classes_are_freebsd_s),
	    cmocka_unit_test(cpumask_reads_and_prints_sets),
	    cmocka_unit_test(numbers_are_whole_words_of_at_most_64_bits),
	    cmocka_unit_test(glob_matches_as_the_shell_does),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
