/*
 * sysctl.c - the registry of named variables: find, walk, print, set.
 *
 * The registry is the linker section `sysctls`; it has a hundred entries, so a look-up walks it.
 * Names are unique. Locking: sysctl_lock, a mutex, around every handler once threads exist
 * (sysctl_start()). A handler may set or get another sysctl: the lock is then held already.
 */
#include "kernel/sysctl/sysctl.h"

#include "kernel/abi/errno.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/sync/mutex.h"
#include "kernel/sysctl/suggest.h"
#include "kernel/sysctl/sysctl_private.h"
#include "ktr/ktr.h"

extern const struct sysctl __start_sysctls[], __stop_sysctls[];

static struct mutex sysctl_lock = MUTEX_INIT("sysctl");
static bool sysctl_threads; /* written once, before the second thread */

void
sysctl_start(void)
{
	sysctl_threads = true;
}

/* True: the caller must unlock. */
static bool
sysctl_enter(void)
{
	if (!sysctl_threads || mutex_held(&sysctl_lock))
		return false;
	mutex_lock(&sysctl_lock);
	return true;
}

static void
sysctl_leave(bool locked)
{
	if (locked)
		mutex_unlock(&sysctl_lock);
}

const struct sysctl *
sysctl_find(const char *name)
{
	for (const struct sysctl *s = __start_sysctls; s < __stop_sysctls; s++) {
		if (strcmp(s->name, name) == 0)
			return s;
	}
	return NULL;
}

const struct sysctl *
sysctl_after(const char *name)
{
	const struct sysctl *best = NULL;

	for (const struct sysctl *s = __start_sysctls; s < __stop_sysctls; s++) {
		if (strcmp(s->name, name) > 0 && (best == NULL || strcmp(s->name, best->name) < 0))
			best = s;
	}
	return best;
}

const struct sysctl *
sysctl_next(const struct sysctl *s)
{
	return sysctl_after(s != NULL ? s->name : "");
}

void
sysctl_suggest(struct suggestion *sug, unsigned flags)
{
	for (const struct sysctl *s = __start_sysctls; s < __stop_sysctls; s++) {
		if ((s->flags & flags) == flags)
			suggest_try(sug, s->name);
	}
}

void
sysctl_get_text(const struct sysctl *s, struct sbuf *out)
{
	bool locked = sysctl_enter();

	CTR1(KTR_SUBSYS, "sysctl get: name %s", s->name);
	if (s->get != NULL)
		s->get(s, out);
	else if (s->type == SYSCTL_TYPE_U64)
		sbuf_printf(out, "%llu", *(const unsigned long long *)s->var);
	else
		sbuf_printf(out, "%d", __atomic_load_n((const int *)s->var, __ATOMIC_RELAXED));
	sysctl_leave(locked);
}

/* Decimal with a sign, or 0x; the whole of text. */
static bool
parse_number(const char *text, bool *negative, uint64_t *v)
{
	unsigned base = 10, digit;
	uint64_t n = 0;

	*negative = *text == '-';
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
		if (__builtin_mul_overflow(n, base, &n) || __builtin_add_overflow(n, digit, &n))
			n = UINT64_MAX; /* stays out of every range, until the end */
	}
	*v = n;
	return true;
}

static int
set_int(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	bool negative;
	uint64_t n;
	int64_t v;

	if (!parse_number(val, &negative, &n)) {
		snprintf(err, errlen, "found \"%s\", expected a number from %lld to %lld", val,
			 (long long)s->min, (long long)s->max);
		return -EINVAL;
	}
	v = n > INT64_MAX ? INT64_MAX : (int64_t)n;
	v = negative ? -v : v;
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
	bool negative;
	uint64_t n;

	if (!parse_number(val, &negative, &n) || negative) {
		snprintf(err, errlen, "found \"%s\", expected a number from 0", val);
		return -EINVAL;
	}
	__atomic_store_n((uint64_t *)s->var, n, __ATOMIC_RELAXED);
	return 0;
}

/* Copies val without blanks around; false when it is longer than out. */
static bool
trim(char *out, size_t size, const char *val)
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
sysctl_apply(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	char text[SYSCTL_VALUE_MAX];
	bool locked;
	int error;

	if (!trim(text, sizeof(text), val)) {
		snprintf(err, errlen, "value of %zu characters, expected less than %d", strlen(val),
			 SYSCTL_VALUE_MAX);
		return -EINVAL;
	}
	locked = sysctl_enter();
	if (s->set != NULL)
		error = s->set(s, text, err, errlen);
	else if (s->type == SYSCTL_TYPE_U64)
		error = set_u64(s, text, err, errlen);
	else
		error = set_int(s, text, err, errlen);
	CTR2(KTR_SUBSYS, "sysctl set: name %s error %d", s->name, -error);
	sysctl_leave(locked);
	return error;
}

int
sysctl_set_text(const char *name, const char *val, char *err, size_t errlen)
{
	const struct sysctl *s = sysctl_find(name);
	struct suggestion sug;

	if (s == NULL) {
		suggest_init(&sug, name);
		sysctl_suggest(&sug, 0);
		if (sug.best != NULL)
			snprintf(err, errlen, "no such sysctl; did you mean %s?", sug.best);
		else
			snprintf(err, errlen, "no such sysctl; sysctl -a lists all");
		return -ENOENT;
	}
	if (!(s->flags & SYSCTL_WR)) {
		snprintf(err, errlen, "%s",
			 s->flags & SYSCTL_TUN ? "read-only, expected as a loader parameter"
					       : "read-only");
		return -EPERM;
	}
	return sysctl_apply(s, val, err, errlen);
}
