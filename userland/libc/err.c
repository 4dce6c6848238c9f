/* err.c - messages `program: what: reason` on stderr. */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
message(const char *reason, const char *fmt, va_list ap)
{
	char text[1024];

	vsnprintf(text, sizeof(text), fmt, ap);
	fflush(stdout); /* keeps the order of what a reader of both sees */
	fprintf(stderr, "%s: %s%s%s\n", getprogname(), text, reason != NULL ? ": " : "",
		reason != NULL ? reason : "");
}

void
vwarnx(const char *fmt, va_list ap)
{
	message(NULL, fmt, ap);
}

void
warn(const char *fmt, ...)
{
	const char *reason = strerror(errno);
	va_list ap;

	va_start(ap, fmt);
	message(reason, fmt, ap);
	va_end(ap);
}

void
warnx(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	message(NULL, fmt, ap);
	va_end(ap);
}

void
err(int status, const char *fmt, ...)
{
	const char *reason = strerror(errno);
	va_list ap;

	va_start(ap, fmt);
	message(reason, fmt, ap);
	va_end(ap);
	exit(status);
}

void
errx(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	message(NULL, fmt, ap);
	va_end(ap);
	exit(status);
}
