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

/* One thread writes: where the C library says how, without its lock. */
#ifdef __GLIBC__
#define LINE_WRITE fwrite_unlocked
#else
#define LINE_WRITE fwrite
#endif

struct line {
	FILE *out;
	size_t gone; /* characters handed on already */
	size_t used; /* … in buf */
	char buf[LINE_BUFFER];
};

static inline void
line_begin(struct line *l, FILE *out)
{
	l->out = out;
	l->gone = l->used = 0;
}

/** Hands on what there is: at the end, or before something else is written. */
static inline void
line_flush(struct line *l)
{
	LINE_WRITE(l->buf, 1, l->used, l->out);
	l->gone += l->used;
	l->used = 0;
}

/** Characters so far. */
static inline size_t
line_count(const struct line *l)
{
	return l->gone + l->used;
}

static inline void
line_put(struct line *l, const char *text, size_t n)
{
	if (n > LINE_BUFFER - l->used) {
		line_flush(l);
		if (n > LINE_BUFFER) {
			LINE_WRITE(text, 1, n, l->out);
			l->gone += n;
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
}

static inline void
line_text(struct line *l, const char *text)
{
	line_put(l, text, strlen(text));
}

/** n times the same character. */
static inline void
line_fill(struct line *l, char c, size_t n)
{
	while (n > 0) {
		size_t part = n < LINE_BUFFER - l->used ? n : LINE_BUFFER - l->used;
		memset(l->buf + l->used, c, part);
		l->used += part;
		n -= part;
		if (n > 0)
			line_flush(l);
	}
}

/** Spaces until the line has that many characters. */
static inline void
line_pad(struct line *l, size_t count)
{
	if (line_count(l) < count)
		line_fill(l, ' ', count - line_count(l));
}

/** Room for n characters that the caller stores in buf; at most LINE_BUFFER. */
static inline char *
line_room(struct line *l, size_t n)
{
	if (n > LINE_BUFFER - l->used)
		line_flush(l);
	l->used += n;
	return l->buf + l->used - n;
}

/** Digits of a decimal number. */
static inline size_t
line_digits(uint64_t v)
{
	size_t n = 1;
	for (; v >= 10000; v /= 10000)
		n += 4;
	return n + (v >= 10) + (v >= 100) + (v >= 1000);
}

/** A decimal number of at least so many characters, with spaces in front: made where it goes. */
static inline void
line_number(struct line *l, uint64_t v, size_t width)
{
	size_t n = line_digits(v);
	if (n < width)
		line_fill(l, ' ', width - n);
	char *start = line_room(l, n), *p = start + n;
	do {
		*--p = (char)('0' + v % 10);
		v /= 10;
	} while (p > start);
}

/** A string of JSON, in its quotes, or null; bytes that are no UTF-8 are U+FFFD: ktrdump_json.c. */
void line_json(struct line *l, const char *text);

static inline void
line_signed(struct line *l, int64_t v)
{
	if (v < 0)
		line_char(l, '-');
	line_number(l, v < 0 ? -(uint64_t)v : (uint64_t)v, 0);
}
