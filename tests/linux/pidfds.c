/* pidfds.c - files that stand for processes, execveat, and adjtimex. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_send_signal 424
#define SYS_pidfd_open        434
#endif
#define PIDFD 3 /* P_PIDFD */

static int
pidfd(pid_t pid, unsigned flags)
{
	return (int)syscall(SYS_pidfd_open, pid, flags);
}

static long
send(int fd, int sig, const siginfo_t *info, unsigned flags)
{
	return syscall(SYS_pidfd_send_signal, fd, sig, info, flags);
}

static bool
ended(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1 && (p.revents & POLLIN);
}

/* A child that sleeps until a signal ends it. */
static pid_t
sleeper(void)
{
	pid_t pid = fork();

	while (pid == 0)
		pause();
	return pid;
}

static bool
tells_ends(void)
{
	pid_t pid = sleeper(), other = sleeper();
	int fd = pidfd(pid, 0), set = epoll_create1(0);
	siginfo_t info = {0};
	bool good = fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC && !ended(fd, 0) &&
		    watch(set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET, 0) == 0 && told(set) == 0;

	good = good && send(fd, 0, NULL, 0) == 0 && send(fd, SIGTERM, NULL, 0) == 0 &&
	       ended(fd, -1) && told(set) == EPOLLIN;
	good = good && waitid(PIDFD, (id_t)fd, &info, WEXITED) == 0 && info.si_pid == pid &&
	       info.si_code == CLD_KILLED && info.si_status == SIGTERM;
	good = good && ended(fd, 0) && FAILS(send(fd, 0, NULL, 0), ESRCH) &&
	       FAILS(waitid(PIDFD, (id_t)fd, &info, WEXITED), ECHILD);
	kill(other, SIGKILL);
	good = good && waitpid(other, NULL, 0) == other;
	close(set);
	close(fd);
	return good;
}

