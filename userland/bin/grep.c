/*
 * grep.c - prints the lines that match a pattern.
 *
 * Patterns are basic regular expressions without groups: . [..] [^..] * ^ $ and \ before any of
 * them. The matcher backtracks at stars only. A pattern with k stars takes time O(length^k) in the
 * worst case.
 */
#include <ctype.h>
#include <err.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tool.h>

static const char usage[] =
    "grep [-Fcilnqv] [-e] PATTERN [FILE]...\n"
    "  -F  the pattern is plain text       -i  ignore case\n"
    "  -v  lines that do not match         -c  only count lines\n"
    "  -n  with line numbers               -l  only names of files that match\n"
    "  -q  print nothing\n"
    "Patterns: . [a-z] [^a-z] * ^ $ and \\. Status: 0 found, 1 not found, 2 error.\n";

static bool fixed, ignore_case, invert, count_only, numbers, quiet, names_only;

static char
fold(char c)
{
	return ignore_case ? (char)tolower((unsigned char)c) : c;
}

/*
 * Length of the pattern's first atom: a character, \ and a character, or a bracket expression.
 */
static size_t
atom_length(const char *p)
{
	const char *q = p + 1;

	if (*p == '\\' && p[1] != '\0')
		return 2;
	if (*p != '[')
		return 1;
	if (*q == '^')
		q++;
	if (*q == ']')
		q++;
	q = strchr(q, ']');
	return q != NULL ? (size_t)(q - p) + 1 : 1;
}

static bool
atom_match(const char *p, size_t len, char c)
{
	bool negate = false, found = false;
	const char *end = p + len - 1;

	c = fold(c);
	if (len == 1)
		return *p == '.' || fold(*p) == c;
	if (*p == '\\')
		return fold(p[1]) == c;
	p++;
	if (*p == '^') {
		negate = true;
		p++;
	}
	for (; p < end; p++) {
		unsigned char lo = (unsigned char)fold(*p), hi = lo;

		if (p + 2 < end && p[1] == '-') {
			p += 2;
			hi = (unsigned char)fold(*p);
		}
		if ((unsigned char)c >= lo && (unsigned char)c <= hi)
			found = true;
	}
	return found != negate;
}

static bool
match_here(const char *p, const char *s)
{
	while (*p != '\0') {
		size_t len = atom_length(p);

		if (p[0] == '$' && p[1] == '\0')
			return *s == '\0';
		if (p[len] == '*') {
			const char *most = s;

			while (*most != '\0' && atom_match(p, len, *most))
				most++;
			for (; most >= s; most--) {
				if (match_here(p + len + 1, most))
					return true;
			}
			return false;
		}
		if (*s == '\0' || !atom_match(p, len, *s))
			return false;
		p += len;
		s++;
	}
	return true;
}

static bool
match_line(const char *pattern, const char *s)
{
	if (fixed) {
		size_t len = strlen(pattern);

		for (;; s++) {
			if ((ignore_case ? strncasecmp : strncmp)(s, pattern, len) == 0)
				return true;
			if (*s == '\0')
				return false;
		}
	}
	if (*pattern == '^')
		return match_here(pattern + 1, s);
	do {
		if (match_here(pattern, s))
			return true;
	} while (*s++ != '\0');
	return false;
}

/* Returns the number of lines that matched; -1 after an error message. */
static long
search(const char *pattern, FILE *f, const char *name, const char *prefix)
{
	static char *line;
	static size_t size;
	long found = 0, number = 0;
	ssize_t len;

	while ((len = getline(&line, &size, f)) >= 0) {
		number++;
		if (len > 0 && line[len - 1] == '\n')
			line[len - 1] = '\0';
		if (match_line(pattern, line) == invert)
			continue;
		found++;
		if (quiet || names_only)
			break;
		if (count_only)
			continue;
		printf("%s%s", prefix, *prefix != '\0' ? ":" : "");
		if (numbers)
			printf("%ld:", number);
		puts(line);
	}
	if (ferror(f)) {
		warn("%s", name);
		return -1;
	}
	if (names_only && found > 0 && !quiet)
		puts(name);
	else if (count_only && !quiet)
		printf("%s%s%ld\n", prefix, *prefix != '\0' ? ":" : "", found);
	return found;
}

static void
parse_option(int c, const char **pattern)
{
	switch (c) {
	case 'F':
		fixed = true;
		break;
	case 'c':
		count_only = true;
		break;
	case 'i':
		ignore_case = true;
		break;
	case 'l':
		names_only = true;
		break;
	case 'n':
		numbers = true;
		break;
	case 'q':
		quiet = true;
		break;
	case 'v':
		invert = true;
		break;
	default:
		*pattern = optarg;
	}
}

int
main(int argc, char **argv)
{
	const char *pattern = NULL;
	bool found = false, trouble = false, several;
	int c;

	while ((c = tool_getopt(argc, argv, "Fcilnqve:", usage)) != -1)
		parse_option(c, &pattern);
	if (pattern == NULL) {
		if (optind == argc)
			tool_usage(usage);
		pattern = argv[optind++];
	}
	several = argc - optind > 1;
	if (optind == argc) {
		long n = search(pattern, stdin, "(standard input)", "");

		return tool_finish(n < 0 ? 2 : n == 0);
	}
	for (; optind < argc; optind++) {
		bool is_stdin = strcmp(argv[optind], "-") == 0;
		FILE *f = is_stdin ? stdin : fopen(argv[optind], "r");
		long n = -1;

		if (f == NULL)
			warn("%s", argv[optind]);
		else
			n = search(pattern, f, argv[optind], several ? argv[optind] : "");
		if (f != NULL && !is_stdin)
			fclose(f);
		found |= n > 0;
		trouble |= n < 0;
	}
	return tool_finish(trouble && !(quiet && found) ? 2 : !found);
}
