/*
 * complete.c - what the word at the cursor may become: a command, a file, a variable of the shell
 * or the kernel, an event class, what a command's help lists.
 */
#include <ctype.h>
#include <dirent.h>
#include <kestrel.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "userland/bin/sh/sh.h"

static int
compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
add_unique(struct argv *out, char *s)
{
	for (int i = 0; i < out->count; i++) {
		if (strcmp(out->v[i], s) == 0)
			return;
	}
	argv_add(out, s);
}

/* Names in a directory that begin with `prefix`; each is added with `shown` before it. */
static void
add_files(const char *dir, const char *shown, const char *prefix, bool programs, struct argv *out)
{
	DIR *d = opendir(dir);
	size_t len = strlen(prefix);
	struct dirent *e;

	if (d == NULL)
		return;
	while ((e = readdir(d)) != NULL) {
		struct stat st;
		bool is_dir;

		if (strncmp(e->d_name, prefix, len) != 0 || (e->d_name[0] == '.' && len == 0))
			continue;
		if (stat(arena_printf("%s/%s", dir, e->d_name), &st) < 0)
			continue;
		is_dir = S_ISDIR(st.st_mode);
		if (programs && (is_dir || (st.st_mode & 0111) == 0))
			continue;
		add_unique(out, arena_printf("%s%s%s", shown, e->d_name, is_dir ? "/" : ""));
	}
	closedir(d);
}

static void
complete_file(const char *word, struct argv *out)
{
	const char *slash = strrchr(word, '/');
	char *dir;

	if (slash == NULL) {
		add_files(".", "", word, false, out);
		return;
	}
	dir = arena_strndup(word, (size_t)(slash - word) + 1);
	add_files(dir, dir, slash + 1, false, out);
}

static void
complete_command(const char *word, struct argv *out)
{
	const char *path = var_get("PATH");
	size_t len = strlen(word);

	for (const struct builtin *b = NULL; (b = builtin_next(b)) != NULL;) {
		if (strncmp(b->name, word, len) == 0)
			add_unique(out, (char *)b->name);
	}
	for (path = path != NULL ? path : "/bin"; *path != '\0';) {
		size_t n = strcspn(path, ":");

		add_files(arena_strndup(path, n), "", word, true, out);
		path += n + (path[n] == ':');
	}
}

static void
complete_sysctl(const char *word, struct argv *out)
{
	char name[128] = "", next[128];
	size_t len = strlen(word);

	while (sysctl_next(name, next, sizeof(next)) >= 0) {
		if (strncmp(next, word, len) == 0)
			argv_add(out, arena_strndup(next, strlen(next)));
		strlcpy(name, next, sizeof(name));
	}
}

/* The word at `from`, if it begins with `word` in either case. */
static void
add_word(const char *from, const char *word, struct argv *out)
{
	size_t n = strcspn(from, " \t\n"), len = strlen(word);

	if (n > 0 && n >= len && strncasecmp(from, word, len) == 0)
		add_unique(out, arena_strndup(from, n));
}

/* The first words of the lines of debug.ktr.classes, but for its heading. */
static void
complete_class(const char *word, struct argv *out)
{
	char *text = sysctl_get_text("debug.ktr.classes");
	const char *line = text != NULL ? strchr(text, '\n') : NULL;

	for (; line != NULL; line = strchr(line, '\n'))
		add_word(++line, word, out);
	free(text);
}

/* What `command --help` lists: "command WORD", or "  WORD" at the beginning of a line. */
static void
complete_listed(const char *command, const char *word, struct argv *out)
{
	const char *text = exec_output(arena_printf("%s --help", command));
	const char *named = arena_printf("%s ", command);

	for (const char *line = text, *p; line != NULL && *line != '\0'; line = p) {
		p = strstr(line, named);
		if (p != NULL && p < line + strcspn(line, "\n"))
			p += strlen(named);
		else
			p = strncmp(line, "  ", 2) == 0 ? line + 2 : "";
		if (islower((unsigned char)*p))
			add_word(p, word, out);
		p = line + strcspn(line, "\n");
		p += *p == '\n';
	}
}

