/*
 * deeds.c - single deeds of a program that means ill; tests/system/test_hold.py looks at what the
 * machine makes of them.
 */
#include "tests/user/deeds.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* O_NONBLOCK on the open file that the shell shares with us. */
static int
do_nonblock(void)
{
	return fcntl(0, F_SETFL, O_NONBLOCK) < 0;
}

static int
result(int r)
{
	return r < 0 ? -errno : r;
}

/* Takes the console away from whoever has it, and reads what is typed there. */
static int
do_steal(void)
{
	struct termios t;
	char buf[64];
	int group, set, got;

	signal(SIGTTIN, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	group = result(tcsetpgrp(0, getpgrp()));
	tcgetattr(0, &t);
	set = result(tcsetattr(0, TCSANOW, &t));
	got = result((int)read(0, buf, sizeof(buf)));
	printf("steal: foreground %d settings %d read %d\n", group, set, got);
	return 0;
}

/* Reads the console with signals as they are. */
static int
do_read(void)
{
	char buf[64];
	ssize_t n = read(0, buf, sizeof(buf));

	printf("read: %.*s\n", n > 0 ? (int)n - 1 : 0, buf);
	return n < 0;
}

/* Joins the process group of its parent's parent: that of root's shell. */
static int
do_join(int argc, char **argv)
{
	long pgid = 0;

	for (const char *p = argc > 2 ? argv[2] : ""; *p != '\0'; p++)
		pgid = pgid * 10 + (*p - '0');
	printf("join: %d\n", result(setpgid(0, (pid_t)pgid)));
	return 0;
}

int
deed_main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "nonblock") == 0)
		return do_nonblock();
	if (strcmp(what, "steal") == 0)
		return do_steal();
	if (strcmp(what, "read") == 0)
		return do_read();
	if (strcmp(what, "join") == 0)
		return do_join(argc, argv);
	fprintf(stderr, "usage: user_test do nonblock|steal|read|join PGID\n");
	return 2;
}
