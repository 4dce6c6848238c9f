/*
 * uart.h - serial lines (the console's and the trace's), independent of the chip.
 *
 * Output is polled, and every wait for room is bounded. If the other end is gone, its writer loses
 * that time once, and afterwards characters; a slow line may cost as much for each character. The
 * kernel never hangs. Input is by interrupts or polling.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/machine.h"

struct uart;

/* A chip's driver. Any context, but init and listen only at boot. */
struct uart_chip {
	const char *name; /* "16550" */
	/* Sets the line to 115200 8N1. False: the chip is not there. */
	bool (*init)(struct uart *u);
	/* Characters that the transmitter accepts now; 0: it is full. */
	unsigned (*room)(struct uart *u);
	/* Sends a character; there must be room. */
	void (*put)(struct uart *u, uint8_t c);
	/* A received character, -1 when there is none, UART_BREAK for a BREAK. */
	int (*get)(struct uart *u);
	/*
	 * Enables interrupts for received characters. If some have arrived already, one comes at
	 * once, also on an edge-triggered line that the chip holds high.
	 */
	void (*listen)(struct uart *u);
	/*
	 * Clears pending interrupts, except the one for received characters: get clears that when
	 * it has read all. Returns the causes.
	 */
	unsigned (*acknowledge)(struct uart *u);
};

struct uart {
	const struct uart_chip *chip; /* NULL: the line is not there; constant after uart_get() */
	struct arch_uart at;          /* constant after uart_listen() */
	unsigned fifo;    /* constant: characters that an empty transmitter accepts at once */
	bool stuck;       /* atomic: the transmitter timed out: do not wait for it */
	bool got_break;   /* atomic: a BREAK was seen and not yet read (16550) */
	uint64_t dropped; /* atomic: characters dropped */
	/* Receives a character, in interrupt context. brk: a BREAK; then c means nothing. */
	void (*input)(void *arg, uint8_t c, bool brk);
	void *arg;
};

#define UART_BREAK 256

/* Time limits, in reads of the chip's status, of about 1 µs each. */
#define UART_PUT_SPINS 20000 /* 14 times what 16 characters take at 115200 baud */
/* While the machine is stopped, waiting hurts nobody, and an operator's terminal may be slow. */
#define UART_STOPPED_SPINS (200 * UART_PUT_SPINS)

extern const struct uart_chip uart_16550, uart_pl011;

/*
 * Serial line n (0: console, 1: trace). The first call sets it to 115200 8N1. NULL: the machine has
 * none. Any context, but the first call for a line at boot; for line 1, after arch_machine_init().
 */
struct uart *uart_get(unsigned n);
/*
 * Writes as much as the line accepts within a few µs. Returns how much: 0 if it is busy or dead.
 * The caller keeps others off the line. Any context.
 */
size_t uart_write_some(struct uart *u, const void *buf, size_t len);
/*
 * Writes one character; waits for room up to 20 ms. After a timeout the line counts as stuck, and
 * characters are dropped and counted until it accepts one again. Any context.
 */
void uart_put(struct uart *u, uint8_t c);
/* A received character, or -1, or UART_BREAK. Any context. */
int uart_poll(struct uart *u);
/*
 * Calls input() for each received character from now on. 0, or the error of irq_register(): then
 * input is polled every 10 ms. Thread context.
 */
int uart_listen(struct uart *u, void (*input)(void *, uint8_t, bool), void *arg, const char *name);
