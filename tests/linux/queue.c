/*
 * queue.c - real-time signals, each of which is kept. It does the same on Linux (word "queue").
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define RT SIGRTMIN

static volatile int got[16], codes[16];
static volatile unsigned ngot;

static void
keep(int sig, siginfo_t *info, void *context)
{
	got[ngot % 16] = info->si_value.sival_int;
	codes[ngot % 16] = info->si_code;
	ngot++;
}

static sigset_t
block(int sig, int other)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	sigaddset(&set, other);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return set;
}

static int
send_value(int sig, int value)
{
	return sigqueue(getpid(), sig, (union sigval){.sival_int = value});
}

static bool
takes(const sigset_t *set, int sig, int code, int value)
{
	struct timespec none = {0, 0};
	siginfo_t info;

	return sigtimedwait(set, &info, &none) == sig && info.si_code == code &&
	       info.si_pid == getpid() && info.si_uid == getuid() &&
	       (code != SI_QUEUE || info.si_value.sival_int == value);
}

/* They come by number; those of one number in the order of sending. Standard ones once. */
static int
are_queued(void *arg)
{
	sigset_t set = block(RT + 1, RT + 4), both = block(SIGUSR1, SIGUSR2);
	struct timespec none = {0, 0};
	char text[4096] = "";
	FILE *f = fopen("/proc/self/status", "r");
	bool good;

	sigaddset(&set, SIGUSR2);
	good = send_value(RT + 4, 1) == 0 && send_value(RT + 1, 2) == 0 &&
	       send_value(RT + 4, 3) == 0 && kill(getpid(), RT + 1) == 0 &&
	       send_value(RT + 1, 5) == 0 && send_value(SIGUSR2, 6) == 0 &&
	       send_value(SIGUSR2, 7) == 0 && kill(getpid(), SIGUSR2) == 0;
	fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	return good && strstr(text, "\nSigQ:\t") != NULL && takes(&set, SIGUSR2, SI_QUEUE, 6) &&
		       takes(&set, RT + 1, SI_QUEUE, 2) && takes(&set, RT + 1, SI_USER, 0) &&
		       takes(&set, RT + 1, SI_QUEUE, 5) && takes(&set, RT + 4, SI_QUEUE, 1) &&
		       takes(&set, RT + 4, SI_QUEUE, 3) &&
		       FAILS(sigtimedwait(&both, NULL, &none), EAGAIN) &&
		       FAILS(sigtimedwait(&set, NULL, &none), EAGAIN)
		   ? 0
		   : 1;
}

/* A handler is called for each; and not for those that were ignored meanwhile. */
static int
are_handled(void *arg)
{
	struct sigaction act = {.sa_sigaction = keep, .sa_flags = SA_SIGINFO};
	sigset_t set = block(RT + 2, SIGUSR1);

	sigaction(RT + 2, &act, NULL);
	for (int i = 0; i < 10; i++)
		send_value(RT + 2, 100 + i);
	if (ngot != 0)
		return 1;
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	if (ngot != 10)
		return 2;
	for (int i = 0; i < 10; i++)
		if (got[i] != 100 + i || codes[i] != SI_QUEUE)
			return 3;
	sigprocmask(SIG_BLOCK, &set, NULL);
	send_value(RT + 2, 1);
	send_value(RT + 2, 2);
	signal(RT + 2, SIG_IGN);
	sigaction(RT + 2, &act, NULL);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return ngot == 10 ? 0 : 4;
}

/* sigqueue() says that there are too many; kill() loses the reason alone. */
static int
are_limited(void *arg)
{
	struct rlimit limit;
	sigset_t set = block(RT + 3, SIGUSR1);
	int n = 0;

	if (getuid() == 0 && setuid(4711) != 0) /* somebody who has none yet */
		return 1;
	if (getrlimit(RLIMIT_SIGPENDING, &limit) != 0 || limit.rlim_cur < 64 ||
	    limit.rlim_cur > 1u << 24)
		return 2;
	limit.rlim_cur = 20;
	if (setrlimit(RLIMIT_SIGPENDING, &limit) != 0)
		return 3;
	while (n < 100 && send_value(RT + 3, n) == 0)
		n++;
	if (n > 20 || errno != EAGAIN || (arg != NULL && n != 20))
		return 4;
	if (kill(getpid(), SIGUSR1) != 0 || kill(getpid(), RT + 3) != 0 ||
	    !takes(&set, SIGUSR1, SI_USER, 0))
		return 5;
	for (int i = 0; i < n; i++)
		if (!takes(&set, RT + 3, SI_QUEUE, i))
			return 6;
	return send_value(RT + 3, 0) == 0 ? 0 : 7;
}

