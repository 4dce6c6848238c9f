/* sysctl.c - shows and sets the kernel's variables. */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <kestrel.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tool.h>

static const char usage[] =
    "sysctl [-dnqw] NAME[=VALUE]...  (a NAME may be a prefix: debug.ktr, debug.ktr.)\n"
    "       sysctl [-dn] -a\n"
    "  -a  all variables\n"
    "  -d  print descriptions instead of values\n"
    "  -n  without names\n"
    "  -q  prints nothing of what it sets\n"
    "  -w  as on Linux: changes nothing here\n";

#define NAME_SIZE 128

static bool show_all, describe, bare, quiet;

/* Of "TYPE FLAGS DESCRIPTION". */
static int
print_description(const char *name)
{
	char buf[512], *p;

	if (sysctl_info(name, buf, sizeof(buf)) < 0) {
		warn("%s", name);
		return 1;
	}
	p = strchr(buf, ' ');
	if (p != NULL)
		p = strchr(p + 1, ' ');
	printf("%s%s%s\n", bare ? "" : name, bare ? "" : ": ", p != NULL ? p + 1 : "");
	return 0;
}

/* Prints `name: value`. A value of several lines starts on its own line. */
static void
print_value(const char *name, char *value)
{
	size_t len = strlen(value);
	const char *gap;

	while (len > 0 && value[len - 1] == '\n')
		value[--len] = '\0';
	gap = strchr(value, '\n') != NULL ? ":\n" : ": ";
	printf("%s%s%s\n", bare ? "" : name, bare ? "" : gap, value);
}

/* Prints one line of a list: of a longer text only the size. */
static int
print_listed(const char *name)
{
	char *value;
	size_t lines = 1;

	if (describe)
		return print_description(name);
	value = sysctl_get_text(name);
	if (value == NULL) {
		warn("%s", name);
		return 1;
	}
	for (const char *p = value; (p = strchr(p, '\n')) != NULL && p[1] != '\0'; p++)
		lines++;
	if (lines > 1)
		printf("%s%s(%zu lines)\n", bare ? "" : name, bare ? "" : ": ", lines);
	else
		print_value(name, value);
	free(value);
	return 0;
}

/* Lists the variables that begin with `prefix` ("": all). Returns how many. *status gets errors. */
static int
list(const char *prefix, int *status)
{
	char name[NAME_SIZE], next[NAME_SIZE];
	size_t len = strlen(prefix);
	int count = 0;

	strlcpy(name, prefix, sizeof(name));
	while (sysctl_next(name, next, sizeof(next)) >= 0) {
		if (len > 0 && (strncmp(next, prefix, len) != 0 || next[len] != '.')) {
			/*
			 * "debug.ktr-x" sorts before "debug.ktr.mask". The list ends at the first
			 * name without the prefix.
			 */
			if (strncmp(next, prefix, len) != 0)
				return count;
		} else {
			*status |= print_listed(next);
			count++;
		}
		strlcpy(name, next, sizeof(name));
	}
	if (errno != ENOENT) {
		warn("%s", *name != '\0' ? name : "all");
		*status = 1;
	}
	return count;
}

static int
show(const char *name)
{
	char *value = NULL, why[256] = "";
	int status = 0, error;

	if (describe) {
		char buf[16];

		if (sysctl_info(name, buf, sizeof(buf)) >= 0)
			return print_description(name);
	} else if ((value = sysctl_get_text(name)) != NULL) {
		print_value(name, value);
		free(value);
		return 0;
	}
	error = errno;
	if (error == ENOENT && *name != '\0') {
		char prefix[NAME_SIZE];
		size_t len = strlcpy(prefix, name, sizeof(prefix));

		if (len < sizeof(prefix) && prefix[len - 1] == '.')
			prefix[len - 1] = '\0';
		if (list(prefix, &status) > 0)
			return status;
	}
	/* The kernel knows similar names, and tells who may set one. */
	if (error == ENOENT && (sysctl_set(name, "", why, sizeof(why)) >= 0 || errno != ENOENT))
		strlcpy(why, "no such sysctl; sysctl -a lists all", sizeof(why));
	if (error == ENOENT)
		warnx("%s: %s", name, why);
	else
		warnx("%s: %s", name, strerror(error));
	return 1;
}

/* Sets `name` and prints the old and new value, unless -q is given or both are empty. */
static int
set(const char *name, const char *value)
{
	char why[512], *before = sysctl_get_text(name), *after;

	if (sysctl_set(name, value, why, sizeof(why)) < 0) {
		warnx("%s: %s", name, why);
		free(before);
		return 1;
	}
	after = sysctl_get_text(name);
	if (after != NULL && before != NULL && !quiet) {
		before[strcspn(before, "\n")] = '\0';
		after[strcspn(after, "\n")] = '\0';
		if (bare)
			puts(after);
		else if (*before != '\0' || *after != '\0')
			printf("%s: %s -> %s\n", name, before, after);
	}
	free(before);
	free(after);
	return 0;
}

int
main(int argc, char **argv)
{
	int c, status = 0;

	while ((c = tool_getopt(argc, argv, "adnqw", usage)) != -1) {
		show_all |= c == 'a';
		describe |= c == 'd';
		bare |= c == 'n';
		quiet |= c == 'q';
	}
	if (show_all ? optind < argc : optind == argc)
		tool_usage(usage);
	if (show_all)
		list("", &status);
	for (; optind < argc; optind++) {
		char *equals = strchr(argv[optind], '=');

		if (equals != NULL) {
			*equals = '\0';
			status |= set(argv[optind], equals + 1);
		} else {
			status |= show(argv[optind]);
		}
	}
	return tool_finish(status);
}
