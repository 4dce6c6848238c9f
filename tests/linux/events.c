/* events.c - epoll, eventfd and statx. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define FILE_NAME "/tmp/linux_events"

void *volatile no_address = (void *)8;

volatile sig_atomic_t signals_seen;

static void
handler(int sig)
{
	signals_seen++;
}

void
on_alarm(int flags)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = flags};

	signals_seen = 0;
	sigaction(SIGALRM, &act, NULL);
}

void
send_alarms(bool on)
{
	struct itimerval every = {{0, on ? 3000 : 0}, {0, on ? 3000 : 0}};

	setitimer(ITIMER_REAL, &every, NULL);
}

/* ---- epoll ---- */

int
watch(int set, int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event e = {.events = events, .data.u64 = data};

	return epoll_ctl(set, op, fd, &e);
}

uint32_t
told(int set)
{
	struct epoll_event e[4];
	int n = epoll_wait(set, e, 4, 0);

	return n == 1 ? e[0].events : n == 0 ? 0 : UINT32_MAX;
}

static bool
tells_levels(void)
{
	struct epoll_event e[4];
	int set = epoll_create1(EPOLL_CLOEXEC), ends[2];
	bool good;
	char c;

	if (set < 0 || pipe(ends) != 0)
		return false;
	good = fcntl(set, F_GETFD) == FD_CLOEXEC &&
	       watch(set, EPOLL_CTL_ADD, ends[0], EPOLLIN, 7) == 0 &&
	       watch(set, EPOLL_CTL_ADD, ends[1], EPOLLOUT, 1ull << 60) == 0;
	good = good && epoll_wait(set, e, 4, 0) == 1 && e[0].events == EPOLLOUT &&
	       e[0].data.u64 == 1ull << 60;
	good = good && write(ends[1], "ab", 2) == 2 && epoll_wait(set, e, 4, -1) == 2;
	/* One at a time, each has its turn. */
	good = good && epoll_wait(set, e, 1, 0) == 1 && epoll_wait(set, e + 1, 1, 0) == 1 &&
	       e[0].data.u64 != e[1].data.u64;
	good = good && watch(set, EPOLL_CTL_MOD, ends[1], 0, 0) == 0 && told(set) == EPOLLIN &&
	       read(ends[0], &c, 1) == 1 && told(set) == EPOLLIN && read(ends[0], &c, 1) == 1 &&
	       told(set) == 0;
	good = good && close(ends[1]) == 0 && told(set) == EPOLLHUP;
	good = good && epoll_ctl(set, EPOLL_CTL_DEL, ends[0], NULL) == 0 && told(set) == 0;
	close(ends[0]);
	close(set);
	return good;
}

static bool
keeps_order(void)
{
	struct epoll_event e[4];
	int set = epoll_create1(0), event[3];
	bool good = set >= 0;

	for (uint64_t i = 0; i < 3; i++) {
		event[i] = eventfd(1, 0);
		good = good && watch(set, EPOLL_CTL_ADD, event[i], EPOLLIN, i) == 0;
	}
	for (int turn = 0; good && turn < 3; turn++)
		good = epoll_wait(set, e, 4, 0) == 3 && e[0].data.u64 == 0 && e[1].data.u64 == 1 &&
		       e[2].data.u64 == 2;
	for (int i = 0; i < 3; i++)
		close(event[i]);
	close(set);
	return good;
}

