/*
 * uart16550.c - the 16550 serial port.
 *
 * The transmit FIFO is filled in one go whenever it is empty: the chip only tells "empty", not
 * "room". Locking: none here. Writers of a line exclude each other (console.c, devices.c); input is
 * taken by the interrupt handler, or by the debugger while nothing else runs.
 */
#include "kernel/dev/uart16550.h"
#include "arch/irq.h"
#include "arch/machine.h"
#include "arch/pio.h"
#include "kernel/dev/irq.h"
#include "kernel/lib/printf.h"
#include "kernel/sched/callout.h"
#include "kernel/sched/clock.h"
#include "ktr/ktr.h"

/* Register offsets, and the bits in use. */
enum {
	UART_DATA = 0,
	UART_IER = 1, /* interrupt enable */
	UART_IIR = 2, /* interrupt identification (read) */
	UART_FCR = 2, /* FIFO control (write) */
	UART_LCR = 3, /* line control */
	UART_MCR = 4, /* modem control */
	UART_LSR = 5, /* line status */
	UART_SCR = 7, /* scratch */
};

#define IER_RECEIVED 0x01
#define IER_LINE     0x04
#define IIR_NONE     0x01
#define IIR_FIFO     0xc0
#define FCR_ON_CLEAR 0x07 /* enable, clear both FIFOs, interrupt with the first character */
#define LCR_8N1      0x03
#define LCR_DLAB     0x80
#define MCR_READY    0x0b /* DTR, RTS, OUT2: the PC's gate for the interrupt line */
#define MCR_LOOP     0x1b
#define LSR_RECEIVED 0x01
#define LSR_BREAK    0x10
#define LSR_EMPTY    0x20 /* transmitter takes more */

#define UART_LINES      2
#define UART_SOME_SPINS 8     /* a status read takes about 1 µs */
#define UART_PUT_SPINS  20000 /* 14 times what 16 characters take at 115200 baud */
#define UART_IRQ_ROUNDS 256   /* a line that never stops must not hold the CPU */
#define UART_POLL_NS    10000000ull

static struct uart uarts[UART_LINES];
static enum { UART_UNKNOWN, UART_ABSENT, UART_PRESENT } uart_state[UART_LINES];
static struct callout uart_poller;

static uint8_t
uart_in(const struct uart *u, unsigned reg)
{
	return arch_pio_in8((uint16_t)(u->port + reg));
}

static void
uart_out(const struct uart *u, unsigned reg, uint8_t v)
{
	arch_pio_out8((uint16_t)(u->port + reg), v);
}

/* An absent chip reads as all ones: the scratch register keeps nothing, and nothing loops back. */
static bool
uart_detect(const struct uart *u)
{
	uint8_t back = 0;

	uart_out(u, UART_SCR, 0x5a);
	if (uart_in(u, UART_SCR) != 0x5a)
		return false;
	uart_out(u, UART_SCR, 0xa5);
	if (uart_in(u, UART_SCR) != 0xa5)
		return false;
	uart_out(u, UART_FCR, 0);
	uart_out(u, UART_MCR, MCR_LOOP);
	uart_out(u, UART_DATA, 0xae);
	for (unsigned i = 0; i < UART_PUT_SPINS && !(uart_in(u, UART_LSR) & LSR_RECEIVED); i++)
		arch_relax();
	back = uart_in(u, UART_DATA);
	uart_out(u, UART_MCR, MCR_READY);
	return back == 0xae;
}

static bool
uart_init(struct uart *u)
{
	uart_out(u, UART_IER, 0);
	uart_out(u, UART_LCR, LCR_DLAB);
	uart_out(u, UART_DATA, 1); /* divisor 1: 115200 baud */
	uart_out(u, UART_IER, 0);
	uart_out(u, UART_LCR, LCR_8N1);
	if (!uart_detect(u))
		return false;
	uart_out(u, UART_FCR, FCR_ON_CLEAR);
	u->fifo = (uart_in(u, UART_IIR) & IIR_FIFO) == IIR_FIFO ? 16 : 1;
	return true;
}

