/*
 * ldisc.c - the line discipline. Invariants: ldisc.h. Locking: the caller's.
 */
#include "kernel/dev/ldisc.h"

#include "kernel/abi/signal.h"
#include "kernel/lib/string.h"

#define CTRL(c)   ((c)&0x1f)
#define EOF_MARK  '\0' /* in the buffer, with the bit of an end: VEOF, whatever key that was */
#define CS8       0000060
#define CREAD     0000200
#define B115200   0010002
#define ISIG_KEYS (sizeof(signal_keys) / sizeof(signal_keys[0]))
/*
 * Columns that one key erases on the screen, too; more is a new line. The bytes for them pass at
 * 115200 baud in less time than an echo has (console.c).
 */
#define SHOWN_MAX 64u

static const struct {
	uint8_t index; /* of c_cc */
	uint8_t sig;
} signal_keys[] = {{VINTR, SIGINT}, {VQUIT, SIGQUIT}, {VSUSP, SIGTSTP}};

void
ldisc_init(struct ldisc *l, void (*echo)(void *, const char *, size_t), void *arg)
{
	*l = (struct ldisc){.echo = echo, .arg = arg};
	l->t.c_iflag = ICRNL;
	l->t.c_oflag = OPOST | ONLCR;
	l->t.c_cflag = CS8 | CREAD | B115200;
	l->t.c_lflag = ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN;
	l->t.c_cc[VINTR] = CTRL('C');
	l->t.c_cc[VQUIT] = CTRL('\\');
	l->t.c_cc[VSUSP] = CTRL('Z');
	l->t.c_cc[VERASE] = 0x7f;
	l->t.c_cc[VKILL] = CTRL('U');
	l->t.c_cc[VEOF] = CTRL('D');
	l->t.c_cc[VWERASE] = CTRL('W');
	l->t.c_cc[VLNEXT] = CTRL('V');
	l->t.c_cc[VMIN] = 1;
}

/* Is c the control character at `index`? One that is set to 0 is disabled. */
static bool
is_key(const struct ldisc *l, char c, unsigned index)
{
	return l->t.c_cc[index] != 0 && l->t.c_cc[index] == (uint8_t)c;
}

static char *
ldisc_slot(struct ldisc *l, uint64_t at)
{
	return &l->buf[at % LDISC_SIZE];
}

/* Does the character at this place end a line? One that was typed after VLNEXT does not. */
static bool
is_end(const struct ldisc *l, uint64_t at)
{
	return (l->ends[at % LDISC_SIZE / 8] & 1u << at % 8) != 0;
}

static void
set_end(struct ldisc *l, uint64_t at, bool end)
{
	uint8_t *byte = &l->ends[at % LDISC_SIZE / 8], bit = (uint8_t)(1u << at % 8);

	*byte = end ? *byte | bit : *byte & (uint8_t)~bit;
}

static bool
is_control(char c)
{
	return ((uint8_t)c < 0x20 && c != '\t') || c == 0x7f;
}

/* Echoes a character; a control character as ^X. */
static void
ldisc_echo(const struct ldisc *l, char c)
{
	char shown[2] = {'^', (char)(c ^ 0x40)};

	if (!(l->t.c_lflag & ECHO))
		return;
	if (c == '\n' && (l->t.c_oflag & OPOST) && (l->t.c_oflag & ONLCR))
		l->echo(l->arg, "\r\n", 2);
	else if (c == '\n' || !is_control(c) || !(l->t.c_lflag & ECHOCTL))
		l->echo(l->arg, &c, 1);
	else
		l->echo(l->arg, shown, 2);
}

/* Where the character begins that ends there: a byte, or all of UTF-8. */
static uint64_t
char_before(struct ldisc *l, uint64_t end)
{
	uint64_t at = end - 1;

	while (at != l->committed && ((uint8_t)*ldisc_slot(l, at) & 0xc0) == 0x80)
		at--;
	return at;
}

/* Erases all from the start of a character on, by the key c. A tab is wider than the column that it
 * counts as: the user has to redraw the line. */
static void
erase_from(struct ldisc *l, uint64_t start, char c)
{
	unsigned columns = 0;

	for (uint64_t at = l->edit; at != start; columns++) {
		at = char_before(l, at);
		if (is_control(*ldisc_slot(l, at)) && (l->t.c_lflag & ECHOCTL))
			columns++;
	}
	l->edit = start;
	if ((l->t.c_lflag & (ECHO | ECHOE)) != (ECHO | ECHOE))
		return;
	if (columns > SHOWN_MAX) {
		ldisc_echo(l, c);
		ldisc_echo(l, '\n');
	} else {
		while (columns-- > 0)
			l->echo(l->arg, "\b \b", 3);
	}
}

/* Where the blanks at the end of the line begin, and the word before them. */
static uint64_t
word_start(struct ldisc *l)
{
	uint64_t at = l->edit;
	bool word = false;

	while (at != l->committed) {
		char last = *ldisc_slot(l, at - 1);
		bool blank = last == ' ' || last == '\t';

		if (word && blank)
			break;
		word |= !blank;
		at = char_before(l, at);
	}
	return at;
}

