/*
 * ktr.c - switches the event log: a thin program over the sysctls debug.ktr.*.
 *
 * A line of debug.ktr.sites is: ID on|off OWNERS CLASS FILE:LINE FUNC "FORMAT".
 */
#include <err.h>
#include <fnmatch.h>
#include <getopt.h>
#include <kestrel.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tool.h>

static const char usage[] =
    "ktr status          what is switched on, and what each CPU's ring holds\n"
    "       ktr classes         event classes with their values\n"
    "       ktr sites [GLOB]    trace points whose class, file:line, function or format matches\n"
    "       ktr on SPEC         switch on: a class, or a glob as for sites\n"
    "       ktr off SPEC        switch off\n"
    "       ktr clear           forget what was recorded\n";

static char *
get(const char *name)
{
	char *text = sysctl_get_text(name);
	size_t len;

	if (text == NULL)
		err(1, "%s", name);
	len = strlen(text);
	while (len > 0 && text[len - 1] == '\n')
		text[--len] = '\0';
	return text;
}

static int
set(const char *name, const char *value)
{
	char why[512];

	if (sysctl_set(name, value, why, sizeof(why)) == 0)
		return 0;
	warnx("%s", why);
	return 1;
}

static int
print_status(void)
{
	static const char *const names[] = {"mask",       "cpumask",   "entries",   "verbose",
					    "alq_enable", "alq_file",  "alq_depth", "alq_max",
					    "alq_cnt",    "alq_failed"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char full[64];

		snprintf(full, sizeof(full), "debug.ktr.%s", names[i]);
		printf("%-10s %s\n", names[i], get(full));
	}
	printf("\n%s\n", get("debug.ktr.stats"));
	return 0;
}

/* Cuts the next word off the line. */
static char *
next_word(char **line)
{
	char *word = *line + strspn(*line, " \t");

	*line = word + strcspn(word, " \t");
	if (**line != '\0')
		*(*line)++ = '\0';
	return word;
}

static bool
class_match(const char *glob, char *classes)
{
	char *class;

	while ((class = strsep(&classes, ",|")) != NULL) {
		if (strcasecmp(glob, class) == 0 || fnmatch(glob, class, 0) == 0)
			return true;
	}
	return false;
}

static bool
site_match(const char *glob, const char *line)
{
	char *copy = strdup(line), *rest = copy, *class, *where, *func, *base;
	size_t len;
	bool match;

	if (copy == NULL)
		err(1, "memory");
	for (int skip = 0; skip < 3; skip++)
		next_word(&rest);
	class = next_word(&rest);
	where = next_word(&rest);
	func = next_word(&rest);
	rest += strspn(rest, " \t");
	len = strlen(rest);
	if (len >= 2 && rest[0] == '"' && rest[len - 1] == '"') {
		rest[len - 1] = '\0';
		rest++;
	}
	base = strrchr(where, '/') != NULL ? strrchr(where, '/') + 1 : where;
	match = class_match(glob, class) || fnmatch(glob, where, 0) == 0 ||
		fnmatch(glob, base, 0) == 0 || fnmatch(glob, func, 0) == 0 ||
		fnmatch(glob, rest, 0) == 0;
	free(copy);
	return match;
}

static int
print_sites(const char *glob)
{
	char *text = get("debug.ktr.sites"), *line;
	bool found = false;

	while ((line = strsep(&text, "\n")) != NULL) {
		if (glob == NULL || site_match(glob, line)) {
			puts(line);
			found = true;
		}
	}
	if (!found)
		warnx("%s: no trace point matches (ktr sites lists them)",
		      glob != NULL ? glob : "*");
	return !found;
}

int
main(int argc, char **argv)
{
	const char *verb, *arg;
	int args;

	while (tool_getopt(argc, argv, "", usage) != -1)
		;
	if (optind == argc)
		tool_usage(usage);
	verb = argv[optind++];
	args = argc - optind;
	arg = args > 0 ? argv[optind] : NULL;
	if (strcmp(verb, "status") == 0 && args == 0)
		return tool_finish(print_status());
	if (strcmp(verb, "classes") == 0 && args == 0) {
		puts(get("debug.ktr.classes"));
		return tool_finish(0);
	}
	if (strcmp(verb, "sites") == 0 && args <= 1)
		return tool_finish(print_sites(arg));
	if (strcmp(verb, "on") == 0 && args == 1)
		return set("debug.ktr.on", arg);
	if (strcmp(verb, "off") == 0 && args == 1)
		return set("debug.ktr.off", arg);
	if (strcmp(verb, "clear") == 0 && args == 0)
		return set("debug.ktr.clear", "1");
	tool_usage(usage);
}
