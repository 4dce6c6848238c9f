/*
 * mask_fuzz.c - masks, CPU sets and globs: what can be parsed prints as text that parses to the
 * same value; what cannot be parsed changes nothing and gives a reason.
 */
#include <stdbool.h>
#include <string.h>

#include "ktr/class.h"
#include "ktr/glob.h"
#include "tests/fuzz/fuzz.h"

typedef int parse_fn(const char *text, uint64_t *value, char *err, size_t errlen);
typedef int print_fn(uint64_t value, char *buf, size_t len);

#define UNTOUCHED 0x5aa55aa55aa55aa5u
#define EINVAL_   22

/* In a buffer of exactly `room` bytes, the printed form is a prefix of the whole. */
static void
check_cut(print_fn *print, uint64_t value, const char *whole, size_t room)
{
	char *cut = malloc(room + 1);

	FUZZ_CHECK(cut != NULL, "no memory");
	cut[room] = 'x';
	FUZZ_CHECK(print(value, cut, room) == (int)strlen(whole), "%s", whole);
	FUZZ_CHECK(cut[room] == 'x', "written after %zu bytes", room);
	if (room > 0)
		FUZZ_CHECK(strncmp(cut, whole, room - 1) == 0, "%s", whole);
	free(cut);
}

static void
check(parse_fn *parse, print_fn *print, const char *text, size_t errlen)
{
	uint64_t value = UNTOUCHED, again = UNTOUCHED;
	char whole[1024];
	char *err = malloc(errlen);
	int r;

	FUZZ_CHECK(err != NULL, "no memory");
	memset(err, 'x', errlen);
	r = parse(text, &value, err, errlen);
	FUZZ_CHECK(parse(text, &again, NULL, 0) == r && again == value, "without err: %d", r);
	if (r != 0) {
		FUZZ_CHECK(r == -EINVAL_ && value == UNTOUCHED, "%d %#jx", r, (uintmax_t)value);
		FUZZ_CHECK(memchr(err, '\0', errlen) != NULL, "no NUL in %zu", errlen);
		FUZZ_CHECK(errlen < 2 || err[0] != '\0', "no reason");
	} else {
		r = print(value, whole, sizeof(whole));
		FUZZ_CHECK(r >= 0 && (size_t)r < sizeof(whole) && (size_t)r == strlen(whole), "%d",
			   r);
		FUZZ_CHECK(parse(whole, &again, NULL, 0) == 0 && again == value,
			   "%#jx prints as %s, which is %#jx", (uintmax_t)value, whole,
			   (uintmax_t)again);
		check_cut(print, value, whole, errlen % 40);
	}
	free(err);
}

/* Matches the first half of the input, as a pattern, against the second. */
static void
check_glob(const char *text, size_t size)
{
	char *pattern = strndup(text, size / 2);
	const char *subject = text + size / 2;
	char *literal = malloc(2 * strlen(subject) + 1), *p = literal;

	FUZZ_CHECK(pattern != NULL && literal != NULL, "no memory");
	if (strlen(pattern) <= 64 && strlen(subject) <= 256) {
		bool match = ktr_glob(pattern, subject);
		FUZZ_CHECK(ktr_glob_is_pattern(pattern) || match == (strcmp(pattern, subject) == 0),
			   "%s against %s: %d", pattern, subject, match);
	}
	for (const char *s = subject; *s != '\0'; s++) {
		*p++ = '\\';
		*p++ = *s;
	}
	*p = '\0';
	FUZZ_CHECK(ktr_glob(literal, subject), "%s", subject);
	FUZZ_CHECK(ktr_glob("*", subject), "%s", subject);
	free(pattern);
	free(literal);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	size_t errlen = fuzz_byte(&in) % 160 + 1;
	char *text = strndup((const char *)in.p, in.left);

	FUZZ_CHECK(text != NULL, "no memory");
	check(ktr_mask_parse, ktr_mask_print, text, errlen);
	check(ktr_cpumask_parse, ktr_cpumask_print, text, errlen);
	check_glob(text, strlen(text));
	free(text);
	return 0;
}
