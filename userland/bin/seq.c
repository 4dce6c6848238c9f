/* seq.c - prints a sequence of numbers. */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tool.h>

static const char usage[] = "seq [FIRST [STEP]] LAST\n";

static long
parse(const char *s)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(s, &end, 10);
	if (end == s || *end != '\0' || errno != 0)
		errx(2, "found \"%s\", expected a number", s);
	return n;
}

int
main(int argc, char **argv)
{
	long first = 1, step = 1, last, n;

	/* getopt does not fit: "-3" is a number. */
	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		printf("usage: %s", usage);
		return tool_finish(0);
	}
	if (argc < 2 || argc > 4)
		tool_usage(usage);
	last = parse(argv[argc - 1]);
	if (argc > 2)
		first = parse(argv[1]);
	if (argc > 3)
		step = parse(argv[2]);
	if (step == 0)
		errx(2, "found step 0, expected another number");
	for (n = first; step > 0 ? n <= last : n >= last;) {
		printf("%ld\n", n);
		if (__builtin_add_overflow(n, step, &n))
			break;
	}
	return tool_finish(0);
}
