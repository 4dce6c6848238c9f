/*
 * str.h - the few string operations that ktr needs, since it knows no C library. Any context.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** Copies n bytes that do not overlap, eight at a time. */
static inline void
ktr_copy(void *to, const void *from, size_t n)
{
	uint8_t *t = to;
	const uint8_t *f = from;
	if (n >= 8) {
		/* The last eight overlap those before. */
		__builtin_memcpy(t + n - 8, f + n - 8, 8); /* a load and a store */
		for (; n > 8; n -= 8, t += 8, f += 8)
			__builtin_memcpy(t, f, 8);
	} else if (n >= 4) {
		__builtin_memcpy(t + n - 4, f + n - 4, 4);
		__builtin_memcpy(t, f, 4);
	} else if (n > 0) {
		t[n - 1] = f[n - 1];
		t[n / 2] = f[n / 2];
		t[0] = f[0];
	}
}

/** Zeroes n bytes, eight at a time. */
static inline void
ktr_zero(void *to, size_t n)
{
	const uint64_t zero = 0;
	uint8_t *t = to;
	for (; n >= 8; n -= 8, t += 8)
		__builtin_memcpy(t, &zero, 8);
	while (n-- > 0)
		*t++ = 0;
}

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

/** The part of a path after its last '/'. */
static inline const char *
ktr_basename(const char *path)
{
	const char *base = path;
	for (; *path != '\0'; path++)
		if (*path == '/')
			base = path + 1;
	return base;
}
