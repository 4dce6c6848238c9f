/* cat.c - copies files, or standard input, to standard output. */
#include <err.h>
#include <fcntl.h>
#include <getopt.h>
#include <string.h>
#include <tool.h>
#include <unistd.h>

static const char usage[] = "cat [FILE]...    (- is standard input)\n";

static char buf[64 * 1024];

static int
copy_out(const char *path)
{
	int fd = strcmp(path, "-") == 0 ? 0 : open(path, O_RDONLY);
	ssize_t n = -1;

	if (fd < 0) {
		warn("%s", path);
		return 1;
	}
	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		if (write_all(1, buf, (size_t)n) < 0)
			err(1, "stdout");
	}
	if (n < 0)
		warn("%s", path);
	if (fd != 0)
		close(fd);
	return n < 0;
}

int
main(int argc, char **argv)
{
	int status = 0;

	while (tool_getopt(argc, argv, "", usage) != -1)
		;
	if (optind == argc)
		return copy_out("-");
	for (; optind < argc; optind++)
		status |= copy_out(argv[optind]);
	return status;
}
