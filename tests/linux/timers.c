/* timers.c - timerfd, timers of timer_create(), and signalfd. */
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
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

static long
ns_of(struct timespec t)
{
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool
timerfd_counts(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
	    set = epoll_create1(0);
	int real = timerfd_create(CLOCK_REALTIME, 0), event = eventfd(0, 0);
	struct itimerspec often = {{0, MS}, {0, MS}}, once = {{0, 0}, {0, 2 * MS}},
			  far = {{7, 5}, {100, 0}}, off = {{9, 9}, {0, 0}}, old,
			  bad = {{0, 0}, {0, 1000000000}};
	struct timespec nap = {0, 20 * MS};
	long begin;
	uint64_t n = 0;
	bool good = fd >= 0 && real >= 0;

	good = good && FAILS(read(fd, &n, 8), EAGAIN) &&
	       watch(set, EPOLL_CTL_ADD, fd, EPOLLIN, 0) == 0 && timerfd_gettime(fd, &old) == 0 &&
	       ns_of(old.it_value) == 0;
	begin = now_ns(CLOCK_MONOTONIC);
	good = good && timerfd_settime(fd, 0, &often, NULL) == 0 && nanosleep(&nap, NULL) == 0 &&
	       told(set) == EPOLLIN && read(fd, &n, 8) == 8 && n >= 20;
	good = good && (long)n <= (now_ns(CLOCK_MONOTONIC) - begin) / MS &&
	       timerfd_gettime(fd, &old) == 0 && ns_of(old.it_interval) == MS &&
	       ns_of(old.it_value) > 0 && ns_of(old.it_value) <= MS;
	good = good && timerfd_settime(fd, 0, &far, &old) == 0 && ns_of(old.it_interval) == MS &&
	       told(set) == 0 && FAILS(read(fd, &n, 8), EAGAIN) &&
	       timerfd_settime(fd, 0, &off, &old) == 0 && old.it_interval.tv_sec == 7 &&
	       ns_of(old.it_value) > 99000000000 && timerfd_gettime(fd, &old) == 0 &&
	       ns_of(old.it_value) == 0;
	/* A read waits; absolute times; one that is over already. */
	good =
	    good && timerfd_settime(real, 0, &once, NULL) == 0 && read(real, &n, 8) == 8 && n == 1;
	clock_gettime(CLOCK_REALTIME, &once.it_value);
	once.it_value.tv_sec -= 1000;
	good = good && timerfd_settime(real, TFD_TIMER_ABSTIME, &once, NULL) == 0 &&
	       read(real, &n, 8) == 8 && n == 1;
	clock_gettime(CLOCK_MONOTONIC, &once.it_value);
	once.it_value.tv_sec++;
	good = good && timerfd_settime(fd, TFD_TIMER_ABSTIME, &once, NULL) == 0 &&
	       timerfd_gettime(fd, &old) == 0 && ns_of(old.it_value) > 0 &&
	       ns_of(old.it_value) <= 1000000000;
	on_alarm(0);
	send_alarms(true);
	good = good && timerfd_settime(real, 0, &far, NULL) == 0 && FAILS(read(real, &n, 8), EINTR);
	on_alarm(SA_RESTART);
	once = (struct itimerspec){{0, 0}, {0, 20 * MS}};
	good = good && timerfd_settime(real, 0, &once, NULL) == 0 && read(real, &n, 8) == 8 &&
	       n == 1 && signals_seen > 0;
	send_alarms(false);
	signal(SIGALRM, SIG_DFL);
	good = good && FAILS(timerfd_create(99, 0), EINVAL) &&
	       FAILS(timerfd_create(CLOCK_MONOTONIC, 1), EINVAL) &&
	       FAILS(timerfd_settime(fd, 8, &once, NULL), EINVAL) &&
	       FAILS(timerfd_settime(fd, 0, &bad, NULL), EINVAL) &&
	       FAILS(timerfd_settime(fd, 0, NOWHERE, NULL), EFAULT) &&
	       FAILS(timerfd_settime(fd, 0, &off, NOWHERE), EFAULT) &&
	       FAILS(timerfd_settime(event, 0, &once, NULL), EINVAL) &&
	       FAILS(timerfd_settime(63, 0, &once, NULL), EBADF) &&
	       FAILS(timerfd_gettime(event, &old), EINVAL) &&
	       FAILS(timerfd_gettime(63, &old), EBADF) &&
	       FAILS(timerfd_gettime(fd, NOWHERE), EFAULT) && FAILS(read(fd, &n, 7), EINVAL) &&
	       FAILS(write(fd, &n, 8), EINVAL);
	close(fd);
	close(real);
	close(set);
	close(event);
	return good;
}

/* The system calls themselves: glibc makes threads of its own for SIGEV_THREAD. */
static int
create(int clock, struct sigevent *e, int *id)
{
	return (int)syscall(SYS_timer_create, clock, e, id);
}

static int
settime(int id, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	return (int)syscall(SYS_timer_settime, id, flags, new, old);
}

static siginfo_t last_info;
static _Thread_local volatile unsigned got_here;
static unsigned signals_of_threads[3];

static void
keep_info(int sig, siginfo_t *info, void *context)
{
	last_info = *info;
	got_here++;
	signals_seen++;
}

static void *
be_told(void *arg)
{
	const struct itimerspec every = {{0, MS}, {0, MS}}, off = {{0, 0}, {0, 0}};
	struct sigevent e = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
	unsigned *count = arg;
	int id;

	e._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (create(CLOCK_MONOTONIC, &e, &id) != 0 || settime(id, 0, &every, NULL) != 0)
		return arg;
	while (got_here < 20)
		sched_yield();
	*count = got_here;
	return settime(id, 0, &off, NULL) == 0 ? NULL : arg;
}

static int
timers_are_not_inherited(void *arg)
{
	struct itimerspec left;

	return FAILS(syscall(SYS_timer_gettime, *(int *)arg, &left), EINVAL) ? 0 : 1;
}

static bool
timer_is_set(int id)
{
	struct itimerspec left;

	return syscall(SYS_timer_gettime, id, &left) == 0 &&
	       (left.it_value.tv_sec != 0 || left.it_value.tv_nsec != 0);
}

/* What is pending when a program is executed: of each number what a process has sent, and between
 * that what a timer has sent. */
static const int kept_signals[] = {SIGUSR1, 40}, lost_signals[] = {SIGUSR2, 41, 40};

static bool
make_pending(void)
{
	const struct itimerspec soon = {{0, 0}, {0, 1}};
	struct timespec nap = {0, MS};
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL};
	sigset_t set;
	int id;

	sigemptyset(&set);
	for (unsigned i = 0; i < 2; i++)
		sigaddset(&set, kept_signals[i]);
	for (unsigned i = 0; i < 3; i++)
		sigaddset(&set, lost_signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigqueue(getpid(), 40, (union sigval){.sival_int = 1});
	kill(getpid(), SIGUSR1);
	for (unsigned i = 0; i < 3; i++) {
		e.sigev_signo = lost_signals[i];
		if (create(CLOCK_MONOTONIC, &e, &id) != 0 || settime(id, 0, &soon, NULL) != 0)
			return false;
	}
	do {
		nanosleep(&nap, NULL);
		sigpending(&set);
	} while (!sigismember(&set, SIGUSR2) || !sigismember(&set, 41) || timer_is_set(id));
	return sigqueue(getpid(), 40, (union sigval){.sival_int = 2}) == 0;
}

/* Those of processes, in their order. */
static bool
pending_are_kept(void)
{
	const struct timespec now = {0, 0};
	siginfo_t info[2];
	sigset_t set;

	sigpending(&set);
	if (!sigismember(&set, SIGUSR1) || sigismember(&set, SIGUSR2) || sigismember(&set, 41))
		return false;
	sigemptyset(&set);
	sigaddset(&set, 40);
	for (unsigned i = 0; i < 2; i++)
		if (sigtimedwait(&set, &info[i], &now) != 40 ||
		    info[i].si_value.sival_int != (int)i + 1)
			return false;
	return FAILS(sigtimedwait(&set, info, &now), EAGAIN);
}

int
timers_as_executed(void)
{
	struct itimerspec left;

	for (int id = 0; id < 100; id++)
		if (!FAILS(syscall(SYS_timer_gettime, id, &left), EINVAL))
			return 3;
	return pending_are_kept() ? 0 : 4;
}

/* A timer that kills its process: not its child, nor the program that it executes. */
static int
timers_belong(void *executes)
{
	const struct itimerspec soon = {{0, MS}, {0, MS}}, far = {{0, 0}, {50, 0}};
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	int id;

	if (create(CLOCK_MONOTONIC, &e, &id) != 0 || settime(id, 0, &far, NULL) != 0 ||
	    in_child(timers_are_not_inherited, &id) != 0)
		return 1;
	if (executes != NULL && make_pending())
		execl(linux_test_path(), linux_test_path(), "timers-executed", NULL);
	settime(id, 0, &soon, NULL);
	for (;;)
		pause();
}

static bool
timers_send(void)
{
	const struct itimerspec every = {{0, MS}, {0, MS}}, once = {{0, 0}, {0, MS}},
				bad = {{0, -1}, {0, MS}}, far = {{0, 0}, {50, 0}};
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2},
			none = {.sigev_notify = SIGEV_NONE}, odd = {.sigev_notify = SIGEV_SIGNAL};
	struct sigaction act = {.sa_sigaction = keep_info, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct timespec nap = {0, 20 * MS};
	struct itimerspec left;
	pthread_t t[3];
	sigset_t usr2;
	int id, id2, id3;
	void *r;
	bool good;

	signals_seen = 0;
	sigaction(SIGUSR1, &act, NULL);
	sigaction(SIGUSR2, &act, NULL);
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	e.sigev_value.sival_ptr = (void *)0x123456789abcul;
	good = create(CLOCK_MONOTONIC, &e, &id) == 0 && settime(id, 0, &once, NULL) == 0;
	while (good && signals_seen == 0)
		sched_yield();
	good = good && last_info.si_signo == SIGUSR2 && last_info.si_code == SI_TIMER &&
	       last_info.si_value.sival_ptr == e.sigev_value.sival_ptr &&
	       last_info.si_timerid == id && syscall(SYS_timer_gettime, id, &left) == 0 &&
	       ns_of(left.it_value) == 0;
	/* While the signal is blocked, the timer goes on: overruns are counted. */
	sigprocmask(SIG_BLOCK, &usr2, NULL);
	signals_seen = 0;
	good = good && settime(id, 0, &every, NULL) == 0 && nanosleep(&nap, NULL) == 0 &&
	       signals_seen == 0 && settime(id, 0, &every, &left) == 0 &&
	       ns_of(left.it_interval) == MS && ns_of(left.it_value) > 0 &&
	       nanosleep(&nap, NULL) == 0;
	good = good && sigtimedwait(&usr2, &last_info, NULL) == SIGUSR2 &&
	       last_info.si_overrun >= 0 && nanosleep(&nap, NULL) == 0 &&
	       sigtimedwait(&usr2, &last_info, NULL) == SIGUSR2 && last_info.si_overrun >= 15 &&
	       syscall(SYS_timer_getoverrun, id) == last_info.si_overrun;
	/* One that is ignored for a while is heard afterwards, even if it was pending. */
	nanosleep(&nap, NULL);
	signal(SIGUSR2, SIG_IGN);
	sigprocmask(SIG_UNBLOCK, &usr2, NULL);
	nanosleep(&nap, NULL);
	signals_seen = 0;
	sigaction(SIGUSR2, &act, NULL);
	while (good && signals_seen < 3)
		sched_yield();
	good = good && syscall(SYS_timer_delete, id) == 0 &&
	       FAILS(syscall(SYS_timer_delete, id), EINVAL);
	/* Without a signal; and the usual one. */
	good = good && create(CLOCK_REALTIME, &none, &id2) == 0 &&
	       settime(id2, 0, &every, NULL) == 0 && nanosleep(&nap, NULL) == 0 &&
	       syscall(SYS_timer_gettime, id2, &left) == 0 && ns_of(left.it_value) > 0 &&
	       ns_of(left.it_value) <= MS;
	sigaction(SIGALRM, &act, NULL);
	signals_seen = 0;
	good = good && create(CLOCK_BOOTTIME, NULL, &id3) == 0 && id3 != id2 &&
	       settime(id3, 0, &once, NULL) == 0;
	while (good && signals_seen == 0)
		sched_yield();
	good = good && last_info.si_signo == SIGALRM && last_info.si_value.sival_int == id3;
	signal(SIGALRM, SIG_DFL);
	for (unsigned i = 0; i < 3; i++)
		good &= pthread_create(&t[i], NULL, be_told, &signals_of_threads[i]) == 0;
	for (unsigned i = 0; i < 3; i++)
		good &= pthread_join(t[i], &r) == 0 && r == NULL && signals_of_threads[i] >= 20;
	good = good && FAILS(create(99, &e, &id), EINVAL) &&
	       FAILS(create(0, NOWHERE, &id), EFAULT) && FAILS(create(0, &e, NOWHERE), EFAULT) &&
	       FAILS(create(0, &odd, &id), EINVAL);
	odd = (struct sigevent){.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
	odd._sigev_un._tid = 1;
	good = good && FAILS(create(0, &odd, &id), EINVAL) &&
	       FAILS(settime(999, 0, &once, NULL), EINVAL) &&
	       FAILS(settime(id2, 0, &bad, NULL), EINVAL) &&
	       FAILS(settime(id2, 0, NULL, NULL), EINVAL) &&
	       FAILS(settime(id2, 0, NOWHERE, NULL), EFAULT) &&
	       FAILS(settime(id2, 0, &far, NOWHERE), EFAULT) &&
	       FAILS(syscall(SYS_timer_gettime, id2, NOWHERE), EFAULT) &&
	       FAILS(syscall(SYS_timer_gettime, 999, &left), EINVAL) &&
	       FAILS(syscall(SYS_timer_getoverrun, 999), EINVAL);
	signal(SIGUSR1, SIG_DFL);
	signal(SIGUSR2, SIG_DFL);
	return good && in_child(timers_belong, NULL) == 128 + SIGKILL &&
	       in_child(timers_belong, &id) == 0;
}

/* One that is ignored for long has nobody to tell; as soon as somebody hears, it goes as before. */
static int
timer_is_heard_again(void *arg)
{
	const struct itimerspec every = {{0, MS}, {0, MS}};
	const struct timespec whiles = {1, 100 * MS}, some = {0, 100 * MS};
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
	struct sigaction act = {.sa_sigaction = keep_info, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct itimerspec left;
	sigset_t usr2;
	int id;

	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	signal(SIGUSR2, SIG_IGN);
	if (create(CLOCK_MONOTONIC, &e, &id) != 0 || settime(id, 0, &every, NULL) != 0 ||
	    nanosleep(&whiles, NULL) != 0)
		return 1;
	/* Linux since 6.13 says that such a timer does not run. */
	if (syscall(SYS_timer_gettime, id, &left) != 0 || ns_of(left.it_value) > MS)
		return 2;
	sigprocmask(SIG_BLOCK, &usr2, NULL);
	if (arg != NULL)
		sigaction(SIGUSR2, &act, NULL);
	return sigtimedwait(&usr2, NULL, &some) == SIGUSR2 ? 0 : 3;
}

/* glibc's own interface, with a thread for each signal. */
static void
count_thread(union sigval v)
{
	__atomic_fetch_add((unsigned *)v.sival_ptr, 1, __ATOMIC_RELAXED);
}

static bool
timers_make_threads(void)
{
	const struct itimerspec every = {{0, MS}, {0, MS}};
	unsigned count = 0;
	struct sigevent e = {.sigev_notify = SIGEV_THREAD,
			     .sigev_value.sival_ptr = &count,
			     .sigev_notify_function = count_thread};
	timer_t t;

	if (timer_create(CLOCK_MONOTONIC, &e, &t) != 0 || timer_settime(t, 0, &every, NULL) != 0)
		return false;
	while (__atomic_load_n(&count, __ATOMIC_RELAXED) < 5)
		sched_yield();
	return timer_delete(t) == 0;
}

/* Timers are deleted, and processes end, while timers expire. */
static int
ends_with_timers(void *arg)
{
	const struct itimerspec often = {{0, 1000}, {0, 1000}};
	const struct itimerval often_us = {{0, 1}, {0, 1}};
	int id;

	signal(SIGALRM, SIG_IGN);
	for (unsigned i = 0; i < 200; i++)
		if (create(CLOCK_MONOTONIC, NULL, &id) != 0 || settime(id, 0, &often, NULL) != 0 ||
		    (i % 3 == 0 && sched_yield() != 0) || syscall(SYS_timer_delete, id) != 0)
			return 1;
	return create(CLOCK_MONOTONIC, NULL, &id) == 0 && settime(id, 0, &often, NULL) == 0 &&
		       setitimer(ITIMER_REAL, &often_us, NULL) == 0
		   ? 0
		   : 2;
}

static bool
timers_end_while_they_expire(void)
{
	bool good = true;

	for (unsigned i = 0; i < 20; i++)
		good &= in_child(ends_with_timers, NULL) == 0;
	return good;
}

/* ---- signalfd ---- */

/* Sends SIGUSR2 when the other thread has had SIGALRM. */
static void *
kill_later(void *arg)
{
	struct timespec ts = {0, MS};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	while (signals_seen < 3)
		nanosleep(&ts, NULL);
	kill(getpid(), SIGUSR2);
	return NULL;
}

/* A thread that waits until a file tells something. */
struct waiter {
	int fd;
	bool epoll;
	_Atomic(pid_t) tid;
};

static void *
wait_for(void *arg)
{
	struct waiter *w = arg;
	struct epoll_event e;
	struct pollfd p = {.fd = w->fd, .events = POLLIN};

	w->tid = gettid();
	return (w->epoll ? epoll_wait(w->fd, &e, 1, -1) : poll(&p, 1, -1)) == 1 ? arg : NULL;
}

/* Does the thread sleep? It has nothing else to wait for. */
static bool
sleeps(const struct waiter *w)
{
	char path[64], text[512] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", w->tid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return false;
	read(fd, text, sizeof(text) - 1);
	close(fd);
	return strstr(text, ") S ") != NULL;
}

/* Who waits sees that the file takes another signal now, which is pending. */
static int
new_mask_wakes(void *arg)
{
	int fd, poller = epoll_create1(0);
	struct waiter w[2] = {{.fd = -1}, {.fd = poller, .epoll = true}};
	pthread_t t[2];
	sigset_t set;
	void *good[2] = {NULL, NULL};

	sigemptyset(&set);
	w[0].fd = fd = signalfd(-1, &set, 0);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	kill(getpid(), SIGUSR1);
	if (fd < 0 || watch(poller, EPOLL_CTL_ADD, fd, EPOLLIN, 0) != 0 || told(poller) != 0)
		return 1;
	for (int i = 0; i < 2; i++) {
		if (pthread_create(&t[i], NULL, wait_for, &w[i]) != 0)
			return 2;
		while (!sleeps(&w[i]))
			sched_yield();
	}
	if (signalfd(fd, &set, 0) != fd)
		return 3;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], &good[i]);
	return good[0] != NULL && good[1] != NULL ? 0 : 4;
}

static int
reads_signals(void *arg)
{
	struct signalfd_siginfo s[3];
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	const struct itimerspec once = {{0, 0}, {0, MS}};
	sigset_t set;
	pthread_t t;
	int fd, tight, poller = epoll_create1(0), id;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	tight = signalfd(-1, &set, SFD_NONBLOCK);
	if (fd < 0 || tight < 0 || watch(poller, EPOLL_CTL_ADD, tight, EPOLLIN | EPOLLET, 0) != 0 ||
	    !FAILS(read(tight, s, sizeof(s)), EAGAIN) || told(poller) != 0)
		return 1;
	kill(getpid(), SIGUSR2);
	pthread_kill(pthread_self(), SIGUSR1);
	if (told(poller) != EPOLLIN || told(poller) != 0 ||
	    read(tight, s, sizeof(s)) != 2 * sizeof(s[0]) || s[0].ssi_signo != SIGUSR1 ||
	    s[0].ssi_code != SI_TKILL || s[1].ssi_signo != SIGUSR2 || s[1].ssi_code != SI_USER ||
	    s[1].ssi_pid != (uint32_t)getpid() || s[1].ssi_uid != getuid())
		return 2;
	/* A read waits for one of its signals. */
	on_alarm(SA_RESTART);
	send_alarms(true);
	if (signalfd(fd, &set, 0) != fd || pthread_create(&t, NULL, kill_later, NULL) != 0 ||
	    read(fd, s, sizeof(s)) != sizeof(s[0]) || s[0].ssi_signo != SIGUSR2 ||
	    signals_seen == 0)
		return 3;
	pthread_join(t, NULL);
	on_alarm(0);
	if (!FAILS(read(fd, s, sizeof(s)), EINTR))
		return 4;
	send_alarms(false);
	e.sigev_value.sival_int = 77;
	if (create(CLOCK_MONOTONIC, &e, &id) != 0 || settime(id, 0, &once, NULL) != 0 ||
	    read(fd, s, sizeof(s)) != sizeof(s[0]) || s[0].ssi_code != SI_TIMER ||
	    s[0].ssi_int != 77 || s[0].ssi_tid != (uint32_t)id)
		return 5;
	return FAILS(read(fd, s, 10), EINVAL) && FAILS(signalfd(poller, &set, 0), EINVAL) &&
		       FAILS(signalfd(60, &set, 0), EBADF) &&
		       FAILS(signalfd(-1, &set, 1), EINVAL) &&
		       FAILS(syscall(SYS_signalfd4, -1, NOWHERE, 8, 0), EFAULT) &&
		       FAILS(syscall(SYS_signalfd4, -1, &set, 4, 0), EINVAL)
		   ? 0
		   : 6;
}

void
test_timers(void)
{
	result(timerfd_counts(), "timerfd counts how often it has expired");
	result(timers_send(), "timers send signals, to processes and threads, and count overruns");
	result(in_child(timer_is_heard_again, "by a handler") == 0,
	       "a timer whose signal was ignored for long sends the next one in time");
	/* Linux did so up to 6.12. */
	result(!is_kestrel() || in_child(timer_is_heard_again, NULL) == 0,
	       "so it does if the signal is blocked");
	result(timers_make_threads(), "timers of SIGEV_THREAD");
	result(timers_end_while_they_expire(), "timers end while they expire");
	result(in_child(reads_signals, NULL) == 0, "signalfd reads pending signals");
	result(in_child(new_mask_wakes, NULL) == 0, "a signalfd's new mask wakes who polls it");
}
