/* ls.c - lists files and directories. */
#include <dirent.h>
#include <err.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <tool.h>
#include <unistd.h>

static const char usage[] =
    "ls [-al1] [FILE]...\n"
    "  -a  also names that begin with a dot\n"
    "  -l  one a line with type and mode, links, user, size, date of the last change (UTC)\n"
    "  -1  one a line\n";

static bool all, details, single;

struct names {
	char **name;
	size_t count;
};

static int
compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
names_add(struct names *n, const char *name)
{
	n->name = reallocarray(n->name, n->count + 1, sizeof(*n->name));
	if (n->name == NULL || (n->name[n->count++] = strdup(name)) == NULL)
		err(1, "memory");
}

/* A time since 1970 as "2026-11-22 11:47". */
static void
date_text(char *buf, size_t size, long seconds)
{
	long days = seconds / 86400, minutes = seconds % 86400 / 60;
	/* In years from March on, leap days come last. 60 days from 1970-01-01 is 1970-03-02. */
	long z = days + 719468, era = z / 146097, doe = z % 146097;
	long yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	long doy = doe - (365 * yoe + yoe / 4 - yoe / 100), month = (5 * doy + 2) / 153;
	long day = doy - (153 * month + 2) / 5 + 1;

	month = month < 10 ? month + 3 : month - 9;
	snprintf(buf, size, "%04ld-%02ld-%02ld %02ld:%02ld", era * 400 + yoe + (month <= 2), month,
		 day, minutes / 60, minutes % 60);
}

static void
print_details(const char *name, const struct stat *st)
{
	char mode[11] = "?rwxrwxrwx", date[32];

	mode[0] = S_ISDIR(st->st_mode)    ? 'd'
		  : S_ISCHR(st->st_mode)  ? 'c'
		  : S_ISFIFO(st->st_mode) ? 'p'
					  : '-';
	for (int bit = 0; bit < 9; bit++) {
		if ((st->st_mode & (0400U >> bit)) == 0)
			mode[1 + bit] = '-';
	}
	date_text(date, sizeof(date), (long)st->st_mtime);
	printf("%s %2lu %5u %9ld %s %s\n", mode, (unsigned long)st->st_nlink, st->st_uid,
	       (long)st->st_size, date, name);
}

/* Prints names in columns that fit the terminal. */
static void
print_columns(const struct names *n)
{
	struct winsize ws = {0};
	size_t width = 0, columns, rows, terminal = 80;

	if (ioctl(1, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0)
		terminal = ws.ws_col;
	for (size_t i = 0; i < n->count; i++) {
		if (strlen(n->name[i]) + 2 > width)
			width = strlen(n->name[i]) + 2;
	}
	columns = width > 0 && terminal > width ? terminal / width : 1;
	rows = (n->count + columns - 1) / columns;
	for (size_t row = 0; row < rows; row++) {
		for (size_t i = row; i < n->count; i += rows)
			printf("%-*s", i + rows < n->count ? (int)width : 0, n->name[i]);
		putchar('\n');
	}
}

/* Prints the names. `dir` is the directory that contains them, "" for names as given. */
static int
print_names(const struct names *n, const char *dir)
{
	int status = 0;

	qsort(n->name, n->count, sizeof(*n->name), compare);
	if (!details && !single && isatty(1)) {
		print_columns(n);
		return 0;
	}
	for (size_t i = 0; i < n->count; i++) {
		char path[PATH_MAX];
		struct stat st;

		if (!details) {
			puts(n->name[i]);
		} else if (tool_join_path(path, sizeof(path), dir, n->name[i]) < 0) {
			status = 1;
		} else if (stat(path, &st) < 0) {
			warn("%s", path);
			status = 1;
		} else {
			print_details(n->name[i], &st);
		}
	}
	return status;
}

static void
names_free(struct names *n)
{
	while (n->count > 0)
		free(n->name[--n->count]);
	free(n->name);
	n->name = NULL;
}

static int
list_directory(const char *path)
{
	struct names n = {0};
	DIR *d = opendir(path);
	struct dirent *e;
	int status;

	if (d == NULL) {
		warn("%s", path);
		return 1;
	}
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] != '.' || all)
			names_add(&n, e->d_name);
	}
	closedir(d);
	status = print_names(&n, path);
	names_free(&n);
	return status;
}

int
main(int argc, char **argv)
{
	struct names files = {0}, dirs = {0};
	struct stat st;
	int c, status = 0;

	while ((c = tool_getopt(argc, argv, "al1", usage)) != -1) {
		all |= c == 'a';
		details |= c == 'l';
		single |= c == '1';
	}
	if (optind == argc)
		return tool_finish(list_directory("."));
	for (; optind < argc; optind++) {
		if (stat(argv[optind], &st) < 0) {
			warn("%s", argv[optind]);
			status = 1;
		} else {
			names_add(S_ISDIR(st.st_mode) ? &dirs : &files, argv[optind]);
		}
	}
	status |= print_names(&files, "");
	for (size_t i = 0; i < dirs.count; i++) {
		if (dirs.count + files.count > 1)
			printf("%s%s:\n", i > 0 || files.count > 0 ? "\n" : "", dirs.name[i]);
		status |= list_directory(dirs.name[i]);
	}
	return tool_finish(status);
}
