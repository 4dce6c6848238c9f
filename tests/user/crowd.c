/* crowd.c - one user's many processes, and how long another one waits beside them. */
#include "tests/user/crowd.h"

#include <err.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernel/abi/sched.h"
#include "tests/user/ktraced.h"
#include "tests/user/raw.h"

#define STRANGER 1000
#define WAKES    20
#define TURNS    8 /* half as many with real-time processes */

static bool own;     /* the crowd is of the same user */
static int ready[2]; /* a pipe: a byte for each of the crowd that does what it is to do */

static uint64_t
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000;
}

static void
spin(void)
{
	for (;;)
		;
}

/* It sleeps as soon as it has had the CPU for a moment. */
static void
nap(void)
{
	for (;;) {
		for (volatile unsigned i = 0; i < 20000; i++)
			;
		usleep(1);
	}
}

static void
fork_and_wait(void)
{
	for (;;) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
}

static void
bomb(void)
{
	for (;;)
		fork();
}

/* It sleeps, and ignores what its timers say as often as they can. */
static void
ignore_alarms(void)
{
	const struct itimerval often = {{0, 1}, {0, 1}};
	const struct itimerspec too = {{0, 1000}, {0, 1000}};
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG};
	timer_t t;

	signal(SIGALRM, SIG_IGN);
	setitimer(ITIMER_REAL, &often, NULL);
	while (timer_create(CLOCK_MONOTONIC, &e, &t) == 0)
		timer_settime(t, 0, &too, NULL);
	for (;;)
		pause();
}

static void
is_there(void)
{
	if (write(ready[1], "", 1) != 1)
		_exit(1);
}

static void
wait_for(unsigned n)
{
	char c;

	for (; n > 0; n--)
		if (read(ready[0], &c, 1) != 1)
			err(1, "read");
}

/* It makes records for ktrace: as a program of its own, for who has changed its user may not. */
static void
trace(void)
{
	char fd[12];

	snprintf(fd, sizeof(fd), "%d", ready[1]);
	execl("/bin/user_test", "user_test", "ktrace", "crowd", fd, NULL);
	_exit(1);
}

static int traced_to; /* a descriptor */

static void
join(void)
{
	traced_to = ktraced_join_crowd();
	if (traced_to < 0)
		_exit(1);
}

static void
mark(void)
{
	ktraced_crowd(traced_to);
}

static const struct kind {
	const char *name;
	void (*act)(void);
	void (*before)(void); /* as user 0; or NULL */
} kinds[] = {{"spin", spin, NULL},          {"nap", nap, NULL},     {"fork", fork_and_wait, NULL},
	     {"bomb", bomb, NULL},          {"trace", trace, NULL}, {"traced", mark, join},
	     {"alarm", ignore_alarms, NULL}};

static const struct kind *
find_kind(const char *word, unsigned *n)
{
	const char *colon = strchr(word, ':');

	for (unsigned i = 0; colon != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strncmp(word, kinds[i].name, (size_t)(colon - word)) == 0) {
			*n = (unsigned)atoi(colon + 1);
			return &kinds[i];
		}
	return NULL;
}

/* A process of the crowd, in the process group `group`; 0: its own. */
static pid_t
add(const struct kind *kind, pid_t group)
{
	pid_t pid = fork();

	if (pid < 0)
		err(1, "fork");
	if (pid > 0)
		return pid;
	if (kind->before != NULL)
		kind->before();
	if (setpgid(0, group) != 0 || (!own && (setgid(STRANGER) != 0 || setuid(STRANGER) != 0)))
		_exit(1);
	if (kind->act != trace)
		is_there();
	kind->act();
	_exit(0);
}

static pid_t
gather(const struct kind *kind, unsigned n)
{
	pid_t first = add(kind, 0);

	wait_for(1);
	for (unsigned i = 1; i < n; i++)
		add(kind, first);
	wait_for(n - 1);
	return first;
}

/* Those that are just being made are in the group, too. */
static void
disperse(pid_t group)
{
	while (kill(-group, SIGKILL) == 0)
		while (waitpid(-group, NULL, WNOHANG) > 0)
			;
}

static uint64_t
turn_us(void)
{
	static char *const argv[] = {"true", NULL};
	uint64_t start = now_us();
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		execv("/bin/true", argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		errx(1, "/bin/true: pid %d status %#x", pid, (unsigned)status);
	return now_us() - start;
}

/* How late who sleeps for some ms, at many moments of a slice, has the CPU. */
static void
wake_up(const char *word, const struct kind *kind, unsigned n)
{
	uint64_t worst = 0, sum = 0;
	pid_t group = gather(kind, n);

	for (unsigned i = 0; i < WAKES; i++) {
		uint64_t due = now_us() + 5100 + 925 * i, us;

		usleep((unsigned)(due - now_us()));
		us = now_us() - due;
		worst = us > worst ? us : worst;
		sum += us;
	}
	disperse(group);
	printf("late %s worst %lu us mean %lu us\n", word, worst, sum / WAKES);
	fflush(stdout);
}

static pid_t
spin_in_real_time(unsigned cpu)
{
	const int priority = 50;
	uint64_t one = 1ul << cpu;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if (SYSCALL3(sched_setaffinity, 0, sizeof(one), &one) < 0 ||
	    SYSCALL3(sched_setscheduler, 0, SCHED_FIFO, &priority) != 0)
		_exit(1);
	spin();
	_exit(0);
}

/* Starts a real-time process on each CPU, or ends them. */
static void
real_time(bool on)
{
	static pid_t spinners[64];
	unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);

	for (unsigned cpu = 0; cpu < cpus; cpu++)
		if (on) {
			spinners[cpu] = spin_in_real_time(cpu);
		} else {
			kill(spinners[cpu], SIGKILL);
			waitpid(spinners[cpu], NULL, 0);
		}
}

static void
try(const char *word, const struct kind *kind, unsigned n, bool rt)
{
	uint64_t worst = 0, sum = 0;
	unsigned turns = rt ? TURNS / 2 : TURNS;
	pid_t group = gather(kind, n);

	if (rt)
		real_time(true);
	for (unsigned i = 0; i < turns; i++) {
		uint64_t us = turn_us();

		worst = us > worst ? us : worst;
		sum += us;
		if (i % 2 == 0)
			usleep(7000 * i); /* at many moments of a slice */
	}
	if (rt)
		real_time(false);
	disperse(group);
	printf("crowd %s worst %lu us mean %lu us\n", word, worst, sum / turns);
	fflush(stdout);
}

int
crowd_main(int argc, char **argv)
{
	const char *first = argc > 1 ? argv[1] : "";
	bool rt = strcmp(first, "rt") == 0, late = strcmp(first, "late") == 0;
	unsigned n;

	own = strcmp(first, "own") == 0;
	if (pipe(ready) != 0)
		err(1, "pipe");
	for (int i = rt || own || late ? 2 : 1; i < argc; i++) {
		const struct kind *kind = find_kind(argv[i], &n);

		if (kind == NULL || n == 0)
			errx(
			    2,
			    "usage: user_test crowd [rt|own|late] spin|nap|fork|bomb|trace|traced:N...");
		if (own || late)
			wake_up(argv[i], kind, n);
		else
			try(argv[i], kind, n, rt);
	}
	return 0;
}
