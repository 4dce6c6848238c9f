/*
 * ldisc.h - the line discipline: what a terminal does to characters between the line and the
 * reader.
 *
 * A pure state machine over one struct, without kernel: what it wants done it says by callbacks.
 *
 * The buffer is a ring. Invariant: read <= committed <= edit <= read + LDISC_SIZE. Bytes up to
 * `committed` may be read; the rest is the line that is being typed. In canonical mode a line is
 * committed by newline or end of file, in raw mode each byte. Locking: the owner's, around every
 * call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/abi/ioctl.h"

#define LDISC_SIZE 4096u /* a power of two */

struct ldisc {
	struct termios t;
	uint64_t read, committed, edit;
	uint64_t lost; /* characters that found the buffer full */
	char buf[LDISC_SIZE];
	/* Shows text on the terminal. */
	void (*echo)(void *arg, const char *text, size_t n);
	void *arg;
};

/* Canonical mode with echo and signals, erase DEL, kill ^U, eof ^D, intr ^C, quit ^\, susp ^Z. */
void ldisc_init(struct ldisc *l, void (*echo)(void *, const char *, size_t), void *arg);
/*
 * A character arrives. Returns the signal that it means, else 0; *wake: a reader may have something
 * now.
 */
int ldisc_input(struct ldisc *l, char c, bool *wake);
/*
 * Takes what a read of at most n bytes gets: in canonical mode from one line. Returns how many;
 * *eof: an end of file stood there, so the read is over even with 0.
 */
size_t ldisc_read(struct ldisc *l, char *buf, size_t n, bool *eof);
/* Bytes committed and not read. */
size_t ldisc_ready(const struct ldisc *l);
/* Forgets all input. */
void ldisc_flush(struct ldisc *l);
/* New settings. What was typed so far becomes readable when canonical mode ends. */
void ldisc_set(struct ldisc *l, const struct termios *t);
/*
 * Output processing: makes of at most *n bytes of text what goes to the line, at most size bytes,
 * and sets *n to the bytes used up. Returns bytes made.
 */
size_t ldisc_output(const struct ldisc *l, const char *text, size_t *n, char *out, size_t size);
