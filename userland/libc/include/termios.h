/* termios.h - terminal modes. Return 0, or -1 with errno (ENOTTY when fd is no terminal). */
#pragma once

#include <sys/types.h>

#include "kernel/abi/ioctl.h"

#define TCSANOW   0 /* at once */
#define TCSADRAIN 1 /* after the output written so far */
#define TCSAFLUSH 2 /* likewise, and forget input not yet read */

int tcgetattr(int fd, struct termios *t);
int tcsetattr(int fd, int when, const struct termios *t);
/* Makes a process group the terminal's foreground group: the one that ^C reaches. */
int tcsetpgrp(int fd, pid_t pgrp);
pid_t tcgetpgrp(int fd);