static bool
waits_for_one(void)
{
	pid_t pid = sleeper(), other = fork();
	int fd = pidfd(pid, O_NONBLOCK), own = pidfd(getpid(), 0);
	siginfo_t info = {0};

	if (other == 0)
		_exit(3);
	/* The other one has ended; not this. */
	bool good = waitid(P_PID, (id_t)other, &info, WEXITED | WNOWAIT) == 0 &&
		    FAILS(waitid(PIDFD, (id_t)fd, &info, WEXITED), EAGAIN) &&
		    waitid(PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0;

	good = good && FAILS(waitid(PIDFD, (id_t)own, &info, WEXITED), ECHILD) &&
	       FAILS(waitid(PIDFD, 999, &info, WEXITED), EBADF) &&
	       FAILS(waitid(PIDFD, 0, &info, WEXITED), EBADF) &&
	       FAILS(waitid(PIDFD, (id_t)-1, &info, WEXITED), EINVAL);
	kill(pid, SIGKILL);
	good = ended(fd, -1) && good && waitid(PIDFD, (id_t)fd, &info, WEXITED) == 0 &&
	       info.si_pid == pid;
	good = waitpid(other, NULL, 0) == other && good;
	close(own);
	close(fd);
	return good;
}

static volatile sig_atomic_t value_seen;

static void
on_value(int sig, siginfo_t *info, void *context)
{
	value_seen = info->si_value.sival_int;
}

static int
as_nobody(void *arg)
{
	return !(setresuid(65534, 65534, 65534) == 0 &&
		 FAILS(send(*(const int *)arg, SIGTERM, NULL, 0), EPERM));
}

static bool
sends_signals(void)
{
	struct sigaction act = {.sa_sigaction = on_value, .sa_flags = SA_SIGINFO};
	siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
	pid_t pid = sleeper();
	int fd = pidfd(pid, 0), own = pidfd(getpid(), 0), file = open("/dev/null", O_RDONLY);
	bool good = fd >= 0 && own >= 0;

	info.si_value.sival_int = 77;
	sigaction(SIGUSR1, &act, NULL);
	good = good && send(own, SIGUSR1, &info, 0) == 0 && value_seen == 77;
	good = good && FAILS(send(own, SIGUSR2, &info, 0), EINVAL) &&
	       FAILS(send(own, SIGUSR1, NULL, 0x80), EINVAL) &&
	       FAILS(send(own, 99, NULL, 0), EINVAL) && FAILS(send(999, 0, NULL, 0), EBADF) &&
	       FAILS(send(file, 0, NULL, 0), EBADF) &&
	       FAILS(send(own, SIGUSR1, NOWHERE, 0), EFAULT);
	info.si_code = SI_USER; /* only to oneself */
	good =
	    good && FAILS(send(fd, SIGUSR1, &info, 0), EPERM) && send(own, SIGUSR1, &info, 0) == 0;
	good = good && FAILS(pidfd(0, 0), EINVAL) && FAILS(pidfd(-1, 0), EINVAL) &&
	       FAILS(pidfd(getpid(), 1), EINVAL) && FAILS(pidfd(0x7fffffff, 0), ESRCH);
	if (getuid() == 0)
		good = good && in_child(as_nobody, &fd) == 0;
	signal(SIGUSR1, SIG_DFL);
	kill(pid, SIGKILL);
	good = waitpid(pid, NULL, 0) == pid && good;
	close(file);
	close(own);
	close(fd);
	return good;
}

/* ---- execveat ---- */

#define PLACE "/tmp/linux_execveat"

/* What execveat() is to execute. */
struct target {
	int dir;
	const char *path;
	int flags;
};

/* Its exit status, 50: this program was executed; or 100 + errno. */
static int
executes(void *arg)
{
	const struct target *t = arg;
	char *argv[] = {"p", "pidfds-executed", NULL}, *envp[] = {NULL};

	syscall(SYS_execveat, t->dir, t->path, argv, envp, t->flags);
	return 100 + errno;
}

static int
at(int dir, const char *path, int flags)
{
	return in_child(executes, &(struct target){dir, path, flags});
}

int
pidfds_as_executed(void)
{
	return 50;
}

static bool
executes_at(void)
{
	int fd = open(linux_test_path(), O_PATH | O_CLOEXEC), dir, script, shut;
	bool good =
	    fd >= 0 && mkdir(PLACE, 0700) == 0 && symlink("/proc/self/exe", PLACE "/link") == 0;

	script = open(PLACE "/s", O_WRONLY | O_CREAT, 0755);
	good = good && write(script, "#!/bin/sh\nexit 9\n", 17) == 17 && close(script) == 0;
	dir = open(PLACE, O_PATH | O_DIRECTORY);
	script = open(PLACE "/s", O_RDONLY);
	shut = open(PLACE "/s", O_RDONLY | O_CLOEXEC);
	good = good && at(fd, "", AT_EMPTY_PATH) == 50 && at(dir, "link", 0) == 50 &&
	       at(AT_FDCWD, linux_test_path(), 0) == 50 && at(999, "/proc/self/exe", 0) == 50;
	good = good && at(dir, "link", AT_SYMLINK_NOFOLLOW) == 100 + ELOOP &&
	       at(dir, "none", 0) == 100 + ENOENT && at(fd, "", 0) == 100 + ENOENT &&
	       at(fd, "x", 0) == 100 + ENOTDIR && at(999, "x", 0) == 100 + EBADF &&
	       at(dir, "link", 1) == 100 + EINVAL && at(dir, "", AT_EMPTY_PATH) == 100 + EACCES;
	/* A script's interpreter opens it by its name, which has to be there still. */
	good = good && at(dir, "s", 0) == 9 && at(script, "", AT_EMPTY_PATH) == 9 &&
	       at(shut, "", AT_EMPTY_PATH) == 100 + ENOENT;
	close(shut);
	close(script);
	close(dir);
	close(fd);
	return unlink(PLACE "/s") == 0 && unlink(PLACE "/link") == 0 && rmdir(PLACE) == 0 && good;
}

/* Another thread than the first one may not say that the process has got kill()'s signal. */
static void *
forges_a_reason(void *arg)
{
	siginfo_t info = {.si_signo = SIGURG, .si_code = SI_USER};
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	bool first = getpid() == gettid();
	long r = syscall(SYS_pidfd_send_signal, fd, SIGURG, &info, 0);

	return close(fd) == 0 && (first ? r == 0 : FAILS(r, EPERM)) ? NULL : arg;
}

static bool
reasons_are_own(void)
{
	pthread_t t;
	void *bad = &t;

	return forges_a_reason(&t) == NULL &&
	       pthread_create(&t, NULL, forges_a_reason, &bad) == 0 && pthread_join(t, &bad) == 0 &&
	       bad == NULL;
}

static int
sets_nothing(void *arg)
{
	struct timex t = {.modes = ADJ_FREQUENCY};

	return setresuid(65534, 65534, 65534) == 0 && !FAILS(adjtimex(&t), EPERM);
}

static bool
reads_adjustment(void)
{
	struct timex t = {0};
	struct timespec before, after;
	int state;
	bool good;

	clock_gettime(CLOCK_REALTIME, &before);
	state = adjtimex(&t);
	clock_gettime(CLOCK_REALTIME, &after);
	good = state >= 0 && state <= TIME_ERROR && t.time.tv_sec >= before.tv_sec &&
	       t.time.tv_sec <= after.tv_sec && t.tick == 10000 && t.precision == 1;

	t = (struct timex){.modes = ADJ_OFFSET_SS_READ};
	good = good && adjtimex(&t) == state && clock_adjtime(CLOCK_REALTIME, &t) == state &&
	       FAILS(syscall(SYS_adjtimex, NOWHERE), EFAULT) &&
	       FAILS(clock_adjtime(CLOCK_MONOTONIC, &t), EOPNOTSUPP);
	t = (struct timex){.modes = ADJ_OFFSET_SINGLESHOT}; /* by nothing */
	return good && (getuid() != 0 || (clock_adjtime(CLOCK_REALTIME, &t) == state &&
					  in_child(sets_nothing, NULL) == 0));
}

void
test_pidfds(void)
{
	result(tells_ends(), "a file that stands for a process tells when that has ended");
	result(waits_for_one(), "waitid() waits for that one only");
	result(sends_signals(), "it gets signals by the file");
	result(reasons_are_own(), "only a first thread says that kill() has sent its own");
	result(executes_at(), "execveat() executes what is open, or in an open directory");
	result(reads_adjustment(), "adjtimex() tells how the clock is corrected");
}
