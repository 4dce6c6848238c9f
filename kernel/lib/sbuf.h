/*
 * sbuf.h - text appended to a buffer of fixed size; what does not fit is cut, but counted.
 *
 * The length that the whole text has is known at the end, so that a caller can come again with
 * room. Locking: the owner's. Any context.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernel/lib/printf.h"

struct sbuf {
	char *buf;   /* may be NULL when size is 0: only counts */
	size_t size; /* bytes at buf, with the terminating NUL */
	size_t len;  /* bytes appended so far, stored or not, without NUL */
};

/* buf gets the empty string at once; it is NUL-terminated after every call, if size > 0. */
void sbuf_init(struct sbuf *s, char *buf, size_t size);
void sbuf_putc(struct sbuf *s, char c);
void sbuf_puts(struct sbuf *s, const char *text);
void sbuf_write(struct sbuf *s, const void *data, size_t n);
void sbuf_printf(struct sbuf *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
void sbuf_vprintf(struct sbuf *s, const char *fmt, va_list ap);

/* Bytes that are stored, without NUL. */
static inline size_t
sbuf_stored(const struct sbuf *s)
{
	return s->len < s->size ? s->len : s->size > 0 ? s->size - 1 : 0;
}

/* Was anything cut? */
static inline bool
sbuf_is_cut(const struct sbuf *s)
{
	return s->len > sbuf_stored(s);
}
