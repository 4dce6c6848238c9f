/*
 * ps.c - lists threads of all processes, and of the kernel.
 *
 * The sysctl kern.proc has one line for each, with eleven words: PID TID PPID PGID UID STATE PRIO
 * CPU TIME_MS WMESG NAME. The name may contain spaces.
 */
#include <err.h>
#include <getopt.h>
#include <kestrel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tool.h>

static const char usage[] = "ps\n";

#define TIME_MS 8 /* words before it */

/* Copies a line, with the time in seconds. Returns the copy's end. */
static char *
copy_line(char *to, const char *line)
{
	const char *time = line;
	char *end;
	uint64_t ms;

	for (int i = 0; i < TIME_MS; i++) {
		time += strcspn(time, " ");
		time += strspn(time, " ");
	}
	ms = strtoull(time, &end, 10);
	return to + sprintf(to, "%.*s%lu.%03lu%s\n", (int)(time - line), line, ms / 1000, ms % 1000,
			    end);
}

int
main(int argc, char **argv)
{
	char *text, *line, *table, *end;

	while (tool_getopt(argc, argv, "", usage) != -1)
		;
	if (optind < argc)
		tool_usage(usage);
	text = sysctl_get_text("kern.proc");
	/* A line gets a point, zeros before it, and an end. */
	table = end = text != NULL ? malloc(2 * strlen(text) + 8) : NULL;
	if (table == NULL)
		err(1, "kern.proc");
	*end = '\0';
	while ((line = strsep(&text, "\n")) != NULL) {
		if (*line != '\0')
			end = copy_line(end, line);
	}
	tool_table("PID TID PPID PGID UID STATE PRIO CPU TIME WMESG NAME", table);
	return tool_finish(0);
}
