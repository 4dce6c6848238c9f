/*
 * tty.h - /dev/console: the console line with a line discipline and a foreground process group.
 *
 * There is one terminal, and every process may use it: reading and writing from the background is
 * allowed (no SIGTTIN, no SIGTTOU). The first process that opens it makes its group the foreground.
 */
#pragma once

/* Makes /dev/console. Thread context, after vfs_init(). */
void tty_init(void);
/* A character was received. Any context but NMI. */
void tty_input(char c);
