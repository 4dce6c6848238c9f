/*
 * suggest.c - "did you mean": the end of an error about a name that nothing has. Each function
 * returns "; did you mean NAME?", or "" if no name is near.
 */
#include "userland/bin/dtrace/check/check.h"

#include <string.h>

#include "ktr/word.h"

static const char *
suggest_text(const char *name)
{
	return name != NULL ? dt_format("; did you mean %s?", name) : "";
}

const char *
suggest_name(const char *wanted, const char *(*next)(size_t i))
{
	struct ktr_suggestion s;
	const char *name;

	ktr_suggest_init(&s, wanted, strlen(wanted));
	for (size_t i = 0; (name = next(i)) != NULL; i++)
		ktr_suggest_try(&s, name);
	return suggest_text(s.best);
}

const char *
suggest_probe(const char *full)
{
	struct dif_probe wanted = {0};
	const char *const want[] = {wanted.provider, wanted.module, wanted.function, wanted.name};
	const char *best[4], *found = NULL;
	unsigned distance = ~0U;

	probe_split(full, &wanted);
	for (const struct probe *p = probe_all(); p != NULL; p = p->next) {
		const char *const is[] = {p->p.provider, p->p.module, p->p.function, p->p.name};
		int i = probe_one_wrong(full, &p->p);

		if (i < 0 || !ktr_suggest_nearer(want[i], is[i], &distance))
			continue;
		memcpy(best, want, sizeof(best));
		best[i] = is[i];
		found = dt_format("%s:%s:%s:%s", best[0], best[1], best[2], best[3]);
	}
	return suggest_text(found);
}
