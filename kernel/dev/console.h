/*
 * console.h - the first serial line as the machine's console: where the kernel's messages, the
 * debugger and /dev/console meet.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Finds the line; before it, and on a machine without one, output is thrown away. Boot. */
void console_early_init(void);
/*
 * Makes /dev/console and /dev/ttyS1; input feeds the former from now on, and a BREAK, or
 * the keys CR ~ ^B, enter the debugger. Thread context, after vfs_init().
 */
void console_init(void);

/*
 * Writes text, with \r before each \n, whole lines not mixed with those of other CPUs. False: this
 * CPU was interrupted inside console output, and nothing was written. Any context.
 */
bool console_write(const char *text, size_t len);
/* Writes bytes as they are: at most what the line takes without waiting. Returns how many. Any
 * context. */
size_t console_write_some(const char *buf, size_t len);
/* Writes bytes as they are, waiting a bounded time; for echo. Any context. */
void console_echo(const char *text, size_t len);

/* For the debugger, with all else stopped: no lock. \n becomes \r\n. */
void console_putc(char c);
/* A key, -1 when there is none. */
int console_getc_polled(void);
