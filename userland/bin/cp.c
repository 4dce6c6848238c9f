/* cp.c - copies files. */
#include <err.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <tool.h>
#include <unistd.h>

static const char usage[] = "cp FROM TO\n"
			    "       cp FILE... DIRECTORY\n";

static int
copy_data(int in, const char *from, int out, const char *to)
{
	static char buf[64 * 1024];
	ssize_t n;

	while ((n = read(in, buf, sizeof(buf))) > 0) {
		if (write_all(out, buf, (size_t)n) < 0) {
			warn("%s", to);
			return 1;
		}
	}
	if (n < 0)
		warn("%s", from);
	return n < 0;
}

static int
copy_file(const char *from, const char *to)
{
	struct stat st, target;
	int in = open(from, O_RDONLY), out, status;

	if (in < 0 || fstat(in, &st) < 0) {
		warn("%s", from);
		return 1;
	}
	if (S_ISDIR(st.st_mode)) {
		warnx("%s: is a directory", from);
		close(in);
		return 1;
	}
	if (stat(to, &target) == 0 && target.st_dev == st.st_dev && target.st_ino == st.st_ino) {
		warnx("%s and %s are the same file", from, to);
		close(in);
		return 1;
	}
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC, st.st_mode & 0777);
	if (out < 0) {
		warn("%s", to);
		close(in);
		return 1;
	}
	status = copy_data(in, from, out, to);
	close(in);
	if (close(out) < 0) {
		warn("%s", to);
		status = 1;
	}
	return status;
}

int
main(int argc, char **argv)
{
	while (tool_getopt(argc, argv, "", usage) != -1)
		;
	return tool_each_to(argc - optind, argv + optind, usage, copy_file);
}
