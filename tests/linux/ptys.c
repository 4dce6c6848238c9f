/* ptys.c - pseudo-terminals, sessions and their terminals, process groups that nobody continues.
 * The same on Linux. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

static char found[70000];

bool
ptys_pair(int *master, int *slave)
{
	*master = posix_openpt(O_RDWR | O_NOCTTY);
	if (*master < 0 || unlockpt(*master) != 0)
		return false;
	*slave = open(ptsname(*master), O_RDWR | O_NOCTTY);
	return *slave >= 0;
}

static bool
put(int fd, const char *text)
{
	return write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Reads until there is as much as `text` has; is it that? */
static bool
get(int fd, const char *text)
{
	size_t n = 0, want = strlen(text);

	while (n < want) {
		ssize_t r = read(fd, found + n, want - n);

		if (r <= 0)
			return false;
		n += (size_t)r;
	}
	return memcmp(found, text, want) == 0;
}

static short
events(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT};

	return poll(&p, 1, 0) >= 0 ? p.revents : -1;
}

static bool
pair_opens(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave, peer, number, locked = 0, on = 1;
	char name[64], link[64];
	struct stat st;
	bool good = master >= 0 && ioctl(master, TIOCGPTN, &number) == 0 &&
		    ioctl(master, TIOCGPTLCK, &locked) == 0 && locked == 1;

	snprintf(name, sizeof(name), "/dev/pts/%d", number);
	good = good && strcmp(ptsname(master), name) == 0 &&
	       FAILS(open(name, O_RDWR | O_NOCTTY), EIO) && unlockpt(master) == 0;
	slave = open(name, O_RDWR | O_NOCTTY);
	peer = ioctl(master, TIOCGPTPEER, O_ACCMODE | O_NOCTTY); /* for no access, if at all */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", peer);
	good = good && (peer < 0 || readlink(link, found, sizeof(found)) > 0);
	close(peer);
	peer = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	good = good && slave >= 0 && peer >= 0 && isatty(master) && isatty(slave) &&
	       strcmp(ttyname(peer), name) == 0 && fstat(slave, &st) == 0 && S_ISCHR(st.st_mode) &&
	       major(st.st_rdev) == 136 && (int)minor(st.st_rdev) == number &&
	       st.st_uid == geteuid();
	/* Flags of descriptors and of open files. */
	good = good && ioctl(slave, FIOCLEX) == 0 && fcntl(slave, F_GETFD) == FD_CLOEXEC &&
	       ioctl(slave, FIONCLEX) == 0 && fcntl(slave, F_GETFD) == 0 &&
	       ioctl(slave, FIONBIO, &on) == 0 && FAILS(read(slave, found, 1), EAGAIN) &&
	       (fcntl(slave, F_GETFL) & (O_NONBLOCK | O_NOCTTY)) == O_NONBLOCK;
	close(master);
	good = good && FAILS(stat(name, &st), ENOENT);
	close(slave);
	close(peer);
	return good;
}

static bool
line_works(void)
{
	int master, slave, n;
	bool good = ptys_pair(&master, &slave);

	good = good && put(master, "on\177\177two wrong\027words\r") && get(slave, "two words\n") &&
	       put(slave, "out\n") &&
	       get(master, "on\b \b\b \btwo wrong\b \b\b \b\b \b\b \b\b \bwords\r\nout\r\n");
	/* The next key is text; half a line is not there yet. */
	good = good && put(master, "\026\003x") && get(master, "^\b^Cx") &&
	       ioctl(slave, FIONREAD, &n) == 0 && n == 0 && events(slave) == POLLOUT &&
	       put(master, "\n") && events(slave) == (POLLIN | POLLOUT) &&
	       ioctl(slave, FIONREAD, &n) == 0 && n == 3 && get(slave, "\003x\n") &&
	       get(master, "\r\n");
	/* What is flushed is gone. */
	good = good && put(master, "a\nb\n") && get(master, "a\r\nb\r\n") &&
	       tcflush(slave, TCIFLUSH) == 0 && tcdrain(slave) == 0 && events(slave) == POLLOUT;
	close(master);
	close(slave);
	return good;
}

