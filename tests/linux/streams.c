/* streams.c - streams of AF_INET at their limits: windows, threads, failed connections. It does the
 * same on Linux. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define WINDOW    61440 /* of Kestrel's streams */
#define AMOUNT    (1u << 20)
#define READERS   4
#define SMALL_MAX (4 * WINDOW / 129) /* segments of a byte that Kestrel keeps for a reader */

static char bytes[WINDOW];

/* A connection that is refused, from a socket that is bound to a port, or not. */
static int
refused(bool bind_it, struct sockaddr_in *name)
{
	struct sockaddr_in closed;
	int l = inet_bound(SOCK_STREAM, 1, &closed), s = socket(AF_INET, SOCK_STREAM, 0);
	int free = inet_bound(SOCK_STREAM, -1, name);

	if (l < 0 || close(l) != 0 || free < 0 || close(free) != 0 ||
	    (bind_it && bind(s, (void *)name, sizeof(*name)) != 0) ||
	    !FAILS(connect(s, (void *)&closed, sizeof(closed)), ECONNREFUSED))
		return -1;
	return s;
}

static bool
listens_after_refusal(void)
{
	struct sockaddr_in name, now;
	socklen_t len = sizeof(now);
	int s = refused(false, &name);
	bool good = s >= 0 && listen(s, 1) == 0 && close(s) == 0;

	s = refused(false, &name);
	name = inet_local(0);
	good = good && s >= 0 && bind(s, (void *)&name, sizeof(name)) == 0 && close(s) == 0;
	s = refused(true, &name);
	return good && s >= 0 && listen(s, 1) == 0 && getsockname(s, (void *)&now, &len) == 0 &&
	       now.sin_port == name.sin_port && close(s) == 0;
}

