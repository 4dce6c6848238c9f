/* tool.c - what the command line tools share: options with help, numbers, paths. */
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

	snprintf(with_help, sizeof(with_help), "%sh", opts);
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
tool_join_path(char *buf, size_t size, const char *dir, const char *name)
{
	size_t len = strlen(dir);
	int n = snprintf(buf, size, "%s%s%s", dir, len > 0 && dir[len - 1] != '/' ? "/" : "", name);

	if ((size_t)n < size)
		return 0;
	errno = ENAMETOOLONG;
	warn("%s/%s", dir, name);
	return -1;
}

int
tool_each_to(int argc, char **argv, const char *usage, int (*f)(const char *, const char *))
{
	struct stat st;
	const char *target;
	int status = 0;

	if (argc < 2)
		tool_usage(usage);
	target = argv[argc - 1];
	if (stat(target, &st) < 0 || !S_ISDIR(st.st_mode)) {
		if (argc > 2)
			errx(1, "%s: not a directory", target);
		return f(argv[0], target);
	}
	for (int i = 0; i < argc - 1; i++) {
		const char *slash = strrchr(argv[i], '/');
		char path[PATH_MAX];

		status |= tool_join_path(path, sizeof(path), target,
					 slash != NULL ? slash + 1 : argv[i]) < 0 ||
			  f(argv[i], path);
	}
	return status;
}