/* Each read of a master in packet mode is a packet: 0 and data, or what has happened. */
static bool
packets_are_told(void)
{
	struct pollfd p = {.events = POLLIN | POLLPRI};
	int master, slave, on = 1, is = 0;
	char c[8] = "";
	bool good = ptys_pair(&master, &slave) && ioctl(master, TIOCPKT, &on) == 0 &&
		    ioctl(master, TIOCGPKT, &is) == 0 && is != 0 && put(slave, "abc") &&
		    read(master, c, sizeof(c)) == 4 && memcmp(c, "\0abc", 4) == 0;

	p.fd = master;
	good = good && poll(&p, 1, 0) == 0 && tcflush(slave, TCIFLUSH) == 0 &&
	       poll(&p, 1, 0) == 1 && p.revents == (POLLIN | POLLPRI) &&
	       read(master, c, sizeof(c)) == 1 && c[0] == TIOCPKT_FLUSHREAD && poll(&p, 1, 0) == 0;
	/* What has happened comes before data. */
	good = good && put(slave, "xy") && tcflush(slave, TCIFLUSH) == 0 &&
	       read(master, c, sizeof(c)) == 1 && c[0] == TIOCPKT_FLUSHREAD &&
	       read(master, c, 2) == 2 && c[0] == 0 && c[1] == 'x' && read(master, c, 8) == 2 &&
	       c[0] == 0 && c[1] == 'y';
	on = 0;
	good = good && ioctl(master, TIOCPKT, &on) == 0 && put(slave, "z") && get(master, "z") &&
	       FAILS(ioctl(slave, TIOCPKT, &on), ENOTTY);
	close(master);
	close(slave);
	return good;
}

/* Reads packets until all of these have been told. */
static bool
are_told(int master, int what)
{
	char c;

	while (what != 0 && read(master, &c, 1) == 1 && (c & what) != 0)
		what &= ~c;
	return what == 0;
}

static bool
flushes_are_told(void)
{
	const int both = TIOCPKT_FLUSHREAD | TIOCPKT_FLUSHWRITE;
	struct pollfd p = {.events = POLLIN | POLLPRI};
	int master, slave, on = 1, status = -1;
	struct termios t;
	size_t got = 0;
	ssize_t n;
	bool good = ptys_pair(&master, &slave) && ioctl(master, TIOCPKT, &on) == 0 &&
		    tcgetattr(slave, &t) == 0;
	pid_t pid;

	/* All settings, and each key that is a signal, though it has no echo. */
	t.c_lflag &= ~(tcflag_t)ECHO;
	good = good && tcsetattr(slave, TCSAFLUSH, &t) == 0 && are_told(master, TIOCPKT_FLUSHREAD);
	pid = good ? fork() : -1;
	if (pid == 0) {
		alarm(60);
		_exit(are_told(master, both) ? 0 : 1);
	}
	good = good && pid > 0 && await_sleep(pid, 0) && put(master, "\003");
	if (pid > 0)
		waitpid(pid, &status, 0);
	p.fd = master;
	good = good && status == 0 && poll(&p, 1, 0) == 0 && tcflush(slave, TCIOFLUSH) == 0 &&
	       are_told(master, both);
	/* The master knows what it has done itself. */
	good = good && tcflush(master, TCIOFLUSH) == 0 && poll(&p, 1, 0) == 0 &&
	       ioctl(master, FIONBIO, &on) == 0 && FAILS(read(master, found, 100), EAGAIN);
	/* Each piece of what is written is a packet. */
	memset(found, 'x', sizeof(found));
	good = good && write(slave, found, 1000) == 1000;
	while (good && got < 1000 && (n = read(master, found, 2000)) > 1) {
		good = found[0] == 0 && memchr(found + 1, 0, (size_t)n - 1) == NULL;
		got += (size_t)n - 1;
	}
	good = good && got == 1000;
	close(master);
	close(slave);
	return good;
}

