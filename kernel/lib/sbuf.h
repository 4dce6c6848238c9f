/*
 * sbuf.h - text appended to a buffer of fixed size. What does not fit is cut, but counted.
 *
 * So the length of the whole text is known at the end, and the caller can try again with a larger
 * buffer. Locking: the caller's. Any context.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/lib/printf.h"

struct sbuf {
	char *buf;   /* may be NULL when size is 0: only counts */
	size_t size; /* bytes at buf, with the terminating NUL */
	size_t len;  /* bytes appended so far, stored or not, without NUL */
};

/* Starts with the empty string. If size > 0, buf is NUL-terminated after every call. */
void sbuf_init(struct sbuf *s, char *buf, size_t size);
void sbuf_putc(struct sbuf *s, char c);
void sbuf_puts(struct sbuf *s, const char *text);
void sbuf_write(struct sbuf *s, const void *data, size_t n);
void sbuf_printf(struct sbuf *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
void sbuf_vprintf(struct sbuf *s, const char *fmt, va_list ap);
/* A number, and a character after it: as sbuf_printf() with %lu or, of so many digits at least,
 * %lx. */
void sbuf_decimal(struct sbuf *s, uint64_t v, char after);
void sbuf_hex(struct sbuf *s, uint64_t v, unsigned digits, char after);
/* Which of the first n bits are set, n at most 64, as Linux lists CPUs: 0-3,6. */
void sbuf_bits(struct sbuf *s, uint64_t bits, unsigned n);

/* Bytes stored, without NUL. */
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
