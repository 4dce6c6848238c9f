/* ttys.c - terminals: lines and ends of file, what wakes who waits for them, and who may change
 * them. The same on Linux. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define LONG_MS 5000 /* for what comes soon */
#define FULL    4095 /* then the next key does not fit */

static char found[70000];
static char much[FULL];

/* Sets the settings of a terminal without echo; 0: canonical, else raw with these. */
static bool
set(int slave, bool raw, cc_t min, cc_t tenths)
{
	struct termios t;

	if (tcgetattr(slave, &t) != 0)
		return false;
	t.c_lflag &= ~(tcflag_t)(ECHO | ICANON | ISIG);
	t.c_lflag |= raw ? 0 : ICANON;
	t.c_cc[VEOF] = 4;
	t.c_cc[VMIN] = raw ? min : t.c_cc[VMIN];
	t.c_cc[VTIME] = raw ? tenths : t.c_cc[VTIME];
	return tcsetattr(slave, TCSANOW, &t) == 0;
}

static bool
type(int master, const char *text)
{
	return write(master, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Does a read of n bytes give this text? */
static bool
gives(int slave, size_t n, const char *text)
{
	struct pollfd p = {.fd = slave, .events = POLLIN};

	return poll(&p, 1, LONG_MS) == 1 && read(slave, found, n) == (ssize_t)strlen(text) &&
	       memcmp(found, text, strlen(text)) == 0;
}

/* Has the terminal so many bytes to read? Linux takes its time. */
static bool
has(int slave, int n)
{
	int now = -1;

	for (int i = 0; i < LONG_MS && ioctl(slave, FIONREAD, &now) == 0 && now != n; i++)
		poll(NULL, 0, 1);
	return now == n;
}

static short
events(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) >= 0 ? p.revents : -1;
}

static bool
closed(int master, int slave, bool good)
{
	return (close(master) == 0) & (close(slave) == 0) & good;
}

/* With O_PATH the slave is a place, which nobody has opened. */
static bool
is_a_place(void)
{
	int master, slave, peer;
	bool good =
	    ptys_pair(&master, &slave) && close(slave) == 0 && (events(master, 0) & POLLHUP);

	peer = ioctl(master, TIOCGPTPEER, O_PATH | O_RDWR | O_NOCTTY);
	good = good && peer >= 0 && (fcntl(peer, F_GETFL) & O_PATH) &&
	       FAILS(read(peer, found, 1), EBADF) && (events(master, 0) & POLLHUP);
	return closed(master, peer, good && (events(master, 0) & POLLHUP));
}

static bool
lines(void)
{
	int master, slave;
	bool good = ptys_pair(&master, &slave) && set(slave, false, 0, 0);

	memset(much, 'x', 300);
	much[299] = '\n';
	good = good && type(master, much) && gives(slave, 4096, much);
	/* The end of a file after so many bytes. */
	memset(much, 'x', 256);
	strcpy(much + 256, "\004");
	good = good && type(master, much) && events(slave, LONG_MS) == POLLIN &&
	       read(slave, found, 4096) == 256 && type(master, "one\n") && gives(slave, 9, "one\n");
	/* It is taken with the last byte for which there is room. */
	good = good && type(master, "abc\004") && gives(slave, 1, "a") && gives(slave, 1, "b") &&
	       gives(slave, 1, "c") && type(master, "two\n") && gives(slave, 9, "two\n");
	good = good && type(master, "abc\004") && gives(slave, 2, "ab") && gives(slave, 2, "c") &&
	       type(master, "three\n") && gives(slave, 9, "three\n");
	good = good && type(master, "a\n\004") && gives(slave, 2, "a\n") && gives(slave, 9, "");
	return closed(master, slave, good);
}

/* A key is what it was when it was typed; what is not read when the mode changes is one line. */
static bool
changes(void)
{
	struct termios t;
	int master, slave;
	bool good = ptys_pair(&master, &slave) && set(slave, false, 0, 0);

	good = good && type(master, "ab\004") && has(slave, 2) && tcgetattr(slave, &t) == 0;
	t.c_cc[VEOF] = 5;
	good = good && tcsetattr(slave, TCSANOW, &t) == 0 && gives(slave, 9, "ab") &&
	       type(master, "a\004\005") && gives(slave, 9, "a\004");
	good = good && set(slave, true, 1, 0) && type(master, "raw") && has(slave, 3) &&
	       set(slave, false, 0, 0) && type(master, "line\n") && has(slave, 8) &&
	       gives(slave, 9, "raw") && gives(slave, 9, "line\n");
	good = good && type(master, "a\nb\nc") && has(slave, 4) && set(slave, true, 1, 0) &&
	       set(slave, false, 0, 0) && gives(slave, 9, "a\nb\nc");
	/* Raw, as much as there is. */
	memset(much, 'x', 600);
	much[600] = '\0';
	good = good && set(slave, true, 1, 0) && type(master, much) && has(slave, 600) &&
	       gives(slave, 4096, much);
	return closed(master, slave, good);
}

/* Fills the terminal with that key. */
static bool
fill(int master, char key)
{
	memset(much, key, FULL);
	for (unsigned i = 1; key == 'x' && i <= FULL / 15; i++)
		much[i * 15 - 1] = '\n';
	return write(master, much, FULL) == FULL;
}

/* Ends of files are read, and give room to who waits for it. */
static bool
ends_make_room(void)
{
	int master, slave, end[2];
	bool good = ptys_pair(&master, &slave) && set(slave, false, 0, 0) && pipe(end) == 0 &&
		    fill(master, 4);
	pid_t pid = fork();

	if (pid == 0)
		_exit(write(master, "\n", 1) != 1);
	close(end[1]);
	await_sleep(pid, 0);
	while (good && events(end[0], 0) == 0)
		good = events(slave, LONG_MS) == POLLIN && read(slave, found, 9) >= 0;
	if (!good)
		kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(end[0]);
	return closed(master, slave, good);
}

/* VTIME counts from a byte, as long as it is there. */
static bool
time_ends(void)
{
	int master, slave, end[2], status = 0;
	bool good = ptys_pair(&master, &slave) && set(slave, true, 2, 1) && pipe(end) == 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit((int)read(slave, found, 2));
	close(end[1]);
	good = good && type(master, "x") && await_sleep(pid, 0) && tcflush(slave, TCIFLUSH) == 0;
	if (events(end[0], 250) == 0)
		good = good && type(master, "yz");
	waitpid(pid, &status, 0);
	close(end[0]);
	return closed(master, slave, good && WIFEXITED(status) && WEXITSTATUS(status) > 0);
}

static bool
poll_counts(void)
{
	int master, slave;
	bool good = ptys_pair(&master, &slave) && set(slave, true, 8, 0) && type(master, "x") &&
		    has(slave, 1) && events(slave, 0) == 0 && set(slave, true, 8, 1) &&
		    events(slave, 0) == POLLIN && set(slave, true, 0, 0) &&
		    events(slave, 0) == POLLIN && set(slave, true, 8, 0) && events(slave, 0) == 0 &&
		    type(master, "1234567") && events(slave, LONG_MS) == POLLIN;

	return closed(master, slave, good);
}

/* With EPOLLET a set tells only of files that say that something has changed. */
static bool
settings_are_told(void)
{
	struct epoll_event e;
	int master, slave, set_fd = epoll_create1(0);
	bool good = ptys_pair(&master, &slave) && set(slave, false, 0, 0) &&
		    watch(set_fd, EPOLL_CTL_ADD, slave, EPOLLIN | EPOLLET, 0) == 0 &&
		    type(master, "line\nabc") && epoll_wait(set_fd, &e, 1, LONG_MS) == 1 &&
		    gives(slave, 9, "line\n") && epoll_wait(set_fd, &e, 1, 0) == 0 &&
		    set(slave, true, 1, 0) && epoll_wait(set_fd, &e, 1, LONG_MS) == 1 &&
		    e.events == EPOLLIN;

	return close(set_fd) == 0 && closed(master, slave, good);
}

/* Who finds nothing to read makes no room. */
static bool
nothing_makes_no_room(void)
{
	struct epoll_event e;
	char c;
	int master, slave, set_fd = epoll_create1(0);
	bool good = ptys_pair(&master, &slave) && fcntl(master, F_SETFL, O_NONBLOCK) == 0 &&
		    watch(set_fd, EPOLL_CTL_ADD, slave, EPOLLOUT | EPOLLET, 0) == 0 &&
		    epoll_wait(set_fd, &e, 1, LONG_MS) == 1 && FAILS(read(master, &c, 1), EAGAIN) &&
		    epoll_wait(set_fd, &e, 1, 0) == 0;

	return close(set_fd) == 0 && closed(master, slave, good);
}

/* Nothing is lost, though several writers find the last room at the same time. */
static bool
many_write(void)
{
	enum { WRITERS = 4, LINE = 15, EACH = 60 * LINE };
	int master, slave;
	bool good = ptys_pair(&master, &slave) && set(slave, false, 0, 0) && fill(master, 'x');
	long total = FULL + WRITERS * EACH;
	pid_t pid[WRITERS];

	for (unsigned i = 0; i < WRITERS; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			_exit(write(master, much, EACH) != EACH);
	}
	for (unsigned i = 0; i < WRITERS; i++)
		await_sleep(pid[i], 0);
	while (good && total > 0) {
		ssize_t n = events(slave, LONG_MS) == POLLIN ? read(slave, found, LINE) : 0;

		good = n > 0;
		total -= n;
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		int status = 0;

		if (!good)
			kill(pid[i], SIGKILL);
		waitpid(pid[i], &status, 0);
		good = good && status == 0;
	}
	return closed(master, slave, good && total == 0);
}

/* In a session whose terminal the slave is. The last one: another group is in the foreground, and
 * nobody would continue this one. */
static int
changes_groups(void *arg)
{
	int master = *(int *)arg, slave = setsid() > 0 ? open(ptsname(master), O_RDWR) : -1;
	struct termios t;
	pid_t pid;
	bool good = slave >= 0 && tcgetsid(master) == getpid() &&
		    FAILS(tcsetpgrp(slave, 0), ESRCH) && FAILS(tcsetpgrp(slave, -1), EINVAL) &&
		    FAILS(ioctl(slave, TIOCSPGRP, NOWHERE), EFAULT) && tcgetattr(slave, &t) == 0;

	pid = fork();
	if (pid == 0)
		return pause();
	good = good && setpgid(pid, pid) == 0 && tcsetpgrp(slave, pid) == 0 &&
	       FAILS(tcsetpgrp(slave, getpid()), ENOTTY) &&
	       FAILS(tcsetattr(slave, TCSANOW, &t), EIO) && tcgetpgrp(master) == pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return good ? 0 : 1;
}

/* The group of the current process is in the foreground. */
static int
comes_forward(void *slave)
{
	return setpgid(0, 0) == 0 && tcsetpgrp(*(int *)slave, getpgrp()) == 0 ? 0 : 1;
}

static int
user_comes_forward(void *slave)
{
	return setuid(1000) == 0 ? comes_forward(slave) : 2;
}

/* Root's shell starts another user's, which chooses a group itself. */
static int
user_has_a_shell(void *slave)
{
	return comes_forward(slave) == 0 && setuid(1000) == 0 ? in_child(comes_forward, slave) : 2;
}

/* The user's shell goes on while a job that it has started as root has stopped. */
static int
user_goes_on(void *slave)
{
	int end[2];
	char c;
	pid_t pid = pipe(end) == 0 ? fork() : -1;
	bool good;

	if (pid == 0) {
		close(end[1]);
		return (int)read(end[0], &c, 1);
	}
	good = setpgid(pid, pid) == 0 && tcsetpgrp(*(int *)slave, pid) == 0 &&
	       user_comes_forward(slave) == 0;
	close(end[1]);
	return good && waitpid(pid, NULL, 0) == pid ? 0 : 1;
}

/* In a session whose terminal the slave is. The last one: a group of root's has ended. */
static int
users_share(void *arg)
{
	int slave = setsid() > 0 ? open(ptsname(*(int *)arg), O_RDWR) : -1;

	signal(SIGTTOU, SIG_IGN);
	return slave >= 0 && in_child(user_has_a_shell, &slave) == 0 &&
		       in_child(user_goes_on, &slave) == 0 &&
		       in_child(comes_forward, &slave) == 0 &&
		       in_child(user_comes_forward, &slave) == 0
		   ? 0
		   : 1;
}

static bool
users(void)
{
	int master, slave;
	bool good = ptys_pair(&master, &slave) && in_child(users_share, &master) == 0;

	return closed(master, slave, good);
}

static bool
groups(void)
{
	int master, slave;
	bool good = ptys_pair(&master, &slave) && FAILS(tcgetsid(master), ENOTTY) &&
		    tcgetpgrp(master) == 0 && FAILS(ioctl(slave, TIOCSPGRP, NOWHERE), EFAULT) &&
		    in_child(changes_groups, &master) == 0;

	return closed(master, slave, good);
}

void
test_ttys(void)
{
	result(is_a_place(), "ttys: with O_PATH a slave is a place, which nobody has opened");
	result(lines(), "ttys: a read gives the whole line, and no end of file twice");
	result(changes(), "ttys: what was typed stays what it was when settings change");
	result(ends_make_room(), "ttys: an end of file that is read makes room for the master");
	result(time_ends(), "ttys: VTIME counts from no byte that was flushed");
	result(poll_counts(), "ttys: poll counts the bytes for which VMIN waits");
	result(settings_are_told(), "ttys: settings that make a line readable wake poll");
	result(nothing_makes_no_room(),
	       "ttys: a read that finds nothing makes no room for EPOLLET");
	result(many_write(), "ttys: writers to a master lose nothing");
	if (getuid() == 0)
		result(users(), "ttys: the shells of several users hand a terminal to each other");
	result(groups(), "ttys: a group is chosen by whose session the terminal is");
}