static bool
tells_edges(void)
{
	int set = epoll_create(1), ends[2], event = eventfd(0, EFD_NONBLOCK);
	bool good;
	char c[8];

	if (set < 0 || pipe(ends) != 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0)
		return false;
	good = watch(set, EPOLL_CTL_ADD, ends[0], EPOLLIN | EPOLLET, 0) == 0 && told(set) == 0 &&
	       write(ends[1], "abc", 3) == 3 && told(set) == EPOLLIN && told(set) == 0;
	/* What is left tells nothing, nor does a read; more to read does. */
	good = good && read(ends[0], c, 1) == 1 && told(set) == 0 && write(ends[1], "d", 1) == 1 &&
	       told(set) == EPOLLIN && told(set) == 0;
	/* Emptied and filled in between. */
	good = good && read(ends[0], c, 8) == 3 && write(ends[1], "e", 1) == 1 &&
	       told(set) == EPOLLIN && told(set) == 0;
	good = good && watch(set, EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLET, 0) == 0 &&
	       told(set) == EPOLLIN && told(set) == 0;
	good = good && watch(set, EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLONESHOT, 0) == 0 &&
	       told(set) == EPOLLIN && told(set) == 0 && write(ends[1], "f", 1) == 1 &&
	       told(set) == 0 && watch(set, EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLET, 0) == 0 &&
	       told(set) == EPOLLIN;
	good = good && close(ends[1]) == 0 && told(set) == (EPOLLIN | EPOLLHUP) && told(set) == 0;
	close(ends[0]);
	good = good && watch(set, EPOLL_CTL_ADD, event, EPOLLIN | EPOLLOUT | EPOLLET, 0) == 0 &&
	       told(set) == EPOLLOUT && told(set) == 0 && eventfd_write(event, 1) == 0 &&
	       told(set) == (EPOLLIN | EPOLLOUT) && told(set) == 0;
	close(event);
	close(set);
	return good;
}

/* A call that moves nothing is no event; nor is more room in a pipe that had some. */
static bool
nothing_is_no_event(void)
{
	int set = epoll_create1(0), ends[2], event = eventfd(0, EFD_NONBLOCK);
	uint64_t n = UINT64_MAX - 1;
	static char text[65536];
	bool good = pipe2(ends, O_NONBLOCK) == 0;

	good = good && watch(set, EPOLL_CTL_ADD, ends[1], EPOLLOUT | EPOLLET, 0) == 0 &&
	       told(set) == EPOLLOUT && FAILS(read(ends[0], text, 9), EAGAIN) && told(set) == 0 &&
	       write(ends[1], "abc", 3) == 3 && read(ends[0], text, 9) == 3 && told(set) == 0;
	good = good && write(ends[1], text, sizeof(text)) == sizeof(text) && told(set) == 0 &&
	       read(ends[0], text, 10) == 10 && told(set) == 0 &&
	       read(ends[0], text, 4096) == 4096 && told(set) == EPOLLOUT &&
	       read(ends[0], text, 4096) == 4096 && told(set) == 0 &&
	       read(ends[0], text, sizeof(text)) == sizeof(text) - 8202 && told(set) == 0;
	good = good && watch(set, EPOLL_CTL_ADD, event, EPOLLIN | EPOLLOUT | EPOLLET, 0) == 0 &&
	       told(set) == EPOLLOUT && write(event, &n, 8) == 8 && told(set) == EPOLLIN &&
	       FAILS(eventfd_write(event, 1), EAGAIN) && told(set) == 0 &&
	       read(event, &n, 8) == 8 && told(set) == EPOLLOUT &&
	       FAILS(read(event, &n, 8), EAGAIN) && told(set) == 0;
	close(ends[0]);
	close(ends[1]);
	close(event);
	close(set);
	return good;
}

