/*
 * out.h - text on its way to a file: one buffer, which is handed to the C library when it is full.
 * Millions of lines are written, and making them is most of their cost.
 *
 * What is written to the file by other means comes before what is still in the buffer: out_flush()
 * first. Locking: none.
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
	size_t line; /* characters of this line that are not in buf any more; see out_column() */
	size_t used; /* of buf */
	char buf[OUT_BUFFER];
};

/** Hands on what there is. */
static inline void
out_flush(struct out *o)
{
	fwrite(o->buf, 1, o->used, o->file);
	o->line += o->used;
	o->used = 0;
}

/** Room for n characters that the caller stores there, and adds to used; at most OUT_BUFFER. */
static inline char *
out_room(struct out *o, size_t n)
{
	if (n > OUT_BUFFER - o->used)
		out_flush(o);
	return o->buf + o->used;
}

/** A line begins: what out_column() counts from. */
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

/** n characters, after blanks that make them at least `width`. */
static inline void
out_right(struct out *o, const char *text, size_t n, size_t width)
{
	out_blanks(o, n < width ? width - n : 0);
	out_put(o, text, n);
}

/** Blanks until the line has so many characters. */
static inline void
out_pad(struct out *o, size_t column)
{
	if (out_column(o) < column)
		out_blanks(o, column - out_column(o));
}

/** A decimal number of at least so many characters. */
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

/** Nanoseconds as seconds with nine digits after the point; at least so many characters. */
void out_seconds(struct out *o, int64_t ns, size_t width);
/** Control characters as \n, \t, \x7f: they would take the row, or the terminal, apart. */
void out_printable(struct out *o, const char *text, size_t n);
/** The same of a text that stands where out_room() said; it is less than OUT_MADE long. */
void out_printable_made(struct out *o, size_t n);
/** A string of JSON, in its quotes, or null; bytes that are no UTF-8 are U+FFFD. */
void out_json(struct out *o, const char *text);
