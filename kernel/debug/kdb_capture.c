/*
 * kdb_capture.c - prints the rings on the console as a stream (ktr/WIRE.md) in base64 (RFC 4648).
 * ktrdump finds it in a terminal's log by the lines before and after it. No locks.
 */
#include "kernel/debug/kdb_private.h"
#include "ktr/stream.h"

#define LINE_BYTES 57 /* 76 characters */

static struct ktr_stream stream; /* static: too large for a stack */

static void
print_line(const uint8_t *p, size_t n)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char text[LINE_BYTES / 3 * 4 + 1];
	size_t at = 0;

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16;

		v |= i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0;
		v |= i + 2 < n ? p[i + 2] : 0u;
		text[at++] = digits[v >> 18];
		text[at++] = digits[v >> 12 & 63];
		text[at++] = i + 1 < n ? digits[v >> 6 & 63] : '=';
		text[at++] = i + 2 < n ? digits[v & 63] : '=';
	}
	text[at] = '\0';
	kdb_printf("%s\n", text);
}

void
kdb_command_capture(char *mod, char *args)
{
	uint8_t line[LINE_BYTES];
	size_t have = 0, n;
	bool closed = false;

	kdb.pager = false;
	ktr_stream_open(&stream, KTR_STREAM_STOPPED);
	kdb_printf("-----BEGIN KTR STREAM-----\n");
	while (!kdb.quit) {
		n = ktr_stream_read(&stream, line + have, sizeof(line) - have);
		have += n;
		if (have == sizeof(line) || (n == 0 && closed && have > 0)) {
			print_line(line, have);
			have = 0;
		}
		if (n == 0 && closed)
			break;
		if (n == 0) {
			ktr_stream_close(&stream, false);
			closed = true;
		}
	}
	kdb_printf("-----END KTR STREAM-----\n");
}
