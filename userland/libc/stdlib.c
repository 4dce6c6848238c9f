/* stdlib.c - numbers, sorting and searching. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int
digit_value(char c)
{
	if (isdigit((unsigned char)c))
		return c - '0';
	if (isalpha((unsigned char)c))
		return tolower((unsigned char)c) - 'a' + 10;
	return INT_MAX;
}

/* Reads sign and digits; *overflow when the magnitude does not fit 64 bits. */
static unsigned long long
parse_number(const char *s, char **end, int base, bool *negative, bool *overflow)
{
	const char *start = s, *digits;
	unsigned long long n = 0;

	*negative = *overflow = false;
	while (isspace((unsigned char)*s))
		s++;
	if (*s == '-' || *s == '+')
		*negative = *s++ == '-';
	if ((base == 0 || base == 16) && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') &&
	    digit_value(s[2]) < 16) {
		base = 16;
		s += 2;
	} else if (base == 0) {
		base = s[0] == '0' ? 8 : 10;
	}
	for (digits = s; digit_value(*s) < base; s++) {
		if (__builtin_mul_overflow(n, (unsigned long long)base, &n) ||
		    __builtin_add_overflow(n, (unsigned long long)digit_value(*s), &n))
			*overflow = true;
	}
	if (end != NULL)
		*end = (char *)(s == digits ? start : s);
	return n;
}

long long
strtoll(const char *s, char **end, int base)
{
	bool negative, overflow;
	unsigned long long n = parse_number(s, end, base, &negative, &overflow);
	unsigned long long limit = (unsigned long long)LLONG_MAX + negative;

	if (overflow || n > limit) {
		errno = ERANGE;
		return negative ? LLONG_MIN : LLONG_MAX;
	}
	return (long long)(negative ? 0 - n : n);
}

unsigned long long
strtoull(const char *s, char **end, int base)
{
	bool negative, overflow;
	unsigned long long n = parse_number(s, end, base, &negative, &overflow);

	if (overflow) {
		errno = ERANGE;
		return ULLONG_MAX;
	}
	return negative ? 0 - n : n;
}

_Static_assert(sizeof(long) == sizeof(long long), "LP64: long is long long");

long
strtol(const char *s, char **end, int base)
{
	return strtoll(s, end, base);
}

unsigned long
strtoul(const char *s, char **end, int base)
{
	return strtoull(s, end, base);
}

int
atoi(const char *s)
{
	return (int)strtol(s, NULL, 10);
}

long
atol(const char *s)
{
	return strtol(s, NULL, 10);
}

int
abs(int n)
{
	return n < 0 ? -n : n;
}

long
labs(long n)
{
	return n < 0 ? -n : n;
}

static void
swap_bytes(char *a, char *b, size_t size)
{
	while (size-- > 0) {
		char c = a[size];

		a[size] = b[size];
		b[size] = c;
	}
}

/* Stable and in place: for short runs, and for when there is no memory to merge in. */
static void
insertion_sort(char *base, size_t count, size_t size, int (*cmp)(const void *, const void *))
{
	for (size_t i = 1; i < count; i++) {
		for (char *p = base + i * size; p > base && cmp(p - size, p) > 0; p -= size)
			swap_bytes(p - size, p, size);
	}
}

/* Sorts `base`; `spare` has room for as many elements. */
static void
merge_sort(char *base, char *spare, size_t count, size_t size,
	   int (*cmp)(const void *, const void *))
{
	size_t half = count / 2, left, right, out;

	if (count <= 8) {
		insertion_sort(base, count, size, cmp);
		return;
	}
	merge_sort(base, spare, half, size, cmp);
	merge_sort(base + half * size, spare, count - half, size, cmp);
	memcpy(spare, base, half * size);
	/* The right half stays where it is: the output never overtakes it. */
	for (left = out = 0, right = half; left < half; out++) {
		char *from = spare + left * size;

		if (right < count && cmp(from, base + right * size) > 0)
			from = base + right++ * size;
		else
			left++;
		memmove(base + out * size, from, size);
	}
}

void
qsort(void *base, size_t count, size_t size, int (*cmp)(const void *, const void *))
{
	char *spare = count > 8 ? malloc(count / 2 * size) : NULL;

	if (spare == NULL)
		insertion_sort(base, count, size, cmp);
	else
		merge_sort(base, spare, count, size, cmp);
	free(spare);
}

void *
bsearch(const void *key, const void *base, size_t count, size_t size,
	int (*cmp)(const void *, const void *))
{
	const char *p = base;

	while (count > 0) {
		const char *middle = p + count / 2 * size;
		int c = cmp(key, middle);

		if (c == 0)
			return (void *)middle;
		if (c > 0) {
			p = middle + size;
			count -= count / 2 + 1;
		} else {
			count /= 2;
		}
	}
	return NULL;
}
