/* tool.c - what the command line tools share: options with help, numbers, writing. */
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tool.h>
#include <unistd.h>

static void
print_usage(FILE *f, const char *usage)
{
	fprintf(f, "usage: %s", usage);
}

void
tool_usage(const char *usage)
{
	fflush(stdout);
	print_usage(stderr, usage);
	exit(2);
}

int
tool_getopt(int argc, char **argv, const char *opts, const char *usage)
{
	static const struct option longs[] = {{"help", no_argument, NULL, 'h'}, {0}};
	char with_help[64];
	int c;

	snprintf(with_help, sizeof(with_help), "+%sh", opts); /* +: options end at an operand */
	c = getopt_long(argc, argv, with_help, longs, NULL);
	if (c == 'h' && strchr(opts, 'h') == NULL) {
		print_usage(stdout, usage);
		exit(tool_finish(0));
	}
	if (c == '?')
		tool_usage(usage);
	return c;
}

uint64_t
tool_number(const char *what, const char *text, uint64_t min, uint64_t max)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (!isdigit((unsigned char)*text) || *end != '\0')
		errx(2, "%s: found \"%s\", expected a number", what, text);
	if (errno != 0 || n < min || n > max)
		errx(2, "%s: found %s, expected %lu to %lu", what, text, min, max);
	return n;
}

int
tool_finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	warn("stdout");
	return 1;
}

int
write_all(int fd, const void *buf, size_t len)
{
	const char *p = buf;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}
