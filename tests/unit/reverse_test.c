/*
 * reverse_test.c - the lines of a file come in reverse, however long they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ktr/tools/reverse.h"

#define BLOCK 65536u /* of reverse.c */

static char *
reversed(const char *text, size_t n)
{
	FILE *from = tmpfile(), *to = tmpfile();
	char *found = calloc(1, n + 1);
	assert_true(from != NULL && to != NULL && found != NULL);
	assert_int_equal(fwrite(text, 1, n, from), n);
	assert_true(reverse_lines(from, to));
	assert_int_equal(ftell(to), n);
	rewind(to);
	assert_int_equal(fread(found, 1, n, to), n);
	fclose(from);
	fclose(to);
	return found;
}

static void
last_line_comes_first(void **state)
{
	static const char *const texts[][2] = {{"", ""},
					       {"\n", "\n"},
					       {"a\n", "a\n"},
					       {"a\nb\n\ncd\n", "cd\n\nb\na\n"}};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *found = reversed(texts[i][0], strlen(texts[i][0]));
		assert_string_equal(found, texts[i][1]);
		free(found);
	}
}

/* Two lines around a block's length, before and after short ones. */
static void
lines_may_be_longer_than_a_block(void **state)
{
	static const size_t lengths[] = {BLOCK - 3, BLOCK - 2, BLOCK - 1,     BLOCK,
					 BLOCK + 1, BLOCK + 2, 2 * BLOCK - 1, 5 * BLOCK};
	static char text[12 * BLOCK], want[12 * BLOCK], line[6 * BLOCK];
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(line, 'x', sizeof(line));
		int n = (int)lengths[i];
		int size = snprintf(text, sizeof(text), "a\n%.*s\nb\n%.*s1\nc\n", n, line, n, line);
		snprintf(want, sizeof(want), "c\n%.*s1\nb\n%.*s\na\n", n, line, n, line);
		char *found = reversed(text, (size_t)size);
		assert_true(strcmp(found, want) == 0);
		free(found);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(last_line_comes_first),
	    cmocka_unit_test(lines_may_be_longer_than_a_block),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
