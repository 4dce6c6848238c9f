/*
 * loader_conf_test.c - the parser of loader parameters: what it accepts and rejects, and that no
 * input makes it read out of bounds or loop.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/sysctl/loader_conf.h"

/* The parser's calls, one on each line: "3 name=[value]", "3 name" or "3 found [x] expected y". */
struct said {
	char text[8192];
	size_t len;
	unsigned sets, complaints;
};

static void
say(struct said *s, const char *fmt, ...)
{
	va_list ap;
	size_t room = sizeof(s->text) - s->len;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(s->text + s->len, room, fmt, ap);
	va_end(ap);
	s->len += (size_t)n < room ? (size_t)n : room - 1;
}

static void
on_set(void *arg, unsigned line, const char *name, const char *value)
{
	struct said *s = arg;

	s->sets++;
	assert_true(strlen(name) > 0 && strlen(name) < LOADER_NAME_MAX);
	if (value != NULL) {
		assert_true(strlen(value) < LOADER_VALUE_MAX);
		say(s, "%u %s=[%s]\n", line, name, value);
	} else {
		say(s, "%u %s\n", line, name);
	}
}

static void
on_complain(void *arg, unsigned line, const char *found, size_t len, const char *expected)
{
	struct said *s = arg;

	s->complaints++;
	say(s, "%u found [%.*s] expected %s\n", line, (int)(len < 40 ? len : 40), found, expected);
}

typedef void parse_fn(const char *, size_t, const struct loader_sink *);

/* Parses a copy that ends where the memory ends, so that tools detect any access after it. */
static void
parse(parse_fn *fn, struct said *s, const char *text, size_t size)
{
	struct loader_sink sink = {on_set, on_complain, s};
	char *copy = malloc(size > 0 ? size : 1);

	assert_non_null(copy);
	memcpy(copy, text, size);
	memset(s, 0, sizeof(*s));
	fn(copy, size, &sink);
	free(copy);
}

static void
conf_is(const char *text, const char *expected)
{
	struct said s;

	parse(loader_conf_parse, &s, text, strlen(text));
	assert_string_equal(s.text, expected);
}

static void
words_are(const char *text, const char *expected)
{
	struct said s;

	parse(loader_words_parse, &s, text, strlen(text));
	assert_string_equal(s.text, expected);
}

static void
conf_takes_quoted_and_plain_values(void **state)
{
	conf_is("a.b=\"c d\"\nx=1\n", "1 a.b=[c d]\n2 x=[1]\n");
	conf_is("a=\"\"", "1 a=[]\n");
	conf_is("a=", "1 a=[]\n");
	conf_is("  a = \"b\"  \r\n", "1 a=[b]\n");
	conf_is("a=\"say \\\"hi\\\" \\\\\"", "1 a=[say \"hi\" \\]\n");
}

static void
conf_skips_comments_and_blank_lines(void **state)
{
	conf_is("# all\n\n   \t\na=\"1\" # why\nb=2# too\nc=\"#3\"\n",
		"4 a=[1]\n5 b=[2]\n6 c=[#3]\n");
	conf_is("", "");
	conf_is("\n\n", "");
}

static void
conf_complaints_name_line_and_expectation(void **state)
{
	conf_is("a=1\nnonsense here\nb=2", "1 a=[1]\n"
					   "2 found [nonsense here] expected name=\"value\"\n"
					   "3 b=[2]\n");
	conf_is("=x", "1 found [=x] expected name=\"value\"\n");
	conf_is("a=\"open\nb=2",
		"1 found [\"open] expected a closing \" on the same line\n2 b=[2]\n");
	conf_is("a=\"1\" b", "1 found [b] expected nothing but a # comment after the value\n");
	conf_is("a=\x01", "1 found [\x01] expected a value of printable characters\n");
}

