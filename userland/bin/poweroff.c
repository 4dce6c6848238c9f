/* poweroff.c - powers the machine off, with an exit status for qemu/boot. */
#include <err.h>
#include <getopt.h>
#include <kestrel.h>
#include <tool.h>

static const char usage[] = "poweroff [STATUS]    (0 to 63; 0)\n";

int
main(int argc, char **argv)
{
	int status = 0;

	while (tool_getopt(argc, argv, "", usage) != -1)
		;
	if (argc - optind > 1)
		tool_usage(usage);
	if (optind < argc)
		status = (int)tool_number("status", argv[optind], 0, 63);
	machine_shutdown(SHUTDOWN_POWEROFF, status);
	err(1, "power off");
}
