/*
 * filter_fuzz.c - ktrdump's --since, --until, --thread and --grep: a time is parsed exactly to the
 * nanosecond, and each filter selects what it says.
 */
#include <stdbool.h>
#include <string.h>

#include "ktr/glob.h"
#include "ktr/tools/ktrdump.h"
#include "tests/fuzz/fuzz.h"

typedef unsigned __int128 u128;

/* Parses the time in another way: all digits as one number, scaled once. False: not a time. */
static bool
reference(const char *text, u128 *ns)
{
	static const struct {
		const char *name;
		unsigned digits; /* digits after the point */
	} units[] = {{"", 9}, {"s", 9}, {"ms", 6}, {"us", 3}, {"ns", 0}};
	size_t whole = strspn(text, "0123456789"), point = text[whole] == '.', fraction, i, end;
	unsigned left;

	fraction = point ? strspn(text + whole + 1, "0123456789") : 0;
	end = whole + point + fraction;
	for (i = 0; i < 5 && strcmp(text + end, units[i].name) != 0; i++)
		;
	if (i == 5 || whole + fraction == 0)
		return false;
	left = units[i].digits;
	*ns = 0;
	for (size_t at = 0; at < whole; at++)
		if (*ns < (u128)1 << 90)
			*ns = *ns * 10 + (unsigned)(text[at] - '0');
	for (size_t at = 0; left > 0; at++, left--)
		if (*ns < (u128)1 << 90)
			*ns =
			    *ns * 10 + (at < fraction ? (unsigned)(text[whole + 1 + at] - '0') : 0);
	return true;
}

static void
check_time(const char *text)
{
	int64_t ns = -1;
	u128 expected;
	bool is_time = reference(text, &expected);
	bool taken = dump_parse_time(text, &ns);

	FUZZ_CHECK(!taken || (is_time && ns >= 0 && (u128)ns == expected), "\"%s\": %jd", text,
		   (intmax_t)ns);
	/* Times of more than eighteen years may be rejected. */
	FUZZ_CHECK(taken || !is_time || expected > (u128)INT64_MAX / 16, "\"%s\"", text);
}

/* All conditions but one are equal; the result is decided here again. */
static void
check_match(struct fuzz_input *in, const char *pattern, const char *text)
{
	static struct ktr_decode_header header = {.hz = 1000000000};
	struct ktr_decode_site site = {.classes = fuzz_number(in)};
	struct ktr_decode_event e = {.header = &header,
				     .site = &site,
				     .thread = text,
				     .tid = (uint32_t)fuzz_number(in),
				     .cpu = fuzz_byte(in) % 70,
				     .ticks = fuzz_number(in) >> 2};
	struct dump_filter all = {.classes = UINT64_MAX,
				  .cpus = UINT64_MAX,
				  .since_ns = INT64_MIN,
				  .until_ns = INT64_MAX},
			   f = all;
	int64_t ns = ktr_decode_ns(&header, e.ticks);

	FUZZ_CHECK(dump_match_event(&all, &e, text), "no filter");
	f.classes = fuzz_number(in) | 1;
	FUZZ_CHECK(dump_match_event(&f, &e, text) ==
		       (f.classes == UINT64_MAX || (f.classes & site.classes) != 0),
		   "classes %#jx", (uintmax_t)f.classes);
	f = all;
	f.cpus = fuzz_number(in);
	FUZZ_CHECK(dump_match_event(&f, &e, text) ==
		       (f.cpus == UINT64_MAX || (e.cpu < 64 && (f.cpus >> e.cpu & 1) != 0)),
		   "cpus %#jx", (uintmax_t)f.cpus);
	f = all;
	f.since_ns = (int64_t)fuzz_number(in);
	FUZZ_CHECK(dump_match_event(&f, &e, text) == (ns >= f.since_ns), "%jd", (intmax_t)ns);
	f = all;
	f.grep = pattern;
	if (!ktr_glob_is_pattern(pattern))
		FUZZ_CHECK(dump_match_event(&f, &e, text) == (strstr(text, pattern) != NULL),
			   "\"%s\" in \"%s\"", pattern, text);
	else if (strlen(pattern) < 300 && ktr_glob(pattern, text))
		FUZZ_CHECK(dump_match_event(&f, &e, text), "\"%s\" in \"%s\"", pattern, text);
	f = all;
	f.thread = pattern;
	if (ktr_glob(pattern, text) && strpbrk(pattern, "*?[") != NULL)
		FUZZ_CHECK(dump_match_event(&f, &e, text), "\"%s\" is \"%s\"", pattern, text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size}, numbers = in;
	char *pattern = strndup((const char *)data, size), *text;

	FUZZ_CHECK(pattern != NULL, "no memory");
	check_time(pattern);
	text = pattern + strlen(pattern) / 2;
	if (strlen(text) < 500) {
		char *half = strndup(pattern, (size_t)(text - pattern));
		FUZZ_CHECK(half != NULL, "no memory");
		check_match(&numbers, half, text);
		free(half);
	}
	free(pattern);
	return 0;
}
