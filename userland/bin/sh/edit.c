/*
 * edit.c - the line editor: keys, history, redrawing, completion.
 *
 * The line is shown on one row of the terminal; a longer one scrolls sideways. Typing at its end
 * costs one character of output, everything else redraws the row.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userland/bin/sh/sh.h"

#define LINE_SIZE    2048
#define HISTORY_SIZE 200
#define CTRL(c)      ((c)&31)

/* Keys that come as escape sequences. */
enum { KEY_UP = 256, KEY_DOWN, KEY_LEFT, KEY_RIGHT, KEY_HOME, KEY_END, KEY_DELETE, KEY_NONE };

struct editor {
	const char *prompt;
	char line[LINE_SIZE]; /* NUL-terminated; room for a newline is kept */
	size_t len, pos, scroll;
	unsigned int columns;
	unsigned int browse;   /* how far back in the history; 0: the line being typed */
	char typed[LINE_SIZE]; /* that line, while browsing */
	bool tab_before;       /* the key before was Tab: list completions */
};

static char *history[HISTORY_SIZE]; /* [0] is the newest */
static unsigned int history_count;

static void
show(const char *s)
{
	write_all(1, s, strlen(s));
}

/* Columns for the text after the prompt. */
static size_t
room(const struct editor *e)
{
	size_t prompt = strlen(e->prompt);

	return e->columns > prompt + 9 ? e->columns - prompt - 1 : 8;
}

static void
redraw(struct editor *e)
{
	size_t width = room(e), shown;
	char buf[LINE_SIZE + 256];
	int n;

	if (e->pos < e->scroll)
		e->scroll = e->pos;
	if (e->pos > e->scroll + width)
		e->scroll = e->pos - width;
	shown = e->len - e->scroll < width ? e->len - e->scroll : width;
	n = snprintf(buf, sizeof(buf), "\r%.100s%.*s\033[K\r", e->prompt, (int)shown,
		     e->line + e->scroll);
	write_all(1, buf, (size_t)n);
	n = snprintf(buf, sizeof(buf), "\033[%zuC", strlen(e->prompt) + e->pos - e->scroll);
	write_all(1, buf, (size_t)n);
}

static void
insert(struct editor *e, const char *s, size_t n)
{
	if (e->len + n > LINE_SIZE - 2) {
		show("\a");
		return;
	}
	memmove(e->line + e->pos + n, e->line + e->pos, e->len - e->pos + 1);
	memcpy(e->line + e->pos, s, n);
	e->len += n;
	e->pos += n;
	if (e->pos == e->len && e->len - e->scroll <= room(e))
		write_all(1, s, n);
	else
		redraw(e);
}

/* Removes [from, to) and puts the cursor there. */
static void
erase(struct editor *e, size_t from, size_t to)
{
	memmove(e->line + from, e->line + to, e->len - to + 1);
	e->len -= to - from;
	e->pos = from;
	redraw(e);
}

static void
move_to(struct editor *e, size_t pos)
{
	e->pos = pos;
	redraw(e);
}

static void
erase_word(struct editor *e)
{
	size_t from = e->pos;

	while (from > 0 && isspace((unsigned char)e->line[from - 1]))
		from--;
	while (from > 0 && !isspace((unsigned char)e->line[from - 1]))
		from--;
	erase(e, from, e->pos);
}

static void
replace_line(struct editor *e, const char *s)
{
	e->len = e->pos = strlcpy(e->line, s, sizeof(e->line));
	e->scroll = 0;
	redraw(e);
}

/* Goes to an older (+1) or newer (-1) line. */
static void
browse(struct editor *e, int step)
{
	if ((step > 0 && e->browse == history_count) || (step < 0 && e->browse == 0)) {
		show("\a");
		return;
	}
	if (e->browse == 0)
		strlcpy(e->typed, e->line, sizeof(e->typed));
	e->browse += (unsigned int)step;
	replace_line(e, e->browse == 0 ? e->typed : history[e->browse - 1]);
}

static void
history_add(const char *line)
{
	if (line[strspn(line, " \t")] == '\0')
		return;
	if (history_count > 0 && strcmp(history[0], line) == 0)
		return;
	if (history_count == HISTORY_SIZE)
		free(history[--history_count]);
	memmove(history + 1, history, history_count * sizeof(history[0]));
	history[0] = sh_strdup(line);
	history_count++;
}

/* Lists the completions below the line, in columns. */
static void
list_completions(struct editor *e, const struct argv *found)
{
	size_t width = 1, columns;

	for (int i = 0; i < found->count; i++) {
		if (strlen(found->v[i]) + 2 > width)
			width = strlen(found->v[i]) + 2;
	}
	columns = e->columns / width > 0 ? e->columns / width : 1;
	putchar('\n');
	for (int i = 0; i < found->count; i++) {
		bool last = (size_t)i % columns == columns - 1 || i == found->count - 1;

		printf("%-*s%s", last ? 0 : (int)width, found->v[i], last ? "\n" : "");
	}
	fflush(stdout);
	redraw(e);
}

