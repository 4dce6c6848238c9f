/*
 * loader_conf.h - the parser of loader parameters: loader.conf lines and command-line words.
 *
 * A pure function. Any bytes are safe input, also without a NUL at the end, and of any size. It
 * allocates nothing. Any context.
 */
#pragma once

#include <stddef.h>

#define LOADER_NAME_MAX  64   /* with NUL */
#define LOADER_VALUE_MAX 1024 /* with NUL */

struct loader_sink {
	/* A setting. value NULL: a command-line word without '='. line counts from 1; words: 0. */
	void (*set)(void *arg, unsigned line, const char *name, const char *value);
	/* An error: the bytes found, and a phrase that says what was expected. */
	void (*complain)(void *arg, unsigned line, const char *found, size_t found_len,
			 const char *expected);
	void *arg;
};

/*
 * loader.conf in FreeBSD syntax: name="value" or name=value on each line. # starts a comment. In
 * quotes, a backslash quotes the next character. At most one complaint a line; the other lines are
 * still parsed.
 */
void loader_conf_parse(const char *text, size_t size, const struct loader_sink *sink);
/*
 * The kernel's command line: words between white space, name=value or a name alone. Single or
 * double quotes anywhere in a word keep white space. A backslash quotes the next character, except
 * in single quotes. So name="a b" and "name=a b" (which GRUB makes of it) mean the same.
 */
void loader_words_parse(const char *text, size_t size, const struct loader_sink *sink);