struct uart *
uart_get(unsigned n)
{
	if (n >= UART_LINES)
		return NULL;
	if (uart_state[n] == UART_UNKNOWN) {
		struct uart *u = &uarts[n];

		uart_state[n] = UART_ABSENT;
		if (arch_uart_port(n, &u->port, &u->gsi) && uart_init(u))
			uart_state[n] = UART_PRESENT;
	}
	return uart_state[n] == UART_PRESENT ? &uarts[n] : NULL;
}

/* The chip tells of a BREAK once, to whoever reads the status: a writer keeps it for the reader. */
static uint8_t
uart_status(struct uart *u)
{
	uint8_t status = uart_in(u, UART_LSR);

	if (status & LSR_BREAK)
		__atomic_store_n(&u->got_break, true, __ATOMIC_RELAXED);
	return status;
}

static bool
uart_wait_empty(struct uart *u, unsigned spins)
{
	for (unsigned i = 0; i < spins; i++) {
		if (uart_status(u) & LSR_EMPTY)
			return true;
		arch_relax();
	}
	return false;
}

size_t
uart_write_some(struct uart *u, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	size_t done = 0;

	while (done < len && uart_wait_empty(u, UART_SOME_SPINS)) {
		for (unsigned i = 0; i < u->fifo && done < len; i++)
			uart_out(u, UART_DATA, p[done++]);
	}
	return done;
}

void
uart_put(struct uart *u, uint8_t c)
{
	bool stuck = __atomic_load_n(&u->stuck, __ATOMIC_RELAXED);

	if (!uart_wait_empty(u, stuck ? 1 : UART_PUT_SPINS)) {
		__atomic_store_n(&u->stuck, true, __ATOMIC_RELAXED);
		__atomic_fetch_add(&u->dropped, 1, __ATOMIC_RELAXED);
		return;
	}
	if (stuck)
		__atomic_store_n(&u->stuck, false, __ATOMIC_RELAXED);
	uart_out(u, UART_DATA, c);
}

int
uart_poll(struct uart *u)
{
	bool received = uart_status(u) & LSR_RECEIVED;
	uint8_t c;

	if (!received)
		return -1;
	c = uart_in(u, UART_DATA);
	/* A BREAK arrives as a zero. */
	if (c == 0 && __atomic_exchange_n(&u->got_break, false, __ATOMIC_RELAXED))
		return UART_BREAK;
	return c;
}

static void
uart_drain(struct uart *u)
{
	int c;

	for (unsigned i = 0; i < UART_IRQ_ROUNDS && (c = uart_poll(u)) >= 0; i++)
		u->input(u->arg, (uint8_t)c, c == UART_BREAK);
}

static void
uart_interrupt(void *arg)
{
	struct uart *u = arg;
	uint8_t why = uart_in(u, UART_IIR);

	CTR2(KTR_DEV, "uart interrupt: port %#x iir %#x", u->port, why);
	uart_drain(u);
}

static void
uart_poll_again(void *arg)
{
	uart_drain(arg);
	callout_set(&uart_poller, clock_ns() + UART_POLL_NS);
}

int
uart_listen(struct uart *u, void (*input)(void *, uint8_t, bool), void *arg, const char *name)
{
	uint16_t port;
	int err;

	u->input = input;
	u->arg = arg;
	/* Ask again: the line is early, firmware's tables, which say where its interrupt goes, are
	 * not. */
	arch_uart_port((unsigned)(u - uarts), &port, &u->gsi);
	err = irq_register(u->gsi, uart_interrupt, u, name);
	if (err < 0) {
		warnk("%s: interrupt line %u: error %d; polled instead\n", name, u->gsi, -err);
		callout_init(&uart_poller, uart_poll_again, u);
		callout_set(&uart_poller, clock_ns() + UART_POLL_NS);
		return err;
	}
	uart_drain(u); /* an edge from before would never come again */
	uart_out(u, UART_IER, IER_RECEIVED | IER_LINE);
	return 0;
}
