/*
 * console.h - the first serial line as the machine's console: for the kernel's messages, the
 * debugger and /dev/console.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Finds the console line. Output without one, or before this call, is dropped. Boot. */
void console_early_init(void);
/*
 * Makes /dev/console, pseudo-terminals and /dev/ttyS1. After this, input goes to /dev/console, and
 * a BREAK or the keys CR ~ ^B enter the debugger. Thread context, after vfs_init().
 */
void console_init(void);

/*
 * Writes text, with \r before each newline. A line is not mixed with those of other CPUs. False:
 * this CPU was interrupted in the middle of console output; nothing was written. Any context.
 */
bool console_write(const char *text, size_t len);

/* Writes one character without a lock, and \r before a newline. For the debugger, while all else
 * is stopped. */
void console_putc(char c);
/* A received character, or -1. */
int console_getc_polled(void);
/* The terminal's size as stty set it, or 24 x 80 where that is 0. Any context. */
void console_size(unsigned *rows, unsigned *columns);

#define CONSOLE_UNREAD 64
/*
 * The debugger has read these keys, and not used them: /dev/console gets them, at the next clock
 * tick or before the next key. It keeps CONSOLE_UNREAD at most. While all else is stopped.
 */
void console_unread(const uint8_t *keys, unsigned n);
