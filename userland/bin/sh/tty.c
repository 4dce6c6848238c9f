/*
 * tty.c - the terminal's modes, and bytes from it.
 *
 * While the shell itself runs commands (a loop of builtins) the terminal is raw and ^C a byte that
 * the shell looks for, since Kestrel's programs cannot catch signals. Other bytes found on the way
 * are kept.
 */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "userland/bin/sh/sh.h"

#define CTRL_C 3

static int fd = -1; /* a copy of descriptor 0 that commands do not get */
static struct termios cooked;
static enum tty_mode mode = TTY_COOKED;
static char ahead[256]; /* typed while commands ran: [first, end) */
static unsigned int ahead_first, ahead_end;

bool
tty_init(void)
{
	if (tcgetattr(0, &cooked) < 0)
		return false;
	fd = fcntl(0, F_DUPFD, 10);
	if (fd < 0)
		return false;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	/* Whoever had the terminal before may have left it raw. */
	cooked.c_lflag |= ICANON | ECHO | ECHOE | ISIG;
	cooked.c_iflag |= ICRNL;
	cooked.c_oflag |= OPOST | ONLCR;
	tcsetattr(fd, TCSANOW, &cooked);
	return true;
}

void
tty_foreground(pid_t pgid)
{
	tcsetpgrp(fd, pgid);
}

void
tty_set(enum tty_mode wanted)
{
	struct termios t = cooked;

	if (fd < 0 || !sh.job_control || wanted == mode)
		return;
	if (wanted != TTY_COOKED) {
		t.c_lflag &= ~(uint32_t)(ICANON | ECHO | ISIG);
		t.c_cc[VMIN] = wanted == TTY_EDIT;
		t.c_cc[VTIME] = 0;
	}
	mode = wanted;
	tcsetattr(fd, TCSANOW, &t);
}

unsigned int
tty_columns(void)
{
	struct winsize ws = {0};

	return ioctl(fd, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0 ? ws.ws_col : 80;
}

int
tty_read_byte(void)
{
	unsigned char c;
	ssize_t n;

	if (ahead_first < ahead_end)
		return (unsigned char)ahead[ahead_first++];
	n = input_read(fd, &c, 1);
	return n == 1 ? c : n == 0 ? TTY_END : TTY_FAILED;
}

bool
tty_interrupted(void)
{
	char c;

	if (fd < 0 || mode != TTY_RAW)
		return false;
	while (read(fd, &c, 1) == 1) {
		if (c == CTRL_C) {
			ahead_first = ahead_end = 0;
			return true;
		}
		if (ahead_first == ahead_end)
			ahead_first = ahead_end = 0;
		if (ahead_end < sizeof(ahead))
			ahead[ahead_end++] = c;
	}
	return false;
}
