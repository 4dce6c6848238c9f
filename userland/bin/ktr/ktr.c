/*
 * ktr.c - controls the event log through the sysctls debug.ktr.*.
 *
 * A line of debug.ktr.sites is: ID STATE OWNERS CLASS FILE:LINE FUNCTION "FORMAT"; of
 * debug.ktr.probes: ID STATE OWNERS PROVIDER MODULE FUNCTION NAME "FORMAT".
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

#include "userland/bin/ktr/ktr.h"

static const char usage[] =
    "ktr status          show what is switched on, and the state of each CPU's ring\n"
    "       ktr classes         list event classes and their values\n"
    "       ktr sites [GLOB]    list trace points; GLOB matches class, file:line,\n"
    "                           function or format\n"
    "       ktr probes [SPEC]   list trace points, system calls and functions;\n"
    "                           SPEC is PROVIDER:MODULE:FUNCTION:NAME\n"
    "       ktr probes -c [SPEC]  count them by provider\n"
    "       ktr probes -x       list functions without probes, with the reason\n"
    "       ktr probe add 'p:NAME FUNCTION[+OFFSET] [NAME=FETCH[:TYPE]]...'\n"
    "                           make a probe at an instruction; r: at the returns\n"
    "                           of FUNCTION\n"
    "       ktr probe del NAME  remove it\n"
    "       ktr probe list      list them with what they have counted\n"
    "       ktr graph [-p PID] [-d DEPTH] [-x GLOB] FUNCTION [--] COMMAND...\n"
    "                           run COMMAND; print what FUNCTION (a glob, or a\n"
    "                           SPEC) calls for it and its children, with\n"
    "                           durations; at most DEPTH calls deep, without the\n"
    "                           functions of GLOB; of process PID instead, while\n"
    "                           COMMAND runs\n"
    "       ktr profile [-p PID] [-x GLOB] FUNCTION [--] COMMAND...\n"
    "                           run COMMAND; print how often FUNCTION (a glob, or\n"
    "                           a SPEC) ran for it and its children, or for\n"
    "                           process PID, and how long\n"
    "       ktr on SPEC...      switch on: classes, a GLOB as for sites, or a SPEC\n"
    "                           as for probes; if one is refused, none\n"
    "       ktr off [SPEC...]   switch off, whoever switched on; without SPEC, all\n"
    "       ktr clear           drop all recorded events\n";

/* Finds the lines of the usage that are about a command. Does not return if there is none of that
 * name. */
static const char *
usage_of(const char *verb)
{
	static char found[2048];
	const char *end;
	bool about = false;
	size_t n = 0;

	for (const char *line = usage; *line != '\0'; line = end) {
		const char *words = line + strspn(line, " ");

		end = strchr(line, '\n') + 1;
		if (words - line <= 7) /* not the rest of the line before */
			about = strncmp(words + 4, verb, strlen(verb)) == 0 &&
				words[4 + strlen(verb)] == ' ';
		if (about && n == 0)
			line = words;
		if (about) {
			memcpy(found + n, line, (size_t)(end - line));
			n += (size_t)(end - line);
		}
	}
	if (n == 0)
		errx(2,
		     "%s: no such command; expected status, classes, sites, probes, probe, graph, "
		     "profile, on, off or clear (ktr --help explains them)",
		     verb);
	found[n] = '\0';
	return found;
}

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

	while ((class = strsep(&classes, ",|")) != NULL)
		if (strcasecmp(glob, class) == 0 || fnmatch(glob, class, 0) == 0)
			return true;
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
	where[strcspn(where, ":")] = '\0';
	match |= fnmatch(glob, where, 0) == 0 || fnmatch(glob, base, 0) == 0;
	free(copy);
	return match;
}

/* Leaves the rows that match. Returns how many there are. */
static unsigned
filter(char *rows, const char *spec, bool (*match)(const char *spec, const char *line))
{
	char *to = rows, *line;
	unsigned n = 0;

	while ((line = strsep(&rows, "\n")) != NULL) {
		size_t len = strlen(line);

		if (spec != NULL && !match(spec, line))
			continue;
		if (n++ > 0)
			*to++ = '\n';
		memmove(to, line, len);
		to += len;
	}
	*to = '\0';
	return n;
}

static int
print_sites(const char *glob)
{
	char *rows = get("debug.ktr.sites"), *heads = strsep(&rows, "\n");

	if (rows == NULL || filter(rows, glob, site_match) == 0)
		errx(1, "%s: no trace point matches (ktr sites lists them)",
		     glob != NULL ? glob : "*");
	tool_table(heads, rows);
	return 0;
}

/* Reads one name of a probe; fields that are missing are on the left. */
static bool
name_match(char *spec, const char *line)
{
	char *copy = strdup(line), *rest = copy, *glob;
	unsigned fields = 1;
	bool match;

	if (copy == NULL)
		err(1, "memory");
	for (const char *p = spec; *p != '\0'; p++)
		fields += *p == ':';
	match = fields > 1 && fields <= 4;
	for (unsigned skip = 3 + 4 - fields; match && skip > 0; skip--)
		next_word(&rest);
	while (match && (glob = strsep(&spec, ":")) != NULL) {
		const char *word = next_word(&rest);

		match = *glob == '\0' || fnmatch(glob, word, 0) == 0;
	}
	free(copy);
	return match;
}

/* As ktr_probe_matches() (ktr/probe.h) does it. */
static bool
probe_match(const char *specs, const char *line)
{
	char *copy = strdup(specs), *rest = copy, *spec;
	bool match = false;

	if (copy == NULL)
		err(1, "memory");
	while (!match && (spec = strsep(&rest, ",")) != NULL)
		match = name_match(spec, line);
	free(copy);
	return match;
}

