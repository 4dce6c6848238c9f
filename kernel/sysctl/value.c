/*
 * value.c - parses and sets sysctls that are numbers. Locking: none; one atomic store.
 */
#include "kernel/sysctl/value.h"

#include "kernel/abi/errno.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "ktr/word.h"

/* Parses text: decimal or 0x, with an optional sign. UINT64_MAX: more than 64 bits. */
static enum ktr_number
sysctl_parse_number(const char *text, bool *negative, uint64_t *v)
{
	enum ktr_number kind;

	*negative = *text == '-';
	if (*text == '-' || *text == '+')
		text++;
	kind = ktr_number(text, strlen(text), 0, v);
	if (kind == KTR_NUMBER_HUGE)
		*v = UINT64_MAX;
	return kind;
}

static int
set_int(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	bool negative;
	uint64_t n;
	int64_t v;

	if (sysctl_parse_number(val, &negative, &n) == KTR_NUMBER_NOT) {
		snprintf(err, errlen, "found \"%s\", expected a number from %ld to %ld", val,
			 s->min, s->max);
		return -EINVAL;
	}
	v = n > INT64_MAX ? INT64_MAX : (int64_t)n;
	v = negative ? -v : v;
	if (v < s->min || v > s->max) {
		snprintf(err, errlen, "%s is out of range, expected %ld to %ld", val, s->min,
			 s->max);
		return -ERANGE;
	}
	if (s->apply != NULL)
		return s->apply(v, err, errlen);
	if (s->run != NULL) {
		if (v == 1)
			s->run();
		return 0;
	}
	__atomic_store_n((int *)s->var, (int)v, __ATOMIC_RELAXED);
	return 0;
}

static int
set_u64(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	bool negative;
	uint64_t n;
	enum ktr_number kind = sysctl_parse_number(val, &negative, &n);

	if (kind == KTR_NUMBER_NOT || negative) {
		snprintf(err, errlen, "found \"%s\", expected a number from 0", val);
		return -EINVAL;
	}
	if (kind == KTR_NUMBER_HUGE) {
		snprintf(err, errlen, "%s is out of range, expected at most 64 bits", val);
		return -ERANGE;
	}
	if (s->apply != NULL)
		return s->apply((int64_t)n, err, errlen);
	__atomic_store_n((uint64_t *)s->var, n, __ATOMIC_RELAXED);
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
