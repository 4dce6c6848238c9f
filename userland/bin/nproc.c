/* nproc.c - prints the number of CPUs. */
#include <err.h>
#include <getopt.h>
#include <kestrel.h>
#include <stdio.h>
#include <tool.h>

static const char usage[] = "nproc\n";

int
main(int argc, char **argv)
{
	uint64_t n;

	while (tool_getopt(argc, argv, "", usage) != -1)
		;
	if (optind < argc)
		tool_usage(usage);
	if (sysctl_get_u64("hw.ncpu", &n) < 0)
		err(1, "hw.ncpu");
	printf("%lu\n", n);
	return tool_finish(0);
}
