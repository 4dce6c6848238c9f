/* uptime.c - prints the time since the boot. */
#include <err.h>
#include <getopt.h>
#include <kestrel.h>
#include <stdio.h>
#include <time.h>
#include <tool.h>

static const char usage[] = "uptime\n";

int
main(int argc, char **argv)
{
	struct timespec ts;
	uint64_t ncpu, s;

	while (tool_getopt(argc, argv, "", usage) != -1)
		;
	if (optind < argc)
		tool_usage(usage);
	if (clock_gettime(CLOCK_MONOTONIC, &ts) < 0)
		err(1, "clock");
	s = (uint64_t)ts.tv_sec;
	printf("up ");
	if (s >= 86400)
		printf("%lu day%s, ", s / 86400, s >= 2 * 86400 ? "s" : "");
	printf("%lu:%02lu:%02lu.%03lu", s / 3600 % 24, s / 60 % 60, s % 60,
	       (uint64_t)ts.tv_nsec / 1000000);
	if (sysctl_get_u64("hw.ncpu", &ncpu) < 0) {
		putchar('\n');
		err(1, "hw.ncpu");
	}
	printf(", %lu CPU%s\n", ncpu, ncpu == 1 ? "" : "s");
	return tool_finish(0);
}
