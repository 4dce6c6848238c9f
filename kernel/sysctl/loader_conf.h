/*
 * loader_conf.h - the parser of loader parameters: loader.conf lines and command-line words.
 *
 * A pure function over bytes that need not be text, and need not end in NUL: no kernel, no memory
 * but the stack, no limit on the size. Any context.
 */
#pragma once

#include <stddef.h>

#define LOADER_NAME_MAX  64   /* with NUL */
#define LOADER_VALUE_MAX 1024 /* with NUL */

struct loader_sink {
	/* A setting. value NULL: a command-line word without '='. line counts from 1; words: 0. */
	void (*set)(void *arg, unsigned line, const char *name, const char *value);
	/* Something else: the bytes found, and a phrase that says what was expected instead. */
	void (*complain)(void *arg, unsigned line, const char *found, size_t found_len,
			 const char *expected);
	void *arg;
};

/*
 * loader.conf, FreeBSD syntax: name="value" or name=value on each line, # starts a comment, a
 * backslash in quotes takes the next character as it is. One complaint a line at most; the rest
 * goes on.
 */
void loader_conf_parse(const char *text, size_t size, const struct loader_sink *sink);
/*
 * The kernel's command line: words between white space, name=value or a name alone. Double or
 * single quotes anywhere in a word keep white space; a backslash takes the next character as it is
 * outside of single quotes. So name="a b" and "name=a b" (what GRUB makes of it) mean the same.
 */
void loader_words_parse(const char *text, size_t size, const struct loader_sink *sink);
