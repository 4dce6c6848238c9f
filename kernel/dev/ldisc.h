/*
 * ldisc.h - the line discipline: what a terminal does to characters between the line and the
 * reader.
 *
 * A pure state machine over one struct, without kernel code: callbacks do the output.
 *
 * The buffer is a ring. Invariant: read <= committed <= edit <= read + LDISC_SIZE. Bytes before
 * `committed` may be read; the rest is the line that is being typed. In canonical mode a newline or
 * end of file commits the line; in raw mode each byte is committed at once. Locking: the caller's,
 * around every call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/abi/ioctl.h"

#define LDISC_SIZE 4096u /* a power of two */

struct ldisc {
	struct termios t;
	bool literal; /* the next character is one of the text, whatever it is */
	uint64_t read, committed, edit;
	char buf[LDISC_SIZE];
	uint8_t ends[LDISC_SIZE / 8]; /* bits: this character ended a line when it was typed */
	/* Shows text on the terminal. */
	void (*echo)(void *arg, const char *text, size_t n);
	void *arg;
};

/* Begins in canonical mode with echo and signals; DEL erases, ^W ^U ^D ^V ^C ^\ ^Z as usual. */
void ldisc_init(struct ldisc *l, void (*echo)(void *, const char *, size_t), void *arg);
/* Handles a received character. Returns the signal that it causes, or 0. *wake: wake readers. */
int ldisc_input(struct ldisc *l, char c, bool *wake);
/*
 * Reads at most n bytes, in canonical mode from one line. Returns how many; 0 at the end of file.
 * An end of file right after the last byte that fits is taken with it.
 */
size_t ldisc_read(struct ldisc *l, char *buf, size_t n);
/* Bytes committed and not yet read; in canonical mode, an end of file is one. */
size_t ldisc_ready(const struct ldisc *l);
/* Bytes committed and not yet read, without ends of file. */
size_t ldisc_text(const struct ldisc *l);
/* Would one more character be taken, or fall off a line that is too long? If not, it is lost. */
bool ldisc_room(const struct ldisc *l);
/* Drops all input. */
void ldisc_flush(struct ldisc *l);
/*
 * Changes the settings. When canonical mode ends, the unfinished line becomes readable; when it
 * begins, what was not read is a line.
 */
void ldisc_set(struct ldisc *l, const struct termios *t);
/*
 * Output processing with these settings: converts at most *n bytes of text into at most size bytes
 * for the line. Sets *n to the bytes consumed, and returns the bytes produced.
 */
size_t ldisc_output(const struct termios *t, const char *text, size_t *n, char *out, size_t size);
