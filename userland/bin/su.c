/*
 * su.c - runs a shell or a command as another user. Users are numbers. User 0 may become any user.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <tool.h>
#include <unistd.h>

static const char usage[] = "su UID [COMMAND [ARGUMENT]...]\n";

int
main(int argc, char **argv)
{
	static char *const shell[] = {"sh", NULL};
	char *const *command = shell;
	uid_t uid;

	while (tool_getopt(argc, argv, "", usage) != -1)
		;
	if (optind >= argc)
		tool_usage(usage);
	uid = (uid_t)tool_number("user id", argv[optind++], 0, UINT_MAX - 1);
	/* The group of a user has the same number. */
	if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setgid(uid) < 0))
		err(1, "groups of user %u", uid);
	if (setuid(uid) < 0)
		err(1, "user %u", uid);
	if (optind < argc)
		command = argv + optind;
	execvp(command[0], command);
	warn("%s", command[0]);
	return errno == ENOENT ? 127 : 126;
}
