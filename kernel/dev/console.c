/*
 * console.c - the first serial line as the machine's console.
 *
 * Locking: console_owner, a lock of its own kind. It knows its CPU, so that an interrupt or NMI
 * inside console output is turned away instead of waiting for itself; it records no event, since
 * recording may print; and a stopped machine ignores it. Held with interrupts off, for one piece of
 * a line at a time.
 */
#include "kernel/dev/console.h"
#include "arch/irq.h"
#include "arch/pcpu.h"
#include "kernel/dev/serial_dev.h"
#include "kernel/dev/tty.h"
#include "kernel/dev/uart.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sysctl.h"
#include "kernel/sync/spinlock.h"
#include "kernel/sync/stop.h"
#include "ktr/ktr.h"

#define CONSOLE_NOBODY (-1)
#define CTRL(c)        ((c) - '@')

static struct uart *console_uart;          /* constant after boot; NULL: none */
static int console_owner = CONSOLE_NOBODY; /* atomic: CPU inside */

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
	 * Firmware and GRUB may have left colours and half a line on the terminal: attributes off,
	 * rest of the line erased. qemu/boot knows by these bytes where the kernel's output begins.
	 */
	static const char reset[] = "\033[0m\033[K\r";

	console_uart = uart_get(0);
	printk_set_console(console_write);
	console_write(reset, sizeof(reset) - 1);
}

/*
 * Return ~ ^B is the chord of keys that asks for the debugger. After Return, a ~ is held back until
 * the next key shows whether it belongs to the chord, so that nothing of a chord reaches the
 * program that reads. Interrupt context; there is one such line, so one CPU at a time is here.
 */
static void
console_key(char c)
{
	static enum { NOTHING, RETURN, TILDE } seen;
	bool held = seen == TILDE;

	if (held && c == CTRL('B')) {
		seen = NOTHING;
		CTR0(KTR_DEV, "console: key chord");
		panic_ask("key chord");
		return;
	}
	if (seen == RETURN && c == '~') {
		seen = TILDE;
		return;
	}
	if (held)
		tty_input('~');
	tty_input(c);
	seen = c == '\r' || c == '\n' ? RETURN : NOTHING;
}

static void
console_input(void *arg, uint8_t c, bool brk)
{
	if (brk) {
		CTR0(KTR_DEV, "console: break");
		panic_ask("serial break");
	} else {
		console_key((char)c);
	}
}

void
console_init(void)
{
	tty_init();
	serial_dev_init();
	if (console_uart != NULL)
		uart_listen(console_uart, console_input, NULL, "console");
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

void
console_echo(const char *text, size_t len)
{
	enum console_claim claim = console_claim();

	if (claim == CONSOLE_BUSY)
		return;
	for (size_t i = 0; i < len && console_uart != NULL; i++)
		uart_put(console_uart, (uint8_t)text[i]);
	console_release(claim);
}

size_t
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

static uint64_t
console_dropped(void)
{
	return console_uart == NULL ? 0 : __atomic_load_n(&console_uart->dropped, __ATOMIC_RELAXED);
}
SYSCTL_U64_CALL(kern_console_dropped, "kern.console.dropped", 0, console_dropped, NULL,
		"characters that the console's serial line did not take in time");
