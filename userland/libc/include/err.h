/* err.h - messages `program: what: reason` on stderr; the plain forms add errno's text. */
#pragma once

#include <stdarg.h>

/* Last part of argv[0]. */
const char *getprogname(void);

void warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void warnx(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void err(int status, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));
void errx(int status, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));
void vwarnx(const char *fmt, va_list ap);
