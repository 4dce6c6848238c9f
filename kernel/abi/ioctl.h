/* ioctl.h - the tty requests that Kestrel answers, Linux's numbers and layouts. */
#pragma once

#include <stdint.h>

#define TCGETS     0x5401
#define TCSETS     0x5402
#define TCSETSW    0x5403
#define TCSETSF    0x5404
#define TIOCGPGRP  0x540f
#define TIOCSPGRP  0x5410
#define TIOCGWINSZ 0x5413
#define TIOCSWINSZ 0x5414

/* c_iflag */
#define ICRNL 0000400
/* c_oflag */
#define OPOST 0000001
#define ONLCR 0000004
/* c_lflag */
#define ISIG   0000001
#define ICANON 0000002
#define ECHO   0000010
#define ECHOE  0000020
#define TOSTOP 0000400 /* a write from the background is SIGTTOU */

/* c_cc */
#define VINTR  0
#define VQUIT  1
#define VERASE 2
#define VKILL  3
#define VEOF   4
#define VTIME  5
#define VMIN   6
#define VSUSP  10
#define NCCS   19

struct termios { /* the kernel's own layout (struct ktermios without speeds) */
	uint32_t c_iflag;
	uint32_t c_oflag;
	uint32_t c_cflag;
	uint32_t c_lflag;
	uint8_t c_line;
	uint8_t c_cc[NCCS];
};

struct winsize {
	uint16_t ws_row;
	uint16_t ws_col;
	uint16_t ws_xpixel;
	uint16_t ws_ypixel;
};
