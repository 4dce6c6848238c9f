/*
 * chmod.c - changes who may read, write and execute files.
 */
#include <err.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tool.h>
#include <unistd.h>

static const char usage[] =
    "chmod MODE FILE...\n"
    "       MODE is octal, as 755, or words as u+x, go-w or a=rx, with commas between\n";

/* The bits of letters: rwx in one group of three. */
static mode_t
letters(const char **p)
{
	mode_t bits = 0;

	for (; **p != '\0' && strchr("rwx", **p) != NULL; ++*p)
		bits |= **p == 'r' ? 4 : **p == 'w' ? 2 : 1;
	return bits;
}

/* Applies u+x and its like to a mode; false: the text is none. */
static bool
apply_words(const char *p, mode_t *mode)
{
	do {
		mode_t who = 0, bits;
		char op;

		for (; *p != '\0' && strchr("ugoa", *p) != NULL; p++)
			who |= *p == 'u' ? 0700 : *p == 'g' ? 0070 : *p == 'o' ? 0007 : 0777;
		if (who == 0)
			who = 0777;
		op = *p++;
		if (op != '+' && op != '-' && op != '=')
			return false;
		bits = letters(&p) * 0111u & who;
		if (op == '-')
			*mode &= ~bits;
		else
			*mode = (op == '=' ? *mode & ~who : *mode) | bits;
	} while (*p++ == ',');
	return p[-1] == '\0';
}

static int
change(const char *path, const char *text)
{
	struct stat st;
	char *end;
	unsigned long octal = strtoul(text, &end, 8);
	mode_t mode = (mode_t)octal;

	if (stat(path, &st) < 0) {
		warn("%s", path);
		return 1;
	}
	if (end == text || *end != '\0' || octal > 07777) {
		mode = st.st_mode & 07777;
		if (!apply_words(text, &mode))
			errx(2, "found %s, expected a mode as 755 or u+x", text);
	}
	if (chmod(path, mode) < 0) {
		warn("%s", path);
		return 1;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	int status = 0;

	while (tool_getopt(argc, argv, "", usage) != -1)
		;
	if (argc - optind < 2)
		tool_usage(usage);
	for (int i = optind + 1; i < argc; i++)
		status |= change(argv[i], argv[optind]);
	return status;
}
