/* tail.c - prints the last lines of files. */
#include <ctype.h>
#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tool.h>

static const char usage[] = "tail [-n LINES | -LINES] [FILE]...    (10; -n +N: from line N on)\n";

#define LINES_MAX 1000000

/* Keeps the last lines in a ring with as many slots as lines are wanted. */
static int
print_tail(FILE *f, uint64_t lines)
{
	char **kept = calloc(lines > 0 ? lines : 1, sizeof(*kept)), *line = NULL;
	size_t size = 0;
	uint64_t n = 0;

	if (kept == NULL)
		err(1, "memory");
	while (lines > 0 && getline(&line, &size, f) >= 0) {
		free(kept[n % lines]);
		kept[n++ % lines] = line;
		line = NULL;
	}
	for (uint64_t i = n > lines ? n - lines : 0; i < n; i++)
		fputs(kept[i % lines], stdout);
	for (uint64_t i = 0; i < lines; i++)
		free(kept[i]);
	free(kept);
	free(line);
	return ferror(f);
}

static int
print_from(FILE *f, uint64_t line)
{
	int c;

	while (line > 1 && (c = fgetc(f)) != EOF)
		line -= c == '\n';
	while (line <= 1 && (c = fgetc(f)) != EOF)
		putchar(c);
	return ferror(f);
}

static int
print_file(const char *path, uint64_t lines, int from)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
	int bad = f == NULL || (from ? print_from(f, lines) : print_tail(f, lines));

	if (bad)
		warn("%s", path);
	if (f != NULL && f != stdin)
		fclose(f);
	return bad;
}

int
main(int argc, char **argv)
{
	uint64_t lines = 10;
	int status = 0, several, from = 0;

	if (argc > 1 && argv[1][0] == '-' && isdigit((unsigned char)argv[1][1])) {
		lines = tool_number("lines", argv[1] + 1, 0, LINES_MAX);
		argv[1] = argv[0];
		argc--;
		argv++;
	}
	while (tool_getopt(argc, argv, "n:", usage) != -1) {
		from = *optarg == '+';
		lines = tool_number("lines", optarg + from, 0, LINES_MAX);
	}
	if (optind == argc)
		return tool_finish(print_file("-", lines, from));
	several = argc - optind > 1;
	for (int first = optind; optind < argc; optind++) {
		if (several)
			printf("%s==> %s <==\n", optind > first ? "\n" : "", argv[optind]);
		status |= print_file(argv[optind], lines, from);
	}
	return tool_finish(status);
}
