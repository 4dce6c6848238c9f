/* ioctl.h - the requests of ttys and disks that Kestrel answers, Linux's numbers and layouts. */
#pragma once

#include <stdint.h>

#define TCGETS      0x5401
#define TCSETS      0x5402
#define TCSETSW     0x5403
#define TCSETSF     0x5404
#define TCGETA      0x5405 /* and the next three: with struct termio */
#define TCSETA      0x5406
#define TCSETAW     0x5407
#define TCSETAF     0x5408
#define TCSBRK      0x5409
#define TCFLSH      0x540b
#define TIOCSCTTY   0x540e
#define TIOCGPGRP   0x540f
#define TIOCSPGRP   0x5410
#define TIOCOUTQ    0x5411
#define TIOCGWINSZ  0x5413
#define TIOCSWINSZ  0x5414
#define FIONREAD    0x541b
#define FIONBIO     0x5421
#define TIOCNOTTY   0x5422
#define TIOCGSID    0x5429
#define FIONCLEX    0x5450
#define FIOCLEX     0x5451
#define FIOASYNC    0x5452
#define TIOCPKT     0x5420 /* of a pseudo-terminal's master */
#define FIOSETOWN   0x8901
#define SIOCSPGRP   0x8902
#define FIOGETOWN   0x8903
#define SIOCGPGRP   0x8904
#define SIOCATMARK  0x8905
#define TIOCGPTPEER 0x5441
#define TIOCGPKT    0x80045438u

/* What a master in packet mode reads first: 0 and data, or some of these. */
#define TIOCPKT_FLUSHREAD  1
#define TIOCPKT_FLUSHWRITE 2

#define TIOCGPTN   0x80045430
#define TIOCSPTLCK 0x40045431
#define TIOCGPTLCK 0x80045439

#define BLKROGET     0x125e
#define BLKGETSIZE   0x1260
#define BLKFLSBUF    0x1261
#define BLKSSZGET    0x1268
#define BLKBSZGET    0x80081270
#define BLKPBSZGET   0x127b
#define BLKGETSIZE64 0x80081272

/* of TCFLSH */
#define TCIFLUSH  0
#define TCOFLUSH  1
#define TCIOFLUSH 2

/* c_iflag */
#define INLCR 0000100
#define IGNCR 0000200
#define ICRNL 0000400
/* c_oflag */
#define OPOST 0000001
#define ONLCR 0000004
/* c_lflag */
#define ISIG    0000001
#define ICANON  0000002
#define ECHO    0000010
#define ECHOE   0000020
#define ECHOK   0000040
#define NOFLSH  0000200
#define TOSTOP  0000400 /* a write from the background is SIGTTOU */
#define ECHOCTL 0001000
#define ECHOKE  0004000
#define IEXTEN  0100000

/* c_cc */
#define VINTR   0
#define VQUIT   1
#define VERASE  2
#define VKILL   3
#define VEOF    4
#define VTIME   5
#define VMIN    6
#define VSUSP   10
#define VEOL    11
#define VWERASE 14
#define VLNEXT  15
#define NCCS    19

struct termios { /* the kernel's own layout (struct ktermios without speeds) */
	uint32_t c_iflag;
	uint32_t c_oflag;
	uint32_t c_cflag;
	uint32_t c_lflag;
	uint8_t c_line;
	uint8_t c_cc[NCCS];
};

#define RNDGETENTCNT 0x80045200u

struct termio { /* System V's: the low halves of the flags, and the first characters */
	uint16_t c_iflag, c_oflag, c_cflag, c_lflag;
	uint8_t c_line, c_cc[8];
};

struct winsize {
	uint16_t ws_row;
	uint16_t ws_col;
	uint16_t ws_xpixel;
	uint16_t ws_ypixel;
};
