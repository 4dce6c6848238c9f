/*
 * console.c - the first serial line as the machine's console, and as the terminal /dev/console.
 *
 * Locking: console_owner, a special lock. It holds the number of its CPU, so that an interrupt or
 * NMI in the middle of console output is refused rather than waits for itself. Taking it records no
 * event, since recording may print. While the machine is stopped it is ignored. It is held with
 * interrupts off, for one piece of a line at a time.
 */
#include "kernel/dev/console.h"

#include "arch/irq.h"
#include "arch/pcpu.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/dev/pty.h"
#include "kernel/dev/serial_dev.h"
#include "kernel/dev/tty.h"
#include "kernel/dev/uart.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/file.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "kernel/sync/stop.h"
#include "ktr/ktr.h"

#define CONSOLE_NOBODY (-1)
#define CTRL(c)        ((c) - '@')

#define CONSOLE_ROWS    24
#define CONSOLE_COLUMNS 80

#define RETRY_NS 1000000ull /* a FIFO empties within 1.4 ms at 115200 baud */
#define ECHO_NS  20000000   /* the echo of keys in a row waits no longer for the line */

static struct uart *console_uart; /* constant after boot; NULL: none */
static struct tty console_tty;
static int console_rows = CONSOLE_ROWS, console_columns = CONSOLE_COLUMNS;
static int console_owner = CONSOLE_NOBODY; /* atomic: the CPU that holds it */

static struct {
	uint8_t keys[CONSOLE_UNREAD];
	unsigned n; /* atomic */
} unread;           /* keys that the debugger has not used */

static bool keys_busy;      /* atomic: a CPU handles keys, with interrupts off */
static uint64_t echo_until; /* keys_busy: when their echo waits no more, as clock_ns() */
static uint64_t keys_ended; /* keys_busy: when the last key was handled */

enum console_claim { CONSOLE_BUSY, CONSOLE_TAKEN, CONSOLE_IGNORED };