static bool
contains_sets(void)
{
	int sets[7], ends[2], other;
	struct pollfd p;
	char c;
	bool good = pipe(ends) == 0;

	for (int i = 0; i < 7; i++)
		good = good && (sets[i] = epoll_create1(0)) >= 0;
	for (int i = 0; i < 4; i++)
		good =
		    good && watch(sets[i], EPOLL_CTL_ADD, sets[i + 1], EPOLLIN, (uint64_t)i) == 0;
	/* Five in each other; not six, from either side, and no circle. */
	good = good && FAILS(watch(sets[4], EPOLL_CTL_ADD, sets[5], EPOLLIN, 0), ELOOP) &&
	       FAILS(watch(sets[5], EPOLL_CTL_ADD, sets[0], EPOLLIN, 0), ELOOP) &&
	       FAILS(watch(sets[4], EPOLL_CTL_ADD, sets[0], EPOLLIN, 0), ELOOP) &&
	       FAILS(watch(sets[1], EPOLL_CTL_ADD, sets[0], EPOLLIN, 0), ELOOP);
	p = (struct pollfd){sets[0], POLLIN, 0};
	good = good && watch(sets[4], EPOLL_CTL_ADD, ends[0], EPOLLIN, 0) == 0 &&
	       poll(&p, 1, 0) == 0 && told(sets[0]) == 0 && write(ends[1], "x", 1) == 1 &&
	       poll(&p, 1, -1) == 1 && told(sets[0]) == EPOLLIN && told(sets[4]) == EPOLLIN;
	/* An outer set that wants edges. */
	good = good && watch(sets[6], EPOLL_CTL_ADD, sets[4], EPOLLIN | EPOLLET, 0) == 0 &&
	       told(sets[6]) == EPOLLIN && told(sets[6]) == 0 && write(ends[1], "y", 1) == 1 &&
	       told(sets[6]) == EPOLLIN;
	/* A descriptor more keeps the file in the set; the last one takes it away. */
	other = dup(ends[0]);
	close(ends[0]);
	good = good && told(sets[4]) == EPOLLIN && close(other) == 0 && told(sets[4]) == 0 &&
	       told(sets[0]) == 0;
	good = good && close(sets[4]) == 0 && told(sets[3]) == 0 && read(ends[1], &c, 1) == -1;
	for (int i = 0; i < 7; i++)
		close(sets[i]);
	close(ends[1]);
	return good;
}

/* An outer set that wants edges is told of each, while files leave the inner one, and come. */
static bool
inner_sets_change(void)
{
	int outer = epoll_create1(0), inner = epoll_create1(0);
	int fd[3] = {eventfd(0, EFD_NONBLOCK), eventfd(0, EFD_NONBLOCK), eventfd(1, EFD_NONBLOCK)};
	eventfd_t n;
	bool good = watch(outer, EPOLL_CTL_ADD, inner, EPOLLIN | EPOLLET, 0) == 0 &&
		    watch(inner, EPOLL_CTL_ADD, fd[0], EPOLLIN, 0) == 0 &&
		    watch(inner, EPOLL_CTL_ADD, fd[1], EPOLLIN, 0) == 0 && told(outer) == 0 &&
		    eventfd_write(fd[0], 1) == 0 && told(outer) == EPOLLIN && told(outer) == 0;

	/* One has left after its event; the other one has as many. */
	good = good && eventfd_read(fd[0], &n) == 0 &&
	       watch(inner, EPOLL_CTL_DEL, fd[0], 0, 0) == 0 && told(outer) == 0 &&
	       eventfd_write(fd[1], 1) == 0 && told(outer) == EPOLLIN && told(outer) == 0;
	/* The same of one that was told, and is not waited for any more. */
	good = good && eventfd_read(fd[1], &n) == 0 &&
	       watch(inner, EPOLL_CTL_ADD, fd[0], EPOLLIN, 0) == 0 &&
	       watch(inner, EPOLL_CTL_MOD, fd[1], EPOLLIN | EPOLLONESHOT, 0) == 0 &&
	       told(outer) == 0 && eventfd_write(fd[1], 1) == 0 && told(outer) == EPOLLIN &&
	       told(inner) == EPOLLIN && told(inner) == 0 && told(outer) == 0 &&
	       eventfd_write(fd[0], 1) == 0 && eventfd_write(fd[0], 1) == 0 &&
	       told(outer) == EPOLLIN && told(outer) == 0;
	/* One that is ready comes, or is waited for again. */
	good = good && watch(inner, EPOLL_CTL_ADD, fd[2], EPOLLIN, 0) == 0 &&
	       told(outer) == EPOLLIN && told(outer) == 0 &&
	       watch(inner, EPOLL_CTL_MOD, fd[1], EPOLLIN | EPOLLONESHOT, 0) == 0 &&
	       told(outer) == EPOLLIN && told(outer) == 0;
	/* One that is not ready is waited for again, while others still are. */
	good = good && eventfd_read(fd[0], &n) == 0 &&
	       watch(inner, EPOLL_CTL_MOD, fd[0], EPOLLIN, 0) == 0 && told(outer) == 0;
	for (unsigned i = 0; i < 3; i++)
		close(fd[i]);
	close(inner);
	close(outer);
	return good;
}

