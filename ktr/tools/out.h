/*
 * out.h - a buffer for text that goes to a file. Millions of lines are written, so it is made for
 * speed.
 *
 * Call out_flush() before anything else writes to the file. Locking: none.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ktr/fmt.h"
#include "ktr/str.h"

#define OUT_BUFFER 65536u
#define OUT_MADE   4096u

struct out {
	FILE *file;
	size_t line;   /* characters of this line that are not in buf any more; see out_column() */
	size_t used;   /* of buf */
	size_t widest; /* characters of the widest line of a table so far */
	char buf[OUT_BUFFER];
};

/** Writes out what is in the buffer. */
static inline void
out_flush(struct out *o)
{
	fwrite(o->buf, 1, o->used, o->file);
	o->line += o->used;
	o->used = 0;
}

/**
 * A place for n characters, at most OUT_BUFFER. The caller writes them there, and adds their number
 * to used.
 */
static inline char *
out_room(struct out *o, size_t n)
{
	if (n > OUT_BUFFER - o->used)
		out_flush(o);
	return o->buf + o->used;
}

/** Begins a line, from which out_column() counts. */
static inline void
out_begin(struct out *o)
{
	o->line = 0 - o->used;
}

/** Characters of the line so far. */
static inline size_t
out_column(const struct out *o)
{
	return o->line + o->used;
}

static inline void
out_put(struct out *o, const char *text, size_t n)
{
	for (size_t part; n > 0; text += part, n -= part) {
		part = n < OUT_BUFFER ? n : OUT_BUFFER;
		ktr_copy(out_room(o, part), text, part);
		o->used += part;
	}
}

static inline void
out_char(struct out *o, char c)
{
	*out_room(o, 1) = c;
	o->used++;
}

static inline void
out_text(struct out *o, const char *text)
{
	out_put(o, text, strlen(text));
}

static inline void
out_blanks(struct out *o, size_t n)
{
	char *to = out_room(o, n);
	for (size_t i = 0; i < n; i++)
		to[i] = ' ';
	o->used += n;
}

/** Writes n characters, after blanks that make them at least `width`. */
static inline void
out_right(struct out *o, const char *text, size_t n, size_t width)
{
	out_blanks(o, n < width ? width - n : 0);
	out_put(o, text, n);
}

/** Writes blanks until the line has so many characters. */
static inline void
out_pad(struct out *o, size_t column)
{
	if (out_column(o) < column)
		out_blanks(o, column - out_column(o));
}

/** Writes a decimal number of at least so many characters. */
static inline void
out_number(struct out *o, uint64_t v, size_t width)
{
	char digits[FMT_DECIMAL];
	char *start = fmt_decimal(digits + FMT_DECIMAL, v);
	out_right(o, start, (size_t)(digits + FMT_DECIMAL - start), width);
}

static inline void
out_signed(struct out *o, int64_t v)
{
	if (v < 0)
		out_char(o, '-');
	out_number(o, v < 0 ? -(uint64_t)v : (uint64_t)v, 0);
}

/**
 * As printf(), at most OUT_MADE - 1 characters. For what is written seldom: it is several times as
 * slow as the functions above.
 */
__attribute__((format(printf, 2, 3))) void out_printf(struct out *o, const char *fmt, ...);
/** Writes nanoseconds as seconds with nine digits after the point; at least so many characters. */
void out_seconds(struct out *o, int64_t ns, size_t width);
/**
 * Writes control characters, also C1 of UTF-8, as \n, \t or \x7f, because they would break the line
 * or disturb the terminal. A NUL is somewhere after the text.
 */
void out_printable(struct out *o, const char *text, size_t n);
/**
 * out_printable() for n characters, fewer than OUT_MADE, that the caller has written to
 * out_room().
 */
void out_printable_made(struct out *o, size_t n);
/** Writes a string of JSON, in its quotes, or null; bytes that are no UTF-8 are U+FFFD. */
void out_json(struct out *o, const char *text);