/* How much can be read, when all has been read. */
static size_t
drain(int s, size_t expected)
{
	size_t n = 0;
	ssize_t r;

	while (n < expected && inet_polled(s, 20000) & POLLIN &&
	       (r = recv(s, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		n += (size_t)r;
	return n;
}

/* A window that is full, and is probed with a byte that then fits. */
static bool
windows_are_probed(void)
{
	int end[2];
	bool good = inet_connected(end) && send(end[0], bytes, WINDOW, 0) == WINDOW &&
		    send(end[0], "x", 1, MSG_DONTWAIT) == 1 && read(end[1], bytes, 100) == 100;

	poll(NULL, 0,
	     3500); /* the probes of some seconds, and what comes after one that was taken */
	good = good && drain(end[1], WINDOW - 99) == WINDOW - 99 && write(end[1], "y", 1) == 1 &&
	       read(end[0], bytes, 1) == 1;
	return (close(end[0]) == 0) & (close(end[1]) == 0) & good;
}

/* Sends until there is no room. */
static size_t
fill(int s)
{
	size_t n = 0;
	ssize_t r;

	while ((r = send(s, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		n += (size_t)r;
	return n;
}

static bool
both_may_be_full(void)
{
	int end[2], other[2];
	bool good = inet_connected(end);
	size_t to = fill(end[0]), from = fill(end[1]);

	good = good && to >= WINDOW && from >= WINDOW && inet_connected(other) &&
	       write(other[0], "x", 1) == 1 && read(other[1], bytes, 1) == 1;
	good = good && drain(end[1], to) == to && drain(end[0], from) == from;
	return (close(end[0]) == 0) & (close(end[1]) == 0) & (close(other[0]) == 0) &
	       (close(other[1]) == 0) & good;
}

/* ---- threads ---- */

struct reader {
	pthread_t thread;
	int s;
	unsigned n; /* which one it is */
	uint64_t count, sum;
};

/* Pieces of many sizes, so that buffers are read in parts. */
static void *
read_all(void *arg)
{
	struct reader *r = arg;
	unsigned char part[3000];
	ssize_t n;

	for (size_t size = 1 + r->n; (n = read(r->s, part, size)) > 0; size = size * 7 % 2999 + 1) {
		r->count += (size_t)n;
		for (ssize_t i = 0; i < n; i++)
			r->sum += part[i];
	}
	return NULL;
}

static bool
readers_share(void)
{
	struct reader readers[READERS];
	uint64_t sent = 0, sum = 0, got = 0, got_sum = 0;
	int end[2];
	bool good = inet_connected(end);

	for (unsigned i = 0; i < READERS; i++) {
		readers[i] = (struct reader){.s = end[1], .n = i};
		good = pthread_create(&readers[i].thread, NULL, read_all, &readers[i]) == 0 && good;
	}
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 31 % 251);
	while (good && sent < AMOUNT) {
		size_t n = 1 + sent % 5003;

		good = write(end[0], bytes, n) == (ssize_t)n;
		for (size_t i = 0; i < n; i++)
			sum += (unsigned char)bytes[i];
		sent += n;
	}
	shutdown(end[0], SHUT_WR);
	for (unsigned i = 0; i < READERS; i++) {
		pthread_join(readers[i].thread, NULL);
		got += readers[i].count;
		got_sum += readers[i].sum;
	}
	return (close(end[0]) == 0) & (close(end[1]) == 0) & good && got == sent && got_sum == sum;
}

/* The socket that one reads from becomes another connection's, or a listening one. */
static bool
readers_and_new_connections(void)
{
	bool good = true;

	for (unsigned i = 0; i < how_often(100) && good; i++) {
		struct sockaddr none = {.sa_family = AF_UNSPEC};
		struct reader r;
		int end[2];

		good = inet_connected(end) && write(end[0], bytes, 20000) == 20000;
		r = (struct reader){.s = end[1], .n = i};
		good = good && pthread_create(&r.thread, NULL, read_all, &r) == 0;
		if (i % 2 == 0)
			sched_yield();
		good = good && connect(end[1], &none, sizeof(none)) == 0 && listen(end[1], 1) == 0;
		pthread_join(r.thread, NULL);
		good &= close(end[0]) == 0 && close(end[1]) == 0;
	}
	return good;
}

/* An option that is set before there is a connection, and what accept() returns of it. */
static bool
options_stay(void)
{
	struct sockaddr_in name;
	int ttl = 33, tos = 16, l = inet_bound(SOCK_STREAM, -1, &name), found = 0, a;
	int s = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(found);
	bool good = setsockopt(l, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl)) == 0 &&
		    listen(l, 1) == 0 &&
		    setsockopt(s, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl)) == 0 &&
		    setsockopt(s, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)) == 0 &&
		    connect(s, (void *)&name, sizeof(name)) == 0;

	a = accept(l, NULL, NULL);
	good = good && a >= 0 && getsockopt(s, IPPROTO_IP, IP_TTL, &found, &len) == 0 &&
	       found == ttl && getsockopt(s, IPPROTO_IP, IP_TOS, &found, &len) == 0 &&
	       found == tos && getsockopt(a, IPPROTO_IP, IP_TTL, &found, &len) == 0 && found == ttl;
	return (close(l) == 0) & (close(s) == 0) & (close(a) == 0) & good;
}

static bool
reset(int s)
{
	struct linger none = {1, 0};

	return setsockopt(s, SOL_SOCKET, SO_LINGER, &none, sizeof(none)) == 0 && close(s) == 0;
}

#define LINGER_S 30

/* Ends with bytes that the peer does not take, and a socket that is to wait for that. */
static void
end_full(int s, long call)
{
	struct linger l = {1, LINGER_S};

	/* First the parent has closed it: else it would linger there. */
	if (read(s, bytes, 1) != 1 || setsockopt(s, SOL_SOCKET, SO_LINGER, &l, sizeof(l)) != 0)
		_exit(1);
	while (send(s, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	syscall(call, 0);
}

/* A process that ends, or whose last thread does, waits for nobody. */
static bool
ends_at_once(long call)
{
	long begin = now_ns(CLOCK_MONOTONIC);
	int ends[2], status;
	bool good = inet_connected(ends);
	pid_t pid = fork();

	if (pid == 0) {
		close(ends[1]);
		end_full(ends[0], call);
	}
	close(ends[0]);
	good = write(ends[1], "x", 1) == 1 && waitpid(pid, &status, 0) == pid && status == 0 &&
	       good && now_ns(CLOCK_MONOTONIC) - begin < (LINGER_S - 1) * 1000 * MS;
	return (close(ends[1]) == 0) & good;
}

/* A connection that its peer has reset is one, with what was not read, until it is given up. */
static bool
resets_stay(void)
{
	struct sockaddr none = {.sa_family = AF_UNSPEC};
	struct sockaddr_in name = inet_local(0);
	int end[2];
	bool good = inet_connected(end) && write(end[1], "x", 1) == 1 && reset(end[1]);

	good = good && poll(&(struct pollfd){.fd = end[0]}, 1, 60000) == 1; /* POLLHUP */
	return good && FAILS(connect(end[0], (void *)&name, sizeof(name)), EISCONN) &&
	       FAILS(listen(end[0], 1), EINVAL) && connect(end[0], &none, sizeof(none)) == 0 &&
	       listen(end[0], 1) == 0 && recv(end[0], bytes, 1, MSG_DONTWAIT) < 0 &&
	       close(end[0]) == 0;
}

/* Connections wait for accept() after their peers have reset them, but not more than others. */
static bool
resets_are_accepted(void)
{
	struct sockaddr_in name, from;
	socklen_t len = sizeof(from);
	int l = inet_bound(SOCK_STREAM, 1, &name), found = 0, a;
	bool good = fcntl(l, F_SETFL, O_NONBLOCK) == 0;

	for (unsigned i = 0; good && i < 20; i++) {
		int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

		good = FAILS(connect(s, (void *)&name, sizeof(name)), EINPROGRESS) &&
		       (i > 0 || inet_polled(s, 5000) == POLLOUT) && reset(s);
	}
	for (; good && (a = accept(l, (void *)&from, &len)) >= 0; found++)
		good = from.sin_addr.s_addr == name.sin_addr.s_addr && from.sin_port != 0 &&
		       FAILS(getpeername(a, (void *)&from, &len), ENOTCONN) &&
		       FAILS(read(a, bytes, 1), ECONNRESET) && close(a) == 0;
	return good && errno == EAGAIN && found >= 1 && found <= 2 && close(l) == 0;
}

/* The last segment of a stream, whose reader has read none of many small ones, and ends it too,
 * before or after. */
static bool
ends_are_kept(bool before)
{
	int end[2], yes = 1;
	bool good = inet_connected(end) &&
		    setsockopt(end[0], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) == 0 &&
		    (!before || shutdown(end[1], SHUT_WR) == 0);

	for (unsigned i = 0; good && i < SMALL_MAX; i++)
		good = write(end[0], "s", 1) == 1;
	good = good && send(end[0], "the end", 7, MSG_MORE) == 7 &&
	       shutdown(end[0], SHUT_WR) == 0 && (before || shutdown(end[1], SHUT_WR) == 0) &&
	       drain(end[1], SMALL_MAX + 7) == SMALL_MAX + 7 &&
	       (inet_polled(end[1], 5000) & POLLRDHUP) && read(end[1], bytes, 1) == 0;
	return (close(end[0]) == 0) & (close(end[1]) == 0) & good;
}

/* SO_LINGER waits for bytes. Here they are acknowledged, but not the end that follows: as many
 * segments wait for the reader as its system keeps. */
static bool
lingers_for_bytes(void)
{
	struct linger an_hour = {1, 3600};
	struct itimerval late = {.it_value = {20, 0}}, never = {.it_value = {0, 0}};
	int end[2], yes = 1, n = 0;
	bool good = inet_connected(end) &&
		    setsockopt(end[0], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) == 0 &&
		    setsockopt(end[0], SOL_SOCKET, SO_LINGER, &an_hour, sizeof(an_hour)) == 0;

	for (int i = 0; good && n == i && i < 2 * SMALL_MAX; i++)
		good = write(end[0], "s", 1) == 1 && ioctl(end[1], FIONREAD, &n) == 0;
	good = good && shutdown(end[0], SHUT_WR) == 0;
	on_alarm(0);
	setitimer(ITIMER_REAL, &late, NULL);
	good = close(end[0]) == 0 && signals_seen == 0 && good;
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
	return close(end[1]) == 0 && good;
}

/* Who has not read all resets the connection, and does not wait; also if he has ended his side. */
static bool
lingers_for_no_reset(bool ended)
{
	struct linger an_hour = {1, 3600};
	struct itimerval late = {.it_value = {20, 0}}, never = {.it_value = {0, 0}};
	int end[2];
	bool good = inet_connected(end) && write(end[1], "unread", 6) == 6 && fill(end[0]) > 0 &&
		    setsockopt(end[0], SOL_SOCKET, SO_LINGER, &an_hour, sizeof(an_hour)) == 0 &&
		    (!ended || shutdown(end[0], SHUT_WR) == 0);

	on_alarm(0);
	setitimer(ITIMER_REAL, &late, NULL);
	good = close(end[0]) == 0 && signals_seen == 0 && good;
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
	good = good && (inet_polled(end[1], 5000) & POLLERR) && inet_error(end[1]) == ECONNRESET;
	return close(end[1]) == 0 && good;
}

/* What a send() has taken before it fails goes at once. */
static bool
short_sends_go(void)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int end[2];
	bool good = inet_connected(end) && munmap(p + 4096, 4096) == 0;
	ssize_t n = good ? send(end[0], p, 8192, 0) : 0;

	/* (Linux takes nothing.) */
	good = good && (n == -1 ? errno == EFAULT : n == 4096 && inet_polled(end[1], 0) & POLLIN);
	munmap(p, 4096);
	return (close(end[0]) == 0) & (close(end[1]) == 0) & good;
}

/* connect(AF_UNSPEC) and shutdown() of a socket that listens, is bound, or connects. */
static bool
attempts_end(void)
{
	struct sockaddr none = {.sa_family = AF_UNSPEC};
	struct sockaddr_in name, now;
	socklen_t len = sizeof(now);
	int l = inet_bound(SOCK_STREAM, 1, &name), s = socket(AF_INET, SOCK_STREAM, 0), c;
	bool good = shutdown(l, SHUT_WR) == 0 && connect(s, (void *)&name, sizeof(name)) == 0 &&
		    connect(l, &none, sizeof(none)) == 0 && FAILS(accept(l, NULL, NULL), EINVAL) &&
		    (inet_polled(s, 5000) & POLLERR) && inet_error(s) == ECONNRESET;

	good = (close(l) == 0) & (close(s) == 0) & good;
	/* Who is bound stays so. */
	s = inet_bound(SOCK_STREAM, -1, &name);
	good = good && connect(s, &none, sizeof(none)) == 0 && listen(s, 0) == 0 &&
	       getsockname(s, (void *)&now, &len) == 0 && now.sin_port == name.sin_port;
	/* One waits for accept(), as many as may, and so another one is not connected. */
	l = socket(AF_INET, SOCK_STREAM, 0);
	c = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	good = good && connect(l, (void *)&name, sizeof(name)) == 0 &&
	       FAILS(connect(c, (void *)&name, sizeof(name)), EINPROGRESS) &&
	       inet_polled(c, 0) == 0 && shutdown(c, SHUT_WR) == 0 &&
	       (inet_polled(c, 0) & (POLLHUP | POLLERR)) == (POLLHUP | POLLERR) &&
	       FAILS(shutdown(c, SHUT_WR), ENOTCONN);
	/* It ends with an error, which the next attempt does not have. */
	good = good && inet_error(c) == ECONNRESET &&
	       FAILS(connect(c, (void *)&name, sizeof(name)), EINPROGRESS) &&
	       connect(c, &none, sizeof(none)) == 0 && close(accept(s, NULL, NULL)) == 0 &&
	       fcntl(c, F_SETFL, 0) == 0 && connect(c, (void *)&name, sizeof(name)) == 0 &&
	       inet_error(c) == 0;
	return (close(l) == 0) & (close(s) == 0) & (close(c) == 0) & good;
}

/* A call that fails for another reason does not take what the connection has to say. */
static bool
errors_are_told(void)
{
	int end[2];
	bool good =
	    inet_connected(end) && reset(end[0]) && (inet_polled(end[1], 5000) & POLLERR) &&
	    send(end[1], NOWHERE, 5, MSG_NOSIGNAL) < 0 &&
	    (errno == ECONNRESET || (errno == EFAULT && FAILS(read(end[1], bytes, 1), ECONNRESET)));

	return close(end[1]) == 0 && good;
}

static int
writes_when_read(void *arg)
{
	return !await_sleep(getppid(), 0) || write(*(int *)arg, "cd", 2) != 2;
}

/* Who peeks for more than the system keeps does not wait for what cannot come. */
static bool
peeks_at_the_limit(void)
{
	int end[2], yes = 1;
	ssize_t n = 0;
	bool good = inet_connected(end) &&
		    setsockopt(end[0], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) == 0;

	for (unsigned i = 0; good && i < SMALL_MAX + 20; i++)
		good = write(end[0], "s", 1) == 1;
	good = good && shutdown(end[0], SHUT_WR) == 0;
	if (good)
		n = recv(end[1], bytes, SMALL_MAX + 40, MSG_PEEK | MSG_WAITALL);
	good = good && n > SMALL_MAX / 2 &&
	       recv(end[1], bytes, SMALL_MAX + 40, MSG_WAITALL) == SMALL_MAX + 20 &&
	       read(end[1], bytes, 1) == 0;
	return (close(end[0]) == 0) & (close(end[1]) == 0) & good;
}

/* Who reads nothing while many small segments come gets them all then, and his peer has not given
 * up meanwhile. */
static bool
small_ones_wait(void)
{
	int end[2], yes = 1;
	bool good = inet_connected(end) &&
		    setsockopt(end[0], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) == 0;
	uint64_t i = 0;

	for (; good && i < 10 * SMALL_MAX; i++)
		good = send(end[0], &(char){(char)(i % 251)}, 1, MSG_DONTWAIT) == 1;
	/* Also in steps: what the reader has seen of a buffer stays when more comes. */
	for (i = 0; good && i < 10 * SMALL_MAX; i++) {
		char c;

		good = recv(end[1], &c, 1, MSG_DONTWAIT) == 1 && c == (char)(i % 251) &&
		       (i % 10 != 0 || write(end[0], "+", 1) == 1);
	}
	good = good && shutdown(end[0], SHUT_WR) == 0 &&
	       recv(end[1], bytes, sizeof(bytes), MSG_WAITALL) == SMALL_MAX && bytes[0] == '+' &&
	       bytes[SMALL_MAX - 1] == '+';
	return (close(end[0]) == 0) & (close(end[1]) == 0) & good;
}

static bool
peeks(void)
{
	static char seen[20000];
	int end[2], status;
	bool good;
	pid_t pid;

	for (size_t i = 0; i < sizeof(seen); i++)
		bytes[i] = (char)(i * 31 % 251);
	good = inet_connected(end) && write(end[0], bytes, 20000) == 20000 &&
	       recv(end[1], seen, 20000, MSG_PEEK | MSG_WAITALL) == 20000 &&
	       memcmp(seen, bytes, 20000) == 0 && recv(end[1], NULL, 15000, MSG_TRUNC) == 15000 &&
	       recv(end[1], seen, 5000, MSG_PEEK) == 5000 &&
	       memcmp(seen, bytes + 15000, 5000) == 0 &&
	       FAILS(recv(end[1], seen, 1, MSG_ERRQUEUE), EAGAIN) &&
	       recv(end[1], seen, 5000, MSG_WAITALL) == 5000 &&
	       FAILS(recv(end[1], seen, 1, MSG_DONTWAIT), EAGAIN) && write(end[0], "ab", 2) == 2;
	pid = fork();
	if (pid == 0)
		_exit(writes_when_read(&end[0]));
	good = good && pid > 0 && recv(end[1], seen, 4, MSG_PEEK | MSG_WAITALL) == 4 &&
	       memcmp(seen, "abcd", 4) == 0 && shutdown(end[0], SHUT_WR) == 0 &&
	       recv(end[1], seen, 9, MSG_PEEK | MSG_WAITALL) == 4 && read(end[1], seen, 9) == 4;
	if (!good && pid > 0)
		kill(pid, SIGKILL);
	return waitpid(pid, &status, 0) == pid && status == 0 && good && close(end[0]) == 0 &&
	       close(end[1]) == 0;
}

static void *
read_4321(void *arg)
{
	static char all[4321];

	return recv(*(int *)arg, all, sizeof(all), MSG_WAITALL) == sizeof(all) ? arg : NULL;
}

int
streams_looked_at(void)
{
	int end[2];
	bool good = inet_connected(end) && send(end[0], bytes, 4320, 0) == 4320 &&
		    send(end[0], "x", 1, 0) == 1;
	pthread_t reader;
	void *found = NULL;
	char c;

	good = good && pthread_create(&reader, NULL, read_4321, &end[1]) == 0;
	do {
		int unread = -1;

		if (recv(end[1], &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN &&
		    ioctl(end[1], FIONREAD, &unread) == 0 && unread == 0)
			break;
	} while (good);
	good = good && pthread_join(reader, &found) == 0;
	return good && found == &end[1] ? 0 : 1;
}

static void *
peek_4321(void *stop)
{
	static char all[4321];
	int *end = stop;
	bool good = true;

	while (good && __atomic_load_n(&end[2], __ATOMIC_ACQUIRE) == 0)
		good = recv(end[1], all, sizeof(all), MSG_PEEK) == sizeof(all);
	return good ? stop : NULL;
}

int
streams_peeked_at(void)
{
	int end[3] = {0}, set = epoll_create1(0); /* end[2]: no more peeks */
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	bool good = inet_connected(end) && send(end[0], bytes, 4320, 0) == 4320 &&
		    send(end[0], "x", 1, 0) == 1 &&
		    recv(end[1], bytes, 4321, MSG_PEEK | MSG_WAITALL) == 4321 &&
		    getsockname(end[0], (void *)&name, &len) == 0 &&
		    epoll_ctl(set, EPOLL_CTL_ADD, end[1], &event) == 0 &&
		    epoll_wait(set, &event, 1, 60000) == 1;
	pthread_t reader;
	void *found = NULL;
	char c;

	good = good && pthread_create(&reader, NULL, peek_4321, end) == 0;
	while (good && recv(end[1], &c, 1, MSG_PEEK | MSG_DONTWAIT) == 1)
		;
	good = good && errno == EAGAIN && fcntl(end[1], F_SETFL, O_NONBLOCK) == 0 &&
	       FAILS(connect(end[1], (void *)&name, len), EISCONN) &&
	       epoll_wait(set, &event, 1, 60000) == 1;
	__atomic_store_n(&end[2], 1, __ATOMIC_RELEASE);
	good = good && pthread_join(reader, &found) == 0;
	return good && found == end && close(set) == 0 ? 0 : 1;
}

void
test_streams(void)
{
	result(listens_after_refusal(),
	       "streams: a socket whose connection was refused may listen, and be bound");
	result(windows_are_probed(), "streams: a full window is probed");
	result(both_may_be_full(), "streams: both ends of a connection may be full");
	result(readers_share(), "streams: several threads read each byte once");
	result(readers_and_new_connections(),
	       "streams: a socket that somebody reads from is connected anew");
	result(options_stay(), "streams: options that are set before a connection");
	result(resets_stay(), "streams: a connection that was reset is one until it is given up");
	result(ends_at_once(SYS_exit_group) && ends_at_once(SYS_exit),
	       "streams: a process that ends does not linger");
	result(resets_are_accepted(), "streams: accept() takes connections that were reset");
	result(ends_are_kept(false), "streams: the last bytes stay when the reader ends later");
	result(ends_are_kept(true), "streams: the last bytes stay when the reader has ended");
	result(lingers_for_bytes(), "streams: close() waits for bytes, if it is to, and no longer");
	result(lingers_for_no_reset(false) && lingers_for_no_reset(true),
	       "streams: close() does not wait if it resets");
	result(short_sends_go(), "streams: what a send takes before it fails goes at once");
	result(attempts_end(), "streams: connect(AF_UNSPEC) and shutdown() end what began");
	result(errors_are_told(), "streams: an error is told by a call that fails for it");
	result(peeks_at_the_limit(), "streams: MSG_PEEK with MSG_WAITALL at the limit of memory");
	result(small_ones_wait(), "streams: many small segments wait for a reader");
	result(peeks(), "streams: MSG_PEEK shows all, MSG_TRUNC drops, MSG_ERRQUEUE has nothing");
}