static void
do_nothing(int sig)
{
	(void)sig;
}

/* A signal ends the wait of who reads. What is written before he runs is a packet all the same. */
static int
packet_comes_with_signal(void *arg)
{
	const struct sched_param first = {.sched_priority = 1};
	int master, slave, on = 1, status = -1;
	char c[8] = "";
	cpu_set_t one;
	pid_t pid;
	bool good;

	(void)arg;
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = do_nothing}, NULL);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	good = sched_setaffinity(0, sizeof(one), &one) == 0 && ptys_pair(&master, &slave) &&
	       ioctl(master, TIOCPKT, &on) == 0;
	pid = good ? fork() : -1;
	if (pid == 0) {
		alarm(60);
		_exit(read(master, c, sizeof(c)) == 2 && memcmp(c, "\0x", 2) == 0 ? 0 : 1);
	}
	good = good && pid > 0 && await_sleep(pid, 0) &&
	       sched_setscheduler(0, SCHED_FIFO, &first) == 0 && kill(pid, SIGUSR1) == 0 &&
	       put(slave, "x");
	if (pid > 0)
		waitpid(pid, &status, 0);
	return good && status == 0 ? 0 : 1;
}

static bool
raw_works(void)
{
	struct termios t;
	int master, slave;
	bool good = ptys_pair(&master, &slave) && tcgetattr(master, &t) == 0;

	cfmakeraw(&t);
	good = good && tcsetattr(slave, TCSANOW, &t) == 0 && put(master, "\003\r\n\004\027") &&
	       get(slave, "\003\r\n\004\027") && events(master) == POLLOUT && put(slave, "a\nb") &&
	       get(master, "a\nb");
	t.c_iflag = IGNCR | INLCR;
	good = good && tcsetattr(slave, TCSANOW, &t) == 0 && put(master, "a\rb\n") &&
	       get(slave, "ab\r");
	close(master);
	close(slave);
	return good;
}

/* VMIN 0 with VTIME: a read waits for the first byte, for so many tenths of a second. */
static bool
reads_are_timed(void)
{
	struct termios t;
	char byte;
	int master, slave;
	long from;
	bool good = ptys_pair(&master, &slave) && tcgetattr(slave, &t) == 0;
	pid_t child;

	cfmakeraw(&t);
	t.c_cc[VMIN] = 0;
	t.c_cc[VTIME] = 1;
	from = now_ns(CLOCK_MONOTONIC);
	good = good && tcsetattr(slave, TCSANOW, &t) == 0 && read(slave, &byte, 1) == 0 &&
	       now_ns(CLOCK_MONOTONIC) - from >= 100 * MS;
	t.c_cc[VTIME] = 255;
	good = good && tcsetattr(slave, TCSANOW, &t) == 0;
	child = fork();
	if (child == 0)
		_exit(write(master, "x", 1) != 1);
	good = good && read(slave, &byte, 1) == 1 && byte == 'x';
	waitpid(child, NULL, 0);
	close(master);
	close(slave);
	return good;
}

/*
 * Writes until there is no room, which poll() says, too: how many bytes, 0 for an error. Linux
 * moves them to the other end in a thread of its own: then there is room again.
 */
static size_t
fill(int fd)
{
	size_t total = 0;
	ssize_t n;

	for (unsigned i = 0; i < 100000; i++) {
		while ((n = write(fd, found, 1000)) > 0)
			total += (size_t)n;
		if (errno != EAGAIN)
			return 0;
		if (events(fd) == 0)
			return total;
	}
	return 0;
}