static bool
epoll_refuses(void)
{
	int set = epoll_create1(0), ends[2], file = open("/etc/motd", O_RDONLY), other;
	struct epoll_event e;
	bool good = set >= 0 && file >= 0 && pipe(ends) == 0;

	good = good && FAILS(epoll_create1(1), EINVAL) && FAILS(epoll_create(0), EINVAL);
	good = good && FAILS(watch(63, EPOLL_CTL_ADD, ends[0], EPOLLIN, 0), EBADF) &&
	       FAILS(watch(set, EPOLL_CTL_ADD, 63, EPOLLIN, 0), EBADF) &&
	       FAILS(watch(ends[1], EPOLL_CTL_ADD, ends[0], EPOLLIN, 0), EINVAL) &&
	       FAILS(watch(set, EPOLL_CTL_ADD, set, EPOLLIN, 0), EINVAL) &&
	       FAILS(watch(set, 9, ends[0], EPOLLIN, 0), EINVAL) &&
	       FAILS(watch(set, EPOLL_CTL_ADD, file, EPOLLIN, 0), EPERM) &&
	       FAILS(watch(set, EPOLL_CTL_MOD, ends[0], EPOLLIN, 0), ENOENT) &&
	       FAILS(watch(set, EPOLL_CTL_DEL, ends[0], EPOLLIN, 0), ENOENT) &&
	       FAILS(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], NOWHERE), EFAULT);
	other = dup(ends[0]);
	good = good && watch(set, EPOLL_CTL_ADD, ends[0], EPOLLIN, 0) == 0 &&
	       FAILS(watch(set, EPOLL_CTL_ADD, ends[0], EPOLLIN, 0), EEXIST) &&
	       watch(set, EPOLL_CTL_ADD, other, EPOLLIN | EPOLLEXCLUSIVE, 0) == 0 &&
	       FAILS(watch(set, EPOLL_CTL_MOD, other, EPOLLIN, 0), EINVAL) &&
	       FAILS(watch(set, EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLEXCLUSIVE, 0), EINVAL);
	good = good && FAILS(epoll_wait(set, &e, 0, 0), EINVAL) &&
	       FAILS(epoll_wait(63, &e, 1, 0), EBADF) && FAILS(epoll_wait(file, &e, 1, 0), EINVAL);
	/* What could not be told is told later. */
	good = good && watch(set, EPOLL_CTL_DEL, other, 0, 0) == 0 &&
	       watch(set, EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLET, 0) == 0 &&
	       write(ends[1], "x", 1) == 1 && FAILS(epoll_wait(set, NOWHERE, 1, 0), EFAULT) &&
	       told(set) == EPOLLIN;
	close(other);
	close(ends[0]);
	close(ends[1]);
	close(set);
	close(file);
	return good;
}

