/* socket_threads.c - many threads that send and receive: nothing is lost, nothing comes twice. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define THREADS  4
#define MESSAGES 2000u

static int ends[2];
static unsigned messages;
static uint64_t sent_sum, received_sum, received;

struct message {
	uint32_t thread, number;
	char rest[56];
};

static void *
sends(void *arg)
{
	uint32_t thread = (uint32_t)(uintptr_t)arg;

	for (uint32_t i = 1; i <= messages; i++) {
		struct message m = {.thread = thread, .number = i};
		size_t len = 8 + (i * 7 + thread) % 56;

		if (send(ends[0], &m, len, 0) != (ssize_t)len)
			return ends;
		__atomic_fetch_add(&sent_sum, len * i, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Messages of one sender come in their order, as far as one receiver sees them. */
static void *
receives(void *arg)
{
	uint32_t last[THREADS] = {0};
	struct message m;
	ssize_t n;

	while ((n = recv(ends[1], &m, sizeof(m), 0)) > 0 && m.thread < THREADS) {
		if (m.number <= last[m.thread] || (size_t)n != 8 + (m.number * 7 + m.thread) % 56)
			return ends;
		last[m.thread] = m.number;
		__atomic_fetch_add(&received, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&received_sum, (uint64_t)n * m.number, __ATOMIC_RELAXED);
	}
	return n >= 0 ? NULL : ends;
}

static bool
messages_are_exact(int type)
{
	struct message end = {.thread = UINT32_MAX};
	pthread_t s[THREADS], r[THREADS];
	bool good = socketpair(AF_UNIX, type, 0, ends) == 0;
	void *bad;

	messages = how_often(MESSAGES);
	sent_sum = received_sum = received = 0;
	for (uintptr_t i = 0; i < THREADS; i++)
		good = good && pthread_create(&s[i], NULL, sends, (void *)i) == 0 &&
		       pthread_create(&r[i], NULL, receives, NULL) == 0;
	for (int i = 0; good && i < THREADS; i++)
		good = pthread_join(s[i], &bad) == 0 && bad == NULL;
	for (int i = 0; i < THREADS; i++)
		send(ends[0], &end, sizeof(end), 0);
	for (int i = 0; i < THREADS; i++)
		good = pthread_join(r[i], &bad) == 0 && bad == NULL && good;
	close(ends[0]);
	close(ends[1]);
	return good && received == THREADS * (uint64_t)messages && sent_sum == received_sum;
}

/* ---- datagrams that wait for room in a queue that is not their peer's ---- */

static struct sockaddr_un sink = {AF_UNIX, "\0linux_test_sink"};
static const socklen_t sink_len = 2 + 16;

static void *
sends_to_sink(void *arg)
{
	int s = socket(AF_UNIX, SOCK_DGRAM, 0);
	bool good = true;

	for (unsigned i = 0; good && i < messages; i++)
		good = sendto(s, &i, sizeof(i), 0, (struct sockaddr *)&sink, sink_len) == sizeof(i);
	good = good || errno == ECONNREFUSED;
	close(s);
	return good ? NULL : &sink;
}

/* Then its queue is closed while they wait. */
static bool
queues_are_bounded(void)
{
	int s = socket(AF_UNIX, SOCK_DGRAM, 0);
	bool good = bind(s, (struct sockaddr *)&sink, sink_len) == 0;
	pthread_t t[THREADS];
	uint64_t sum = 0;
	unsigned number;
	void *bad;

	messages = how_often(500);
	for (int i = 0; i < THREADS; i++)
		good = good && pthread_create(&t[i], NULL, sends_to_sink, NULL) == 0;
	for (unsigned i = 0; good && i < THREADS * messages; i++) {
		good = recv(s, &number, sizeof(number), 0) == sizeof(number);
		sum += number;
	}
	for (int i = 0; good && i < THREADS; i++)
		good = pthread_join(t[i], &bad) == 0 && bad == NULL;
	good = good && sum == THREADS * (uint64_t)messages * (messages - 1) / 2;
	messages = 1000;
	for (int i = 0; i < THREADS; i++)
		good = good && pthread_create(&t[i], NULL, sends_to_sink, NULL) == 0;
	good = good && recv(s, &number, sizeof(number), 0) == sizeof(number);
	close(s);
	for (int i = 0; good && i < THREADS; i++)
		good = pthread_join(t[i], &bad) == 0 && bad == NULL;
	return good;
}

