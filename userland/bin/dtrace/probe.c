/*
 * probe.c - names of probes, and the types of their arguments.
 */
#include "userland/bin/dtrace/probe.h"

#include <string.h>

#include "ktr/glob.h"

bool (*probe_describe)(struct dif_probe *p);
static struct probe *all;

struct probe *
probe_all(void)
{
	struct probe **last = &all;
	struct dif_probe p = {.id = 0};

	if (all != NULL || probe_describe == NULL)
		return all;
	for (; probe_describe(&p); last = &(*last)->next, p.id++) {
		*last = dt_alloc(sizeof(**last));
		(*last)->p = p;
	}
	return all;
}

char *
probe_full_name(const char *text, unsigned fields)
{
	unsigned colons = 0;
	char *full = dt_format("%s", text);

	for (const char *p = text; *p != '\0'; p++)
		colons += *p == ':';
	if (colons >= 4 || (colons >= fields && fields < 4))
		return NULL;
	for (unsigned n = colons + 1; n < fields; n++)
		full = dt_format(":%s", full);
	for (; fields < 4; fields++)
		full = dt_format("%s:", full);
	return full;
}

static bool
field_matches(const char **spec, const char *text)
{
	size_t size = strcspn(*spec, ":");
	char *glob = dt_strndup(*spec, size);

	*spec += size + ((*spec)[size] == ':');
	return *glob == '\0' || ktr_glob(glob, text);
}

bool
probe_matches(const char *full, const struct dif_probe *p)
{
	return field_matches(&full, p->provider) && field_matches(&full, p->module) &&
	       field_matches(&full, p->function) && field_matches(&full, p->name);
}

static struct type *
function_argument(const struct dif_probe *p, uint64_t number)
{
	struct type *function = type_function(p->function);
	struct member *m;

	if (function == NULL || function->kind != T_FUNCTION)
		return NULL;
	if (strcmp(p->name, "return") == 0) {
		if (number == 0)
			return type_int;
		return number == 1 && type_base(function->to)->kind != T_VOID ? function->to : NULL;
	}
	for (m = type_members(function); m != NULL && number > 0; number--)
		m = m->next;
	return m != NULL ? m->type : NULL;
}

struct type *
probe_argument(const struct dif_probe *p, uint64_t number, struct type **xlate)
{
	*xlate = NULL;
	if (strcmp(p->provider, "fbt") == 0)
		return function_argument(p, number);
	if (number >= sizeof(p->types) / sizeof(p->types[0]) || p->types[number][0] == '\0')
		return NULL;
	if (p->xlate[number][0] != '\0')
		*xlate = type_by_text(dt_format("%s", p->xlate[number]));
	return type_by_text(dt_format("%s", p->types[number]));
}
