/* head.c - prints the first lines or bytes of files. */
#include <ctype.h>
#include <err.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <tool.h>

static const char usage[] = "head [-n LINES | -LINES | -c BYTES] [FILE]...    (10 lines)\n";

static int
print_head(const char *path, uint64_t lines, uint64_t bytes)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
	int c, status = 0;

	if (f == NULL) {
		warn("%s", path);
		return 1;
	}
	while (lines > 0 && bytes > 0 && (c = fgetc(f)) != EOF) {
		if (putchar(c) == EOF)
			break;
		lines -= c == '\n';
		bytes--;
	}
	if (ferror(f)) {
		warn("%s", path);
		status = 1;
	}
	if (f != stdin)
		fclose(f);
	else
		fseek(f, 0, SEEK_CUR); /* gives back what was read ahead, for the next command */
	return status;
}

int
main(int argc, char **argv)
{
	uint64_t lines = 10, bytes = LONG_MAX;
	int c, status = 0, several;

	if (argc > 1 && argv[1][0] == '-' && isdigit((unsigned char)argv[1][1])) {
		lines = tool_number("lines", argv[1] + 1, 0, LONG_MAX);
		argv[1] = argv[0];
		argc--;
		argv++;
	}
	while ((c = tool_getopt(argc, argv, "c:n:", usage)) != -1) {
		if (c == 'c') {
			bytes = tool_number("bytes", optarg, 0, LONG_MAX);
			lines = LONG_MAX;
		} else {
			lines = tool_number("lines", optarg, 0, LONG_MAX);
		}
	}
	if (optind == argc)
		return tool_finish(print_head("-", lines, bytes));
	several = argc - optind > 1;
	for (int first = optind; optind < argc; optind++) {
		if (several)
			printf("%s==> %s <==\n", optind > first ? "\n" : "", argv[optind]);
		status |= print_head(argv[optind], lines, bytes);
	}
	return tool_finish(status);
}
