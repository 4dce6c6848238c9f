/*
 * line.h - one line of output, made in a buffer and handed to the C library once: millions of them
 * are written, and its formatting is most of their cost.
 *
 * A longer one goes out in pieces. Locking: none; a line lives on a stack.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LINE_BUFFER 2048u
#define LINE_DIGITS 20 /* of 64 bits */

struct line {
	FILE *out;
	size_t count; /* characters so far */
	size_t used;  /* of them in buf */
	char buf[LINE_BUFFER];
};

static inline void
line_begin(struct line *l, FILE *out)
{
	l->out = out;
	l->count = l->used = 0;
}

/** Hands on what there is: at the end, or before something else is written. */
static inline void
line_flush(struct line *l)
{
	fwrite(l->buf, 1, l->used, l->out);
	l->used = 0;
}

static inline void
line_put(struct line *l, const char *text, size_t n)
{
	l->count += n;
	if (n > LINE_BUFFER - l->used) {
		line_flush(l);
		if (n > LINE_BUFFER) {
			fwrite(text, 1, n, l->out);
			return;
		}
	}
	memcpy(l->buf + l->used, text, n);
	l->used += n;
}

static inline void
line_char(struct line *l, char c)
{
	if (l->used == LINE_BUFFER)
		line_flush(l);
	l->buf[l->used++] = c;
	l->count++;
}

static inline void
line_text(struct line *l, const char *text)
{
	line_put(l, text, strlen(text));
}

/** Spaces until the line has that many characters. */
static inline void
line_pad(struct line *l, size_t count)
{
	while (l->count < count)
		line_char(l, ' ');
}

/** A decimal number of at least so many characters: zeros in front, or spaces. */
static inline void
line_number(struct line *l, uint64_t v, size_t width, char fill)
{
	char digits[LINE_DIGITS];
	size_t n = 0;
	do {
		digits[LINE_DIGITS - ++n] = (char)('0' + v % 10);
		v /= 10;
	} while (v != 0);
	for (size_t i = n; i < width; i++)
		line_char(l, fill);
	line_put(l, digits + LINE_DIGITS - n, n);
}

static inline void
line_signed(struct line *l, int64_t v)
{
	if (v < 0)
		line_char(l, '-');
	line_number(l, v < 0 ? -(uint64_t)v : (uint64_t)v, 0, ' ');
}
