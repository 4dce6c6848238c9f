/* mkdir.c - makes directories. */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <tool.h>

static const char usage[] =
    "mkdir [-p] DIRECTORY...    (-p: with parents; existing ones are fine)\n";

/* Makes the directory at `path`, unless it exists. */
static int
make_one(const char *path)
{
	struct stat st;

	if (mkdir(path, 0777) == 0)
		return 0;
	if (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	warn("%s", path);
	return 1;
}

static int
make_parents(char *path)
{
	for (char *p = path + 1; *p != '\0'; p++) {
		if (*p != '/' || p[-1] == '/')
			continue;
		*p = '\0';
		if (make_one(path) != 0)
			return 1;
		*p = '/';
	}
	return make_one(path);
}

int
main(int argc, char **argv)
{
	bool parents = false;
	int status = 0;

	while (tool_getopt(argc, argv, "p", usage) != -1)
		parents = true;
	if (optind == argc)
		tool_usage(usage);
	for (; optind < argc; optind++) {
		if (parents) {
			status |= make_parents(argv[optind]);
		} else if (mkdir(argv[optind], 0777) < 0) {
			warn("%s", argv[optind]);
			status = 1;
		}
	}
	return status;
}
