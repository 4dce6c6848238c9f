/*
 * ktrdump_armor.c - finds the stream that db>'s `capture` printed in the log of a console: lines of
 * base64 (RFC 4648) between BEGIN and END. A stream has a zero byte among its first STREAM_ZERO
 * bytes. A log has none.
 */
#include <string.h>

#include "ktr/tools/ktrdump.h"

#define STREAM_ZERO (4096 + 4096 / 254 + 2) /* a frame, COBS-coded (WIRE.md) */

static const char BEGIN[] = "-----BEGIN KTR STREAM-----";
static const char END[] = "-----END KTR STREAM-----";

/* Value of a digit, -1: it is none. */
static int
digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes the bytes of a line of base64; the first character that is no digit ends it. */
static size_t
decode_line(const char *line, size_t len, uint8_t *out)
{
	uint32_t bits = 0;
	unsigned have = 0;
	size_t n = 0;

	for (size_t i = 0; i < len && digit(line[i]) >= 0; i++) {
		bits = bits << 6 | (uint32_t)digit(line[i]);
		have += 6;
		if (have >= 8) {
			have -= 8;
			out[n++] = (uint8_t)(bits >> have);
		}
	}
	return n;
}

static size_t
take_line(struct dump_armor *a, uint8_t *out)
{
	size_t len = a->len;

	a->len = 0;
	while (len > 0 && (a->line[len - 1] == '\r' || a->line[len - 1] == ' '))
		len--;
	if (len == sizeof(BEGIN) - 1 && memcmp(a->line, BEGIN, len) == 0) {
		a->inside = true;
	} else if (len == sizeof(END) - 1 && memcmp(a->line, END, len) == 0) {
		a->inside = false;
	} else if (a->inside) {
		return decode_line(a->line, len, out);
	}
	return 0;
}

bool
dump_armor_decided(const uint8_t *bytes, size_t n)
{
	return n >= STREAM_ZERO || (n > 0 && memchr(bytes, 0, n) != NULL);
}

const uint8_t *
dump_armor(struct dump_armor *a, const uint8_t *bytes, size_t *n)
{
	/* The bytes of a line that began in an earlier chunk go here, too. */
	static uint8_t out[DUMP_CHUNK + sizeof(a->line)];
	size_t have = 0;

	for (size_t i = 0; i < *n; i++) {
		if (bytes[i] == '\n')
			have += take_line(a, out + have);
		else if (a->len < sizeof(a->line))
			a->line[a->len++] = (char)bytes[i];
	}
	*n = have;
	return out;
}