static int
tell_as(pid_t pid, int code, int sig)
{
	siginfo_t info = {.si_code = code};

	info.si_value.sival_int = 77;
	return (int)syscall(SYS_rt_sigqueueinfo, pid, sig, &info);
}

/* A program says of itself what it likes, and of others' signals only what no kernel says. */
static int
reasons_are_checked(void *arg)
{
	sigset_t set = block(RT + 5, SIGUSR1);
	siginfo_t info = {.si_code = SI_QUEUE};
	pid_t self = getpid(), pid = fork();
	bool good;

	if (pid == 0)
		for (;;)
			pause();
	good = FAILS(tell_as(pid, SI_USER, RT + 5), EPERM) &&
	       FAILS(tell_as(pid, SI_KERNEL, RT + 5), EPERM) &&
	       FAILS(tell_as(pid, SI_TKILL, RT + 5), EPERM) && tell_as(pid, -60, 0) == 0 &&
	       FAILS(tell_as(pid, SI_QUEUE, 65), EINVAL) &&
	       FAILS(tell_as(0x3ffffff, SI_QUEUE, RT), ESRCH) &&
	       FAILS(tell_as(0, SI_QUEUE, RT + 5), ESRCH) &&
	       FAILS(tell_as(-getpgrp(), SI_QUEUE, RT + 5), ESRCH) &&
	       FAILS(syscall(SYS_rt_sigqueueinfo, self, RT, NOWHERE), EFAULT) &&
	       FAILS(syscall(SYS_rt_tgsigqueueinfo, -1, self, RT, &info), EINVAL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	good &= tell_as(self, SI_KERNEL, RT + 5) == 0 && sigwaitinfo(&set, &info) == RT + 5 &&
		info.si_code == SI_KERNEL && tell_as(self, -60, RT + 5) == 0 &&
		sigwaitinfo(&set, &info) == RT + 5 && info.si_code == -60 &&
		info.si_value.sival_int == 77;
	return good ? 0 : 1;
}

static void *
await(void *arg)
{
	siginfo_t info;
	int sig;

	/* On Linux, EINTR if another thread has taken the signal that woke this one. */
	do
		sig = sigwaitinfo(arg, &info);
	while (sig < 0 && errno == EINTR);
	if (sig != RT + 6)
		return NULL;
	return info.si_code == SI_QUEUE ? info.si_value.sival_ptr : NULL;
}

/* How many threads of this process sleep. */
static int
count_sleepers(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	int n = 0;

	while ((e = readdir(dir)) != NULL) {
		char path[300], state = '?';
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/stat", e->d_name);
		f = fopen(path, "r");
		if (f == NULL)
			continue;
		n += fscanf(f, "%*d (%*[^)]) %c", &state) == 1 && state == 'S';
		fclose(f);
	}
	closedir(dir);
	return n;
}

static int
threads_get_their_own(void *arg)
{
	sigset_t set = block(RT + 6, SIGUSR1);
	struct timespec none = {0, 0};
	pthread_t t[2];
	void *r[2];

	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, await, &set) != 0)
			return 1;
	for (size_t i = 0; i < 2; i++)
		pthread_sigqueue(t[i], RT + 6, (union sigval){.sival_ptr = (void *)(i + 10)});
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], &r[i]);
	return r[0] == (void *)10 && r[1] == (void *)11 &&
		       FAILS(sigtimedwait(&set, NULL, &none), EAGAIN)
		   ? 0
		   : 2;
}

/* Two threads sleep, and two signals come in a row: each thread gets one. */
static int
all_are_woken(void *arg)
{
	sigset_t set = block(RT + 6, SIGUSR1);
	pthread_t t[2];
	void *r[2];

	alarm(60);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, await, &set) != 0)
			return 1;
	while (count_sleepers() < 2)
		sched_yield();
	if (send_value(RT + 6, 10) != 0 || send_value(RT + 6, 11) != 0)
		return 2;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], &r[i]);
	return (intptr_t)r[0] + (intptr_t)r[1] == 21 ? 0 : 3;
}

static int
files_read_them(void *arg)
{
	sigset_t set = block(RT + 7, SIGUSR1);
	int fd = signalfd(-1, &set, SFD_NONBLOCK);
	struct signalfd_siginfo info[4];

	send_value(RT + 7, 31);
	send_value(RT + 7, 32);
	kill(getpid(), RT + 7);
	if (read(fd, info, sizeof(info)) != 3 * (ssize_t)sizeof(info[0]))
		return 1;
	return info[0].ssi_int == 31 && info[1].ssi_int == 32 && (int)info[1].ssi_ptr == 32 &&
		       info[0].ssi_code == SI_QUEUE && info[2].ssi_code == SI_USER &&
		       info[2].ssi_int == 0 && (pid_t)info[0].ssi_pid == getpid() &&
		       FAILS(read(fd, info, sizeof(info)), EAGAIN)
		   ? 0
		   : 2;
}

