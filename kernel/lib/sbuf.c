/*
 * sbuf.c - text appended to a buffer of fixed size.
 * Invariant: buf[sbuf_stored(s)] is NUL whenever size > 0. Locking: the caller's.
 */
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "ktr/fmt.h"

void
sbuf_init(struct sbuf *s, char *buf, size_t size)
{
	*s = (struct sbuf){.buf = buf, .size = size};
	if (size > 0)
		buf[0] = '\0';
}

void
sbuf_write(struct sbuf *s, const void *data, size_t n)
{
	size_t at = sbuf_stored(s), room = s->size > 0 ? s->size - 1 - at : 0;
	size_t keep = n < room ? n : room;

	/* After the first cut nothing more is stored: the text must not have a gap. */
	if (s->len == at && keep > 0) {
		memcpy(s->buf + at, data, keep);
		s->buf[at + keep] = '\0';
	}
	s->len += n;
}

void
sbuf_putc(struct sbuf *s, char c)
{
	sbuf_write(s, &c, 1);
}

void
sbuf_puts(struct sbuf *s, const char *text)
{
	sbuf_write(s, text, strlen(text));
}

void
sbuf_vprintf(struct sbuf *s, const char *fmt, va_list ap)
{
	size_t at = sbuf_stored(s);
	bool room = s->size > 0 && s->len == at;
	int n = room ? vsnprintf(s->buf + at, s->size - at, fmt, ap) : vsnprintf(NULL, 0, fmt, ap);

	if (n > 0)
		s->len += (size_t)n;
}

void
sbuf_printf(struct sbuf *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	sbuf_vprintf(s, fmt, ap);
	va_end(ap);
}

/* As sbuf_write(), of a few bytes. */
static void
sbuf_write_few(struct sbuf *s, const char *text, size_t n)
{
	char *to = s->buf + s->len;

	if (s->len + n >= s->size) {
		sbuf_write(s, text, n);
		return;
	}
	s->len += n;
	while (n-- > 0)
		*to++ = *text++;
	*to = '\0';
}

void
sbuf_decimal(struct sbuf *s, uint64_t v, char after)
{
	char text[24], *end = text + sizeof(text), *p = end;

	*--p = after;
	p = fmt_decimal(p, v);
	sbuf_write_few(s, p, (size_t)(end - p));
}

void
sbuf_hex(struct sbuf *s, uint64_t v, unsigned digits, char after)
{
	char text[24], *end = text + sizeof(text), *p = end;

	*--p = after;
	for (; v != 0 || p > end - 1 - digits; v >>= 4)
		*--p = "0123456789abcdef"[v & 15];
	sbuf_write_few(s, p, (size_t)(end - p));
}

void
sbuf_bits(struct sbuf *s, uint64_t bits, unsigned n)
{
	const char *comma = "";

	for (unsigned i = 0, end; i < n; i = end + 1) {
		for (end = i; end < n && (bits >> end & 1) != 0; end++)
			;
		if (end > i) {
			sbuf_printf(s, end > i + 1 ? "%s%u-%u" : "%s%u", comma, i, end - 1);
			comma = ",";
		}
	}
}
