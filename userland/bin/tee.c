/* tee.c - copies standard input to standard output and to files. */
#include <err.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <tool.h>
#include <unistd.h>

static const char usage[] = "tee [-a] FILE...    (-a appends)\n";

int
main(int argc, char **argv)
{
	static char buf[16 * 1024];
	bool append = false;
	int c, *fds, count, status = 0;
	ssize_t n;

	while ((c = tool_getopt(argc, argv, "a", usage)) != -1)
		append = true;
	count = argc - optind;
	fds = calloc((size_t)count + 1, sizeof(*fds));
	if (fds == NULL)
		err(1, "memory");
	for (int i = 0; i < count; i++) {
		fds[i] = open(argv[optind + i], O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC),
			      0666);
		if (fds[i] < 0) {
			warn("%s", argv[optind + i]);
			status = 1;
		}
	}
	while ((n = read(0, buf, sizeof(buf))) > 0) {
		if (write_all(1, buf, (size_t)n) < 0)
			err(1, "stdout");
		for (int i = 0; i < count; i++) {
			if (fds[i] >= 0 && write_all(fds[i], buf, (size_t)n) < 0)
				err(1, "%s", argv[optind + i]);
		}
	}
	if (n < 0)
		err(1, "stdin");
	return status;
}
