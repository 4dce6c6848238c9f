/*
 * string.c - the freestanding subset of the C string functions.
 *
 * The copies work on words, since the kernel does not use vector registers. The compiler calls
 * these functions for structure copies too, so they must work from the first instruction on and use
 * nothing else. Locking: none.
 */
#include "kernel/lib/string.h"

#include <stdint.h>

/* Otherwise the compiler would turn the loop in memcpy into a call of memcpy. */
#pragma GCC optimize("no-tree-loop-distribute-patterns")

/* A word at any address (both ports allow that) that may alias anything. */
struct word {
	uint64_t v;
} __attribute__((packed, may_alias));

#define WORD(p)  (((struct word *)(p))->v)
#define CWORD(p) (((const struct word *)(p))->v)

static void
copy_forward(char *d, const char *s, size_t n)
{
	/* All loads come before the stores, so that overlapping moves are right. */
	for (; n >= 32; n -= 32, d += 32, s += 32) {
		uint64_t a = CWORD(s), b = CWORD(s + 8), c = CWORD(s + 16), e = CWORD(s + 24);

		WORD(d) = a;
		WORD(d + 8) = b;
		WORD(d + 16) = c;
		WORD(d + 24) = e;
	}
	for (; n >= 8; n -= 8, d += 8, s += 8)
		WORD(d) = CWORD(s);
	while (n-- > 0)
		*d++ = *s++;
}

static void
copy_backward(char *d, const char *s, size_t n)
{
	for (d += n, s += n; n >= 8; n -= 8) {
		d -= 8;
		s -= 8;
		WORD(d) = CWORD(s);
	}
	while (n-- > 0)
		*--d = *--s;
}

void *
memcpy(void *restrict dst, const void *restrict src, size_t n)
{
	copy_forward(dst, src, n);
	return dst;
}

void *
memmove(void *dst, const void *src, size_t n)
{
	if ((uintptr_t)dst - (uintptr_t)src >= n)
		copy_forward(dst, src, n);
	else
		copy_backward(dst, src, n);
	return dst;
}

void *
memset(void *dst, int c, size_t n)
{
	char *d = dst;
	uint64_t w = (uint8_t)c * 0x0101010101010101ull;

	for (; n >= 32; n -= 32, d += 32) {
		WORD(d) = w;
		WORD(d + 8) = w;
		WORD(d + 16) = w;
		WORD(d + 24) = w;
	}
	for (; n >= 8; n -= 8, d += 8)
		WORD(d) = w;
	while (n-- > 0)
		*d++ = (char)c;
	return dst;
}

int
memcmp(const void *a, const void *b, size_t n)
{
	const uint8_t *p = a, *q = b;

	for (; n >= 8 && CWORD(p) == CWORD(q); n -= 8) {
		p += 8;
		q += 8;
	}
	for (; n > 0; n--, p++, q++)
		if (*p != *q)
			return *p - *q;
	return 0;
}

size_t
strlen(const char *s)
{
	const char *e = s;

	while (*e != '\0')
		e++;
	return (size_t)(e - s);
}

size_t
strnlen(const char *s, size_t max)
{
	size_t n = 0;

	while (n < max && s[n] != '\0')
		n++;
	return n;
}

int
strcmp(const char *a, const char *b)
{
	for (; *a == *b && *a != '\0'; a++)
		b++;
	return (uint8_t)*a - (uint8_t)*b;
}

int
strncmp(const char *a, const char *b, size_t n)
{
	for (; n > 0; n--, a++, b++)
		if (*a != *b || *a == '\0')
			return (uint8_t)*a - (uint8_t)*b;
	return 0;
}

char *
strchr(const char *s, int c)
{
	for (; *s != (char)c; s++)
		if (*s == '\0')
			return NULL;
	return (char *)s;
}

char *
strrchr(const char *s, int c)
{
	const char *last = NULL;

	do {
		if (*s == (char)c)
			last = s;
	} while (*s++ != '\0');
	return (char *)last;
}

char *
strstr(const char *s, const char *sub)
{
	size_t n = strlen(sub);

	for (;; s++) {
		if (strncmp(s, sub, n) == 0)
			return (char *)s;
		if (*s == '\0')
			return NULL;
	}
}

size_t
strlcpy(char *dst, const char *src, size_t size)
{
	size_t n = strlen(src), keep = n < size ? n : size - 1;

	memcpy(dst, src, keep);
	dst[keep] = '\0';
	return n;
}
