/*
 * error.c - the compiler's memory and its errors.
 */
#include <err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userland/bin/dtrace/dt.h"

#define CHUNK_SIZE 16000u

struct chunk {
	struct chunk *before;
	size_t used, room;
	_Alignas(16) char data[];
};

static struct chunk *last;
const char *dt_region, *dt_context = "failed to compile";

static void
fail(const char *message)
{
	errx(1, "%s", message);
}

void (*dt_fail)(const char *message) = fail;

void *
dt_alloc(size_t size)
{
	void *p;

	size = (size + 15) & ~(size_t)15;
	if (last == NULL || size > last->room - last->used) {
		size_t room = size > CHUNK_SIZE ? size : CHUNK_SIZE;
		struct chunk *c = calloc(1, sizeof(*c) + room);

		if (c == NULL)
			err(1, "memory");
		c->before = last;
		c->room = room;
		last = c;
	}
	p = last->data + last->used;
	last->used += size;
	return p;
}

char *
dt_strndup(const char *text, size_t size)
{
	char *copy = dt_alloc(size + 1);

	memcpy(copy, text, size);
	return copy;
}

static char *
vformat(const char *format, va_list ap)
{
	va_list again;
	int size;
	char *text;

	va_copy(again, ap);
	size = vsnprintf(NULL, 0, format, again);
	va_end(again);
	text = dt_alloc((size_t)size + 1);
	vsnprintf(text, (size_t)size + 1, format, ap);
	return text;
}

char *
dt_format(const char *format, ...)
{
	va_list ap;
	char *text;

	va_start(ap, format);
	text = vformat(format, ap);
	va_end(ap);
	return text;
}

void *
buffer_add(struct buffer *b, const void *data, size_t size)
{
	void *at;

	if (b->room - b->size < size) {
		uint8_t *larger;

		b->room = 2 * b->room + size + 64;
		larger = dt_alloc(b->room);
		if (b->size > 0)
			memcpy(larger, b->data, b->size);
		b->data = larger;
	}
	at = b->data + b->size;
	if (data != NULL)
		memcpy(at, data, size);
	else
		memset(at, 0, size);
	b->size += size;
	return at;
}

void
dt_release(void)
{
	while (last != NULL) {
		struct chunk *before = last->before;

		free(last);
		last = before;
	}
}

void
dt_error(struct place at, const char *tag, const char *format, ...)
{
	va_list ap;
	const char *text, *where;

	va_start(ap, format);
	text = vformat(format, ap);
	va_end(ap);
	if (at.file != NULL)
		where = dt_format("%s, line %u: ", at.file, at.line);
	else if (dt_region != NULL)
		where = dt_format("in %s: ", dt_region);
	else
		where = "";
	dt_fail(dt_format("%s: [%s] %s%s", dt_context, tag, where, text));
	abort();
}
