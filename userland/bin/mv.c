/* mv.c - renames files and directories. */
#include <err.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <tool.h>

static const char usage[] = "mv FROM TO\n"
			    "       mv FILE... DIRECTORY\n";

static int
move(const char *from, const char *to)
{
	if (rename(from, to) == 0)
		return 0;
	warn("%s to %s", from, to);
	return 1;
}

int
main(int argc, char **argv)
{
	while (tool_getopt(argc, argv, "", usage) != -1)
		;
	return tool_each_to(argc - optind, argv + optind, usage, move);
}