/* ---- bytes ---- */

static uint64_t bytes_sent, bytes_received, value_sent, value_received;

static void *
writes(void *arg)
{
	unsigned char buf[3000];
	uint64_t sum = 0;
	unsigned seed = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < messages; i++) {
		size_t len = (i * 131 + seed * 17) % sizeof(buf) + 1;

		for (size_t k = 0; k < len; k++)
			sum += buf[k] = (unsigned char)(k * 5 + i);
		for (size_t done = 0; done < len;) {
			ssize_t n = write(ends[0], buf + done, len - done);

			if (n <= 0)
				return ends;
			done += (size_t)n;
		}
		__atomic_fetch_add(&bytes_sent, len, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&value_sent, sum, __ATOMIC_RELAXED);
	return NULL;
}

static void *
reads(void *arg)
{
	unsigned char buf[4096];
	uint64_t sum = 0;
	ssize_t n;

	while ((n = read(ends[1], buf, sizeof(buf))) > 0) {
		__atomic_fetch_add(&bytes_received, n, __ATOMIC_RELAXED);
		for (ssize_t k = 0; k < n; k++)
			sum += buf[k];
	}
	__atomic_fetch_add(&value_received, sum, __ATOMIC_RELAXED);
	return n == 0 ? NULL : ends;
}

static bool
bytes_are_exact(void)
{
	pthread_t w[THREADS], r[THREADS];
	bool good = socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0;
	void *bad;

	messages = how_often(500);
	bytes_sent = bytes_received = value_sent = value_received = 0;
	for (uintptr_t i = 0; i < THREADS; i++)
		good = good && pthread_create(&w[i], NULL, writes, (void *)i) == 0 &&
		       pthread_create(&r[i], NULL, reads, NULL) == 0;
	for (int i = 0; good && i < THREADS; i++)
		good = pthread_join(w[i], &bad) == 0 && bad == NULL;
	shutdown(ends[0], SHUT_WR);
	for (int i = 0; i < THREADS; i++)
		good = pthread_join(r[i], &bad) == 0 && bad == NULL && good;
	close(ends[0]);
	close(ends[1]);
	return good && bytes_sent == bytes_received && value_sent == value_received;
}

/* ---- connections ---- */

static struct sockaddr_un server = {AF_UNIX, "\0linux_test_server"};
static const socklen_t server_len = 2 + 18;
static int listener;

static void *
connects_often(void *arg)
{
	for (unsigned i = 0; i < messages; i++) {
		int c = socket(AF_UNIX, SOCK_STREAM, 0);
		unsigned n = i;

		if (connect(c, (struct sockaddr *)&server, server_len) != 0 ||
		    write(c, &n, sizeof(n)) != sizeof(n) || read(c, &n, sizeof(n)) != sizeof(n) ||
		    n != i + 1)
			return &server;
		close(c);
	}
	return NULL;
}

static void *
accepts_often(void *arg)
{
	int fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		unsigned n;

		if (read(fd, &n, sizeof(n)) == sizeof(n)) {
			n++;
			if (write(fd, &n, sizeof(n)) != sizeof(n))
				return &server;
		}
		close(fd);
	}
	return errno == EINVAL ? NULL : &server;
}

static bool
connections_are_exact(void)
{
	pthread_t c[THREADS], a[THREADS];
	void *bad;
	bool good;

	messages = how_often(300);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	good =
	    bind(listener, (struct sockaddr *)&server, server_len) == 0 && listen(listener, 2) == 0;
	for (int i = 0; i < THREADS; i++)
		good = good && pthread_create(&c[i], NULL, connects_often, NULL) == 0 &&
		       pthread_create(&a[i], NULL, accepts_often, NULL) == 0;
	for (int i = 0; good && i < THREADS; i++)
		good = pthread_join(c[i], &bad) == 0 && bad == NULL;
	shutdown(listener, SHUT_RD);
	for (int i = 0; i < THREADS; i++)
		good = pthread_join(a[i], &bad) == 0 && bad == NULL && good;
	close(listener);
	return good;
}

/* ---- files, while others close and collect ---- */

/* As sendmsg(). Who may not have so many in flight, or finds no room, waits for the receiver. */
static bool
send_or_yield(int fd, const struct msghdr *m)
{
	if (sendmsg(fd, m, MSG_DONTWAIT) == 1)
		return true;
	sched_yield();
	return errno == EAGAIN || errno == ETOOMANYREFS;
}

