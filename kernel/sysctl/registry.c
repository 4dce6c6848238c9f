/*
 * registry.c - the registry of named variables: find, walk, print, set.
 *
 * The registry is the linker section `sysctls`. It has about a hundred entries, and a look-up reads
 * them one by one. Names are unique.
 *
 * Locking: sysctl_lock, a mutex, is held around every sysctl's function once threads exist
 * (sysctl_start()), unless it has SYSCTL_FREE. Such a function may use another sysctl: the lock is
 * then held already.
 */
#include "kernel/sysctl/registry.h"

#include "kernel/abi/errno.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/sched/mutex.h"
#include "kernel/sysctl/value.h"
#include "ktr/ktr.h"
#include "ktr/word.h"

extern const struct sysctl __start_sysctls[], __stop_sysctls[];

static struct mutex sysctl_lock = MUTEX_INIT("sysctl");
static bool sysctl_threads; /* written once, before the second thread */

void
sysctl_start(void)
{
	sysctl_threads = true;
}

/* Takes the lock, unless the sysctl needs none, this thread has it, or there are no threads. True:
 * the caller must unlock. */
static bool
sysctl_enter(const struct sysctl *s)
{
	if ((s->flags & SYSCTL_FREE) != 0 || !sysctl_threads || mutex_held(&sysctl_lock))
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
	for (const struct sysctl *s = __start_sysctls; s < __stop_sysctls; s++)
		if (strcmp(s->name, name) == 0)
			return s;
	return NULL;
}

const struct sysctl *
sysctl_after(const char *name)
{
	const struct sysctl *best = NULL;

	for (const struct sysctl *s = __start_sysctls; s < __stop_sysctls; s++)
		if (strcmp(s->name, name) > 0 && (best == NULL || strcmp(s->name, best->name) < 0))
			best = s;
	return best;
}

void
sysctl_suggest(struct ktr_suggestion *sug, unsigned flags)
{
	for (const struct sysctl *s = __start_sysctls; s < __stop_sysctls; s++)
		if ((s->flags & flags) == flags)
			ktr_suggest_try(sug, s->name);
}

void
sysctl_print(const struct sysctl *s, struct sbuf *out)
{
	if (s->get != NULL)
		s->get(s, out);
	else if (s->type == SYSCTL_TYPE_INT && s->var != NULL)
		sbuf_printf(out, "%d", __atomic_load_n((const int *)s->var, __ATOMIC_RELAXED));
	else if (s->var != NULL)
		sbuf_printf(out, "%lu", *(const uint64_t *)s->var);
	else
		sbuf_printf(out, "%lu", s->value != NULL ? s->value() : 0ul);
}

void
sysctl_get_text(const struct sysctl *s, struct sbuf *out)
{
	bool locked = sysctl_enter(s);

	CTR1(KTR_SUBSYS, "sysctl get: name %s", s->name);
	sysctl_print(s, out);
	sysctl_leave(locked);
}

int
sysctl_apply(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	char text[SYSCTL_VALUE_MAX];
	bool locked;
	int error;

	if (!sysctl_value_trim(text, sizeof(text), val)) {
		snprintf(err, errlen, "value of %zu characters, expected less than %d", strlen(val),
			 SYSCTL_VALUE_MAX);
		return -EINVAL;
	}
	locked = sysctl_enter(s);
	if (s->set != NULL)
		error = s->set(s, text, err, errlen);
	else
		error = sysctl_value_set(s, text, err, errlen);
	CTR2(KTR_SUBSYS, "sysctl set: name %s error %d", s->name, -error);
	sysctl_leave(locked);
	return error;
}

int
sysctl_set_text(const char *name, const char *val, char *err, size_t errlen)
{
	const struct sysctl *s = sysctl_find(name);
	struct ktr_suggestion sug;

	if (s == NULL) {
		ktr_suggest_init(&sug, name, strlen(name));
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