static bool
epoll_is_interrupted(void)
{
	struct timespec short_time = {0, MS}, bad = {0, -1};
	struct epoll_event e;
	sigset_t alrm, none;
	int set = epoll_create1(0);
	bool good;

	sigemptyset(&none);
	sigemptyset(&alrm);
	sigaddset(&alrm, SIGALRM);
	on_alarm(SA_RESTART);
	send_alarms(true);
	good = FAILS(epoll_wait(set, &e, 1, -1), EINTR) && signals_seen > 0;
	sigprocmask(SIG_BLOCK, &alrm, NULL);
	signals_seen = 0;
	good = good && epoll_wait(set, &e, 1, 10) == 0 && signals_seen == 0 &&
	       FAILS(epoll_pwait(set, &e, 1, -1, &none), EINTR) && signals_seen > 0;
	signals_seen = 0;
	good = good && syscall(SYS_epoll_pwait2, set, &e, 1, &short_time, NULL, 8) == 0 &&
	       FAILS(syscall(SYS_epoll_pwait2, set, &e, 1, &bad, NULL, 8), EINVAL) &&
	       FAILS(syscall(SYS_epoll_pwait2, set, &e, 1, NOWHERE, NULL, 8), EFAULT) &&
	       FAILS(syscall(SYS_epoll_pwait2, set, &e, 1, NULL, &none, 4), EINVAL) &&
	       FAILS(syscall(SYS_epoll_pwait2, set, &e, 1, NULL, &none, 8), EINTR) &&
	       signals_seen > 0;
	send_alarms(false);
	sigprocmask(SIG_UNBLOCK, &alrm, NULL);
	signal(SIGALRM, SIG_DFL);
	close(set);
	return good;
}

#define EVENTS 4
#define TAKERS 4
#define GIVEN  2000ul

static int shared_set, events[EVENTS];
static unsigned long taken;

/* Takes what is told, once each, until a counter says that all is over. */
static void *
take_events(void *arg)
{
	struct epoll_event e[2];

	for (;;) {
		int n = epoll_wait(shared_set, e, 2, -1);

		for (int i = 0; i < n; i++) {
			int which = (int)e[i].data.u64;
			eventfd_t count;

			if (which == EVENTS)
				return NULL;
			while (eventfd_read(events[which], &count) == 0)
				__atomic_fetch_add(&taken, count, __ATOMIC_RELAXED);
			if (errno != EAGAIN ||
			    watch(shared_set, EPOLL_CTL_MOD, events[which],
				  EPOLLIN | EPOLLET | EPOLLONESHOT, (uint64_t)which) != 0)
				return arg;
		}
		if (n <= 0)
			return arg;
	}
}

/* Files come and go in the set meanwhile. */
static void *
change_set(void *arg)
{
	for (int i = 0; i < 300; i++) {
		int e = eventfd(1, 0), set = epoll_create1(0);

		if (e < 0 || set < 0 || watch(shared_set, EPOLL_CTL_ADD, e, 0, 9) != 0 ||
		    watch(shared_set, EPOLL_CTL_ADD, set, 0, 9) != 0 ||
		    watch(set, EPOLL_CTL_ADD, e, EPOLLOUT | EPOLLET, 9) != 0 ||
		    watch(shared_set, EPOLL_CTL_MOD, set, EPOLLERR, 9) != 0)
			return arg;
		close(i % 2 ? e : set);
		close(i % 2 ? set : e);
	}
	return NULL;
}

static void *
give_events(void *arg)
{
	for (unsigned long i = 0; i < GIVEN; i++)
		if (eventfd_write(events[i % EVENTS], 1) != 0)
			return arg;
	return NULL;
}

