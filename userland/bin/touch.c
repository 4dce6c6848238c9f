/*
 * touch.c - creates files that do not exist. Times cannot be set, so existing files do not change.
 */
#include <err.h>
#include <fcntl.h>
#include <getopt.h>
#include <tool.h>
#include <unistd.h>

static const char usage[] = "touch FILE...\n";

int
main(int argc, char **argv)
{
	int status = 0;

	while (tool_getopt(argc, argv, "", usage) != -1)
		;
	if (optind == argc)
		tool_usage(usage);
	for (; optind < argc; optind++) {
		int fd = open(argv[optind], O_WRONLY | O_CREAT, 0666);

		if (fd < 0) {
			warn("%s", argv[optind]);
			status = 1;
		} else {
			close(fd);
		}
	}
	return status;
}
