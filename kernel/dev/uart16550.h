/*
 * uart16550.h - one driver for every 16550 serial port: the console's and the trace's.
 *
 * Output is polled and never waits without bound: a line whose other end is gone costs its user
 * time once, then characters, never the kernel. Input comes by interrupt or by polling. Registers:
 * National Semiconductor PC16550D data sheet.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uart {
	uint16_t port; /* first I/O port of eight; constant */
	unsigned gsi;  /* interrupt line; constant */
	uint8_t
	    fifo;   /* characters the transmitter takes at once: 16, or 1 without FIFO; constant */
	bool stuck; /* atomic: the transmitter did not come empty in time, so do not wait for it
		       again */
	bool got_break;   /* atomic: the status told of a BREAK whose zero is not read yet */
	uint64_t dropped; /* atomic: characters given up */
	/* Receives one character, in interrupt context. brk: the line was held low (BREAK), c means
	 * nothing. */
	void (*input)(void *arg, uint8_t c, bool brk);
	void *arg;
};

/*
 * Serial line n (0: console, 1: trace), set to 115200 8N1 at first call. NULL: the machine has
 * none. Any context, but the first call for each line belongs to boot.
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

#define UART_BREAK 256
