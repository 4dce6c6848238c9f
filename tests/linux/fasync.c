/*
 * fasync.c - files whose news are told by a signal: O_ASYNC, FIOASYNC, F_SETOWN, F_SETSIG. The same
 * on Linux (word "fasync").
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define SIG      (SIGRTMIN + 3)
#define WAIT_S   60
#define NO_GROUP 999999
#define MANY     40

/* Waits for one of the two signals, which are blocked. False: none came, or another one. */
static bool
came(int sig, siginfo_t *info)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigaddset(&set, SIG);
	return sigtimedwait(&set, info, &(struct timespec){WAIT_S, 0}) == sig;
}

/* Are there none? What was done before has sent its signals if one that was sent later is there. */
static bool
none_came(void)
{
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigaddset(&set, SIG);
	return sigtimedwait(&set, &info, &(struct timespec){0, 0}) == -1 && errno == EAGAIN;
}

static void
block_both(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigaddset(&set, SIG);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static int
owner_is_told(void *arg)
{
	struct signalfd_siginfo told;
	int p[2], on = 1, sfd;
	siginfo_t info;
	sigset_t set;
	bool good;

	(void)arg;
	block_both();
	good = pipe(p) == 0 && fcntl(p[0], F_GETOWN) == 0 && fcntl(p[0], F_GETSIG) == 0 &&
	       fcntl(p[0], F_SETOWN, getpid()) == 0 && fcntl(p[0], F_GETOWN) == getpid() &&
	       !(fcntl(p[0], F_GETFL) & O_ASYNC) && ioctl(p[0], FIOASYNC, &on) == 0 &&
	       (fcntl(p[0], F_GETFL) & O_ASYNC) && write(p[1], "a", 1) == 1 && came(SIGIO, &info) &&
	       info.si_code == SI_KERNEL;
	/* with a signal of its own, it is told why; and each time */
	good = good && fcntl(p[0], F_SETSIG, SIG) == 0 && fcntl(p[0], F_GETSIG) == SIG &&
	       write(p[1], "b", 1) == 1 && came(SIG, &info) && info.si_code == POLL_IN &&
	       info.si_fd == p[0] && info.si_band == (POLLIN | POLLRDNORM) &&
	       write(p[1], "c", 1) == 1 && came(SIG, &info);
	/* a signalfd has the same */
	sigemptyset(&set);
	sigaddset(&set, SIG);
	sfd = signalfd(-1, &set, 0);
	good = good && write(p[1], "s", 1) == 1 && read(sfd, &told, sizeof(told)) == sizeof(told) &&
	       told.ssi_signo == (uint32_t)SIG && told.ssi_code == POLL_IN && told.ssi_fd == p[0] &&
	       told.ssi_band == (POLLIN | POLLRDNORM) && close(sfd) == 0;
	/* no longer */
	on = 0;
	good = good && fcntl(p[0], F_SETFL, 0) == 0 && !(fcntl(p[0], F_GETFL) & O_ASYNC) &&
	       write(p[1], "d", 1) == 1 && fcntl(p[0], F_SETFL, O_ASYNC | O_NONBLOCK) == 0 &&
	       (fcntl(p[0], F_GETFL) & (O_ASYNC | O_NONBLOCK)) == (O_ASYNC | O_NONBLOCK) &&
	       write(p[1], "e", 1) == 1 && came(SIG, &info) && none_came() &&
	       ioctl(p[0], FIOASYNC, &on) == 0 && !(fcntl(p[0], F_GETFL) & O_ASYNC);
	return good && close(p[0]) == 0 && close(p[1]) == 0 ? 0 : 1;
}

static int
room_is_told(void *arg)
{
	static char much[65536];
	siginfo_t info;
	int p[2];
	bool good;

	(void)arg;
	block_both();
	good = pipe(p) == 0 && write(p[1], much, sizeof(much)) == sizeof(much) &&
	       fcntl(p[1], F_SETOWN, getpid()) == 0 && fcntl(p[1], F_SETSIG, SIG) == 0 &&
	       fcntl(p[1], F_SETFL, O_ASYNC) == 0 &&
	       read(p[0], much, sizeof(much)) == sizeof(much) && came(SIG, &info) &&
	       info.si_code == POLL_OUT && info.si_fd == p[1] &&
	       info.si_band == (POLLOUT | POLLWRNORM | POLLWRBAND);
	return good ? 0 : 1;
}

/* One event of many files. */
static int
many_are_told(void *arg)
{
	char path[32];
	siginfo_t info;
	int p[2];
	bool good;

	(void)arg;
	block_both();
	good = pipe(p) == 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p[0]);
	for (unsigned i = 0; i < MANY; i++) {
		int fd = open(path, O_RDONLY | O_NONBLOCK);

		good = good && fcntl(fd, F_SETSIG, SIG) == 0 &&
		       fcntl(fd, F_SETOWN, getpid()) == 0 && fcntl(fd, F_SETFL, O_ASYNC) == 0;
	}
	good = good && write(p[1], "a", 1) == 1;
	for (unsigned i = 0; i < MANY; i++)
		good = good && came(SIG, &info);
	return good && none_came() ? 0 : 1;
}