/* Reads so many bytes, whenever they come; then there are no more. */
static bool
drain(int fd, size_t left)
{
	ssize_t n;

	while (left > 0) {
		n = read(fd, found, sizeof(found));
		if (n == 0 || n > (ssize_t)left || (n < 0 && errno != EAGAIN))
			return false;
		left -= n > 0 ? (size_t)n : 0;
	}
	return FAILS(read(fd, found, sizeof(found)), EAGAIN);
}

/* Does poll() tell these events within ten seconds? */
static bool
becomes(int fd, short expected)
{
	for (unsigned i = 0; i < 10000 && events(fd) != expected; i++)
		poll(NULL, 0, 1);
	return events(fd) == expected;
}

/* Both ends fill up, say so, and go on when the other one has read. */
static bool
ends_fill(void)
{
	struct termios t;
	int master, slave;
	size_t in = 0, out = 0;
	bool good = ptys_pair(&master, &slave) && tcgetattr(slave, &t) == 0;

	cfmakeraw(&t);
	good = good && tcsetattr(slave, TCSANOW, &t) == 0 &&
	       fcntl(master, F_SETFL, O_NONBLOCK) == 0 && fcntl(slave, F_SETFL, O_NONBLOCK) == 0;
	good = good && (out = fill(slave)) >= 4000 && becomes(master, POLLIN | POLLOUT) &&
	       drain(master, out) && becomes(slave, POLLOUT);
	good = good && (in = fill(master)) >= 4000 && becomes(slave, POLLIN | POLLOUT) &&
	       drain(slave, in) && becomes(master, POLLOUT);
	close(master);
	close(slave);
	return good;
}

static bool
slave_closes(void)
{
	int master, slave;
	bool good = ptys_pair(&master, &slave) && put(slave, "last");

	close(slave);
	good = good && (events(master) & (POLLIN | POLLHUP)) == (POLLIN | POLLHUP) &&
	       get(master, "last") && FAILS(read(master, found, 1), EIO);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	good = good && slave >= 0 && events(master) == POLLOUT && put(slave, "new") &&
	       get(master, "new");
	close(master);
	good = good && read(slave, found, 1) == 0 && FAILS(write(slave, found, 1), EIO) &&
	       (events(slave) & (POLLHUP | POLLERR)) == (POLLHUP | POLLERR) &&
	       FAILS(tcgetpgrp(slave), EIO);
	close(slave);
	return good;
}

/* In a session of its own, whose terminal the slave becomes by being opened. */
static int
lead(int master)
{
	return setsid() == getpid() ? open(ptsname(master), O_RDWR) : -1;
}

static int
has_terminal(void *arg)
{
	int master = *(int *)arg, slave = lead(master), own, other = -1, foreign = -1;
	bool good = slave >= 0 && tcgetpgrp(slave) == getpid() && tcgetsid(slave) == getpid() &&
		    tcgetpgrp(master) == getpid();

	own = open("/dev/tty", O_RDWR);
	good = good && own >= 0 && put(own, "by its name") && get(master, "by its name");
	/* It is the session's only one. */
	good = good && ptys_pair(&other, &foreign) && FAILS(ioctl(foreign, TIOCSCTTY, 0), EPERM) &&
	       FAILS(tcgetpgrp(foreign), ENOTTY) && FAILS(tcsetpgrp(foreign, getpid()), ENOTTY);
	/* Nor is it for a group of another session, or one that is not there. */
	good = good && FAILS(tcsetpgrp(slave, getpgid(getppid())), EPERM) &&
	       FAILS(tcsetpgrp(slave, 0x3fffffff), ESRCH) && FAILS(tcsetpgrp(slave, -1), EINVAL);
	close(foreign);
	close(other);
	/* Who gives it up may have another one. */
	signal(SIGHUP, SIG_IGN);
	good = good && ioctl(slave, TIOCNOTTY) == 0 && FAILS(open("/dev/tty", O_RDWR), ENXIO) &&
	       FAILS(tcgetpgrp(slave), ENOTTY) && ioctl(slave, TIOCSCTTY, 0) == 0 &&
	       tcgetpgrp(slave) == getpid();
	return good ? 0 : 1;
}

