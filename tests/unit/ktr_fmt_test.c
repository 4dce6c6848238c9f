/*
 * ktr_fmt_test.c - the printf engine, compared with the C library's.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ktr/event.h"
#include "ktr/fmt.h"

#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-truncation"
#pragma GCC diagnostic ignored "-Wformat-overflow"

#define CHECK(...)                                                     \
	do {                                                           \
		char ours[512], theirs[512];                           \
		int n = fmt_snprintf(ours, sizeof(ours), __VA_ARGS__); \
		int m = snprintf(theirs, sizeof(theirs), __VA_ARGS__); \
		assert_string_equal(ours, theirs);                     \
		assert_int_equal(n, m);                                \
	} while (0)

static uint32_t random_state = 2463534242u;

static uint32_t
random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state;
}

static uint64_t
random_value(void)
{
	static const uint64_t edges[] = {0,         1,         7,
					 8,         9,         10,
					 127,       128,       255,
					 256,       32767,     32768,
					 65535,     INT_MAX,   (uint64_t)INT_MIN,
					 UINT_MAX,  INT64_MAX, (uint64_t)INT64_MIN,
					 UINT64_MAX};
	if (random_next() % 2 == 0)
		return edges[random_next() % (sizeof(edges) / sizeof(edges[0]))];
	uint64_t v = (uint64_t)random_next() << 32 | random_next();
	return v >> random_next() % 64;
}

/* Makes a random conversion without its argument: flags, width, precision, length, letter. */
static void
random_conversion(char *fmt, const char *letters, bool with_length)
{
	static const char *const lengths[] = {"hh", "h", "", "l", "ll", "j", "z", "t"};
	char *p = fmt;
	*p++ = '%';
	for (unsigned i = random_next() % 3; i > 0; i--)
		*p++ = "-+ #0"[random_next() % 5];
	if (random_next() % 2 == 0)
		p += sprintf(p, "%u", random_next() % 30);
	if (random_next() % 2 == 0)
		p += sprintf(p, random_next() % 5 == 0 ? "." : ".%u", random_next() % 30);
	if (with_length)
		p += sprintf(p, "%s", lengths[random_next() % 8]);
	*p++ = letters[random_next() % strlen(letters)];
	*p = '\0';
}

static void
fmt_numbers_print_as_the_c_library_prints_them(void **state)
{
	for (int i = 0; i < 200000; i++) {
		char fmt[40];
		random_conversion(fmt, "diuxXo", true);
		uint64_t v = random_value();
		CHECK(fmt, v);
	}
}

static void
fmt_strings_and_characters_print_as_the_c_library_prints_them(void **state)
{
	static const char *const texts[] = {"", "a", "hello", "a longer text than any width here"};
	for (int i = 0; i < 20000; i++) {
		char fmt[40];
		const char *text = texts[random_next() % 4];
		random_conversion(fmt, "s", false);
		/* C does not define 0 and # for s, so libraries differ. */
		if (strpbrk(fmt, "0#+ ") == NULL)
			CHECK(fmt, text);
		random_conversion(fmt, "c", false);
		if (strpbrk(fmt, "0#+ .") == NULL)
			CHECK(fmt, 'x');
	}
}

static void
fmt_pointers_print_as_the_c_library_prints_them(void **state)
{
	for (int i = 0; i < 1000; i++) {
		void *p = (void *)(uintptr_t)(random_value() | 1);
		CHECK("%p|%30p|%-30p|", p, p, p);
	}
}

static void
fmt_addresses_print_from_the_lowest_byte_on(void **state)
{
	char text[64];
	void *p = (void *)(uintptr_t)0xffffffff0100007full;

	fmt_snprintf(text, sizeof(text), "%pI4|%16pI4|%-9pI4|%pI5", p, p, (void *)0, p);
	assert_string_equal(text, "127.0.0.1|       127.0.0.1|0.0.0.0  |0xffffffff0100007fI5");
}

static void
fmt_devices_print_their_parts_and_names_are_not_printed(void **state)
{
	char text[64];
	void *p = (void *)(uintptr_t)0xffffffff0fe00011ull;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
	fmt_snprintf(text, sizeof(text), "%pD|%8pD|%-4pD|%{n}u %{1}u", p, p, (void *)0, 5u);
#pragma GCC diagnostic pop
	assert_string_equal(text, "254,17|  254,17|0,0 |5 %{1}u");
}

