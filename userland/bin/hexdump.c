/* hexdump.c - prints bytes in hexadecimal. Prints a star instead of repeated lines. */
#include <ctype.h>
#include <err.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tool.h>

static const char usage[] = "hexdump [-Cv] [-n BYTES] [-s SKIP] [FILE]\n"
			    "  -C  bytes and characters (default: 16-bit words)\n"
			    "  -v  print repeated lines\n";

static bool canonical, verbose;

static void
print_line(uint64_t offset, const unsigned char *p, size_t n)
{
	if (!canonical) {
		printf("%07lx", offset);
		for (size_t i = 0; i < n; i += 2)
			printf(" %04x", (unsigned int)p[i] | (i + 1 < n ? p[i + 1] << 8 : 0));
		putchar('\n');
		return;
	}
	printf("%08lx ", offset);
	for (size_t i = 0; i < 16; i++) {
		if (i < n)
			printf("%s%02x", i == 8 ? "  " : " ", p[i]);
		else
			printf("%s  ", i == 8 ? "  " : " ");
	}
	printf("  |");
	for (size_t i = 0; i < n; i++)
		putchar(isprint(p[i]) ? p[i] : '.');
	printf("|\n");
}

static int
dump(FILE *f, const char *name, uint64_t offset, uint64_t limit)
{
	unsigned char line[16], last[16];
	bool have_last = false, starred = false;
	uint64_t done = 0;

	for (;;) {
		size_t want = limit - done < sizeof(line) ? (size_t)(limit - done) : sizeof(line);
		size_t n = want > 0 ? fread(line, 1, want, f) : 0;

		if (n == 0)
			break;
		if (!verbose && have_last && n == 16 && memcmp(line, last, 16) == 0) {
			if (!starred)
				puts("*");
			starred = true;
		} else {
			print_line(offset + done, line, n);
			starred = false;
		}
		memcpy(last, line, n);
		have_last = n == 16;
		done += n;
	}
	if (ferror(f)) {
		warn("%s", name);
		return 1;
	}
	if (done > 0)
		printf("%0*lx\n", canonical ? 8 : 7, offset + done);
	return 0;
}

int
main(int argc, char **argv)
{
	uint64_t limit = LONG_MAX, skip = 0, left;
	const char *name = "-";
	FILE *f = stdin;
	int c;

	while ((c = tool_getopt(argc, argv, "Cvn:s:", usage)) != -1) {
		if (c == 'C')
			canonical = true;
		else if (c == 'v')
			verbose = true;
		else if (c == 'n')
			limit = tool_number("bytes", optarg, 0, LONG_MAX);
		else
			skip = tool_number("skip", optarg, 0, LONG_MAX);
	}
	if (argc - optind > 1)
		tool_usage(usage);
	if (optind < argc)
		name = argv[optind];
	if (strcmp(name, "-") != 0 && (f = fopen(name, "r")) == NULL)
		err(1, "%s", name);
	if (fseek(f, (long)skip, SEEK_SET) < 0) {
		for (left = skip; left > 0 && fgetc(f) != EOF; left--) /* not seekable */
			;
	}
	return tool_finish(dump(f, name, skip, limit));
}