static int
cannot_take(void *slave)
{
	return FAILS(ioctl(*(int *)slave, TIOCSCTTY, 0), EPERM) ? 0 : 1;
}

static int
has_no_terminal(void *arg)
{
	int master = *(int *)arg, slave;

	setsid();
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	if (slave < 0 || !FAILS(open("/dev/tty", O_RDWR), ENXIO) || !FAILS(tcgetsid(slave), ENOTTY))
		return 1;
	/* A process that does not lead cannot take one. */
	return in_child(cannot_take, &slave) == 0 && ioctl(slave, TIOCSCTTY, 0) == 0 &&
		       tcgetsid(slave) == getpid()
		   ? 0
		   : 2;
}

static bool
sessions_have_terminals(void)
{
	int master, slave;
	bool good = ptys_pair(&master, &slave) && in_child(has_terminal, &master) == 0;

	close(slave);
	close(master);
	good = good && ptys_pair(&master, &slave) && in_child(has_no_terminal, &master) == 0;
	close(slave);
	close(master);
	return good;
}

static void
note(int sig)
{
	signals_seen = signals_seen * 100 + sig;
}

/* Sets `note` for signals, which are blocked: sigsuspend() lets them come. */
static void
note_signals(sigset_t *old)
{
	static const int which[] = {SIGHUP, SIGCONT, SIGWINCH, SIGINT, SIGTTIN};
	struct sigaction act = {.sa_handler = note, .sa_flags = SA_RESTART};
	sigset_t set;

	sigfillset(&act.sa_mask);
	sigemptyset(&set);
	for (unsigned i = 0; i < sizeof(which) / sizeof(which[0]); i++) {
		sigaction(which[i], &act, NULL);
		sigaddset(&set, which[i]);
	}
	sigprocmask(SIG_BLOCK, &set, old);
	signals_seen = 0;
}

/* Waits until these have come. */
static bool
seen(const sigset_t *old, int signals)
{
	while (signals_seen < signals)
		sigsuspend(old);
	return signals_seen == signals;
}

/* The leader: gets keys' signals, new sizes, and SIGHUP when the master is closed. */
static int
leads(void *arg)
{
	int master = *(int *)arg, slave;
	struct winsize size = {.ws_row = 30, .ws_col = 90};
	sigset_t old;
	bool good;

	note_signals(&old);
	slave = lead(master);
	good = slave >= 0 && put(master, "\003") && seen(&old, SIGINT);
	signals_seen = 0;
	good = good && ioctl(master, TIOCSWINSZ, &size) == 0 && seen(&old, SIGWINCH) &&
	       ioctl(slave, TIOCSWINSZ, &size) == 0 && memset(&size, 0, sizeof(size)) &&
	       ioctl(slave, TIOCGWINSZ, &size) == 0 && size.ws_row == 30 && size.ws_col == 90 &&
	       signals_seen == SIGWINCH;
	signals_seen = 0;
	close(master);
	good = good && seen(&old, SIGHUP * 100 + SIGCONT) && FAILS(open("/dev/tty", O_RDWR), ENXIO);
	return good ? 0 : 1;
}

static bool
leader_is_told(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), status;
	bool good = master >= 0 && unlockpt(master) == 0;
	pid_t pid;

	pid = fork();
	if (pid == 0)
		_exit(leads(&master));
	close(master); /* the child's is the last one */
	return good && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Starts a member of the foreground in a group of its own, which writes its signals to fd, and
 * returns when it waits for them. */