/* A group, a thread, and who is not there. */
static int
owners(void *arg)
{
	struct f_owner_ex ex = {F_OWNER_TID, (pid_t)syscall(SYS_gettid)}, got;
	siginfo_t info;
	int s[2];
	bool good;

	(void)arg;
	block_both();
	good = setpgid(0, 0) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0 &&
	       fcntl(s[0], F_SETOWN, -getpid()) == 0 && fcntl(s[0], F_GETOWN) == -getpid() &&
	       fcntl(s[0], F_GETOWN_EX, &got) == 0 && got.type == F_OWNER_PGRP &&
	       got.pid == getpid() && fcntl(s[0], F_SETFL, O_ASYNC) == 0 &&
	       write(s[1], "x", 1) == 1 && came(SIGIO, &info);
	good = good && fcntl(s[0], F_SETOWN_EX, &ex) == 0 && fcntl(s[0], F_GETOWN) == ex.pid &&
	       fcntl(s[0], F_SETSIG, SIG) == 0 && write(s[1], "y", 1) == 1 && came(SIG, &info) &&
	       info.si_fd == s[0];
	good = good && FAILS(fcntl(s[0], F_SETOWN, NO_GROUP), ESRCH) &&
	       FAILS(fcntl(s[0], F_SETOWN, -NO_GROUP), ESRCH) && fcntl(s[0], F_GETOWN) == ex.pid;
	ex.type = 3;
	good = good && FAILS(fcntl(s[0], F_SETOWN_EX, &ex), EINVAL) &&
	       FAILS(fcntl(s[0], F_SETOWN_EX, NOWHERE), EFAULT) &&
	       FAILS(fcntl(s[0], F_GETOWN_EX, NOWHERE), EFAULT) &&
	       FAILS(fcntl(s[0], F_SETSIG, 65), EINVAL) && fcntl(s[0], F_SETOWN, 0) == 0 &&
	       fcntl(s[0], F_GETOWN) == 0 && close(s[0]) == 0 && close(s[1]) == 0;
	return good ? 0 : 1;
}

/* What a user may not signal gets nothing. */
static int
stranger(void *arg)
{
	siginfo_t info;
	int p[2], ready[2];
	bool good;
	pid_t user;
	char c;

	(void)arg;
	block_both();
	good = pipe(p) == 0 && pipe(ready) == 0;
	user = fork();
	if (user == 0) {
		good = setuid(7) == 0 && fcntl(p[0], F_SETSIG, SIG) == 0 &&
		       fcntl(p[0], F_SETOWN, getppid()) == 0 &&
		       fcntl(p[0], F_SETFL, O_ASYNC) == 0 &&
		       write(ready[1], good ? "g" : "b", 1) == 1;
		_exit(good ? 0 : 1);
	}
	good = good && read(ready[0], &c, 1) == 1 && c == 'g' && write(p[1], "a", 1) == 1 &&
	       fcntl(p[0], F_SETOWN, getpid()) == 0 && write(p[1], "b", 1) == 1 &&
	       came(SIG, &info) && none_came();
	return waitpid(user, &(int){0}, 0) == user && good ? 0 : 1;
}

static bool
others_cannot(void)
{
	int on = 1, fd = open("/", O_RDONLY | O_DIRECTORY), sfd;
	sigset_t set;
	bool good;

	sigemptyset(&set);
	sigaddset(&set, SIG);
	sfd = signalfd(-1, &set, 0);
	good = FAILS(ioctl(sfd, FIOASYNC, &on), ENOTTY) && fcntl(sfd, F_SETFL, O_ASYNC) == 0 &&
	       !(fcntl(sfd, F_GETFL) & O_ASYNC) && close(sfd) == 0;
	good = good && FAILS(ioctl(fd, FIOASYNC, &on), ENOTTY) &&
	       fcntl(fd, F_SETFL, O_ASYNC) == 0 && !(fcntl(fd, F_GETFL) & O_ASYNC) &&
	       FAILS(ioctl(fd, FIOASYNC, NOWHERE), EFAULT);

	return close(fd) == 0 && good;
}

