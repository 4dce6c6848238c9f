/* cputime.c - clocks of the time on a CPU: of others, with timers, and with sleepers. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

static volatile sig_atomic_t seen, overruns, value;
static atomic_bool stop;

static void
count_expiry(int sig, siginfo_t *info, void *context)
{
	seen++;
	overruns += info->si_overrun;
	value = info->si_value.sival_int;
}

static void catch (int sig)
{
	struct sigaction act = {.sa_sigaction = count_expiry, .sa_flags = SA_SIGINFO | SA_RESTART};

	seen = overruns = 0;
	sigaction(sig, &act, NULL);
}

static timer_t
make_timer(clockid_t clock)
{
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	timer_t t;

	e.sigev_value.sival_int = 77;
	return timer_create(clock, &e, &t) == 0 ? t : (timer_t)-1;
}

static void *
computes(void *arg)
{
	sigset_t all;

	sigfillset(&all); /* the other thread gets them */
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (!atomic_load(&stop))
		continue;
	return NULL;
}

/* A timer by that clock sends signals while the program computes, and none while it sleeps. */
static int
timer_counts(void *arg)
{
	const clockid_t clock = *(const clockid_t *)arg;
	const struct itimerspec often = {{0, MS}, {0, MS}}, far = {{0, 0}, {1000, 0}}, off = {0};
	const struct timespec nap = {0, 50 * MS};
	struct itimerspec left;
	timer_t t = make_timer(clock);
	long begin = now_ns(clock), used, armed, now, last = 0;

	catch (SIGUSR1);
	if (t == (timer_t)-1 || timer_settime(t, 0, &often, NULL) != 0)
		return 1;
	armed = now_ns(clock);
	do { /* last: before the signal that ends this */
		now = now_ns(clock);
		last = seen < 3 ? now : last;
	} while (seen < 3);
	if (timer_settime(t, 0, &off, &left) != 0 || left.it_interval.tv_nsec != MS)
		return 2;
	used = now_ns(clock) - begin;
	if (value != 77 || seen + overruns > used / MS || seen + overruns < (last - armed) / MS)
		return 3;
	begin = now_ns(clock);
	if (timer_settime(t, 0, &far, NULL) != 0 || nanosleep(&nap, NULL) != 0 ||
	    timer_gettime(t, &left) != 0)
		return 4;
	used = 1000000000000 - left.it_value.tv_sec * 1000000000 - left.it_value.tv_nsec;
	if (used > now_ns(clock) - begin || left.it_value.tv_sec > 1000)
		return 5;
	/* A time that is over; nobody takes the signal of a timer that is deleted. */
	seen = 0;
	left = (struct itimerspec){{0, 0}, {0, 1}};
	if (timer_settime(t, TIMER_ABSTIME, &left, NULL) != 0)
		return 6;
	while (seen == 0)
		continue;
	return timer_gettime(t, &left) != 0 || left.it_value.tv_sec != 0 ||
	       left.it_value.tv_nsec != 0 || timer_delete(t) != 0;
}

/* What is ignored does not stop a timer: its later signals come. */
static int
ignored_timer_goes_on(void *arg)
{
	const struct itimerspec often = {{0, MS}, {0, MS}};
	timer_t t = make_timer(CLOCK_PROCESS_CPUTIME_ID);
	long begin = now_ns(CLOCK_PROCESS_CPUTIME_ID);

	signal(SIGUSR1, SIG_IGN);
	if (t == (timer_t)-1 || timer_settime(t, 0, &often, NULL) != 0)
		return 1;
	while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < begin + 50 * MS)
		continue;
	catch (SIGUSR1);
	while (seen < 2)
		continue;
	return 0;
}

/* A timer by a thread's clock does not count the time of others. */
static int
threads_count_apart(void *arg)
{
	const struct itimerspec soon = {{0, 0}, {0, 20 * MS}};
	const struct timespec nap = {0, 5 * MS};
	pthread_t thread;
	clockid_t clock;
	timer_t own = make_timer(CLOCK_THREAD_CPUTIME_ID), its;
	long begin;

	catch (SIGUSR1);
	if (pthread_create(&thread, NULL, computes, NULL) != 0 ||
	    pthread_getcpuclockid(thread, &clock) != 0 || own == (timer_t)-1)
		return 1;
	begin = now_ns(clock);
	if (timer_settime(own, 0, &soon, NULL) != 0)
		return 2;
	while (now_ns(clock) < begin + 100 * MS)
		nanosleep(&nap, NULL);
	if (seen != 0 && now_ns(CLOCK_THREAD_CPUTIME_ID) < 20 * MS)
		return 3;
	timer_delete(own);
	seen = 0;
	its = make_timer(clock);
	if (its == (timer_t)-1 || timer_settime(its, 0, &soon, NULL) != 0)
		return 4;
	while (seen == 0)
		nanosleep(&nap, NULL);
	atomic_store(&stop, true);
	return pthread_join(thread, NULL) != 0;
}