static void
conf_refuses_what_is_too_long(void **state)
{
	char text[LOADER_VALUE_MAX + 16];
	struct said s;

	memset(text, 'n', LOADER_NAME_MAX);
	strcpy(text + LOADER_NAME_MAX, "=1");
	parse(loader_conf_parse, &s, text, strlen(text));
	assert_int_equal(s.sets, 0);
	assert_int_equal(s.complaints, 1);
	parse(loader_words_parse, &s, text, strlen(text));
	assert_int_equal(s.sets, 0);
	assert_int_equal(s.complaints, 1);
	/* The longest value that fits, and one character more. */
	for (size_t extra = 0; extra < 2; extra++) {
		memset(text, 'v', sizeof(text));
		memcpy(text, "n=", 2);
		parse(loader_conf_parse, &s, text, 2 + LOADER_VALUE_MAX - 1 + extra);
		assert_int_equal(s.sets, 1 - extra);
		assert_int_equal(s.complaints, extra);
		parse(loader_words_parse, &s, text, 2 + LOADER_VALUE_MAX - 1 + extra);
		assert_int_equal(s.sets, 1 - extra);
		assert_int_equal(s.complaints, extra);
	}
}

static void
words_split_at_white_space_outside_quotes(void **state)
{
	words_are("a=1  b=2\tverbose\nc=", "0 a=[1]\n0 b=[2]\n0 verbose\n0 c=[]\n");
	words_are("n=\"a b\" m='c d'", "0 n=[a b]\n0 m=[c d]\n");
	/* As GRUB writes n="a b". */
	words_are("\"n=a b\" x=1", "0 n=[a b]\n0 x=[1]\n");
	words_are("n=a\\ b m=\"q\\\"q\" o='\\'", "0 n=[a b]\n0 m=[q\"q]\n0 o=[\\]\n");
	words_are("m=SCHED,PROC|VM", "0 m=[SCHED,PROC|VM]\n");
	words_are("a=b=c", "0 a=[b=c]\n");
	words_are("   ", "");
}

static void
words_complaints_say_what_was_expected(void **state)
{
	words_are("=1 ok=2", "0 found [=1] expected name=value\n0 ok=[2]\n");
	words_are("a/b c=1", "0 found [a/b] expected name=value\n0 c=[1]\n");
	words_are("x=1 n=\"a b", "0 x=[1]\n0 found [n=\"a b] expected a closing quote\n");
	words_are("n=\x7f", "0 found [n=\x7f] expected printable characters\n");
}

static void
a_megabyte_is_parsed_whole(void **state)
{
	size_t size = 1 << 20;
	char *text = malloc(size);
	struct said s;

	assert_non_null(text);
	memset(text, 'a', size);
	parse(loader_words_parse, &s, text, size);
	assert_int_equal(s.complaints, 1);
	parse(loader_conf_parse, &s, text, size);
	assert_int_equal(s.complaints, 1);
	for (size_t i = 0; i < size; i++)
		text[i] = "a=1 "[i % 4];
	parse(loader_words_parse, &s, text, size);
	assert_int_equal(s.sets, size / 4);
	assert_int_equal(s.complaints, 0);
	free(text);
}

/* Bytes that are likely to be syntax, so that every path is taken. */
static char
random_byte(uint32_t *seed)
{
	static const char often[] = "ab.=\"'\\# \n\t\r";

	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 31 ? often[(*seed >> 8) % (sizeof(often) - 1)] : (char)(*seed >> 16);
}

static void
random_bytes_give_settings_or_complaints_only(void **state)
{
	uint32_t seed = 1;
	struct said s;

	for (unsigned round = 0; round < 20000; round++) {
		char text[96];
		size_t n = round % sizeof(text);
		unsigned lines = 1;

		for (size_t i = 0; i < n; i++) {
			text[i] = random_byte(&seed);
			lines += text[i] == '\n';
		}
		parse(loader_conf_parse, &s, text, n);
		assert_true(s.sets + s.complaints <= lines);
		parse(loader_words_parse, &s, text, n);
		assert_true(s.sets + s.complaints <= n);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(conf_takes_quoted_and_plain_values),
	    cmocka_unit_test(conf_skips_comments_and_blank_lines),
	    cmocka_unit_test(conf_complaints_name_line_and_expectation),
	    cmocka_unit_test(conf_refuses_what_is_too_long),
	    cmocka_unit_test(words_split_at_white_space_outside_quotes),
	    cmocka_unit_test(words_complaints_say_what_was_expected),
	    cmocka_unit_test(a_megabyte_is_parsed_whole),
	    cmocka_unit_test(random_bytes_give_settings_or_complaints_only),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("loader_conf", tests, NULL, NULL);
}
