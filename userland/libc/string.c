/*
 * string.c - the C string functions.
 *
 * Copies go word by word: programs are built without vector registers. The compiler calls memcpy
 * and its kin for structure copies too, so they depend on nothing.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Or the compiler would see what the loops do, and call memcpy from inside memcpy. */
#pragma GCC optimize("no-tree-loop-distribute-patterns")

/* May stand at any address and alias anything. */
struct word {
	uint64_t v;
} __attribute__((packed, may_alias));

#define WORD(p)  (((struct word *)(p))->v)
#define CWORD(p) (((const struct word *)(p))->v)

void *
memmove(void *dst, const void *src, size_t n)
{
	char *d = dst;
	const char *s = src;

	if (d == s)
		return dst;
	if ((uintptr_t)d - (uintptr_t)s >= n) { /* forwards is safe */
		for (; n >= 8; n -= 8, d += 8, s += 8)
			WORD(d) = CWORD(s);
		while (n-- > 0)
			*d++ = *s++;
	} else {
		for (; n >= 8; n -= 8)
			WORD(d + n - 8) = CWORD(s + n - 8);
		while (n-- > 0)
			d[n] = s[n];
	}
	return dst;
}

void *
memcpy(void *restrict d, const void *restrict s, size_t n)
{
	return memmove(d, s, n);
}

void *
memset(void *dst, int c, size_t n)
{
	uint64_t word = (unsigned char)c * 0x0101010101010101ULL;
	char *d = dst;

	for (; n >= 8; n -= 8, d += 8)
		WORD(d) = word;
	while (n-- > 0)
		*d++ = (char)c;
	return dst;
}

int
memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *p = a, *q = b;

	for (; n >= 8 && CWORD(p) == CWORD(q); n -= 8) {
		p += 8;
		q += 8;
	}
	for (; n > 0; n--, p++, q++) {
		if (*p != *q)
			return *p - *q;
	}
	return 0;
}

void *
memchr(const void *s, int c, size_t n)
{
	const unsigned char *p = s;

	for (; n > 0; n--, p++) {
		if (*p == (unsigned char)c)
			return (void *)p;
	}
	return NULL;
}

size_t
strlen(const char *s)
{
	const char *p = s;

	while (*p != '\0')
		p++;
	return (size_t)(p - s);
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
strncmp(const char *a, const char *b, size_t n)
{
	for (; n > 0; n--, a++, b++) {
		if (*a != *b || *a == '\0')
			return (unsigned char)*a - (unsigned char)*b;
	}
	return 0;
}

int
strcmp(const char *a, const char *b)
{
	return strncmp(a, b, SIZE_MAX);
}

int
strncasecmp(const char *a, const char *b, size_t n)
{
	for (; n > 0; n--, a++, b++) {
		int d = tolower((unsigned char)*a) - tolower((unsigned char)*b);

		if (d != 0 || *a == '\0')
			return d;
	}
	return 0;
}

int
strcasecmp(const char *a, const char *b)
{
	return strncasecmp(a, b, SIZE_MAX);
}

char *
strcpy(char *restrict d, const char *restrict s)
{
	memcpy(d, s, strlen(s) + 1);
	return d;
}

char *
strncpy(char *restrict d, const char *restrict s, size_t n)
{
	size_t len = strnlen(s, n);

	memcpy(d, s, len);
	memset(d + len, 0, n - len);
	return d;
}

char *
strcat(char *restrict d, const char *restrict s)
{
	strcpy(d + strlen(d), s);
	return d;
}

size_t
strlcpy(char *restrict d, const char *restrict s, size_t size)
{
	size_t len = strlen(s);

	if (size > 0) {
		size_t n = len < size ? len : size - 1;

		memcpy(d, s, n);
		d[n] = '\0';
	}
	return len;
}

size_t
strlcat(char *restrict d, const char *restrict s, size_t size)
{
	size_t len = strnlen(d, size);

	return len + strlcpy(d + len, s, size - len);
}

char *
strchrnul(const char *s, int c)
{
	while (*s != '\0' && *s != (char)c)
		s++;
	return (char *)s;
}

char *
strchr(const char *s, int c)
{
	char *p = strchrnul(s, c);

	return *p == (char)c ? p : NULL;
}

char *
strrchr(const char *s, int c)
{
	const char *p = s + strlen(s);

	for (;; p--) {
		if (*p == (char)c)
			return (char *)p;
		if (p == s)
			return NULL;
	}
}

char *
strstr(const char *s, const char *part)
{
	size_t len = strlen(part);

	for (;; s++) {
		if (strncmp(s, part, len) == 0)
			return (char *)s;
		if (*s == '\0')
			return NULL;
	}
}

size_t
strspn(const char *s, const char *set)
{
	size_t n = 0;

	while (s[n] != '\0' && strchr(set, s[n]) != NULL)
		n++;
	return n;
}

size_t
strcspn(const char *s, const char *set)
{
	size_t n = 0;

	while (s[n] != '\0' && strchr(set, s[n]) == NULL)
		n++;
	return n;
}

char *
strpbrk(const char *s, const char *set)
{
	s += strcspn(s, set);
	return *s != '\0' ? (char *)s : NULL;
}

char *
strsep(char **s, const char *set)
{
	char *start = *s;

	if (start == NULL)
		return NULL;
	*s = strpbrk(start, set);
	if (*s != NULL)
		*(*s)++ = '\0';
	return start;
}

char *
strtok_r(char *restrict s, const char *restrict set, char **restrict state)
{
	if (s == NULL)
		s = *state;
	s += strspn(s, set);
	if (*s == '\0') {
		*state = s;
		return NULL;
	}
	*state = s + strcspn(s, set);
	if (**state != '\0')
		*(*state)++ = '\0';
	return s;
}

char *
strndup(const char *s, size_t max)
{
	size_t len = strnlen(s, max);
	char *copy = malloc(len + 1);

	if (copy == NULL)
		return NULL;
	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

char *
strdup(const char *s)
{
	return strndup(s, SIZE_MAX);
}
