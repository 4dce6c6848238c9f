/*
 * tty.h - /dev/console: the console line with a line discipline and a foreground process group.
 *
 * There is one terminal. Only the foreground process group reads from it: a read from the
 * background stops its group by SIGTTIN, or is EIO where that is no use. Writing from the
 * background is allowed unless TOSTOP is set. Settings and the foreground itself are changed by the
 * foreground, by user 0, or by the user who chose the present foreground; others hear EPERM. The
 * first process that opens the terminal makes its group the foreground.
 */
#pragma once

/* Makes /dev/console. Thread context, after vfs_init(). */
void tty_init(void);
/* A character was received. Any context but NMI. */
void tty_input(char c);