/* Length that all of them begin with. */
static size_t
common_length(const struct argv *found)
{
	size_t n = strlen(found->v[0]);

	for (int i = 1; i < found->count; i++) {
		size_t same = 0;

		while (same < n && found->v[i][same] == found->v[0][same])
			same++;
		n = same;
	}
	return n;
}

static void
complete(struct editor *e)
{
	struct arena *a = arena_push();
	struct argv found = {0};
	size_t start, common;

	complete_line(e->line, e->pos, &start, &found);
	common = found.count > 0 ? common_length(&found) : 0;
	if (common > e->pos - start)
		insert(e, found.v[0] + (e->pos - start), common - (e->pos - start));
	else if (found.count > 1 && e->tab_before)
		list_completions(e, &found);
	else
		show("\a");
	arena_pop(a);
}

/* Reads the rest of an escape sequence. A control character in it ends it, and is the key. */
static int
read_escape(void)
{
	int c = tty_read_byte(), number = 0;

	if (c != '[' && c != 'O')
		return c < ' ' ? c : KEY_NONE;
	while (isdigit(c = tty_read_byte()) || c == ';')
		number = c == ';' ? 0 : number * 10 + (c - '0');
	switch (c) {
	case 'A':
		return KEY_UP;
	case 'B':
		return KEY_DOWN;
	case 'C':
		return KEY_RIGHT;
	case 'D':
		return KEY_LEFT;
	case 'H':
		return KEY_HOME;
	case 'F':
		return KEY_END;
	case '~':
		if (number == 1 || number == 7)
			return KEY_HOME;
		if (number == 4 || number == 8)
			return KEY_END;
		return number == 3 ? KEY_DELETE : KEY_NONE;
	default:
		return c < ' ' ? c : KEY_NONE;
	}
}

/* Keys that move. False when it is none of them. */
static bool
move_key(struct editor *e, int key)
{
	switch (key) {
	case CTRL('A'):
	case KEY_HOME:
		move_to(e, 0);
		return true;
	case CTRL('E'):
	case KEY_END:
		move_to(e, e->len);
		return true;
	case CTRL('B'):
	case KEY_LEFT:
		move_to(e, e->pos > 0 ? e->pos - 1 : 0);
		return true;
	case CTRL('F'):
	case KEY_RIGHT:
		move_to(e, e->pos < e->len ? e->pos + 1 : e->len);
		return true;
	case CTRL('P'):
	case KEY_UP:
		browse(e, 1);
		return true;
	case CTRL('N'):
	case KEY_DOWN:
		browse(e, -1);
		return true;
	default:
		return false;
	}
}

/* Keys that change the line. */
static void
edit_key(struct editor *e, int key)
{
	char c = (char)key;

	switch (key) {
	case '\b':
	case 127:
		if (e->pos > 0)
			erase(e, e->pos - 1, e->pos);
		break;
	case CTRL('D'):
	case KEY_DELETE:
		if (e->pos < e->len)
			erase(e, e->pos, e->pos + 1);
		break;
	case CTRL('K'):
		erase(e, e->pos, e->len);
		break;
	case CTRL('U'):
		erase(e, 0, e->pos);
		break;
	case CTRL('W'):
		erase_word(e);
		break;
	case CTRL('L'):
		show("\033[H\033[2J");
		redraw(e);
		break;
	case '\t':
		complete(e);
		break;
	default:
		if (key < 256 && !iscntrl(key))
			insert(e, &c, 1);
	}
	e->tab_before = key == '\t';
}

char *
edit_read_line(const char *prompt, bool *failed)
{
	static struct editor e;

	tty_set(TTY_EDIT);
	e.prompt = prompt;
	e.columns = tty_columns();
	e.line[0] = '\0';
	e.len = e.pos = e.scroll = 0;
	e.browse = 0;
	e.tab_before = false;
	show(prompt);
	for (;;) {
		int key = tty_read_byte();

		while (key == '\033')
			key = read_escape();
		if (key == CTRL('C')) {
			show("^C\n");
			sh.interrupted = true;
			break;
		}
		*failed |= key == TTY_FAILED;
		if (key < 0 || (key == CTRL('D') && e.len == 0)) {
			show("\n");
			break;
		}
		if (key == '\n' || key == '\r') {
			show("\n");
			tty_set(TTY_RAW);
			history_add(e.line);
			strcpy(e.line + e.len, "\n");
			return e.line;
		}
		if (!move_key(&e, key))
			edit_key(&e, key);
	}
	tty_set(TTY_RAW);
	return NULL;
}
