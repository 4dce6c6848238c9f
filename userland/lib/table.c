/* table.c - lines of words as columns. */
#include <ctype.h>
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <tool.h>
#include <unistd.h>

#define COLUMNS_MAX 16

struct table {
	size_t columns;
	size_t width[COLUMNS_MAX];
	bool text[COLUMNS_MAX]; /* not all words are numbers */
};

/* Cuts the line into the words of the columns; columns that it lacks are "". */
static void
row_split(const struct table *t, char *line, char **word)
{
	for (size_t i = 0; i < t->columns; i++) {
		line += strspn(line, " ");
		word[i] = line;
		line += i + 1 < t->columns ? strcspn(line, " ") : strlen(line);
		if (*line != '\0')
			*line++ = '\0';
	}
}

static void
row_measure(struct table *t, char **word, bool head)
{
	for (size_t i = 0; i < t->columns; i++) {
		size_t len = strlen(word[i]);

		if (len > t->width[i])
			t->width[i] = len;
		t->text[i] |= !head && strspn(word[i], "0123456789.") != len;
	}
}

/* Returns how many characters it has printed. */
static size_t
row_print(const struct table *t, char **word)
{
	size_t last = t->columns - 1;
	int n = 0;

	for (size_t i = 0; i < last; i++)
		n += printf("%*s ", (t->text[i] ? -1 : 1) * (int)t->width[i], word[i]);
	n += printf("%*s", t->text[last] ? 0 : (int)t->width[last], word[last]);
	putchar('\n');
	return n > 0 ? (size_t)n : 0;
}

void
tool_say_width(size_t widest)
{
	struct winsize size;

	/* Without job control, a script has the terminal. */
	if (getpgrp() == getpgid(getppid()) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 ||
	    size.ws_col == 0 || size.ws_col >= widest)
		return;
	fflush(stdout);
	warnx("lines of %zu characters, terminal of %u: | less -S does not wrap them", widest,
	      size.ws_col);
}

void
tool_table(const char *heads, char *text)
{
	struct table t = {.columns = 1};
	size_t rows = 1, n = 1, widest = 0;
	char *copy = strdup(heads), *line, **words;

	for (const char *p = heads; *p != '\0'; p++)
		t.columns += *p == ' ' && t.columns < COLUMNS_MAX;
	for (const char *p = text; *p != '\0'; p++)
		rows += *p == '\n';
	words = reallocarray(NULL, (rows + 1) * t.columns, sizeof(*words));
	if (copy == NULL || words == NULL)
		err(1, "memory");
	row_split(&t, copy, words);
	row_measure(&t, words, true);
	while ((line = strsep(&text, "\n")) != NULL) {
		if (*line == '\0')
			continue;
		row_split(&t, line, words + n * t.columns);
		row_measure(&t, words + n++ * t.columns, false);
	}
	for (size_t i = 0; i < n; i++) {
		size_t wide = row_print(&t, words + i * t.columns);

		widest = wide > widest ? wide : widest;
	}
	tool_say_width(widest);
	free(words);
	free(copy);
}