/* Raw: the C library refuses some clocks itself. */
static long
sleep_by(clockid_t clock, int flags, struct timespec *t, struct timespec *rest)
{
	return syscall(SYS_clock_nanosleep, clock, flags, t, rest);
}

static int
sleeps_while_another_computes(void *arg)
{
	struct timespec span = {0, 30 * MS}, now = {0, 1}, bad = {0, -1}, far = {1000, 0}, rest;
	struct itimerspec soon = {{0, 0}, {0, 20 * MS}};
	clockid_t own;
	pthread_t thread;
	long begin = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	timer_t t;

	pthread_getcpuclockid(pthread_self(), &own);
	if (pthread_create(&thread, NULL, computes, NULL) != 0 ||
	    sleep_by(CLOCK_PROCESS_CPUTIME_ID, 0, &span, NULL) != 0)
		return 1;
	if (now_ns(CLOCK_PROCESS_CPUTIME_ID) < begin + 30 * MS)
		return 2;
	begin = now_ns(CLOCK_PROCESS_CPUTIME_ID) + 40 * MS;
	span = (struct timespec){begin / 1000000000, begin % 1000000000};
	if (sleep_by(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &span, NULL) != 0 ||
	    now_ns(CLOCK_PROCESS_CPUTIME_ID) < begin)
		return 3;
	if (sleep_by(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &now, NULL) != 0 ||
	    !FAILS(sleep_by(CLOCK_PROCESS_CPUTIME_ID, 0, &bad, NULL), EINVAL) ||
	    !FAILS(sleep_by(CLOCK_THREAD_CPUTIME_ID, 0, &far, NULL), EOPNOTSUPP) ||
	    !FAILS(sleep_by(own, 0, &far, NULL), EINVAL) ||
	    !FAILS(sleep_by(CLOCK_REALTIME_COARSE, 0, &far, NULL), EOPNOTSUPP))
		return 4;
	/* A handler ends the sleep, and what is left is told. */
	catch (SIGUSR1);
	t = make_timer(CLOCK_PROCESS_CPUTIME_ID);
	if (timer_settime(t, 0, &soon, NULL) != 0 ||
	    !FAILS(sleep_by(CLOCK_PROCESS_CPUTIME_ID, 0, &far, &rest), EINTR) || seen != 1 ||
	    rest.tv_sec < 900 || rest.tv_sec >= 1000)
		return 5;
	atomic_store(&stop, true);
	return pthread_join(thread, NULL) != 0;
}

static void *
ends_at_once(void *arg)
{
	return NULL;
}

/* The clock by which ticks look is the one that programs read. */
static int
ends_of_threads_lose_no_time(void *arg)
{
	const struct itimerspec steady = {{0, 1}, {0, 1}};
	struct timespec span = {0, 15 * MS};
	timer_t t = make_timer(CLOCK_PROCESS_CPUTIME_ID);
	pthread_t thread;

	for (unsigned i = 0; i < how_often(3000); i++)
		if (pthread_create(&thread, NULL, ends_at_once, NULL) != 0 ||
		    pthread_join(thread, NULL) != 0)
			return 1;
	signal(SIGUSR1, SIG_IGN);
	if (timer_settime(t, 0, &steady, NULL) != 0 ||
	    pthread_create(&thread, NULL, computes, NULL) != 0)
		return 2;
	for (int i = 0; i < 20; i++) {
		long begin = now_ns(CLOCK_PROCESS_CPUTIME_ID);

		if (sleep_by(CLOCK_PROCESS_CPUTIME_ID, 0, &span, NULL) != 0)
			return 3;
		if (now_ns(CLOCK_PROCESS_CPUTIME_ID) < begin + 15 * MS)
			return 4;
	}
	atomic_store(&stop, true);
	return pthread_join(thread, NULL) != 0;
}

#define SLEEPERS 40 /* more than a tick wakes */

static long wake_at, awake_at[SLEEPERS];

static void *
sleeps_until(void *arg)
{
	long *awake = arg, at = wake_at + (awake - awake_at < SLEEPERS / 2 ? 80 : 20) * MS;
	struct timespec until = {at / 1000000000, at % 1000000000};

	if (sleep_by(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &until, NULL) == 0 &&
	    now_ns(CLOCK_PROCESS_CPUTIME_ID) >= at)
		*awake = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	return NULL;
}

/*
 * Half of them began to sleep first, and wake last. Only where instructions count: what a host
 * takes from a CPU is time of the process, too, and may be more than that between the two halves.
 */
