/* mv.c - renames files and directories. */
#include <err.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <tool.h>

static const char usage[] = "mv FROM TO\n"
			    "       mv FILE... DIRECTORY\n";

static int
move(const char *from, const char *to)
{
	if (rename(from, to) == 0)
		return 0;
	warn("%s to %s", from, to);
	return 1;
}

int
main(int argc, char **argv)
{
	struct stat st;
	const char *target;
	int status = 0;

	while (tool_getopt(argc, argv, "", usage) != -1)
		;
	if (argc - optind < 2)
		tool_usage(usage);
	target = argv[argc - 1];
	if (stat(target, &st) == 0 && S_ISDIR(st.st_mode)) {
		for (; optind < argc - 1; optind++) {
			const char *slash = strrchr(argv[optind], '/');
			char path[PATH_MAX];

			status |= tool_join_path(path, sizeof(path), target,
						 slash != NULL ? slash + 1 : argv[optind]) < 0 ||
				  move(argv[optind], path);
		}
		return status;
	}
	if (argc - optind > 2)
		errx(1, "%s: not a directory", target);
	return move(argv[optind], target);
}
