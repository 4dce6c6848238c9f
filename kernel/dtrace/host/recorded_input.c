/*
 * recorded_input.c - `dtrace -r FILE`: the file, and the times of -x since and until.
 */
#include "kernel/dtrace/host/recorded_input.h"

#include <err.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ktr/tools/ktrdump.h"
#include "userland/bin/dtrace/options.h"

const char *
recorded_input_path(const char *path)
{
	static char name[32];
	char part[65536];
	struct stat st;
	FILE *copy, *from = strcmp(path, "-") == 0 ? stdin : NULL;

	if (from != NULL)
		path = "/proc/self/fd/0";
	if (stat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		return path;
	if (from == NULL)
		from = fopen(path, "r");
	copy = tmpfile();
	for (size_t n;
	     from != NULL && copy != NULL && (n = fread(part, 1, sizeof(part), from)) > 0;)
		fwrite(part, 1, n, copy);
	if (from == NULL || copy == NULL || ferror(from) || fflush(copy) != 0 || ferror(copy))
		err(1, "%s, or the copy of it", path);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fileno(copy));
	return name;
}

bool
recorded_is_core(const char *path)
{
	FILE *f = fopen(path, "r");
	char head[4] = "";
	bool is = f != NULL && fread(head, 1, 4, f) == 4 && memcmp(head, "\177ELF", 4) == 0;

	if (f != NULL)
		fclose(f);
	return is;
}

/* A time of -x. */
static uint64_t
stretch_time(const char *name, const char *text, uint64_t without)
{
	int64_t ns;

	if (text == NULL)
		return without;
	if (!dump_parse_time(text, &ns) || ns < 0)
		errx(1, "-x %s: found \"%s\", expected a time such as 1.5, 20ms, 300us", name,
		     text);
	return (uint64_t)ns;
}

void
recorded_stretch(uint64_t first_ns, uint64_t last_ns, uint64_t *since_ns, uint64_t *until_ns)
{
	*since_ns = stretch_time("since", dt_options.since, 0);
	*until_ns = stretch_time("until", dt_options.until, UINT64_MAX);
	if (*since_ns > *until_ns || *since_ns > last_ns || *until_ns < first_ns)
		errx(1,
		     "-x since, until: no time of the trace is between: it is from %luns to %luns",
		     (unsigned long)first_ns, (unsigned long)last_ns);
}
