/*
 * ktr.c - controls the event log through the sysctls debug.ktr.*.
 *
 * A line of debug.ktr.sites is: ID STATE OWNERS CLASS FILE:LINE FUNCTION "FORMAT".
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
    "ktr status          show what is switched on, and the state of each CPU's ring\n"
    "       ktr classes         list event classes and their values\n"
    "       ktr sites [GLOB]    list trace points; GLOB matches class, file:line, function or format\n"
    "       ktr on SPEC         switch on classes, or the trace points that a glob matches\n"
    "       ktr off [SPEC]      switch off, whoever switched on; without SPEC, all\n"
    "       ktr clear           drop all recorded events\n";

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

/* Sets a variable that reads what setting it has done; quiet: says nothing of that. */
static int
set(const char *name, const char *value, bool quiet)
{
	char why[512];

	if (sysctl_set(name, value, why, sizeof(why)) < 0) {
		warnx("%s", why);
		return 1;
	}
	if (!quiet)
		puts(get(name));
	return tool_finish(0);
}

/* The text of a variable whose first line is a heading. */
static void
print_table(const char *name)
{
	char *rows = get(name), *heads = strsep(&rows, "\n");

	tool_table(heads, rows != NULL ? rows : heads + strlen(heads));
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
	ktr_losses_print(stdout, "lost       ", NULL);
	putchar('\n');
	print_table("debug.ktr.stats");
	return 0;
}

/* Takes the next word off the line. */
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
	char *rest = get("debug.ktr.sites"), *heads = strsep(&rest, "\n"), *found = NULL, *line;
	size_t len = 0;

	if (glob == NULL)
		glob = "*";
	if (rest != NULL)
		found = malloc(strlen(rest) + 2);
	while (found != NULL && (line = strsep(&rest, "\n")) != NULL) {
		if (site_match(glob, line))
			len += (size_t)sprintf(found + len, "%s\n", line);
	}
	if (len == 0)
		errx(1, "%s: no trace point matches (ktr sites lists them)", glob);
	tool_table(heads, found);
	return 0;
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
		print_table("debug.ktr.classes");
		return tool_finish(0);
	}
	if (strcmp(verb, "sites") == 0 && args <= 1)
		return tool_finish(print_sites(arg));
	if (strcmp(verb, "on") == 0 && args == 1)
		return set("debug.ktr.on", arg, false);
	if (strcmp(verb, "off") == 0 && args <= 1)
		return set("debug.ktr.off", arg != NULL ? arg : "*", false);
	if (strcmp(verb, "clear") == 0 && args == 0)
		return set("debug.ktr.clear", "1", true);
	tool_usage(usage);
}
