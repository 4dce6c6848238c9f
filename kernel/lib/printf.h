/*
 * printf.h - kernel output. Formats as in C without floating point (ktr/fmt.h).
 *
 * printk() and warnk() write to the message buffer (dmesg) and to the console. They never sleep:
 * any context, also NMI and panic. A CPU that is interrupted inside the console's output, and
 * prints again, reaches the message buffer only.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "ktr/fmt.h"

#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* Information. Kept off the console, but not out of dmesg, when kern.quiet=1. */
void printk(const char *fmt, ...) PRINTF_LIKE(1, 2);
void vprintk(const char *fmt, va_list ap);
/* Something is wrong: always on the console. */
void warnk(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* As in C99. */
#define snprintf  fmt_snprintf
#define vsnprintf fmt_vsnprintf

/*
 * Where printk() and warnk() write besides the message buffer: all n bytes, from any context; false
 * when the CPU was interrupted inside console output. Boot, once.
 */
void printk_set_console(bool (*write)(const char *text, size_t n));