#define DIR_WATCHED "/tmp/linux_dnotify"

/* How many signals for the directory have come; -1: another one, too. */
static int
told_of(int fd)
{
	siginfo_t info;
	sigset_t set;
	int n = 0;

	sigemptyset(&set);
	sigaddset(&set, SIG);
	while (sigtimedwait(&set, &info, &(struct timespec){0, 0}) == SIG) {
		if (info.si_code != POLL_MSG || info.si_fd != fd ||
		    info.si_band != (POLLIN | POLLRDNORM | POLLMSG))
			return -1;
		n++;
	}
	return none_came() ? n : -1;
}

static int
closes(void *fd)
{
	return close(*(int *)fd);
}

static int
directory_tells(void *arg)
{
	const long most = DN_ACCESS | DN_MODIFY | DN_CREATE | DN_DELETE | DN_ATTRIB | DN_MULTISHOT;
	const char *a = DIR_WATCHED "/a", *b = DIR_WATCHED "/b", *elsewhere = "/tmp/linux_renamed";
	int dir = open(DIR_WATCHED, O_RDONLY | O_DIRECTORY), fd, twin, place;
	siginfo_t info;
	bool good;
	char c;

	(void)arg;
	block_both();
	/* Once; then as often as something happens. */
	good = dir >= 0 && fcntl(dir, F_NOTIFY, DN_CREATE | DN_MODIFY) == 0 &&
	       fcntl(dir, F_GETOWN) == getpid();
	fd = open(a, O_CREAT | O_RDWR, 0600);
	good = good && fd >= 0 && came(SIGIO, &info) && none_came() && write(fd, "x", 1) == 1 &&
	       none_came();
	good = good && fcntl(dir, F_SETSIG, SIG) == 0 && fcntl(dir, F_NOTIFY, most) == 0 &&
	       write(fd, "x", 1) == 1 && told_of(dir) == 1 && pread(fd, &c, 1, 0) == 1 &&
	       told_of(dir) == 1 && ftruncate(fd, 0) == 0 && told_of(dir) == 1 &&
	       fchmod(fd, 0644) == 0 && told_of(dir) == 1 && mkdir(b, 0700) == 0 &&
	       told_of(dir) == 1 && rmdir(b) == 0 && told_of(dir) == 1 && rename(a, b) == 0 &&
	       told_of(dir) == 2 && chmod(DIR_WATCHED, 0700) == 0 && told_of(dir) == 1;
	/* More events for the same; those of another open directory count for themselves. */
	twin = open(DIR_WATCHED, O_RDONLY | O_DIRECTORY);
	good = good && twin >= 0 && told_of(dir) == 0 && fcntl(dir, F_NOTIFY, DN_RENAME) == 0 &&
	       fcntl(twin, F_NOTIFY, DN_RENAME) == 0 && rename(b, a) == 0 && came(SIGIO, &info) &&
	       told_of(dir) == 3;
	/* A file that goes elsewhere, and comes back, is not renamed. */
	good = good && fcntl(twin, F_NOTIFY, DN_RENAME) == 0 && rename(a, elsewhere) == 0 &&
	       told_of(dir) == 1 && rename(elsewhere, a) == 0 && told_of(dir) == 1 &&
	       fcntl(twin, F_NOTIFY, 0) == 0;
	/* Nothing any more; also when any descriptor of it is closed, but not by a child. */
	good = good && fcntl(dir, F_NOTIFY, DN_MULTISHOT) == 0 && write(fd, "x", 1) == 1 &&
	       none_came() && fcntl(dir, F_NOTIFY, most) == 0 && in_child(closes, &dir) == 0 &&
	       write(fd, "x", 1) == 1 && told_of(dir) == 1 && close(dup(dir)) == 0 &&
	       write(fd, "x", 1) == 1 && none_came();
	/* Another file takes its place. */
	place = dup(dir);
	good = good && fcntl(place, F_NOTIFY, most) == 0 && write(fd, "x", 1) == 1 &&
	       told_of(place) == 1 && dup2(fd, place) == place && write(fd, "x", 1) == 1 &&
	       none_came() && close(place) == 0;
	place = open(DIR_WATCHED, O_PATH);
	good = good && FAILS(fcntl(fd, F_NOTIFY, DN_ACCESS), ENOTDIR) &&
	       fcntl(fd, F_NOTIFY, 0) == 0 && FAILS(fcntl(place, F_NOTIFY, DN_ACCESS), EBADF) &&
	       close(place) == 0 && close(fd) == 0 && close(twin) == 0 &&
	       fcntl(dir, F_NOTIFY, most) == 0;
	return unlink(a) == 0 && good ? 0 : 1; /* the watch ends with the process */
}

