/*
 * printf.h - kernel output. Formats as in C without floating point; the engine is ktr/fmt.c.
 *
 * printk() and warnk() write to the message buffer (dmesg) and to the console. Any context, also
 * NMI and panic: they never sleep; when the console lock is taken by the same CPU the text goes to
 * the message buffer only.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* Information. Kept off the console, but not out of dmesg, when kern.quiet=1. */
void printk(const char *fmt, ...) PRINTF_LIKE(1, 2);
void vprintk(const char *fmt, va_list ap);
/* Something is wrong: always on the console. */
void warnk(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* C99 meaning: returns the length that the whole text has. */
int snprintf(char *buf, size_t size, const char *fmt, ...) PRINTF_LIKE(3, 4);
int vsnprintf(char *buf, size_t size, const char *fmt, va_list ap);

/*
 * Where printk() and warnk() write besides the message buffer: all n bytes, from any context; false
 * when the CPU was interrupted inside console output. Boot, once.
 */
void printk_set_console(bool (*write)(const char *text, size_t n));