int
cputime_sleepers(void)
{
	pthread_t sleepers[SLEEPERS], thread;

	wake_at = now_ns(CLOCK_PROCESS_CPUTIME_ID) + 100 * MS;
	for (int i = 0; i < SLEEPERS; i++)
		if (pthread_create(&sleepers[i], NULL, sleeps_until, &awake_at[i]) != 0)
			return 1;
	if (pthread_create(&thread, NULL, computes, NULL) != 0)
		return 2;
	for (int i = 0; i < SLEEPERS; i++)
		pthread_join(sleepers[i], NULL);
	atomic_store(&stop, true);
	for (int i = 0; i < SLEEPERS; i++)
		if (awake_at[i] == 0 ||
		    (i >= SLEEPERS / 2 && awake_at[i] > awake_at[i - SLEEPERS / 2]))
			return 3;
	return pthread_join(thread, NULL) != 0;
}

/* A time that is over is told at once, though no thread computes. */
static int
times_that_are_over(void *arg)
{
	struct timespec past = {0, 1};
	struct itimerspec once = {{0, 0}, {0, 1}};
	timer_t t = make_timer(CLOCK_PROCESS_CPUTIME_ID);
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (sleep_by(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &past, NULL) != 0 ||
	    timer_settime(t, TIMER_ABSTIME, &once, NULL) != 0)
		return 1;
	return sigwaitinfo(&set, NULL) != SIGUSR1;
}

static pid_t sets_a_timer_tid;

static void *
sets_a_timer(void *arg)
{
	const struct itimerspec far = {{0, MS}, {1000, 0}};

	sets_a_timer_tid = (pid_t)syscall(SYS_gettid);
	*(timer_t *)arg = make_timer(CLOCK_THREAD_CPUTIME_ID);
	return timer_settime(*(timer_t *)arg, 0, &far, NULL) == 0 ? arg : NULL;
}

static int
clock_of_an_ended_thread(void *arg)
{
	const struct itimerspec far = {{0, MS}, {1000, 0}};
	struct itimerspec left;
	pthread_t thread;
	void *good;
	timer_t t;

	if (pthread_create(&thread, NULL, sets_a_timer, &t) != 0 ||
	    pthread_join(thread, &good) != 0 || good == NULL)
		return 1;
	while (syscall(SYS_tgkill, getpid(), sets_a_timer_tid, 0) == 0)
		sched_yield(); /* who joins it is told a little before it has gone */
	if (timer_gettime(t, &left) != 0 || left.it_value.tv_sec != 0 ||
	    left.it_value.tv_nsec != 0 || left.it_interval.tv_nsec != 0)
		return 2;
	return !FAILS(timer_settime(t, 0, &far, NULL), ESRCH) || timer_delete(t) != 0;
}

/* A process ends, or executes, while such timers run and threads sleep so. */
static int
ends_while_they_run(void *arg)
{
	const struct itimerspec often = {{0, MS}, {0, MS}};
	pthread_t sleeper, thread;
	int how = *(int *)arg;

	wake_at = 1000000 * MS;
	catch (SIGUSR1);
	if (pthread_create(&sleeper, NULL, sleeps_until, awake_at) != 0 ||
	    pthread_create(&thread, NULL, computes, NULL) != 0 ||
	    timer_settime(make_timer(CLOCK_PROCESS_CPUTIME_ID), 0, &often, NULL) != 0 ||
	    timer_settime(make_timer(CLOCK_THREAD_CPUTIME_ID), 0, &often, NULL) != 0)
		return 1;
	while (seen < 3)
		continue;
	if (how == 0) {
		signal(SIGUSR1, SIG_IGN);
		execl("/bin/true", "true", NULL);
	}
	if (how == 1)
		kill(getpid(), SIGKILL);
	return 0;
}

/* A child sleeps for span_ns of its CPU clock, and is stopped meanwhile. 0: SIGCONT continues the
 * sleep; 1: it begins again, as far as one can see. */
static int
stopped_sleep_begins_again(long *shared, long span_ns)
{
	struct timespec span = {span_ns / 1000000000, span_ns % 1000000000}, nap = {0, MS};
	clockid_t clock;
	pthread_t thread;
	long stopped;
	int status;
	pid_t pid;

	shared[0] = 0;
	pid = fork();
	if (pid == 0) {
		pthread_create(&thread, NULL, computes, NULL);
		shared[0] = now_ns(CLOCK_PROCESS_CPUTIME_ID);
		sleep_by(CLOCK_PROCESS_CPUTIME_ID, 0, &span, NULL);
		shared[1] = now_ns(CLOCK_PROCESS_CPUTIME_ID);
		_exit(0);
	}
	if (clock_getcpuclockid(pid, &clock) != 0)
		return 2;
	while (now_ns(clock) < span_ns / 2)
		nanosleep(&nap, NULL);
	kill(pid, SIGSTOP);
	if (waitpid(pid, &status, WUNTRACED) != pid)
		return 2;
	stopped = now_ns(clock);
	if (WIFSTOPPED(status)) {
		kill(pid, SIGCONT);
		waitpid(pid, &status, 0);
	}
	if (status != 0 || shared[1] < shared[0] + span_ns)
		return 2;
	return stopped >= shared[0] + span_ns || shared[1] >= stopped + span_ns;
}

