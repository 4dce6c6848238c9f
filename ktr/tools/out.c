/* out.c - the longer functions of out.h: seconds, and texts that may need escapes. */
#include "ktr/tools/out.h"

#include <stdarg.h>

#include "ktr/tools/utf8.h"

#define SECOND 1000000000u

static const char hex[] = "0123456789abcdef";

void
out_printf(struct out *o, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(out_room(o, OUT_MADE), OUT_MADE, fmt, ap);
	va_end(ap);
	o->used += n < (int)OUT_MADE ? (size_t)n : OUT_MADE - 1;
}

void
out_seconds(struct out *o, int64_t ns, size_t width)
{
	char text[2 * FMT_DECIMAL];
	char *end = text + sizeof(text), *point = end - 10;
	uint64_t t = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	/* One digit more than the fraction has keeps its leading zeros. */
	fmt_decimal(end, t % SECOND + SECOND);
	*point = '.';
	char *start = fmt_decimal(point, t / SECOND);
	if (ns < 0)
		*--start = '-';
	out_right(o, start, (size_t)(end - start), width);
}

typedef uint8_t bytes16 __attribute__((vector_size(16)));

/* Is a byte that is no part of a longer character a control? A terminal may take C1 for one. */
static bool
is_control(unsigned char c)
{
	return c < 0x20 || c == 0x7f || (c & 0xe0) == 0x80;
}

/* Has the text a control character, or a byte that may be one, or a part of one? */
static bool
has_control(const char *text, size_t n)
{
	bytes16 found = {0};
	uint64_t halves[2];
	size_t i = 0;
	for (bytes16 w; n >= 16 && i < n; i += 16) {
		/* The last sixteen overlap those before. */
		memcpy(&w, text + (n - i < 16 ? n - 16 : i), 16);
		found |= (bytes16)((w < 0x20) | (w == 0x7f) | ((w & 0xe0) == 0x80));
	}
	memcpy(halves, &found, sizeof(halves));
	for (; i < n; i++)
		halves[0] |= is_control((unsigned char)text[i]);
	return (halves[0] | halves[1]) != 0;
}

void
out_printable(struct out *o, const char *text, size_t n)
{
	if (!has_control(text, n)) {
		out_put(o, text, n);
		return;
	}
	for (size_t length; n > 0; text += length, n -= length) {
		const unsigned char *p = (const unsigned char *)text, c = *p;
		length = utf8_length(p);
		bool c1 = length == 2 && c == 0xc2 && p[1] < 0xa0;
		if (length > 1 && length <= n && !c1) {
			out_put(o, text, length);
			continue;
		}
		length = 1;
		if (!is_control(c) && !c1) {
			out_char(o, *text);
		} else if (c == '\n' || c == '\t') {
			out_text(o, c == '\n' ? "\\n" : "\\t");
		} else {
			out_text(o, "\\x");
			out_char(o, hex[c >> 4]);
			out_char(o, hex[c & 15]);
		}
	}
}

void
out_printable_made(struct out *o, size_t n)
{
	char copy[OUT_MADE];
	const char *text = o->buf + o->used;
	if (!has_control(text, n)) {
		o->used += n;
		return;
	}
	memcpy(copy, text, n);
	copy[n] = '\0';
	out_printable(o, copy, n);
}

/* How many characters at p are printable ASCII that JSON takes as they are. */
static size_t
plain_length(const unsigned char *p)
{
	size_t n = 0;
	while (p[n] >= 0x20 && p[n] < 0x7f && p[n] != '"' && p[n] != '\\')
		n++;
	return n;
}

void
out_json(struct out *o, const char *text)
{
	if (text == NULL) {
		out_text(o, "null");
		return;
	}
	out_char(o, '"');
	const unsigned char *p = (const unsigned char *)text;
	for (size_t n; *p != '\0'; p += n) {
		n = plain_length(p);
		if (n > 0) {
			out_put(o, (const char *)p, n);
			continue;
		}
		n = utf8_length(p);
		if (n == 0) {
			out_text(o, "\\ufffd");
			n = 1;
		} else if (*p == '"' || *p == '\\') {
			out_char(o, '\\');
			out_char(o, (char)*p);
		} else if (*p == '\n' || *p == '\t') {
			out_text(o, *p == '\n' ? "\\n" : "\\t");
		} else if (*p < 0x20 || *p == 0x7f) {
			out_text(o, "\\u00");
			out_char(o, hex[*p >> 4]);
			out_char(o, hex[*p & 15]);
		} else {
			out_put(o, (const char *)p, n);
		}
	}
	out_char(o, '"');
}
