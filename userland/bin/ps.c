/*
 * ps.c - lists processes.
 *
 * The kernel's text (sysctl kern.proc) has a line a process, ten words: PID PPID PGID UID STATE
 * PRIO CPU TIME_MS WMESG NAME; a line whose first word is no number is its heading.
 */
#include <ctype.h>
#include <err.h>
#include <getopt.h>
#include <kestrel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tool.h>

static const char usage[] = "ps\n";

#define FIELDS 10

static void
print_process(char *line)
{
	char *field[FIELDS], *state = NULL;
	int n = 0;
	uint64_t ms;

	while (n < FIELDS - 1 && (field[n] = strtok_r(n == 0 ? line : NULL, " \t", &state)) != NULL)
		n++;
	if (n < FIELDS - 1 || state == NULL) {
		warnx("kern.proc: found %d words in a line, expected %d", n, FIELDS);
		return;
	}
	field[FIELDS - 1] = state + strspn(state, " \t"); /* the name may hold spaces */
	ms = strtoull(field[7], NULL, 10);
	printf("%5s %5s %5s %5s %-6s %4s %3s %5lu.%03lu %-10s %s\n", field[0], field[1], field[2],
	       field[3], field[4], field[5], field[6], ms / 1000, ms % 1000, field[8],
	       field[FIELDS - 1]);
}

int
main(int argc, char **argv)
{
	char *text, *line;

	while (tool_getopt(argc, argv, "", usage) != -1)
		;
	if (optind < argc)
		tool_usage(usage);
	text = sysctl_get_text("kern.proc");
	if (text == NULL)
		err(1, "kern.proc");
	printf("%5s %5s %5s %5s %-6s %4s %3s %9s %-10s %s\n", "PID", "PPID", "PGID", "UID", "STATE",
	       "PRIO", "CPU", "TIME", "WMESG", "NAME");
	while ((line = strsep(&text, "\n")) != NULL) {
		if (isdigit((unsigned char)line[strspn(line, " ")]))
			print_process(line);
	}
	return tool_finish(0);
}