static pid_t
start_member(int slave, int fd, unsigned count)
{
	sigset_t old;
	pid_t pid;

	note_signals(&old);
	pid = fork();
	if (pid != 0) {
		setpgid(pid, pid);
		if (slave >= 0)
			tcsetpgrp(slave, pid);
		await_sleep(pid, 0);
		return pid;
	}
	setpgid(0, 0);
	for (int last = 0; count > 0; last = signals_seen) {
		sigsuspend(&old);
		for (int n = signals_seen; n > last; n /= 100)
			count--;
	}
	_exit(write(fd, (const void *)&signals_seen, sizeof(signals_seen)) > 0 ? 0 : 1);
}

/* The leader ends: the foreground is told, and has no terminal any more. */
static bool
foreground_is_told(void)
{
	int master, slave, end[2], got = 0;
	bool good = ptys_pair(&master, &slave) && pipe(end) == 0;
	pid_t leader = fork();

	if (leader == 0) {
		close(slave);
		slave = lead(master);
		_exit(slave >= 0 && start_member(slave, end[1], 1) > 0 ? 0 : 1);
	}
	waitpid(leader, NULL, 0);
	close(end[1]);
	good = good && read(end[0], &got, sizeof(got)) == sizeof(got) && got == SIGHUP &&
	       tcgetpgrp(master) == 0;
	close(end[0]);
	close(master);
	close(slave);
	return good;
}

/* Nobody would continue an orphaned group. SIGSTOP stops it nevertheless. */
static bool
orphans_are_not_stopped(void)
{
	int status;
	pid_t pid = fork();
	bool good;

	if (pid == 0) {
		setsid();
		raise(SIGTSTP);
		raise(SIGTTIN);
		raise(SIGTTOU);
		raise(SIGSTOP);
		_exit(7);
	}
	good = waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status) &&
	       WSTOPSIG(status) == SIGSTOP;
	kill(pid, SIGCONT);
	return good && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 7;
}

/* A group that is stopped loses the only parent that could continue it. */
static bool
orphans_are_told(void)
{
	int end[2], got = 0;
	bool good = pipe(end) == 0;
	pid_t parent = fork();

	if (parent == 0) {
		pid_t pid;
		int status;

		setpgid(0, 0);
		pid = start_member(-1, end[1], 2);
		kill(pid, SIGSTOP);
		_exit(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status) ? 0 : 1);
	}
	waitpid(parent, NULL, 0);
	close(end[1]);
	good = good && read(end[0], &got, sizeof(got)) == sizeof(got) &&
	       (got == SIGHUP * 100 + SIGCONT || got == SIGCONT * 100 + SIGHUP);
	close(end[0]);
	return good;
}

/* A child that reads in the background stops; continued in the foreground, it reads. */
static int
background_stops(void *arg)
{
	int master = *(int *)arg, slave = lead(master), status;
	char c;
	pid_t pid = fork();

	if (pid == 0) {
		setpgid(0, 0);
		_exit(read(slave, &c, 1) == 1 && c == 'x' ? 3 : 4);
	}
	setpgid(pid, pid);
	signal(SIGTTOU, SIG_IGN);
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status) ||
	    WSTOPSIG(status) != SIGTTIN)
		return 1;
	if (tcsetpgrp(slave, pid) != 0 || !put(master, "x\n") || kill(pid, SIGCONT) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 3 << 8)
		return 2;
	/* The leader is in the background now; its group is orphaned. */
	return FAILS(read(slave, &c, 1), EIO) && raise(SIGTSTP) == 0 ? 0 : 5;
}

static bool
background_reads(void)
{
	int master, slave;
	bool good = ptys_pair(&master, &slave) && in_child(background_stops, &master) == 0;

	close(slave);
	close(master);
	return good;
}

