/*
 * str.h - the few string operations that ktr needs, since it knows no C library. Any context.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

static inline size_t
ktr_strlen(const char *s)
{
	size_t n = 0;
	while (s[n] != '\0')
		n++;
	return n;
}

static inline char
ktr_upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static inline bool
ktr_streq(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/** Behind the last '/' of a path. */
static inline const char *
ktr_basename(const char *path)
{
	const char *base = path;
	for (; *path != '\0'; path++) {
		if (*path == '/')
			base = path + 1;
	}
	return base;
}
