/* reboot.c - reboots the machine. */
#include <err.h>
#include <getopt.h>
#include <kestrel.h>
#include <tool.h>

static const char usage[] = "reboot\n";

int
main(int argc, char **argv)
{
	while (tool_getopt(argc, argv, "", usage) != -1)
		;
	if (optind < argc)
		tool_usage(usage);
	machine_shutdown(SHUTDOWN_REBOOT, 0);
	err(1, "reboot");
}
