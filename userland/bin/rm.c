/* rm.c - removes files, and with -r directories with their contents. */
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

#define DEPTH_MAX 16 /* of open directories; limits the length of paths, too */
#define NAMES_MAX 1000

static bool recursive, force;
static const char *top; /* the argument */

static int remove_path(const char *path, unsigned depth);

/*
 * Moves a directory that is nested too deep up into the directory that is being removed, where a
 * later sweep finds it: a tree may be deeper than the longest path.
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

/*
 * Removes the entries of a directory. Reads it again after each sweep, since removing may move
 * entries.
 */
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
		warnx("%s: is a directory (-r removes it with its contents)", path);
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