static void *
sends_files(void *arg)
{
	const int *stop = arg;
	bool good = true;
	char control[CMSG_SPACE(2 * sizeof(int))], byte = 'f';
	struct iovec v = {&byte, 1};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	memset(control, 0, sizeof(control));
	*c = (struct cmsghdr){CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	while (good && !__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		int s[2];

		good = socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0;
		if (!good)
			break;
		memcpy(CMSG_DATA(c), s, sizeof(s));
		/* In each other's queue, which is garbage then; and to the receiver, who looks. */
		if (sendmsg(s[0], &m, 0) == 1 && sendmsg(s[1], &m, 0) == 1)
			good = send_or_yield(ends[0], &m);
		else
			good = errno == ETOOMANYREFS;
		close(s[0]);
		close(s[1]);
	}
	if (!good)
		shutdown(ends[0], SHUT_RDWR);
	return good ? NULL : ends;
}

static bool
files_stay_whole(void)
{
	char control[CMSG_SPACE(2 * sizeof(int))], byte;
	unsigned n = how_often(1000);
	pthread_t t[2];
	int stop = 0, s[2];
	bool good = socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0;
	void *bad;

	for (int i = 0; i < 2; i++)
		good = good && pthread_create(&t[i], NULL, sends_files, &stop) == 0;
	for (unsigned i = 0; good && i < n; i++) {
		struct iovec v = {&byte, 1};
		struct msghdr m = {.msg_iov = &v,
				   .msg_iovlen = 1,
				   .msg_control = control,
				   .msg_controllen = sizeof(control)};

		good = recvmsg(ends[1], &m, 0) == 1 && CMSG_FIRSTHDR(&m) != NULL;
		if (!good)
			break;
		memcpy(s, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(s));
		/* Their messages are there. */
		good = recv(s[0], &byte, 1, MSG_DONTWAIT) == 1 && byte == 'f' &&
		       recv(s[1], &byte, 1, MSG_DONTWAIT) == 1 && close(s[0]) == 0 &&
		       close(s[1]) == 0;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		good = pthread_join(t[i], &bad) == 0 && bad == NULL && good;
	close(ends[0]);
	close(ends[1]);
	return good;
}

/* A thread that polls a socket whose peer's queue is full. */
static struct {
	pid_t tid; /* atomic */
	struct pollfd fd;
	int found;
} poller;

static void *
polls_for_room(void *arg)
{
	__atomic_store_n(&poller.tid, gettid(), __ATOMIC_RELEASE);
	poller.found = poll(&poller.fd, 1, 60000);
	return NULL;
}

static bool
room_is_told(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(name);
	int server = socket(AF_UNIX, SOCK_DGRAM, 0), client = socket(AF_UNIX, SOCK_DGRAM, 0);
	bool good = bind(server, (void *)&name, sizeof(sa_family_t)) == 0 &&
		    getsockname(server, (void *)&name, &len) == 0 &&
		    connect(client, (void *)&name, len) == 0;
	unsigned n = 0;
	pthread_t t;
	char c;

	while (good && n < 10000 && send(client, "x", 1, MSG_DONTWAIT) == 1)
		n++;
	poller.fd = (struct pollfd){.fd = client, .events = POLLOUT};
	good = good && n > 0 && n < 10000 && poll(&poller.fd, 1, 0) == 0 &&
	       pthread_create(&t, NULL, polls_for_room, NULL) == 0;
	while (good && __atomic_load_n(&poller.tid, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
	good = good && await_sleep(getpid(), poller.tid);
	while (good && n-- > 0)
		good = recv(server, &c, 1, 0) == 1;
	pthread_join(t, NULL);
	return (close(server) == 0) & (close(client) == 0) & good && poller.found == 1 &&
	       poller.fd.revents == POLLOUT;
}

void
test_socket_threads(void)
{
	result(messages_are_exact(SOCK_DGRAM), "datagrams of several threads arrive once");
	result(messages_are_exact(SOCK_SEQPACKET), "packets of several threads arrive once");
	result(queues_are_bounded(), "datagrams wait for room in a queue, until it is closed");
	result(room_is_told(), "who polls for room in a full queue is told when there is some");
	result(bytes_are_exact(), "bytes of several threads arrive once");
	result(connections_are_exact(), "connections of several threads are accepted once");
	result(files_stay_whole(), "files in flight stay whole while others are collected");
}