static void
fmt_stars_take_arguments_in_order(void **state)
{
	for (int i = 0; i < 5000; i++) {
		int width = (int)(random_next() % 60) - 30,
		    precision = (int)(random_next() % 30) - 5;
		int value = (int)random_next();
		unsigned long big = random_value();
		CHECK("<%*d>", width, value);
		CHECK("<%.*d>", precision, value);
		CHECK("<%*.*lx|%s>", width, precision, big, "end");
		CHECK("<%*.*s|%d>", width, precision, "some text", 5);
	}
}

static void
fmt_padding_has_an_end(void **state)
{
	char text[8];
	/* Widths of 2^31 - 1 from arguments: the length would not fit into an int. */
	assert_int_equal(fmt_snprintf(text, sizeof(text), "%*d%.*d", INT_MAX, 1, INT_MAX, 2),
			 FMT_PAD_MAX + 1 + FMT_PAD_MAX + 1);
	assert_string_equal(text, "       ");
	assert_int_equal(fmt_snprintf(text, sizeof(text), "%-*d", INT_MIN, 1), FMT_PAD_MAX + 1);
	assert_string_equal(text, "1      ");
	/* The precision of a string adds no padding. */
	assert_int_equal(fmt_snprintf(text, sizeof(text), "%.*s", INT_MAX, "six"), 3);
}

static void
fmt_mixed_types_are_fetched_by_their_types(void **state)
{
	CHECK("%d %lld %hhd %hd %zu %jd %td %c %s %% %u", -1, -2ll, -3, -4, (size_t)5, (intmax_t)-6,
	      (ptrdiff_t)-7, '8', "nine", 10u);
	CHECK("%d %d %d %d %d %d %d %d %d", 1, 2, 3, 4, 5, 6, 7, 8, 9);
}

static void
fmt_cuts_at_the_buffer_and_returns_the_whole_length(void **state)
{
	for (size_t size = 0; size < 20; size++) {
		char ours[32], theirs[32];
		memset(ours, '#', sizeof(ours));
		memset(theirs, '#', sizeof(theirs));
		assert_int_equal(fmt_snprintf(ours, size, "%s %d", "hello", 12345),
				 snprintf(theirs, size, "%s %d", "hello", 12345));
		assert_memory_equal(ours, theirs, sizeof(ours));
	}
}

static void
fmt_null_string_and_malformed_conversions_print(void **state)
{
	char buf[64];
	fmt_snprintf(buf, sizeof(buf), "[%s]", (char *)NULL);
	assert_string_equal(buf, "[(null)]");
	fmt_snprintf(buf, sizeof(buf), "100%% %y %d", 7);
	assert_string_equal(buf, "100% %y 7");
	fmt_snprintf(buf, sizeof(buf), "end %");
	assert_string_equal(buf, "end %");
	fmt_snprintf(buf, sizeof(buf), "end %-5l");
	assert_string_equal(buf, "end %-5l");
}

static const char *
known_string(void *arg, unsigned i, uint64_t value)
{
	(void)arg, (void)i;
	return value == 42 ? "forty-two" : NULL;
}

static void
event_text_narrows_numbers_and_resolves_strings(void **state)
{
	char buf[128];
	uint64_t args[] = {UINT64_MAX, 42, 43, 0, 0x1ffffffffull};
	ktr_event_text(buf, sizeof(buf), NULL, "%d %s %s %s %x", args, 5, known_string, NULL);
	assert_string_equal(buf, "-1 forty-two (bad 0x2b) (null) ffffffff");
	ktr_event_text(buf, sizeof(buf), NULL, "%u %u", args, 1, known_string, NULL);
	assert_string_equal(buf, "4294967295 0");
}

static void
event_strings_counts_parameters_of_stars(void **state)
{
	assert_int_equal(ktr_event_strings("%d %s %% %*s %.*s"), 1u << 1 | 1u << 3 | 1u << 5);
	assert_int_equal(ktr_event_strings("no parameters %"), 0);
	assert_int_equal(ktr_event_strings("%d%d%d%d%d%d%s"), 0);
}

/* Known by its place, and not by its value. */
static const char *
place_string(void *arg, unsigned i, uint64_t value)
{
	return ((const char *const *)arg)[i];
}