/* Threads share a set: each event is taken, and by one of them. */
static bool
threads_share_sets(void)
{
	void *(*const fn[TAKERS + 3])(void *) = {give_events, give_events, change_set, take_events,
						 take_events, take_events, take_events};
	pthread_t t[TAKERS + 3];
	int over = eventfd(0, 0);
	bool good = true;
	void *r;

	shared_set = epoll_create1(0);
	for (unsigned i = 0; i < EVENTS; i++) {
		events[i] = eventfd(0, EFD_NONBLOCK);
		good &= watch(shared_set, EPOLL_CTL_ADD, events[i],
			      EPOLLIN | EPOLLET | EPOLLONESHOT, i) == 0;
	}
	good &= watch(shared_set, EPOLL_CTL_ADD, over, EPOLLIN, EVENTS) == 0;
	for (unsigned i = 0; i < TAKERS + 3; i++)
		good &= pthread_create(&t[i], NULL, fn[i], &taken) == 0;
	for (unsigned i = 0; i < 3; i++)
		good &= pthread_join(t[i], &r) == 0 && r == NULL;
	while (good && __atomic_load_n(&taken, __ATOMIC_RELAXED) != 2 * GIVEN)
		sched_yield();
	good &= eventfd_write(over, 1) == 0;
	for (unsigned i = 3; i < TAKERS + 3; i++)
		good &= pthread_join(t[i], &r) == 0 && r == NULL;
	close(over);
	close(shared_set);
	for (unsigned i = 0; i < EVENTS; i++)
		close(events[i]);
	return good && taken == 2 * GIVEN;
}

/* Events that the program's memory does not take are told again. */
static bool
untold_events_stay(void)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct epoll_event *two = (void *)(p + 4096 - sizeof(*two)), e[3];
	int set = epoll_create1(0), fd[2] = {eventfd(1, 0), eventfd(1, 0)};
	bool good = munmap(p + 4096, 4096) == 0;

	for (unsigned i = 0; i < 2; i++)
		good &= watch(set, EPOLL_CTL_ADD, fd[i], EPOLLIN | EPOLLET | EPOLLONESHOT, i) == 0;
	good = good && FAILS(epoll_wait(set, NOWHERE, 2, 0), EFAULT) &&
	       FAILS(epoll_wait(set, NOWHERE, 2, 0), EFAULT) && epoll_wait(set, two, 2, 0) == 1 &&
	       epoll_wait(set, e, 3, 0) == 1 && two->data.u64 + e[0].data.u64 == 1 &&
	       e[0].events == EPOLLIN && epoll_wait(set, e, 3, 0) == 0;
	munmap(p, 4096);
	close(fd[0]);
	close(fd[1]);
	close(set);
	return good;
}

/* ---- eventfd ---- */

static void *
add_later(void *arg)
{
	struct timespec ts = {0, 20 * MS};

	nanosleep(&ts, NULL);
	return eventfd_write(*(int *)arg, 5) == 0 ? NULL : arg;
}

static void *
take_later(void *arg)
{
	struct timespec ts = {0, 20 * MS};
	eventfd_t n;

	nanosleep(&ts, NULL);
	return eventfd_read(*(int *)arg, &n) == 0 ? NULL : arg;
}

