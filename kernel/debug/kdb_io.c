/*
 * kdb_io.c - the debugger's terminal: polled keys, line editing with history, a pager.
 * No locks: only the CPU inside the debugger uses it.
 */
#include <stdarg.h>

#include "arch/irq.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/dev/console.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"

#define KDB_HISTORY 8
#define KEY_UP      0x100
#define KEY_DOWN    0x101
#define CTRL(c)     ((c) - '@')

#define KDB_TYPED CONSOLE_UNREAD /* capacity for keys typed while a command prints: 2^n */

static uint8_t typed[KDB_TYPED];
static unsigned typed_in, typed_out; /* totals; never wrap */
static int lines_set = -1;           /* of a page; 0: no paging, -1: the terminal's */

static char history[KDB_HISTORY][KDB_LINE_MAX];
static unsigned history_count; /* lines kept since the boot; line n is at n % KDB_HISTORY */

static void
kdb_puts(const char *s)
{
	for (; *s != '\0'; s++)
		console_putc(*s);
}

/* Waits for a key. */
static int
kdb_getc(void)
{
	int c;

	if (typed_out != typed_in)
		return typed[typed_out++ % KDB_TYPED];
	while ((c = console_getc_polled()) < 0)
		arch_relax();
	return c;
}

void
kdb_poll(void)
{
	int c;

	while (typed_in - typed_out < KDB_TYPED && (c = console_getc_polled()) >= 0) {
		if (c == CTRL('C')) {
			typed_out = typed_in;
			if (!kdb.quit)
				kdb_puts("^C\n");
			kdb.quit = true;
		} else {
			typed[typed_in++ % KDB_TYPED] = (uint8_t)c;
		}
	}
}

void
kdb_keys_back(void)
{
	uint8_t keys[KDB_TYPED];
	unsigned n = 0;

	while (typed_out != typed_in)
		keys[n++] = typed[typed_out++ % KDB_TYPED];
	if (n > 0)
		console_unread(keys, n);
}

/* The lines of a page; 0: no paging. A terminal of one or two lines has no room for a page. */
static unsigned
page_rows(void)
{
	unsigned rows, columns;

	if (lines_set >= 0)
		return (unsigned)lines_set;
	console_size(&rows, &columns);
	return rows < 3 ? 0 : rows;
}

/* How many lines a key at --More-- asks for, as in FreeBSD's ddb. 0: none; -1: another key. */
static int
more_lines(int c, unsigned rows)
{
	switch (c) {
	case ' ':
	case 'f':
		return (int)rows - 1;
	case 'd':
		return (int)rows / 2;
	case '\r':
	case '\n':
	case 'e':
	case 'j':
		return 1;
	case 'q':
	case 'Q':
	case 'x':
	case 'X':
	case CTRL('C'):
		return 0;
	default:
		return -1;
	}
}

static void
kdb_more(unsigned rows)
{
	static const char keys[] =
	    "--More-- space: a page, d: half of it, return: a line, q: the end";
	int lines;

	kdb_puts("--More--");
	while ((lines = more_lines(kdb_getc(), rows)) < 0) {
		kdb_puts("\r");
		kdb_puts(keys);
	}
	kdb_puts("\r");
	for (size_t i = 1; i < sizeof(keys); i++)
		kdb_puts(" ");
	kdb_puts("\r");
	kdb.row = rows - 1 - (unsigned)lines;
	kdb.quit |= lines == 0;
}

/* A line of the terminal is full, or the text's line has ended. */
static void
next_row(bool full)
{
	unsigned rows = page_rows();

	kdb.column = 0;
	if (!kdb.pager || kdb.quit || rows == 0 || ++kdb.row < rows - 1)
		return;
	if (full) /* the terminal would go to its next line with the next character */
		console_putc('\n');
	kdb_more(rows);
}

static void
kdb_put(char c)
{
	unsigned rows, columns;

	if (kdb.quit)
		return;
	if (c == '\n') {
		console_putc('\n');
		if (kdb.running)
			kdb_poll();
		next_row(false);
		return;
	}
	console_size(&rows, &columns);
	if (kdb.column >= columns)
		next_row(true);
	if (kdb.quit)
		return;
	console_putc(c);
	kdb.column++;
}

static void
kdb_vprintf(const char *fmt, va_list ap)
{
	static char text[512]; /* static: the stack may be broken or full */
	static const char cut[] = "...\n";
	int n = vsnprintf(text, sizeof(text), fmt, ap);

	if (n >= (int)sizeof(text))
		memcpy(text + sizeof(text) - sizeof(cut), cut, sizeof(cut));
	for (const char *s = text; *s != '\0'; s++)
		kdb_put(*s);
}

void
kdb_printf(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	kdb_vprintf(fmt, ap);
	va_end(ap);
}

/* Waits for a key. An arrow key's escape sequence counts as one key. */
static int
kdb_key(void)
{
	int c = kdb_getc();

	if (c != 0x1b)
		return c;
	c = kdb_getc();
	if (c != '[' && c != 'O')
		return 0;
	c = kdb_getc();
	return c == 'A' ? KEY_UP : c == 'B' ? KEY_DOWN : 0;
}

static void
kdb_erase(size_t n)
{
	while (n-- > 0)
		kdb_puts("\b \b");
}

/* Shows the line typed `back` lines ago (0: an empty one) in place of buf. Returns its length. */
static size_t
kdb_recall(char *buf, size_t len, unsigned back)
{
	kdb_erase(len);
	buf[0] = '\0';
	if (back > 0)
		strlcpy(buf, history[(history_count - back) % KDB_HISTORY], KDB_LINE_MAX);
	kdb_puts(buf);
	return strlen(buf);
}

static void
kdb_remember(const char *line)
{
	if (line[0] == '\0')
		return;
	if (history_count > 0 && strcmp(history[(history_count - 1) % KDB_HISTORY], line) == 0)
		return;
	strlcpy(history[history_count++ % KDB_HISTORY], line, KDB_LINE_MAX);
}

void
kdb_readline(const char *prompt, char *buf)
{
	unsigned kept = history_count < KDB_HISTORY ? history_count : KDB_HISTORY, back = 0;
	size_t len = 0;

	kdb_puts(prompt);
	for (;;) {
		int c = kdb_key();

		if (c == '\r' || c == '\n')
			break;
		if ((c == '\b' || c == 0x7f) && len > 0) {
			kdb_erase(1);
			len--;
		} else if (c == CTRL('U') || c == CTRL('C')) {
			len = kdb_recall(buf, len, back = 0);
		} else if ((c == KEY_UP || c == CTRL('P')) && back < kept) {
			buf[len] = '\0';
			len = kdb_recall(buf, len, ++back);
		} else if ((c == KEY_DOWN || c == CTRL('N')) && back > 0) {
			len = kdb_recall(buf, len, --back);
		} else if (c >= ' ' && c < 0x7f && len + 1 < KDB_LINE_MAX) {
			buf[len++] = (char)c;
			console_putc((char)c);
		}
	}
	buf[len] = '\0';
	kdb_puts("\n");
	kdb_remember(buf);
}

void
kdb_command_lines(char *mod, char *args)
{
	char *word = kdb_word(&args);
	uint64_t n;

	if (word == NULL)
		kdb_printf("%u\n", page_rows());
	else if (!kdb_number(word, &n) || n > 1000 || (n > 0 && n < 3))
		kdb_printf("lines: \"%s\": expected 3 to 1000, or 0 for no pager\n", word);
	else
		lines_set = (int)n;
}
