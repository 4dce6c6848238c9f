/* printf.c - formatted output, by the project's one printf engine (ktr/fmt.c). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ktr/fmt.h"
#include "userland/libc/stream.h"

struct sink {
	FILE *f;
	bool newline; /* one went by */
};

static void
sink_put(void *arg, const char *text, size_t n)
{
	struct sink *s = arg;

	s->newline |= memchr(text, '\n', n) != NULL;
	fwrite(text, 1, n, s->f);
}

int
vfprintf(FILE *f, const char *fmt, va_list ap)
{
	struct sink s = {.f = f};
	int mode;
	size_t n;

	/* The engine puts small pieces: hold them back, write once. */
	if (f->mode < 0)
		f->mode = isatty(f->fd) ? _IOLBF : _IOFBF;
	mode = f->mode;
	f->mode = _IOFBF;
	n = fmt_vprint(sink_put, &s, fmt, ap);
	f->mode = mode;
	if (mode == _IONBF || (mode == _IOLBF && s.newline))
		fflush(f);
	return f->error ? -1 : (int)n;
}

int
fprintf(FILE *f, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vfprintf(f, fmt, ap);
	va_end(ap);
	return n;
}

int
vprintf(const char *fmt, va_list ap)
{
	return vfprintf(stdout, fmt, ap);
}

int
printf(const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vfprintf(stdout, fmt, ap);
	va_end(ap);
	return n;
}

int
vsnprintf(char *buf, size_t size, const char *fmt, va_list ap)
{
	return fmt_vsnprintf(buf, size, fmt, ap);
}

int
snprintf(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, size, fmt, ap);
	va_end(ap);
	return n;
}

int
sprintf(char *buf, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, INT_MAX, fmt, ap);
	va_end(ap);
	return n;
}

int
vasprintf(char **out, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	*out = malloc((size_t)n + 1);
	if (*out == NULL)
		return -1;
	return vsnprintf(*out, (size_t)n + 1, fmt, ap);
}

int
asprintf(char **out, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(out, fmt, ap);
	va_end(ap);
	return n;
}

int
dprintf(int fd, const char *fmt, ...)
{
	/* A file of its own on the stack gathers the pieces; it is never in the list of open files.
	 */
	char buf[BUFSIZ];
	FILE f = {.fd = fd, .mode = _IOFBF, .can_write = true, .pushed = EOF, .buf = buf};
	struct sink s = {.f = &f};
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	n = fmt_vprint(sink_put, &s, fmt, ap);
	va_end(ap);
	return fflush(&f) != 0 || f.error ? -1 : (int)n;
}