/* One of several words with separators between; returns where the last begins. */
static const char *
last_of(const char *word, const char *separators)
{
	const char *p = word + strlen(word);

	while (p > word && strchr(separators, p[-1]) == NULL)
		p--;
	return p;
}

/* Cuts the command that ends at the cursor into words; the last one is what is to be completed. */
static void
split_command(const char *line, size_t len, size_t *start, struct argv *words)
{
	size_t at = 0;

	*start = len;
	for (size_t i = len; i > 0 && strchr(" \t;|&(<>", line[i - 1]) == NULL; i--)
		*start = i - 1;
	for (size_t i = 0; i < *start; i++) {
		if (strchr(";|&(", line[i]) != NULL)
			at = i + 1;
	}
	while (at < *start) {
		size_t n = strcspn(line + at, " \t");

		if (n > *start - at)
			n = *start - at;
		if (n > 0)
			argv_add(words, arena_strndup(line + at, n));
		at += n + 1;
	}
}

/* Words after which a command is expected. */
static bool
starts_command(const char *word)
{
	static const char *const words[] = {"if", "then", "else", "elif", "while", "until",
					    "do", "!",    "time", "{",    "exec"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(word, words[i]) == 0)
			return true;
	}
	return false;
}

void
complete_line(const char *line, size_t len, size_t *start, struct argv *out)
{
	struct argv words = {0};
	const char *word, *last, *part, *mask = "debug.ktr.mask=";
	bool goes_on = false; /* more may follow in the same word */

	split_command(line, len, start, &words);
	word = arena_strndup(line + *start, len - *start);
	last = words.count > 0 ? words.v[words.count - 1] : NULL;
	part = strrchr(word, '$');
	if (part != NULL && var_is_name(part + 1, strlen(part + 1))) {
		*start += (size_t)(part - word);
		var_complete(part + 1, out);
	} else if (last == NULL || starts_command(last)) {
		if (strchr(word, '/') != NULL)
			complete_file(word, out);
		else
			complete_command(word, out);
	} else if (strcmp(words.v[0], "sysctl") == 0 && strncmp(word, mask, strlen(mask)) == 0) {
		part = last_of(word, "=,|+-");
		*start += (size_t)(part - word);
		goes_on = true;
		complete_class(part, out);
	} else if (strcmp(words.v[0], "sysctl") == 0 && strchr(word, '=') == NULL) {
		goes_on = true;
		complete_sysctl(word, out);
	} else if (words.count == 1 && (strcmp(last, "ktr") == 0 || strcmp(last, "load") == 0)) {
		complete_listed(last, word, out);
	} else if (strcmp(words.v[0], "ktrdump") == 0 && words.count == 2 &&
		   strcmp(last, "report") == 0 && strpbrk(word, "-./") == NULL) {
		part = last_of(word, ",");
		*start += (size_t)(part - word);
		complete_listed("ktrdump", part, out);
	} else if (words.count == 2 && strcmp(words.v[0], "ktr") == 0 &&
		   strcmp(last, "probe") == 0) {
		add_word("add", word, out);
		add_word("del", word, out);
		add_word("list", word, out);
	} else if (strcmp(words.v[0], "ktr") == 0 && words.count == 2) {
		part = last_of(word, ",|");
		*start += (size_t)(part - word);
		complete_class(part, out);
	} else {
		if (words.count == 1 && strcmp(last, "ktrdump") == 0)
			add_word("report", word, out);
		complete_file(word, out);
	}
	if (out->count > 1)
		qsort(out->v, (size_t)out->count, sizeof(*out->v), compare);
	if (out->count == 1 && !goes_on && out->v[0][strlen(out->v[0]) - 1] != '/')
		out->v[0] = arena_printf("%s ", out->v[0]);
}
