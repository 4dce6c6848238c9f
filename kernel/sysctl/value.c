/*
 * value.c - values of sysctls that are numbers, from text.
 * Locking: none; the variable is written by one atomic store.
 */
#include "kernel/sysctl/value.h"

#include "kernel/abi/errno.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"

struct number {
	bool negative;
	bool huge; /* more than 64 bits: out of every range */
	uint64_t v;
};

/* Decimal or 0x, with a sign; the whole of text. */
static bool
parse_number(const char *text, struct number *n)
{
	unsigned base = 10, digit;

	*n = (struct number){.negative = *text == '-'};
	if (*text == '-' || *text == '+')
		text++;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++) {
		char c = *text;

		if (c >= '0' && c <= '9')
			digit = (unsigned)(c - '0');
		else if (base == 16 && ((c | 32) >= 'a' && (c | 32) <= 'f'))
			digit = (unsigned)((c | 32) - 'a' + 10);
		else
			return false;
		if (__builtin_mul_overflow(n->v, base, &n->v) ||
		    __builtin_add_overflow(n->v, digit, &n->v))
			n->huge = true;
	}
	return true;
}

static int
set_int(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	struct number n;
	int64_t v;

	if (!parse_number(val, &n)) {
		snprintf(err, errlen, "found \"%s\", expected a number from %lld to %lld", val,
			 (long long)s->min, (long long)s->max);
		return -EINVAL;
	}
	v = n.huge || n.v > INT64_MAX ? INT64_MAX : (int64_t)n.v;
	v = n.negative ? -v : v;
	if (v < s->min || v > s->max) {
		snprintf(err, errlen, "%s is out of range, expected %lld to %lld", val,
			 (long long)s->min, (long long)s->max);
		return -ERANGE;
	}
	__atomic_store_n((int *)s->var, (int)v, __ATOMIC_RELAXED);
	return 0;
}

static int
set_u64(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	struct number n;

	if (!parse_number(val, &n) || n.negative) {
		snprintf(err, errlen, "found \"%s\", expected a number from 0", val);
		return -EINVAL;
	}
	if (n.huge) {
		snprintf(err, errlen, "%s is out of range, expected at most 64 bits", val);
		return -ERANGE;
	}
	__atomic_store_n((uint64_t *)s->var, n.v, __ATOMIC_RELAXED);
	return 0;
}

bool
sysctl_value_trim(char *out, size_t size, const char *val)
{
	size_t n;

	while (*val == ' ' || *val == '\t' || *val == '\n')
		val++;
	n = strlen(val);
	while (n > 0 && (val[n - 1] == ' ' || val[n - 1] == '\t' || val[n - 1] == '\n'))
		n--;
	if (n >= size)
		return false;
	memcpy(out, val, n);
	out[n] = '\0';
	return true;
}

int
sysctl_value_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	return s->type == SYSCTL_TYPE_U64 ? set_u64(s, val, err, errlen)
					  : set_int(s, val, err, errlen);
}