/* Of each timer one is pending, also if their signals are the same. */
static int
timers_have_their_own(void *arg)
{
	sigset_t set = block(RT + 8, SIGUSR1);
	const struct itimerspec soon = {{0, 0}, {0, 1}};
	struct timespec none = {0, 0};
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL};
	siginfo_t info;
	timer_t id[4];
	int seen = 0;

	for (int i = 0; i < 4; i++) {
		e.sigev_signo = i < 2 ? RT + 8 : SIGUSR1;
		e.sigev_value.sival_int = 1 << i;
		if (timer_create(CLOCK_MONOTONIC, &e, &id[i]) != 0 ||
		    timer_settime(id[i], 0, &soon, NULL) != 0)
			return 1;
	}
	for (int i = 0; i < 4; i++) {
		if (sigwaitinfo(&set, &info) < 0 || info.si_code != SI_TIMER ||
		    info.si_overrun != 0)
			return 2;
		seen |= info.si_value.sival_int;
	}
	if (seen != 15 || !FAILS(sigtimedwait(&set, NULL, &none), EAGAIN))
		return 3;
	return 0;
}

/* A tracer changes why a signal comes. */
static int
tracers_change_them(void *arg)
{
	struct sigaction act = {.sa_sigaction = keep, .sa_flags = SA_SIGINFO};
	siginfo_t info;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		sigaction(RT + 9, &act, NULL);
		send_value(RT + 9, 1);
		_exit(got[0]);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_GETSIGINFO, pid, NULL, &info) != 0 || info.si_value.sival_int != 1)
		return 1;
	info.si_value.sival_int = 55;
	if (ptrace(PTRACE_SETSIGINFO, pid, NULL, &info) != 0 ||
	    ptrace(PTRACE_CONT, pid, NULL, RT + 9) != 0 || waitpid(pid, &status, 0) != pid)
		return 2;
	return WIFEXITED(status) && WEXITSTATUS(status) == 55 ? 0 : 3;
}

/* Forgets n queued signals, half of them of a number whose signals came before the others. */
static void *
block_all(void *arg)
{
	pause();
	return NULL;
}

/* Takes 20 pending signals, one by one, in a process of n other threads. */
int
queue_awaited(unsigned n)
{
	struct timespec now = {0, 0};
	sigset_t set;
	pthread_t t;

	sigemptyset(&set);
	for (int i = 0; i < 20; i++)
		sigaddset(&set, RT + i);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&t, NULL, block_all, NULL) != 0)
			return 1;
	for (int i = 0; i < 20; i++)
		if (send_value(RT + i, i) != 0)
			return 2;
	for (int i = 0; i < 20; i++)
		if (sigtimedwait(&set, NULL, &now) != RT + i)
			return 3;
	return 0;
}

int
queue_forgotten(unsigned n)
{
	long from;

	block(RT, RT + 30);
	setrlimit(RLIMIT_SIGPENDING, &(struct rlimit){n + 10, n + 10});
	for (unsigned i = 0; i < n; i++)
		if (send_value(i < n / 2 ? RT + 30 : RT, (int)i) != 0)
			return 1;
	from = now_ns(CLOCK_MONOTONIC);
	signal(RT, SIG_IGN);
	signal(RT + 30, SIG_IGN);
	printf("%u signals forgotten in %ld ns\n", n, now_ns(CLOCK_MONOTONIC) - from);
	return 0;
}

void
test_queue(void)
{
	result(in_child(are_queued, NULL) == 0,
	       "real-time signals are queued, by number and then by age; standard ones are not");
	result(in_child(are_handled, NULL) == 0, "a handler is called for each, with its value");
	result(in_child(are_limited, getuid() == 0 ? "" : NULL) == 0,
	       "RLIMIT_SIGPENDING limits sigqueue, but not kill");
	result(in_child(reasons_are_checked, NULL) == 0,
	       "rt_sigqueueinfo gives any reason to its own process, and to others few");
	result(in_child(threads_get_their_own, NULL) == 0, "pthread_sigqueue reaches one thread");
	result(in_child(all_are_woken, NULL) == 0, "of two threads that wait, each gets a signal");
	result(in_child(files_read_them, NULL) == 0, "signalfd reads each, with its value");
	result(in_child(timers_have_their_own, NULL) == 0, "each timer's signal is kept");
	result(in_child(tracers_change_them, NULL) == 0, "PTRACE_SETSIGINFO changes a reason");
}
