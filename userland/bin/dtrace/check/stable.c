/*
 * stable.c - how stable the things are that a program uses.
 */
#include "userland/bin/dtrace/check/check.h"

#include <string.h>

enum { PRIVATE = 1, UNSTABLE = 4, EVOLVING = 5, STABLE = 6 };
enum { UNKNOWN, ISA = 4, COMMON = 5 };

static const char *const levels[] = {"Internal", "Private",  "Obsolete", "External",
				     "Unstable", "Evolving", "Stable",   "Standard"};
static const char *const classes[] = {"Unknown", "CPU", "Platform", "Group", "ISA", "Common"};
static const char *const parts[] = {"provider", "module", "function", "name", "args"};

const struct attributes stable_best = {{STABLE, STABLE, COMMON}};
const struct attributes stable_private = {{PRIVATE, PRIVATE, UNKNOWN}};
struct attributes stable_used;
unsigned stable_hidden;
static struct attributes minimum;

/*
 * The stabilities that the guide gives for its providers, for each part of a probe; of all other
 * providers nothing is promised. Names and data have the same stability.
 */
#define PART(stability, class)                            \
	{                                                 \
		{                                         \
			(stability), (stability), (class) \
		}                                         \
	}
#define NOTHING PART(PRIVATE, UNKNOWN)
static const struct {
	const char *names;
	struct attributes of[5];
} providers[] = {
    {" dtrace ",
     {PART(STABLE, COMMON), NOTHING, NOTHING, PART(STABLE, COMMON), PART(STABLE, COMMON)}},
    {" profile lockstat ",
     {PART(EVOLVING, COMMON), NOTHING, NOTHING, PART(EVOLVING, COMMON), PART(EVOLVING, COMMON)}},
    {" syscall ",
     {PART(EVOLVING, COMMON), NOTHING, PART(UNSTABLE, ISA), PART(EVOLVING, COMMON),
      PART(UNSTABLE, ISA)}},
    {" proc sched vminfo sysinfo io ip tcp udp ",
     {PART(EVOLVING, ISA), NOTHING, NOTHING, PART(EVOLVING, ISA), PART(EVOLVING, ISA)}},
    {" fbt ", {PART(EVOLVING, ISA), NOTHING, NOTHING, PART(EVOLVING, ISA), PART(PRIVATE, ISA)}},
};

/* What a pragma has said; name: "x", or "fbt args". */
static struct said {
	struct said *next;
	const char *name;
	struct attributes a;
	struct place at; /* line 0: what a provider or a library says, which need not be there */
} * said;

void
stable_init(void)
{
	said = NULL;
	stable_hidden = 0;
	stable_used = stable_best;
	minimum = (struct attributes){0};
}

struct attributes
stable_min(struct attributes a, struct attributes b)
{
	for (unsigned i = 0; i < 3; i++)
		a.part[i] = a.part[i] < b.part[i] ? a.part[i] : b.part[i];
	return a;
}

static const struct said *
find(const char *name)
{
	const struct said *s = said;

	while (s != NULL && strcmp(s->name, name) != 0)
		s = s->next;
	return s;
}

struct attributes
stable_of_probe(const char *provider, enum stable_part part)
{
	const struct said *s = find(dt_format("%s %s", provider, parts[part]));

	if (s != NULL)
		return s->a;
	for (size_t i = 0; i < sizeof(providers) / sizeof(providers[0]); i++)
		if (strstr(providers[i].names, dt_format(" %s ", provider)) != NULL)
			return providers[i].of[part];
	return stable_private;
}

struct attributes
stable_of_description(const struct dif_probe *spec, const char *provider)
{
	const char *const fields[] = {spec->provider, spec->module, spec->function, spec->name};
	struct attributes a = stable_best;

	for (unsigned i = 0; i < 4; i++)
		if (*fields[i] != '\0')
			a = stable_min(a, stable_of_probe(provider, i));
	return a;
}

struct attributes
stable_of_name(const char *name)
{
	const struct said *s = find(name);

	if (s != NULL)
		return s->a;
	if (strcmp(name, "curthread") == 0 || strcmp(name, "curproc") == 0)
		return (struct attributes){{STABLE, PRIVATE, COMMON}};
	return stable_best;
}

static const char *
text_of(struct attributes a)
{
	return dt_format("%s/%s/%s", levels[a.part[0]], levels[a.part[1]], classes[a.part[2]]);
}

void
stable_use(struct place at, const char *what, struct attributes a)
{
	struct attributes least = stable_min(a, minimum);

	if (stable_hidden > 0)
		return;
	if (memcmp(&least, &minimum, sizeof(least)) != 0)
		dt_error(at, "D_ATTR_MIN",
			 "attributes for %s (%s) are less than the predefined minimum (%s)", what,
			 text_of(a), text_of(minimum));
	stable_used = stable_min(stable_used, a);
}

/* Stable/Private/Common */
static bool
parse(const char *text, struct attributes *a)
{
	for (unsigned i = 0; i < 3; i++) {
		const char *const *names = i < 2 ? levels : classes;
		size_t count = i < 2 ? sizeof(levels) / sizeof(levels[0])
				     : sizeof(classes) / sizeof(classes[0]);
		size_t size = strcspn(text, "/"), n = 0;

		while (n < count &&
		       (strlen(names[n]) != size || strncmp(names[n], text, size) != 0))
			n++;
		if (n == count)
			return false;
		a->part[i] = (uint8_t)n;
		text += size;
		if (*text != (i < 2 ? '/' : '\0'))
			return false;
		text += i < 2;
	}
	return true;
}

bool
stable_set_minimum(const char *text)
{
	return parse(text, &minimum);
}

bool
stable_pragma(char *text, struct place at)
{
	struct said *s = dt_alloc(sizeof(*s));
	const char *words[4];
	unsigned count = 0, part = 0;
	char *word;

	while ((word = strsep(&text, " \t\r")) != NULL) {
		if (*word != '\0' && count == 4)
			return false;
		if (*word != '\0')
			words[count++] = word;
	}
	if (count < 2 || !parse(words[0], &s->a))
		return false;
	if (count == 4) {
		while (part < 5 && strcmp(words[3], parts[part]) != 0)
			part++;
		if (part == 5 || strcmp(words[1], "provider") != 0)
			return false;
	} else if (count != 2) {
		return false;
	}
	if (count == 2) {
		s->name = words[1];
		if (!dt_program.in_library)
			s->at = at;
	} else {
		s->name = dt_format("%s %s", words[2], words[3]);
	}
	s->next = said;
	said = s;
	return true;
}

void
stable_check_pragmas(void)
{
	for (const struct said *s = said; s != NULL; s = s->next)
		if (s->at.line != 0 && ident_find(SCOPE_GLOBAL, s->name) == NULL &&
		    ident_function(s->name) == NULL && expand_find(s->name, false) == NULL &&
		    expand_find(s->name, true) == NULL)
			dt_error(s->at, "D_PRAGMA_UNUSED",
				 "unused #pragma D attributes: nothing here is named %s", s->name);
}

void
stable_print(FILE *to, const char *heading, struct attributes a)
{
	fprintf(
	    to,
	    "\n\t%s\n\t\tIdentifier Names: %s\n\t\tData Semantics:   %s\n\t\tDependency Class: %s\n",
	    heading, levels[a.part[0]], levels[a.part[1]], classes[a.part[2]]);
}