static bool
eventfd_counts(void)
{
	int fd = eventfd(3, EFD_NONBLOCK | EFD_CLOEXEC), sem = eventfd(2, EFD_SEMAPHORE);
	struct pollfd p = {fd, POLLIN | POLLOUT, 0};
	eventfd_t n = 0;
	pthread_t t;
	void *r;
	bool good;

	good = fcntl(fd, F_GETFD) == FD_CLOEXEC && eventfd_write(fd, 4) == 0 &&
	       eventfd_read(fd, &n) == 0 && n == 7 && FAILS(eventfd_read(fd, &n), EAGAIN) &&
	       poll(&p, 1, 0) == 1 && p.revents == POLLOUT;
	good = good && eventfd_write(fd, UINT64_MAX - 1) == 0 &&
	       FAILS(eventfd_write(fd, 1), EAGAIN) &&
	       FAILS(eventfd_write(fd, UINT64_MAX), EINVAL) && poll(&p, 1, 0) == 1 &&
	       p.revents == POLLIN;
	good = good && FAILS(read(fd, &n, 7), EINVAL) && FAILS(write(fd, &n, 7), EINVAL) &&
	       FAILS(read(fd, NOWHERE, 8), EFAULT) && FAILS(write(fd, NOWHERE, 8), EFAULT) &&
	       eventfd_write(fd, UINT64_MAX - 1) == 0 && FAILS(eventfd(0, 2), EINVAL);
	good = good && eventfd_read(sem, &n) == 0 && n == 1 && eventfd_read(sem, &n) == 0 && n == 1;
	/* A read waits, and so does a write that has no room; with SA_RESTART also over signals. */
	on_alarm(SA_RESTART);
	send_alarms(true);
	good = good && pthread_create(&t, NULL, add_later, &sem) == 0 &&
	       eventfd_read(sem, &n) == 0 && n == 1 && pthread_join(t, &r) == 0 && r == NULL;
	good = good && fcntl(fd, F_SETFL, 0) == 0 &&
	       pthread_create(&t, NULL, take_later, &fd) == 0 && eventfd_write(fd, 1) == 0 &&
	       pthread_join(t, &r) == 0 && r == NULL && eventfd_read(fd, &n) == 0 && n == 1 &&
	       signals_seen > 0;
	on_alarm(0);
	good = good && FAILS(eventfd_read(fd, &n), EINTR) &&
	       eventfd_write(fd, UINT64_MAX - 1) == 0 && FAILS(eventfd_write(fd, 1), EINTR);
	send_alarms(false);
	signal(SIGALRM, SIG_DFL);
	close(fd);
	close(sem);
	return good;
}

/* RWF_NOWAIT: a read that would wait fails; and it is refused where nobody heeds it. */
static bool
nothing_is_awaited(void)
{
	int event = eventfd(0, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0),
	    watcher = inotify_init1(0), null = open("/dev/null", O_RDWR);
	int zero = open("/dev/zero", O_RDONLY), full = open("/dev/full", O_RDWR);
	eventfd_t n = 0;
	const struct iovec v = {&n, sizeof(n)};
	bool good;

	on_alarm(0);
	send_alarms(true);
	good = FAILS(preadv2(event, &v, 1, -1, RWF_NOWAIT), EAGAIN) &&
	       preadv2(timer, &v, 1, -1, RWF_NOWAIT) == -1 &&
	       (errno == EOPNOTSUPP || errno == EAGAIN) && /* since Linux 6.10 */
	       FAILS(preadv2(watcher, &v, 1, -1, RWF_NOWAIT), EOPNOTSUPP) &&
	       eventfd_write(event, 3) == 0 && preadv2(event, &v, 1, -1, RWF_NOWAIT) == 8 && n == 3;
	/* Devices that never wait. */
	good = good && preadv2(null, &v, 1, -1, RWF_NOWAIT) == 0 &&
	       pwritev2(null, &v, 1, 0, RWF_NOWAIT) == 8 &&
	       preadv2(zero, &v, 1, 0, RWF_NOWAIT) == 8 && n == 0 &&
	       FAILS(preadv2(full, &v, 1, 0, RWF_NOWAIT), EOPNOTSUPP);
	send_alarms(false);
	signal(SIGALRM, SIG_DFL);
	close(event);
	close(timer);
	close(watcher);
	close(null);
	close(zero);
	close(full);
	return good;
}

/* ---- statx ---- */

