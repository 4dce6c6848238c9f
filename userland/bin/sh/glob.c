/*
 * glob.c - file names for a pattern, one directory level at a time.
 *
 * A pattern comes from expand.c with \ before each character that was quoted.
 */
#include <dirent.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "userland/bin/sh/sh.h"

bool
glob_has_magic(const char *pattern)
{
	for (; *pattern != '\0'; pattern++) {
		if (*pattern == '\\' && pattern[1] != '\0')
			pattern++;
		else if (strchr("*?[", *pattern) != NULL)
			return true;
	}
	return false;
}

char *
glob_unescape(const char *pattern)
{
	char *s = arena_alloc(strlen(pattern) + 1), *out = s;

	for (; *pattern != '\0'; pattern++) {
		if (*pattern == '\\' && pattern[1] != '\0')
			pattern++;
		*out++ = *pattern;
	}
	*out = '\0';
	return s;
}

static int
compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* `done` is the path so far, with its slash; `rest` is the pattern after it. */
static void
match_level(const char *done, const char *rest, struct argv *out)
{
	size_t len = strcspn(rest, "/"), slashes = strspn(rest + len, "/");
	char *part = arena_strndup(rest, len), *between = arena_strndup(rest + len, slashes);
	struct dirent *e;
	struct stat st;
	DIR *d;

	if (!glob_has_magic(part)) {
		char *path = arena_printf("%s%s%s", done, glob_unescape(part), between);

		if (rest[len + slashes] != '\0')
			match_level(path, rest + len + slashes, out);
		else if (stat(path, &st) == 0)
			argv_add(out, path);
		return;
	}
	d = opendir(*done != '\0' ? done : ".");
	if (d == NULL)
		return;
	while ((e = readdir(d)) != NULL) {
		char *path;

		if (fnmatch(part, e->d_name, FNM_PERIOD) != 0)
			continue;
		path = arena_printf("%s%s%s", done, e->d_name, between);
		if (rest[len + slashes] != '\0')
			match_level(path, rest + len + slashes, out);
		else if (slashes == 0 || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
			argv_add(out, path);
	}
	closedir(d);
}

int
glob_expand(const char *pattern, struct argv *out)
{
	int before = out->count;

	match_level("", pattern, out);
	if (out->count > before)
		qsort(out->v + before, (size_t)(out->count - before), sizeof(*out->v), compare);
	return out->count - before;
}
