/*
 * uart.h - a serial line, whatever chip drives it: the console's and the trace's.
 *
 * Output is polled and never waits without bound: a line whose other end is gone costs its user
 * time once, then characters, never the kernel. Input comes by interrupt or by polling.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/machine.h"

struct uart;

/* What a chip's driver does. Any context, but init and listen, which belong to boot. */
struct uart_chip {
	const char *name; /* "16550" */
	/* Sets the line to 115200 8N1. False: there is no such chip where the line is said to be.
	 */
	bool (*init)(struct uart *u);
	/* Characters that the transmitter takes now: 0, it is full. */
	unsigned (*room)(struct uart *u);
	/* Hands over a character for which there is room. */
	void (*put)(struct uart *u, uint8_t c);
	/* A received character, -1 when there is none, UART_BREAK for a BREAK. */
	int (*get)(struct uart *u);
	/*
	 * Interrupts for what is received, from now on. One comes at once when there is something
	 * already: also on an edge-triggered line that the chip holds high.
	 */
	void (*listen)(struct uart *u);
	/*
	 * Quiets an interrupt, but not one for what was received: that ends when get has taken all.
	 * Returns why it came.
	 */
	unsigned (*acknowledge)(struct uart *u);
};

struct uart {
	const struct uart_chip *chip; /* NULL: the line is not there; constant after uart_get() */
	struct arch_uart at;          /* constant after uart_listen() */
	unsigned fifo;  /* characters that an empty transmitter takes at once; constant */
	bool stuck;     /* atomic: the transmitter did not come empty in time, so do not wait for it
			   again */
	bool got_break; /* atomic: the chip told of a BREAK that is not read yet (16550) */
	uint64_t dropped; /* atomic: characters given up */
	/* Receives one character, in interrupt context. brk: the line was held low (BREAK), c means
	 * nothing. */
	void (*input)(void *arg, uint8_t c, bool brk);
	void *arg;
};

#define UART_BREAK 256

/* How long a chip may take, in looks at its status of about 1 µs. */
#define UART_PUT_SPINS 20000 /* 14 times what 16 characters take at 115200 baud */
/* With the machine stopped nobody is kept waiting, but for an operator whose terminal is slow. */
#define UART_STOPPED_SPINS (200 * UART_PUT_SPINS)

extern const struct uart_chip uart_16550, uart_pl011;

/*
 * Serial line n (0: console, 1: trace), set to 115200 8N1 at first call. NULL: the machine has
 * none. Any context, but the first call for each line belongs to boot; for line 1, after
 * arch_machine_init().
 */
struct uart *uart_get(unsigned n);
/*
 * Writes as much as the line takes with at most a few µs of waiting, and returns how much that was:
 * 0 when it is busy or dead. The caller keeps others off the line. Any context.
 */
size_t uart_write_some(struct uart *u, const void *buf, size_t len);
/*
 * Writes one character, waiting for room up to 20 ms; then the line counts as stuck, and characters
 * are dropped and counted until it takes one again. Any context.
 */
void uart_put(struct uart *u, uint8_t c);
/* A received character, -1 when there is none, UART_BREAK for a BREAK. Any context. */
int uart_poll(struct uart *u);
/*
 * Calls input() from now on for what is received. 0, or the negative errno of irq_register(); then
 * input is polled every 10 ms instead. Thread context.
 */
int uart_listen(struct uart *u, void (*input)(void *, uint8_t, bool), void *arg, const char *name);
