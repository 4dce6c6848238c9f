/* html_column.c - columns of the html format: varints, compressed by zlib, in a nameless file. */
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/export/html.h"

#define LEVEL 6

bool
html_column_open(struct html_column *c, const struct export_file *file)
{
	c->file = export_file_scratch(file);
	if (c->file == NULL)
		return false;
	if (deflateInit(&c->z, LEVEL) == Z_OK)
		return true;
	fclose(c->file);
	c->file = NULL;
	return false;
}

/* Compresses what is in the buffer. */
static void
column_deflate(struct html_column *c, int flush)
{
	uint8_t out[HTML_BUFFER];
	c->z.next_in = c->in;
	c->z.avail_in = (uInt)c->used;
	do {
		c->z.next_out = out;
		c->z.avail_out = sizeof(out);
		c->failed |= deflate(&c->z, flush) == Z_STREAM_ERROR;
		size_t n = sizeof(out) - c->z.avail_out;
		c->failed |= fwrite(out, 1, n, c->file) != n;
	} while (c->z.avail_out == 0 && !c->failed);
	c->used = 0;
}

void
html_column_put(struct html_column *c, const void *bytes, size_t n)
{
	const char *from = bytes;
	for (size_t part; n > 0; from += part, n -= part) {
		if (c->used == HTML_BUFFER)
			column_deflate(c, Z_NO_FLUSH);
		part = n < HTML_BUFFER - c->used ? n : HTML_BUFFER - c->used;
		memcpy(c->in + c->used, from, part);
		c->used += part;
	}
}

void
html_number(struct html_column *c, uint64_t v)
{
	if (c->used + 10 > HTML_BUFFER)
		column_deflate(c, Z_NO_FLUSH);
	for (; v >= 0x80; v >>= 7)
		c->in[c->used++] = (uint8_t)(v | 0x80);
	c->in[c->used++] = (uint8_t)v;
}

static void
base64(FILE *f, const uint8_t *bytes, size_t n)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)bytes[i] << 16 |
			     (i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0) |
			     (i + 2 < n ? bytes[i + 2] : 0);
		char four[4] = {digits[v >> 18], digits[v >> 12 & 63],
				i + 1 < n ? digits[v >> 6 & 63] : '=',
				i + 2 < n ? digits[v & 63] : '='};
		fwrite(four, 1, sizeof(four), f);
	}
}

bool
html_column_write(struct html_column *c, FILE *f)
{
	uint8_t bytes[3 * 4096];
	size_t n;
	column_deflate(c, Z_FINISH);
	if (c->failed || fflush(c->file) != 0 || fseek(c->file, 0, SEEK_SET) != 0)
		return false;
	while ((n = fread(bytes, 1, sizeof(bytes), c->file)) > 0)
		base64(f, bytes, n);
	return ferror(c->file) == 0;
}

void
html_column_close(struct html_column *c)
{
	if (c->file == NULL)
		return;
	deflateEnd(&c->z);
	fclose(c->file);
	c->file = NULL;
}
