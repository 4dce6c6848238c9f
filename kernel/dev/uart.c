/*
 * uart.c - serial lines: which ones exist, and the code that all chips share.
 *
 * Locking: none here. Writers of a line exclude each other (console.c, serial_dev.c). Input is read
 * by the interrupt handler, or by the debugger while nothing else runs.
 */
#include "kernel/dev/uart.h"

#include "arch/irq.h"
#include "kernel/abi/errno.h"
#include "kernel/dev/irq.h"
#include "kernel/dev/pci.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/sched/callout.h"
#include "kernel/sync/stop.h"
#include "ktr/ktr.h"

#define UART_LINES      2
#define UART_SOME_SPINS 8  /* reads of the status, of about 1 µs each */
#define UART_IRQ_ROUNDS 16 /* a line that never stops sending must not hold the CPU */
#define UART_POLL_NS    10000000ull

static struct uart uarts[UART_LINES];
static bool uart_looked[UART_LINES];
static struct callout uart_poller;

/* Finds line n: where the port says, or for the trace's line a card on PCI. */
static struct arch_uart
uart_find(unsigned n)
{
	struct arch_uart at = arch_uart(n);

	if (at.kind == ARCH_UART_NONE && n == 1 && pci_find_16550(&at.port))
		at.kind = ARCH_UART_16550;
	return at;
}

struct uart *
uart_get(unsigned n)
{
	static const struct uart_chip *const chips[] = {
	    [ARCH_UART_16550] = &uart_16550,
	    [ARCH_UART_PL011] = &uart_pl011,
	};

	if (n >= UART_LINES)
		return NULL;
	if (!uart_looked[n]) {
		struct uart *u = &uarts[n];

		uart_looked[n] = true;
		u->at = uart_find(n);
		if (chips[u->at.kind] != NULL && chips[u->at.kind]->init(u))
			u->chip = chips[u->at.kind];
	}
	return uarts[n].chip != NULL ? &uarts[n] : NULL;
}

static unsigned
uart_wait_room(struct uart *u, unsigned spins)
{
	for (unsigned i = 0; i < spins; i++) {
		unsigned room = u->chip->room(u);
		if (room != 0)
			return room;
		arch_relax();
	}
	return 0;
}

size_t
uart_write_some(struct uart *u, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	size_t done = 0;
	unsigned room;

	while (done < len && (room = uart_wait_room(u, UART_SOME_SPINS)) != 0)
		for (unsigned i = 0; i < room && done < len; i++)
			u->chip->put(u, p[done++]);
	return done;
}

void
uart_put(struct uart *u, uint8_t c)
{
	bool stuck = __atomic_load_n(&u->stuck, __ATOMIC_RELAXED);
	unsigned spins = stop_inside() ? UART_STOPPED_SPINS : UART_PUT_SPINS;

	if (uart_wait_room(u, stuck ? 1 : spins) == 0) {
		__atomic_store_n(&u->stuck, true, __ATOMIC_RELAXED);
		__atomic_fetch_add(&u->dropped, 1, __ATOMIC_RELAXED);
		return;
	}
	if (stuck)
		__atomic_store_n(&u->stuck, false, __ATOMIC_RELAXED);
	u->chip->put(u, c);
}

int
uart_poll(struct uart *u)
{
	return u->chip->get(u);
}

/* Reads the received characters. False: it stopped before the chip was empty. */
static bool
uart_drain(struct uart *u)
{
	int c;

	for (unsigned i = 0; i < UART_IRQ_ROUNDS; i++) {
		c = uart_poll(u);
		if (c < 0)
			return true;
		u->input(u->arg, (uint8_t)c, c == UART_BREAK);
	}
	return false;
}

static void
uart_interrupt(void *arg)
{
	struct uart *u = arg;
	unsigned why = u->chip->acknowledge(u);

	CTR2(KTR_DEV, "uart interrupt: chip %s status %#x", u->chip->name, why);
	if (!uart_drain(u))
		u->chip->listen(u);
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
	int err = -ENXIO;

	u->input = input;
	u->arg = arg;
	/* Ask again: at the first call the firmware's tables were not available. */
	u->at.gsi = arch_uart((unsigned)(u - uarts)).gsi;
	if (u->at.gsi != ARCH_NO_IRQ)
		err = irq_register(u->at.gsi, uart_interrupt, u, name);
	if (err < 0) {
		pr_warn("%s: interrupt line %d: error %d; polled instead\n", name, (int)u->at.gsi,
			-err);
		callout_init(&uart_poller, uart_poll_again, u);
		callout_set(&uart_poller, clock_ns() + UART_POLL_NS);
		return err;
	}
	u->chip->listen(u);
	return 0;
}