static bool
ldisc_store(struct ldisc *l, char c, unsigned reserve)
{
	if (l->edit - l->read + reserve >= LDISC_SIZE)
		return false;
	set_end(l, l->edit, false);
	*ldisc_slot(l, l->edit++) = c;
	return true;
}

static void
canonical_input(struct ldisc *l, char c, bool *wake)
{
	if (is_key(l, c, VERASE)) {
		if (l->edit != l->committed)
			erase_from(l, char_before(l, l->edit), c);
	} else if (is_key(l, c, VKILL)) {
		erase_from(l, l->committed, c);
	} else if (is_key(l, c, VWERASE) && (l->t.c_lflag & IEXTEN)) {
		erase_from(l, word_start(l), c);
	} else if (is_key(l, c, VEOF) || is_key(l, c, VEOL) || c == '\n') {
		bool eof = is_key(l, c, VEOF);

		/* Other characters leave one byte free, so the end of a line always fits. */
		if (!ldisc_store(l, eof ? EOF_MARK : c, 0))
			return;
		if (!eof)
			ldisc_echo(l, c);
		set_end(l, l->edit - 1, true);
		l->committed = l->edit;
		*wake = true;
	} else if (ldisc_store(l, c, 1)) {
		ldisc_echo(l, c);
	}
}

int
ldisc_input(struct ldisc *l, char c, bool *wake)
{
	*wake = false;
	if (l->literal) {
		l->literal = false;
		if (ldisc_store(l, c, 1))
			ldisc_echo(l, c);
		return 0;
	}
	for (unsigned i = 0; (l->t.c_lflag & ISIG) && i < ISIG_KEYS; i++)
		if (is_key(l, c, signal_keys[i].index)) {
			if (!(l->t.c_lflag & NOFLSH))
				ldisc_flush(l);
			ldisc_echo(l, c);
			return signal_keys[i].sig;
		}
	if (c == '\r' && (l->t.c_iflag & IGNCR))
		return 0;
	if (c == '\r' && (l->t.c_iflag & ICRNL))
		c = '\n';
	else if (c == '\n' && (l->t.c_iflag & INLCR))
		c = '\r';
	if ((l->t.c_lflag & (ICANON | IEXTEN)) == (ICANON | IEXTEN) && is_key(l, c, VLNEXT)) {
		l->literal = true;
		if ((l->t.c_lflag & (ECHO | ECHOCTL)) == (ECHO | ECHOCTL))
			l->echo(l->arg, "^\b", 2);
		return 0;
	}
	if (l->t.c_lflag & ICANON) {
		canonical_input(l, c, wake);
	} else if (ldisc_store(l, c, 0)) {
		ldisc_echo(l, c);
		l->committed = l->edit;
		*wake = true;
	}
	return 0;
}

/* Is at this place an end of file, rather than text? */
static bool
is_eof(const struct ldisc *l, uint64_t at)
{
	return is_end(l, at) && l->buf[at % LDISC_SIZE] == EOF_MARK;
}

size_t
ldisc_read(struct ldisc *l, char *buf, size_t n)
{
	bool end = false;
	size_t done = 0;

	while (done < n && l->read != l->committed && !end) {
		/* ^D ends the text before it; alone, it is the end of the file. */
		if (!is_eof(l, l->read))
			buf[done++] = *ldisc_slot(l, l->read);
		end = is_end(l, l->read++);
	}
	/* If the buffer is just full, the end of file after the text is taken, too. */
	if (done == n && !end && l->read != l->committed && is_eof(l, l->read))
		l->read++;
	return done;
}

size_t
ldisc_ready(const struct ldisc *l)
{
	return l->committed - l->read;
}

size_t
ldisc_text(const struct ldisc *l)
{
	size_t n = 0;

	for (uint64_t at = l->read; at != l->committed; at++)
		n += !is_eof(l, at);
	return n;
}

bool
ldisc_room(const struct ldisc *l)
{
	return l->edit - l->read + 1 < LDISC_SIZE || l->read == l->committed;
}

void
ldisc_flush(struct ldisc *l)
{
	l->literal = false;
	l->read = l->committed = l->edit;
}

void
ldisc_set(struct ldisc *l, const struct termios *t)
{
	bool other = (l->t.c_lflag ^ t->c_lflag) & ICANON;

	l->t = *t;
	if (!other)
		return;
	l->literal = false;
	l->committed = l->edit;
	memset(l->ends, 0, sizeof(l->ends));
	if ((t->c_lflag & ICANON) && l->read != l->edit)
		set_end(l, l->edit - 1, true);
}

size_t
ldisc_output(const struct termios *t, const char *text, size_t *n, char *out, size_t size)
{
	bool cook = (t->c_oflag & OPOST) && (t->c_oflag & ONLCR);
	size_t used = 0, made = 0;

	while (used < *n) {
		bool pair = cook && text[used] == '\n';

		if (made + (pair ? 2 : 1) > size)
			break;
		if (pair)
			out[made++] = '\r';
		out[made++] = text[used++];
	}
	*n = used;
	return made;
}
