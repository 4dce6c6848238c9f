/*
 * printf.c - kernel output: the message buffer (dmesg) and the console.
 *
 * The message buffer is a ring that keeps the newest text. A writer reserves room with one atomic
 * addition, then copies. So any context may write at any time, also an NMI that interrupts a
 * writer. While a piece is being copied, a reader may still find older text in its place. Locking:
 * none here; the console has its own.
 */
#include "kernel/lib/printf.h"

#include "kernel/lib/clock.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/sysctl.h"

#define MSGBUF_SIZE  65536u /* a power of two */
#define PRINTK_PIECE 192    /* bytes written at once; a line up to this length is not split */

static char msgbuf[MSGBUF_SIZE];
static uint64_t msgbuf_head;  /* atomic: bytes reserved since the boot */
static bool msgbuf_line_open; /* atomic: the last piece did not end its line */
static int printk_quiet;      /* kern.quiet */
static bool (*printk_console)(const char *text, size_t n); /* NULL: not set yet */

struct printk_out {
	bool console;
	size_t len;
	char buf[PRINTK_PIECE];
};

static void
msgbuf_copy(uint64_t at, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		msgbuf[(at + i) % MSGBUF_SIZE] = text[i];
}

/* Appends a line or a part of one. The first part gets the time. */
static void
msgbuf_append(const char *text, size_t n)
{
	char stamp[32];
	size_t stamp_len = 0;
	uint64_t at, us = clock_ns() / 1000;

	if (!__atomic_exchange_n(&msgbuf_line_open, text[n - 1] != '\n', __ATOMIC_RELAXED))
		stamp_len = (size_t)snprintf(stamp, sizeof(stamp), "[%5lu.%06lu] ", us / 1000000,
					     us % 1000000);
	at = __atomic_fetch_add(&msgbuf_head, stamp_len + n, __ATOMIC_RELAXED);
	msgbuf_copy(at, stamp, stamp_len);
	msgbuf_copy(at + stamp_len, text, n);
}

static void
printk_flush(struct printk_out *o)
{
	size_t at = 0, n;

	for (n = 0; n < o->len; n++)
		if (o->buf[n] == '\n' || n == o->len - 1) {
			msgbuf_append(o->buf + at, n + 1 - at);
			at = n + 1;
		}
	if (o->console && printk_console != NULL)
		printk_console(o->buf, o->len);
	o->len = 0;
}

static void
printk_put(void *arg, const char *text, size_t n)
{
	struct printk_out *o = arg;

	for (size_t i = 0; i < n; i++) {
		o->buf[o->len++] = text[i];
		if (o->len == sizeof(o->buf))
			printk_flush(o);
	}
}

void
printk_set_console(bool (*write)(const char *text, size_t n))
{
	printk_console = write;
}

static void
printk_emit(bool console, const char *fmt, va_list ap)
{
	struct printk_out o = {.console = console};

	fmt_vprint(printk_put, &o, fmt, ap);
	printk_flush(&o);
}

void
vprintk(const char *fmt, va_list ap)
{
	printk_emit(!__atomic_load_n(&printk_quiet, __ATOMIC_RELAXED), fmt, ap);
}

void
printk(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintk(fmt, ap);
	va_end(ap);
}

void
pr_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printk_emit(true, fmt, ap);
	va_end(ap);
}

uint64_t
msgbuf_end(void)
{
	return __atomic_load_n(&msgbuf_head, __ATOMIC_RELAXED);
}

size_t
msgbuf_size(void)
{
	return MSGBUF_SIZE;
}

uint64_t
msgbuf_line_after(uint64_t at)
{
	uint64_t head = msgbuf_end();

	if (head > MSGBUF_SIZE && at < head - MSGBUF_SIZE)
		at = head - MSGBUF_SIZE;
	while (at < head && msgbuf[at % MSGBUF_SIZE] != '\n')
		at++;
	return at < head ? at + 1 : head;
}

size_t
msgbuf_read(uint64_t *at, char *buf, size_t n)
{
	uint64_t head = msgbuf_end();
	size_t done = 0;

	/* The beginning of the oldest line is overwritten: start after that line. */
	if (head > MSGBUF_SIZE && *at < head - MSGBUF_SIZE)
		*at = msgbuf_line_after(head - MSGBUF_SIZE);
	for (; done < n && *at < head; done++, (*at)++)
		buf[done] = msgbuf[*at % MSGBUF_SIZE];
	return done;
}

bool
printk_set_quiet(bool quiet)
{
	return __atomic_exchange_n(&printk_quiet, quiet, __ATOMIC_RELAXED) != 0;
}

static void
msgbuf_get(const struct sysctl *s, struct sbuf *out)
{
	char piece[256];
	uint64_t at = 0;
	size_t n;

	while ((n = msgbuf_read(&at, piece, sizeof(piece))) > 0)
		sbuf_write(out, piece, n);
}

SYSCTL_TEXT(kern_msgbuf, "kern.msgbuf", 0, msgbuf_get, NULL, "the kernel's messages, oldest first");
SYSCTL_INT(kern_quiet, "kern.quiet", SYSCTL_WR | SYSCTL_TUN, &printk_quiet, 0, 1,
	   "1: only warnings go to the console");

char *
printk_hide_controls(char *s)
{
	for (char *at = s; *at != '\0'; at++)
		if (*at < ' ' || *at > '~') /* some of the bytes above are controls, too */
			*at = '?';
	return s;
}