/* A user takes all pseudo-terminals that he gets. Then user 0 wants one, too. */
int
ptys_reserved(void)
{
	int ready[2], go[2], n = 0, fd, status;
	bool good = pipe(ready) == 0 && pipe(go) == 0 &&
		    setrlimit(RLIMIT_NOFILE, &(struct rlimit){4000, 4000}) == 0;
	pid_t pid = good ? fork() : -1;
	char c = 0;

	if (pid == 0) {
		close(go[1]);
		if (setuid(1000) != 0)
			_exit(1);
		while (open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0)
			n++;
		printf("a user has %d pseudo-terminals, errno %d\n", n, errno);
		fflush(stdout);
		write(ready[1], &c, 1);
		_exit(read(go[0], &c, 1) != 0);
	}
	close(ready[1]);
	read(ready[0], &c, 1);
	fd = open("/dev/ptmx", O_RDWR | O_NOCTTY);
	close(go[1]);
	return waitpid(pid, &status, 0) == pid && status == 0 && fd >= 0 ? 0 : 1;
}

/* Two processes write lines into a terminal that is mostly full: each is whole. */
static bool
writes_are_whole(void)
{
	enum { LINES = 150, LINE = 1000 };
	int master = -1, slave = -1, n = 0, status, bad = 0;
	static char line[LINE + 1];
	struct termios raw;
	bool good = ptys_pair(&master, &slave) && tcgetattr(slave, &raw) == 0;

	cfmakeraw(&raw);
	good = good && tcsetattr(slave, TCSANOW, &raw) == 0;
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			close(master); /* only its reader has it: when that ends, writes do */
			memset(line, 'a' + i, LINE);
			line[LINE - 1] = '\n';
			for (int k = 0; k < LINES; k++) {
				ssize_t w = write(slave, line, LINE);

				if (w != LINE)
					printf("# line %d of %c: %zd, errno %d\n", k, line[0], w,
					       errno);
				good &= w == LINE;
			}
			fflush(stdout);
			_exit(!good);
		}
		good &= pid > 0;
	}
	for (; good && n < 2 * LINES; n++) {
		for (size_t have = 0; good && have < LINE;) {
			ssize_t r =
			    read(master, line + have, LINE - have < 100 ? LINE - have : 100);

			if (r <= 0)
				printf("# reads %zd, errno %d\n", r, errno);
			good &= r > 0;
			have += r > 0 ? (size_t)r : 0;
		}
		bad +=
		    strspn(line, line[0] == 'a' ? "a" : "b") != LINE - 1 || line[LINE - 1] != '\n';
	}
	close(slave);
	close(master);
	for (int i = 0; i < 2; i++)
		good &= wait(&status) > 0 && status == 0;
	if (!good || bad != 0) /* it failed once, and nobody knew where */
		printf("# %d lines read, %d of them mixed, the last child's status %#x\n", n, bad,
		       status);
	return good && bad == 0;
}

void
test_ptys(void)
{
	result(pair_opens(), "a pseudo-terminal has a name, which is locked at first");
	result(line_works(),
	       "what is typed into its master is edited, echoed and read line by line");
	result(packets_are_told(), "a master in packet mode reads what has happened");
	result(flushes_are_told(), "packet mode: each flush is told, also to who sleeps");
	/* Linux brings it later, by another thread. */
	result(!is_kestrel() || geteuid() != 0 || in_child(packet_comes_with_signal, NULL) == 0,
	       "a packet that comes with a signal begins with its byte, too");
	result(raw_works(), "raw mode changes nothing");
	result(reads_are_timed(), "with VMIN 0, a read waits for a byte as long as VTIME says");
	result(ends_fill(), "both ends fill up, and go on when the other one has read");
	result(writes_are_whole(), "a write to a terminal is not mixed with another's");
	result(slave_closes(), "each end learns that the other one is closed");
	result(sessions_have_terminals(),
	       "a session has one terminal: the first, or that it asks for");
	result(leader_is_told(), "keys, a new size and the master's end are signals");
	result(foreground_is_told(), "the foreground gets SIGHUP when the session's leader ends");
	result(orphans_are_not_stopped(), "the terminal's signals do not stop an orphaned group");
	result(orphans_are_told(), "a stopped group that becomes orphaned gets SIGHUP and SIGCONT");
	result(background_reads(),
	       "a read in the background stops, and is EIO in an orphaned group");
}
