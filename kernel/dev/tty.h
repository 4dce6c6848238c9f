/*
 * tty.h - /dev/console: the console line with a line discipline and a foreground process group.
 *
 * There is one terminal. Only the foreground process group may read from it. A read from the
 * background stops the reader's group with SIGTTIN; where that is impossible, it is EIO. Writes
 * from the background are allowed unless TOSTOP is set. Settings and the foreground group may be
 * changed by the foreground group, by user 0, and by the user who chose the present foreground
 * group; others get EPERM. The first process that opens the terminal makes its group the
 * foreground. It has 24 rows of 80 columns until somebody says otherwise, which is SIGWINCH for the
 * foreground.
 */
#pragma once

/* Makes /dev/console. Thread context, after vfs_init(). */
void tty_init(void);
/* Handles a received character. Any context but NMI. */
void tty_input(char c);