static bool
statx_tells(void)
{
	struct statx x, y;
	struct stat st;
	int fd = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0640);
	bool good = fd >= 0 && write(fd, "kestrel", 7) == 7 && fstat(fd, &st) == 0;

	good = good && symlink(FILE_NAME, FILE_NAME ".link") == 0 &&
	       statx(AT_FDCWD, FILE_NAME ".link", 0, STATX_BASIC_STATS, &x) == 0 &&
	       (x.stx_mask & STATX_BASIC_STATS) == STATX_BASIC_STATS && x.stx_size == 7 &&
	       x.stx_ino == st.st_ino && x.stx_mode == st.st_mode && x.stx_nlink == 1 &&
	       x.stx_uid == st.st_uid && x.stx_mtime.tv_sec == st.st_mtim.tv_sec &&
	       x.stx_mtime.tv_nsec == st.st_mtim.tv_nsec && (long)x.stx_blocks == st.st_blocks &&
	       makedev(x.stx_dev_major, x.stx_dev_minor) == st.st_dev;
	good = good && statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &y) == 0 &&
	       y.stx_ino == x.stx_ino &&
	       statx(AT_FDCWD, FILE_NAME ".link", AT_SYMLINK_NOFOLLOW, 0, &y) == 0 &&
	       S_ISLNK(y.stx_mode) && statx(AT_FDCWD, "/dev/null", AT_NO_AUTOMOUNT, 0, &y) == 0 &&
	       stat("/dev/null", &st) == 0 &&
	       makedev(y.stx_rdev_major, y.stx_rdev_minor) == st.st_rdev;
	good = good && FAILS(statx(AT_FDCWD, "/nothing", 0, 0, &x), ENOENT) &&
	       FAILS(statx(AT_FDCWD, "", 0, 0, &x), ENOENT) &&
	       FAILS(statx(fd, "x", 0, 0, &x), ENOTDIR) && FAILS(statx(63, "x", 0, 0, &x), EBADF) &&
	       FAILS(statx(AT_FDCWD, "/", 0x6000, 0, &x), EINVAL) &&
	       FAILS(statx(AT_FDCWD, "/", 1, 0, &x), EINVAL) &&
	       FAILS(syscall(SYS_statx, AT_FDCWD, "/", 0, 0x80000000u, &x), EINVAL) &&
	       FAILS(syscall(SYS_statx, AT_FDCWD, "/", 0, 0, NOWHERE), EFAULT) &&
	       FAILS(syscall(SYS_statx, AT_FDCWD, NOWHERE, 0, 0, &x), EFAULT);
	close(fd);
	return unlink(FILE_NAME) == 0 && unlink(FILE_NAME ".link") == 0 && good;
}

int
epoll_among(unsigned others)
{
	struct rlimit many = {others + 100, others + 100};
	int set = epoll_create1(0), event = eventfd(0, 0), fd = event;
	struct epoll_event e;
	bool good = setrlimit(RLIMIT_NOFILE, &many) == 0;

	for (unsigned i = 0; good && i < others; i++) {
		fd = dup(event);
		good = watch(set, EPOLL_CTL_ADD, fd, EPOLLIN, 0) == 0;
	}
	for (unsigned i = 0; good && i < 8; i++)
		good = watch(set, EPOLL_CTL_MOD, fd, EPOLLIN, 0) == 0;
	good = good && eventfd_write(event, 1) == 0;
	for (unsigned i = 0; good && i < 8; i++)
		good = epoll_wait(set, &e, 1, 0) == 1;
	return good ? 0 : 1;
}

void
test_events(void)
{
	result(tells_levels(), "epoll tells what is ready, as long as it is");
	result(keeps_order(), "epoll tells what is ready in the same order each time");
	result(tells_edges(), "epoll tells each event once (EPOLLET), or one (EPOLLONESHOT)");
	result(nothing_is_no_event(), "a call that moves nothing is no event for EPOLLET");
	result(contains_sets(), "a set of epoll contains sets; closed files leave it");
	result(inner_sets_change(), "a set of epoll tells each event of a set that changes");
	result(epoll_refuses(), "epoll refuses what Linux's does");
	result(epoll_is_interrupted(),
	       "signals end waits of epoll; masks and times of epoll_pwait");
	result(untold_events_stay(), "an event that cannot be stored is told again");
	result(threads_share_sets(), "threads share a set: each event is taken once");
	result(eventfd_counts(), "eventfd counts, waits and is interrupted");
	result(nothing_is_awaited(), "RWF_NOWAIT waits for nothing, or is refused");
	result(statx_tells(), "statx tells what stat does");
}