static enum console_claim
console_claim(void)
{
	int me, nobody;

	irq_push();
	me = (int)arch_cpu();
	if (__atomic_load_n(&console_owner, __ATOMIC_RELAXED) == me && !stop_active()) {
		irq_pop();
		return CONSOLE_BUSY;
	}
	for (;;) {
		if (stop_active())
			return CONSOLE_IGNORED;
		nobody = CONSOLE_NOBODY;
		/* acquire: pairs with the release in console_release() */
		if (__atomic_compare_exchange_n(&console_owner, &nobody, me, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return CONSOLE_TAKEN;
		arch_relax();
	}
}

static void
console_release(enum console_claim claim)
{
	if (claim == CONSOLE_TAKEN)
		__atomic_store_n(&console_owner, CONSOLE_NOBODY, __ATOMIC_RELEASE);
	irq_pop();
}

void
console_early_init(void)
{
	/*
	 * Firmware and GRUB may have left colours and half a line on the terminal: reset the
	 * attributes and erase the rest of the line. qemu/boot looks for these bytes to find the
	 * start of the kernel's output.
	 */
	static const char reset[] = "\033[0m\033[K\r";

	console_uart = uart_get(0);
	printk_set_console(console_write);
	console_write(reset, sizeof(reset) - 1);
}

/*
 * The keys Return ~ ^B enter the debugger. A ~ after Return is held until the next key shows
 * whether it is part of this sequence, so the reading program never sees a part of it. Interrupt
 * context, keys_busy held. True: the caller enters the debugger, when it holds that no more.
 */
static bool
console_take(char c)
{
	static enum { NOTHING, RETURN, TILDE } seen;
	bool held = seen == TILDE;

	if (held && c == CTRL('B')) {
		seen = NOTHING;
		CTR0(KTR_DEV, "console: key chord");
		return true;
	}
	if (seen == RETURN && c == '~') {
		seen = TILDE;
		return false;
	}
	if (held)
		tty_input(&console_tty, '~');
	tty_input(&console_tty, c);
	seen = c == '\r' || c == '\n' ? RETURN : NOTHING;
	return false;
}

/* As console_take(). One interrupt may bring many keys, or one of them be the erasure of many. The
 * time between two keys is the echo's again. */
static bool
console_key(char c)
{
	uint64_t now = clock_ns();
	int64_t left = (int64_t)(echo_until - keys_ended + (now - keys_ended)); /* or a debt */
	bool ask;

	if (left < -ECHO_NS) /* the machine may have stood at db> meanwhile */
		left = -ECHO_NS;
	echo_until = now + (uint64_t)(left < ECHO_NS ? left : ECHO_NS);
	ask = console_take(c);
	keys_ended = clock_ns();
	return ask;
}

static void
keys_claim(void)
{
	while (__atomic_exchange_n(&keys_busy, true, __ATOMIC_ACQUIRE))
		arch_relax();
}

static void
keys_release(void)
{
	__atomic_store_n(&keys_busy, false, __ATOMIC_RELEASE);
}

/*
 * Gives the terminal what console_unread() has kept. keys_busy is held until the key that was typed
 * after these has been given, too. Returns as console_key().
 */
static bool
console_give_kept(void)
{
	unsigned n = __atomic_load_n(&unread.n, __ATOMIC_ACQUIRE), i = 0;
	bool ask = false;

	if (n == 0)
		return false;
	do /* the debugger may stop the machine meanwhile, and add some */
		for (; i < n; i++)
			ask |= console_key((char)unread.keys[i]);
	while (!__atomic_compare_exchange_n(&unread.n, &n, 0, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE));
	return ask;
}

static void
console_read_again(void)
{
	bool ask;

	if (__atomic_load_n(&unread.n, __ATOMIC_ACQUIRE) == 0)
		return;
	keys_claim();
	ask = console_give_kept();
	keys_release();
	if (ask)
		panic_ask("key chord");
}

HOOK(clock_tick, console_read_again);

void
console_unread(const uint8_t *keys, unsigned n)
{
	unsigned had = unread.n; /* a CPU that was stopped may be in the midst of giving these */

	if (n > CONSOLE_UNREAD - had)
		n = CONSOLE_UNREAD - had;
	memcpy(unread.keys + had, keys, n);
	__atomic_store_n(&unread.n, had + n, __ATOMIC_RELEASE);
}

static void
console_input(void *arg, uint8_t c, bool brk)
{
	bool ask;

	keys_claim();
	ask = console_give_kept();
	if (!brk)
		ask |= console_key((char)c);
	keys_release();
	if (brk) {
		CTR0(KTR_DEV, "console: break");
		panic_ask("serial break");
	} else if (ask) {
		panic_ask("key chord");
	}
}

void
console_putc(char c)
{
	if (console_uart == NULL)
		return;
	if (c == '\n')
		uart_put(console_uart, '\r');
	uart_put(console_uart, (uint8_t)c);
}

int
console_getc_polled(void)
{
	int c = console_uart != NULL ? uart_poll(console_uart) : -1;

	return c == UART_BREAK ? -1 : c;
}

bool
console_write(const char *text, size_t len)
{
	enum console_claim claim = console_claim();

	if (claim == CONSOLE_BUSY)
		return false;
	for (size_t i = 0; i < len; i++)
		console_putc(text[i]);
	console_release(claim);
	return true;
}

/*
 * Writes bytes unchanged, as many as the line takes without waiting. Returns how many. Any context.
 */
static size_t
console_write_some(const char *buf, size_t len)
{
	enum console_claim claim;
	size_t n;

	if (console_uart == NULL)
		return len;
	claim = console_claim();
	if (claim == CONSOLE_BUSY)
		return 0;
	n = uart_write_some(console_uart, buf, len);
	console_release(claim);
	return n;
}

/* Writes bytes unchanged. What the line does not take in the time that keys have is dropped; the
 * last one that it is given waits as uart_put() does. */
static void
tty_echo_console(struct tty *t, const char *text, size_t n)
{
	enum console_claim claim = console_claim();
	size_t done = 0;

	if (claim == CONSOLE_BUSY)
		return;
	for (; console_uart != NULL && done < n && clock_ns() < echo_until; done++)
		uart_put(console_uart, (uint8_t)text[done]);
	if (console_uart != NULL && done < n)
		done += uart_write_some(console_uart, text + done, n - done);
	if (console_uart != NULL && done < n)
		__atomic_fetch_add(&console_uart->dropped, n - done, __ATOMIC_RELAXED);
	console_release(claim);
}

/*
 * Sends all of text, and sleeps while the line is full. 0, or with *done bytes sent: -EINTR, or
 * -EAGAIN if it is not to wait.
 */
static int
console_send(const char *text, size_t n, bool nowait, size_t *done)
{
	int error = 0;

	*done = 0;
	while (*done < n && error == 0) {
		size_t some = console_write_some(text + *done, n - *done);

		*done += some;
		if (some == 0 && nowait)
			error = -EAGAIN;
		else if (some == 0)
			error = thread_sleep_ns(RETRY_NS, SLEEP_INTR, "ttyout");
	}
	return error;
}

static size_t
tty_write_console(struct tty *t, const struct file *f, const char *text, size_t n, int *error)
{
	char out[TTY_PIECE];
	size_t used = 0;

	while (used < n && *error == 0) {
		size_t now = n - used, made, sent;
		struct termios set;

		spin_lock(&t->lock);
		set = t->ldisc.t; /* the settings may change while the line is full */
		spin_unlock(&t->lock);
		made = ldisc_output(&set, text + used, &now, out, sizeof(out));
		*error = console_send(out, made, f->flags & O_NONBLOCK, &sent);
		if (*error != 0) /* `now`: how much was sent; of "\r\n" both, or none */
			ldisc_output(&set, text + used, &now, out, sent);
		used += now;
	}
	return used;
}

void
console_init(void)
{
	static const struct tty_line line = {.echo = tty_echo_console, .write = tty_write_console};
	static const struct dev_ops ops = {
	    .open = tty_open,
	    .release = tty_release,
	    .read = tty_read,
	    .write = tty_write,
	    .poll = tty_poll,
	    .ioctl = tty_ioctl,
	    .mode = 0600, /* programs inherit it open */
	    .device = DEVICE(5, 1),
	};

	tty_jobs_init();
	console_tty.size =
	    (struct winsize){.ws_row = (uint16_t)console_rows, .ws_col = (uint16_t)console_columns};
	tty_init(&console_tty, &line);
	tty_join(&console_tty, ops.device);
	if (devfs_register("console", &ops, &console_tty) < 0)
		panic("no memory for /dev/console");
	pty_init();
	serial_dev_init();
	if (console_uart != NULL)
		uart_listen(console_uart, console_input, NULL, "console");
}

void
console_size(unsigned *rows, unsigned *columns)
{
	*rows = __atomic_load_n(&console_tty.size.ws_row, __ATOMIC_RELAXED);
	*columns = __atomic_load_n(&console_tty.size.ws_col, __ATOMIC_RELAXED);
	if (*rows == 0)
		*rows = CONSOLE_ROWS;
	if (*columns == 0)
		*columns = CONSOLE_COLUMNS;
}

static uint64_t
console_dropped(void)
{
	return console_uart == NULL ? 0 : __atomic_load_n(&console_uart->dropped, __ATOMIC_RELAXED);
}
SYSCTL_U64_CALL(kern_console_dropped, "kern.console.dropped", 0, console_dropped, NULL,
		"characters dropped because the console's serial line was busy too long");
SYSCTL_INT(kern_console_rows, "kern.console.rows", SYSCTL_TUN, &console_rows, 1, 9999,
	   "lines of the console's terminal when the machine starts; stty rows changes them");
SYSCTL_INT(kern_console_columns, "kern.console.columns", SYSCTL_TUN, &console_columns, 1, 9999,
	   "columns of the console's terminal when the machine starts; stty columns changes them");
