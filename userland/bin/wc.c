/* wc.c - counts lines, words and bytes. */
#include <ctype.h>
#include <err.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tool.h>

static const char usage[] = "wc [-clw] [FILE]...    (lines, words, bytes)\n";

struct counts {
	uint64_t lines, words, bytes;
};

static bool want_lines, want_words, want_bytes;

static void
print_counts(const struct counts *n, const char *name, bool aligned)
{
	const uint64_t values[] = {n->lines, n->words, n->bytes};
	const bool wanted[] = {want_lines, want_words, want_bytes};
	/* A single number is printed without padding, for scripts. */
	int width = want_lines + want_words + want_bytes > 1 || aligned ? 7 : 1;
	const char *gap = "";

	for (int i = 0; i < 3; i++) {
		if (wanted[i]) {
			printf("%s%*lu", gap, width, values[i]);
			gap = " ";
		}
	}
	printf("%s%s\n", name != NULL ? " " : "", name != NULL ? name : "");
}

static int
count_file(const char *path, struct counts *total, bool aligned)
{
	bool is_stdin = path == NULL || strcmp(path, "-") == 0, in_word = false;
	FILE *f = is_stdin ? stdin : fopen(path, "r");
	struct counts n = {0};
	int c, status = 0;

	if (f == NULL) {
		warn("%s", path);
		return 1;
	}
	while ((c = fgetc(f)) != EOF) {
		n.bytes++;
		n.lines += c == '\n';
		n.words += !isspace(c) && !in_word;
		in_word = !isspace(c);
	}
	if (ferror(f)) {
		warn("%s", is_stdin ? "stdin" : path);
		status = 1;
	}
	if (!is_stdin)
		fclose(f);
	print_counts(&n, path, aligned);
	total->lines += n.lines;
	total->words += n.words;
	total->bytes += n.bytes;
	return status;
}

int
main(int argc, char **argv)
{
	struct counts total = {0};
	int c, status = 0, files;

	while ((c = tool_getopt(argc, argv, "clw", usage)) != -1) {
		want_lines |= c == 'l';
		want_words |= c == 'w';
		want_bytes |= c == 'c';
	}
	if (!want_lines && !want_words && !want_bytes)
		want_lines = want_words = want_bytes = true;
	files = argc - optind;
	if (files == 0)
		return tool_finish(count_file(NULL, &total, false));
	for (; optind < argc; optind++)
		status |= count_file(argv[optind], &total, files > 1);
	if (files > 1)
		print_counts(&total, "total", true);
	return tool_finish(status);
}
