/* sleep.c - waits. */
#include <ctype.h>
#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <tool.h>

static const char usage[] = "sleep SECONDS    (fractions allowed: 0.25)\n";

/* Parses digits[.digits]. Digits after the ninth decimal place are ignored. */
static int
parse_seconds(const char *s, struct timespec *ts)
{
	char *end = (char *)s;
	int64_t unit = 100000000;

	ts->tv_sec = ts->tv_nsec = 0;
	if (isdigit((unsigned char)*s))
		ts->tv_sec = strtol(s, &end, 10);
	if (*end == '.') {
		for (end++; isdigit((unsigned char)*end); end++, unit /= 10)
			ts->tv_nsec += (*end - '0') * unit;
	}
	return end != s && *end == '\0' && !(end == s + 1 && *s == '.') ? 0 : -1;
}

int
main(int argc, char **argv)
{
	struct timespec ts;

	while (tool_getopt(argc, argv, "", usage) != -1)
		;
	if (argc - optind != 1)
		tool_usage(usage);
	if (parse_seconds(argv[optind], &ts) < 0)
		errx(2, "found \"%s\", expected seconds such as 2 or 0.25", argv[optind]);
	if (nanosleep(&ts, NULL) < 0)
		err(1, "%s", argv[optind]);
	return 0;
}