/* Opens a file whose contents become *text when it is closed. */
static FILE *
text_open(char **text)
{
	static size_t size;
	FILE *f = open_memstream(text, &size);

	if (f == NULL)
		err(1, "memory");
	return f;
}

/* How many probes each provider has. */
static void
print_counts(char *rows)
{
	struct {
		const char *name;
		unsigned probes, on;
	} providers[32] = {{0}};
	char *line, *table;
	FILE *f = text_open(&table);

	while ((line = strsep(&rows, "\n")) != NULL) {
		size_t i = 0;

		next_word(&line);
		bool on = strcmp(next_word(&line), "on") == 0;
		next_word(&line);
		const char *name = next_word(&line);
		while (i < 31 && providers[i].name != NULL && strcmp(providers[i].name, name) != 0)
			i++;
		providers[i].name = name;
		providers[i].probes++;
		providers[i].on += on;
	}
	for (size_t i = 0; i < 32 && providers[i].name != NULL; i++)
		fprintf(f, "%s %u %u\n", providers[i].name, providers[i].probes, providers[i].on);
	fclose(f);
	tool_table("provider probes on", table);
}

/* For functions, the types of the arguments follow the format, as for SDT. */
static char *
add_types(char *rows)
{
	char *all, *line;
	FILE *f = text_open(&all);

	probe_types_open();
	while ((line = strsep(&rows, "\n")) != NULL) {
		char *copy = strdup(line), *rest = copy, *words[7];

		if (copy == NULL)
			err(1, "memory");
		for (unsigned i = 0; i < 7; i++)
			words[i] = next_word(&rest);
		fprintf(f, "%s%s\n", line,
			strcmp(words[3], "fbt") == 0 ? probe_types(words[5], words[6]) : "");
		free(copy);
	}
	fclose(f);
	return all;
}

static int
print_probes(const char *spec, bool count)
{
	char *rows = get("debug.ktr.probes"), *heads = strsep(&rows, "\n");

	if (rows == NULL || filter(rows, spec, probe_match) == 0)
		errx(
		    1,
		    "%s: no probe matches; expected PROVIDER:MODULE:FUNCTION:NAME, where a field may "
		    "be empty or a glob",
		    spec != NULL ? spec : "*");
	if (count)
		print_counts(rows);
	else
		tool_table(heads, add_types(rows));
	return 0;
}

/* Joins words, with a character between them. */
static void
join(char *text, size_t size, char **words, char between)
{
	size_t n = strlcpy(text, *words++, size);

	for (; *words != NULL && n < size; words++) {
		text[n++] = between;
		n += strlcpy(text + n, *words, size - n);
	}
	if (n >= size)
		errx(1, "found more than %zu characters, expected at most as many", size - 1);
}

/* Switches on or off what the words name: all of it, or nothing if one is refused. */
static int
select_words(const char *name, char **words)
{
	char text[1024];

	for (char **word = words; *word != NULL; word++)
		if (**word == '\0')
			errx(1, "found an empty word, expected classes, a GLOB or a SPEC");
	join(text, sizeof(text), words, '\n');
	return set(name, text, false);
}

/* Makes a probe at an instruction. An error says at which character: a mark shows the place. */
static int
probe_add(char **words)
{
	char text[1024], why[512];

	join(text, sizeof(text), words, ' ');
	if (sysctl_set("debug.kprobe.add", text, why, sizeof(why)) == 0)
		return tool_finish(0);
	warnx("%s", why);
	if (strncmp(why, "character ", 10) == 0)
		fprintf(stderr, "%s\n%*s\n", text, atoi(why + 10), "^");
	return 1;
}

static int
probe(char **words, int n)
{
	if (n >= 2 && strcmp(words[0], "add") == 0)
		return probe_add(words + 1);
	if (n == 2 && strcmp(words[0], "del") == 0)
		return set("debug.kprobe.del", words[1], true);
	if (n == 1 && strcmp(words[0], "list") == 0) {
		print_table("debug.kprobe.list");
		return tool_finish(0);
	}
	tool_usage(usage_of("probe"));
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
	if (args > 0 && (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)) {
		printf("usage: %s", usage_of(verb));
		return tool_finish(0);
	}
	if (strcmp(verb, "status") == 0 && args == 0)
		return tool_finish(print_status());
	if (strcmp(verb, "classes") == 0 && args == 0) {
		print_table("debug.ktr.classes");
		return tool_finish(0);
	}
	if (strcmp(verb, "sites") == 0 && args <= 1)
		return tool_finish(print_sites(arg));
	if (strcmp(verb, "probes") == 0 && args == 1 && strcmp(arg, "-x") == 0) {
		puts(get("debug.fbt.exceptions"));
		return tool_finish(0);
	}
	if (strcmp(verb, "probes") == 0 && args > 0 && args <= 2 && strcmp(arg, "-c") == 0)
		return tool_finish(print_probes(argv[optind + 1], true));
	if (strcmp(verb, "probes") == 0 && args <= 1)
		return tool_finish(print_probes(arg, false));
	if (strcmp(verb, "probe") == 0)
		return probe(argv + optind, args);
	if (strcmp(verb, "graph") == 0 || strcmp(verb, "profile") == 0)
		return session_main(argc - optind + 1, argv + optind - 1, usage_of(verb));
	if (strcmp(verb, "on") == 0 && args > 0)
		return select_words("debug.ktr.on", argv + optind);
	if (strcmp(verb, "off") == 0 && args > 0)
		return select_words("debug.ktr.off", argv + optind);
	if (strcmp(verb, "off") == 0)
		return set("debug.ktr.off", ":::", false);
	if (strcmp(verb, "clear") == 0 && args == 0)
		return set("debug.ktr.clear", "1", true);
	tool_usage(usage_of(verb));
}
