/* rm.c - removes files, and with -r directories with all that is in them. */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <tool.h>
#include <unistd.h>

static const char usage[] =
    "rm [-rf] FILE...    (-r: directories too, -f: missing files are fine)\n";

#define DEPTH_MAX 16 /* directories open at a time, and how long paths get */
#define NAMES_MAX 1000

static bool recursive, force;
static const char *top; /* the argument */

static int remove_path(const char *path, unsigned depth);

/*
 * Moves a directory that is too deep up into the one that is removed, where a later sweep finds it:
 * trees may be deeper than any path is long.
 */
static int
move_up(const char *path)
{
	static unsigned n;
	char to[PATH_MAX];

	for (unsigned i = 0; i < NAMES_MAX; i++) {
		snprintf(to, sizeof(to), "%s/.rm%u", top, n++);
		if (rename(path, to) == 0)
			return 0;
		if (errno != ENOTEMPTY && errno != ENOTDIR)
			break;
	}
	warn("%s", path);
	return 1;
}

/* Removes what is in a directory. Starts again after each sweep: removing may shift the entries. */
static int
remove_entries(const char *path, unsigned depth)
{
	bool found = true;
	int status = 0;

	while (found && status == 0) {
		int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		DIR *d = fd < 0 ? NULL : fdopendir(fd);
		struct dirent *e;
		char child[PATH_MAX];

		if (d == NULL) {
			warn("%s", path);
			return 1;
		}
		found = false;
		while ((e = readdir(d)) != NULL) {
			if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
				continue;
			found = true;
			status |= tool_join_path(child, sizeof(child), path, e->d_name) < 0 ||
				  remove_path(child, depth);
		}
		closedir(d);
	}
	return status;
}

static int
remove_path(const char *path, unsigned depth)
{
	struct stat st;

	if (unlink(path) == 0)
		return 0;
	if (errno == ENOENT && force)
		return 0;
	if (errno != EISDIR && !(errno == EPERM && stat(path, &st) == 0 && S_ISDIR(st.st_mode))) {
		warn("%s", path);
		return 1;
	}
	if (!recursive) {
		warnx("%s: is a directory (-r removes it with all that is in it)", path);
		return 1;
	}
	if (rmdir(path) == 0)
		return 0;
	if (depth == DEPTH_MAX)
		return move_up(path);
	if (remove_entries(path, depth + 1) != 0)
		return 1;
	if (rmdir(path) == 0)
		return 0;
	warn("%s", path);
	return 1;
}

int
main(int argc, char **argv)
{
	int c, status = 0;

	while ((c = tool_getopt(argc, argv, "rRf", usage)) != -1) {
		if (c == 'f')
			force = true;
		else
			recursive = true;
	}
	if (optind == argc && !force)
		tool_usage(usage);
	for (; optind < argc; optind++) {
		top = argv[optind];
		status |= remove_path(top, 0);
	}
	return status;
}