/* On a machine that stands still for half the span, a sleep that continues is as long as one that
 * begins again: so it is asked with ever longer ones. One that begins again is never shorter. */
static int
a_stop_continues(void *arg)
{
	long *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r = 1;

	for (int i = 0; i < 20 && r == 1; i++)
		r = stopped_sleep_begins_again(shared, (100 * MS) << i / 3);
	return r;
}

/* The process's clock, named by the thread's own number: who reads it may, nobody else. */
static void *
names_it_by_thread(void *arg)
{
	clockid_t clock = (clockid_t)(~(unsigned)syscall(SYS_gettid) << 3 | 2);
	struct timespec nap = {0, MS}, t;
	struct sigevent e = {.sigev_notify = SIGEV_NONE};
	long process = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	timer_t timer;

	*(bool *)arg = now_ns(clock) >= process && FAILS(clock_getres(clock, &t), EINVAL) &&
		       FAILS(timer_create(clock, &e, &timer), EINVAL) &&
		       clock_nanosleep(clock, 0, &nap, NULL) == EINVAL;
	return NULL;
}

static int
clock_by_thread(void *arg)
{
	bool good = false;
	pthread_t thread;

	return pthread_create(&thread, NULL, names_it_by_thread, &good) != 0 ||
	       pthread_join(thread, NULL) != 0 || !good;
}

static int
clocks_of_others(void *arg)
{
	struct timespec nap = {0, 2 * MS}, t;
	clockid_t clock, gone;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		computes(NULL);
	if (clock_getcpuclockid(pid, &clock) != 0)
		return 1;
	while (now_ns(clock) < 20 * MS)
		nanosleep(&nap, NULL);
	if (clock_getres(clock, &t) != 0 || t.tv_sec != 0 ||
	    !FAILS(clock_settime(clock, &t), EPERM))
		return 2;
	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid)
		return 3;
	if (now_ns(clock) != -1 || errno != EINVAL || clock_getcpuclockid(pid, &gone) != ESRCH)
		return 4;
	return clock_getcpuclockid(getppid(), &clock) != 0 || now_ns(clock) <= 0;
}

static void *
yield(void *arg)
{
	for (;;)
		sched_yield();
	return NULL;
}

/* Each turn of a thread that yields charges its time. */
static int
clock_goes_on_while_threads_yield(void *arg)
{
	long last = 0, now;
	pthread_t t;

	for (unsigned i = 0; i < 3; i++)
		if (pthread_create(&t, NULL, yield, NULL) != 0)
			return 1;
	for (unsigned i = 0; i < 300; i++) {
		now = now_ns(CLOCK_PROCESS_CPUTIME_ID);
		if (now < last)
			return 2;
		last = now;
	}
	return 0;
}

void
test_cputime(void)
{
	result(in_child(timer_counts, &(clockid_t){CLOCK_PROCESS_CPUTIME_ID}) == 0,
	       "timers by a process's CPU clock");
	result(in_child(timer_counts, &(clockid_t){CLOCK_THREAD_CPUTIME_ID}) == 0,
	       "timers by a thread's CPU clock");
	result(in_child(ignored_timer_goes_on, NULL) == 0, "one whose signal is ignored goes on");
	result(in_child(threads_count_apart, NULL) == 0,
	       "a thread's clock counts that thread alone");
	result(in_child(sleeps_while_another_computes, NULL) == 0,
	       "clock_nanosleep by a CPU clock");
	result(in_child(ends_of_threads_lose_no_time, NULL) == 0,
	       "and after many threads have ended");
	result(in_child(times_that_are_over, NULL) == 0, "times that are over");
	result(in_child(clock_of_an_ended_thread, NULL) == 0, "a timer by an ended thread's clock");
	result(in_child(ends_while_they_run, &(int){0}) == 0,
	       "a process that calls execve while they run");
	result(in_child(ends_while_they_run, &(int){1}) == 128 + SIGKILL, "one that is killed");
	result(in_child(ends_while_they_run, &(int){2}) == 0, "one that ends");
	result(in_child(a_stop_continues, NULL) == 0, "and after a stop");
	result(in_child(clock_by_thread, NULL) == 0, "a process's clock by a thread's number");
	result(in_child(clocks_of_others, NULL) == 0, "CPU clocks of other processes");
	result(in_child(clock_goes_on_while_threads_yield, NULL) == 0,
	       "a process's clock does not go back while its threads yield");
}
