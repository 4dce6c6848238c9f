/*
 * printf.h - kernel output. Formats as in C, without floating point (ktr/fmt.h).
 *
 * printk() and pr_warn() write to the message buffer (dmesg) and to the console. They never sleep.
 * Any context, also NMI and panic. If a CPU is interrupted in the middle of console output, what
 * the interrupt prints goes to the message buffer only.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/fmt.h"

#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* Prints information. With kern.quiet=1 it goes to dmesg only. */
void printk(const char *fmt, ...) PRINTF_LIKE(1, 2);
void vprintk(const char *fmt, va_list ap);
/* Prints a warning, always to the console too. */
void pr_warn(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* As in C99. */
#define snprintf  fmt_snprintf
#define vsnprintf fmt_vsnprintf

/*
 * The message buffer: up to n bytes from *at on, which moves on; what is overwritten is skipped, to
 * the beginning of a line. Positions count all bytes since boot. Any context.
 */
size_t msgbuf_read(uint64_t *at, char *buf, size_t n);
/* Where the next message will be; and where the first line after a position begins. */
uint64_t msgbuf_end(void);
uint64_t msgbuf_line_after(uint64_t at);
/* Bytes that it holds. */
size_t msgbuf_size(void);
/* kern.quiet: only warnings go to the console. Returns what it was. */
bool printk_set_quiet(bool quiet);

/*
 * Sets the second destination of printk() and pr_warn(). write() prints n bytes, in any context.
 * It returns false when the CPU was interrupted in the middle of console output. Boot, once.
 */
void printk_set_console(bool (*write)(const char *text, size_t n));
/* Makes '?' of each byte that is no printable ASCII: it might break a line, or move the cursor.
 * Returns s. */
char *printk_hide_controls(char *s);