/* Whatever is printed with a plan, reading the format each time prints too, and into any room. */
static void
a_plan_prints_what_its_format_prints(void **state)
{
	static const struct {
		const char *fmt;
		unsigned plain; /* pieces, and one for the end if there is nothing else */
	} formats[] = {{"", 1},
		       {"no parameter", 1},
		       {"%d", 2},
		       {"a %d b %i", 3},
		       {"%u", 2},
		       {"%ld %lu %lld %llu", 5},
		       {"%x %#x", 3},
		       {"%lx %#lx %#llx", 4},
		       {"%p at %p", 3},
		       {"%s", 2},
		       {"x %s y %s z %d", 4},
		       {"%zu %td", 3},
		       {"%d%d%d%d%d%d", 7},
		       {"%jd and %ju", 3},
		       {"%5d", 0},
		       {"%-5d|", 0},
		       {"plain %d then %05d and %s", 1},
		       {"%s %.3d", 1},
		       {"%c", 0},
		       {"%x %o", 1},
		       {"%X", 0},
		       {"%hd", 0},
		       {"%hhu", 0},
		       {"%d%%", 1},
		       {"%d %*d %s", 1},
		       {"%q", 0},
		       {"%s%s%5.2s", 2},
		       {"100%", 0},
		       {"%d%d%d%d%d%d%d%s", 7}};
	static const uint64_t values[] = {0,          1,          7,          9,
					  10,         99,         100,        101,
					  0x7fffffff, 0x80000000, UINT32_MAX, 1ull << 32,
					  UINT64_MAX, INT64_MAX,  1ull << 63, 0xffffffff80001234};
	const char *strings[6] = {"text", NULL, "", "a longer text", NULL, "x"};
	struct ktr_event_plan plan;
	char found[200], right[200];
	for (unsigned i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		const char *fmt = formats[i].fmt;
		ktr_event_plan(&plan, fmt);
		assert_int_equal(plan.count, formats[i].plain);
		for (unsigned j = 0; j < 16 * 16; j++) {
			uint64_t args[6] = {values[j % 16], values[j / 16], 7, 8, 5, 6};
			int n = ktr_event_text(right, sizeof(right), NULL, fmt, args, 6,
					       place_string, strings);
			assert_int_equal(ktr_event_text(found, sizeof(found), &plan, fmt, args, 6,
							j % 2 != 0 ? place_string : NULL, strings),
					 n);
			assert_string_equal(found, right);
		}
		for (size_t len = 0; len < 100; len++) {
			const uint64_t args[6] = {1, 12345, 3, 4, 5, 6};
			memset(found, '#', sizeof(found));
			int n = ktr_event_text(right, sizeof(right), NULL, fmt, args, 6,
					       place_string, strings);
			assert_int_equal(ktr_event_text(found, len, &plan, fmt, args, 6,
							place_string, strings),
					 n);
			assert_int_equal(found[len], '#');
			size_t kept = len == 0 ? 0 : (size_t)n < len ? (size_t)n : len - 1;
			assert_memory_equal(found, right, kept);
			assert_true(len == 0 || found[kept] == '\0');
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(fmt_numbers_print_as_the_c_library_prints_them),
	    cmocka_unit_test(fmt_strings_and_characters_print_as_the_c_library_prints_them),
	    cmocka_unit_test(fmt_pointers_print_as_the_c_library_prints_them),
	    cmocka_unit_test(fmt_addresses_print_from_the_lowest_byte_on),
	    cmocka_unit_test(fmt_devices_print_their_parts_and_names_are_not_printed),
	    cmocka_unit_test(fmt_stars_take_arguments_in_order),
	    cmocka_unit_test(fmt_padding_has_an_end),
	    cmocka_unit_test(fmt_mixed_types_are_fetched_by_their_types),
	    cmocka_unit_test(fmt_cuts_at_the_buffer_and_returns_the_whole_length),
	    cmocka_unit_test(fmt_null_string_and_malformed_conversions_print),
	    cmocka_unit_test(a_plan_prints_what_its_format_prints),
	    cmocka_unit_test(event_text_narrows_numbers_and_resolves_strings),
	    cmocka_unit_test(event_strings_counts_parameters_of_stars),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