/* A user has so many watches at most; who has one may change it. */
static int
marks_are_limited(void *arg)
{
	static const char sysctl[] = "/proc/sys/fs/dir-notify-marks";
	int fd = open(sysctl, O_RDONLY), dir = -1, first = -1;
	char text[32] = "";
	long max, n = -1;
	bool good;

	(void)arg;
	good = fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && close(fd) == 0;
	max = strtol(text, NULL, 10);
	while (good && n <= max) {
		dir = open("/", O_RDONLY | O_DIRECTORY);
		if (n++ < 0)
			first = dir;
		if (dir < 0 || fcntl(dir, F_NOTIFY, DN_DELETE | DN_MULTISHOT) != 0)
			break;
	}
	return good && n > 0 && n <= max && dir >= 0 && errno == ENOMEM &&
		       fcntl(first, F_NOTIFY, DN_RENAME) == 0 && close(first) == 0 &&
		       fcntl(dir, F_NOTIFY, DN_DELETE) == 0
		   ? 0
		   : 1;
}

/* The same of files with O_ASYNC; who closes one may have another. */
static int
async_files_are_limited(void *arg)
{
	enum { MOST = 8 };
	static const char sysctl[] = "/proc/sys/fs/async-files", path[] = "/tmp/linux_test.async";
	int fd = open(sysctl, O_RDWR), files[MOST + 1];
	char old[32] = "";
	bool good = fd >= 0 && read(fd, old, sizeof(old) - 1) > 0 && strtol(old, NULL, 10) > MOST &&
		    pwrite(fd, "8", 1, 0) == 1 && mkfifo(path, 0600) == 0;

	(void)arg;
	for (unsigned i = 0; good && i < MOST + 1; i++) {
		files[i] = open(path, O_RDONLY | O_NONBLOCK);
		good =
		    files[i] >= 0 && (i < MOST ? fcntl(files[i], F_SETFL, O_ASYNC) == 0
					       : FAILS(fcntl(files[i], F_SETFL, O_ASYNC), ENOMEM));
	}
	good = good && !(fcntl(files[MOST], F_GETFL) & O_ASYNC) &&
	       fcntl(files[0], F_SETFL, O_ASYNC) == 0 && close(files[1]) == 0 &&
	       fcntl(files[MOST], F_SETFL, O_ASYNC) == 0;
	unlink(path);
	return pwrite(fd, old, strlen(old), 0) > 0 && good ? 0 : 1;
}

static bool
directories_tell(void)
{
	bool good = mkdir(DIR_WATCHED, 0755) == 0 && in_child(directory_tells, NULL) == 0;

	return rmdir(DIR_WATCHED) == 0 && good;
}

void
test_fasync(void)
{
	result(in_child(owner_is_told, NULL) == 0, "O_ASYNC tells the owner by SIGIO or F_SETSIG");
	result(in_child(room_is_told, NULL) == 0, "who writes is told of room");
	result(in_child(many_are_told, NULL) == 0, "many files of one pipe tell their owners");
	result(in_child(owners, NULL) == 0, "F_SETOWN: a group, a thread, nobody; wrong ones");
	result(geteuid() != 0 || in_child(stranger, NULL) == 0,
	       "F_SETOWN signals whom its user may");
	result(directories_tell(), "F_NOTIFY: a signal for what happens in a directory");
	result(!is_kestrel() || in_child(marks_are_limited, NULL) == 0,
	       "F_NOTIFY: a user has fs.dir-notify-marks at most");
	result(!is_kestrel() || in_child(async_files_are_limited, NULL) == 0,
	       "O_ASYNC: a user has fs.async-files at most");
	result(others_cannot(), "a directory and a signalfd are not O_ASYNC");
}
