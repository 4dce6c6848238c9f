/* floods.c - more packets than a socket takes, from peers that are not there; for user 0. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define SYNS    3000
#define CALLERS 300

struct syn {
	struct iphdr ip;
	struct tcphdr tcp;
};

/* Kilobytes of the kernel's heap. */
static long
heap(void)
{
	char text[32] = "";
	FILE *f = fopen("/proc/sys/vm/heap/used", "r");
	size_t n = f != NULL ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (f != NULL)
		fclose(f);
	return n > 0 ? atol(text) / 1024 : -1;
}

static uint16_t
sum(const void *bytes, size_t n, uint32_t start)
{
	const uint16_t *word = bytes;

	for (size_t i = 0; i < n / 2; i++)
		start += word[i];
	start = (start & 0xffff) + (start >> 16);
	return (uint16_t) ~(start + (start >> 16));
}

/* A request for a connection from peer number i, which is nowhere. */
static struct syn
syn_from(unsigned i, uint16_t port)
{
	struct syn s = {.ip = {.version = 4,
			       .ihl = 5,
			       .tot_len = htons(sizeof(s)),
			       .ttl = 64,
			       .protocol = IPPROTO_TCP,
			       .saddr = htonl(0x0a000001 + i),
			       .daddr = htonl(INADDR_LOOPBACK)},
			.tcp = {.source = htons((uint16_t)(1024 + i)),
				.dest = port,
				.seq = htonl(i),
				.doff = 5,
				.syn = 1,
				.window = htons(1000)}};
	uint32_t pseudo = (s.ip.saddr & 0xffff) + (s.ip.saddr >> 16) + (s.ip.daddr & 0xffff) +
			  (s.ip.daddr >> 16) + htons(IPPROTO_TCP) + htons(sizeof(s.tcp));

	s.tcp.check = sum(&s.tcp, sizeof(s.tcp), pseudo);
	return s;
}

static bool
half_open(void)
{
	struct sockaddr_in name, other;
	int l = inet_bound(SOCK_STREAM, 16, &name), l2 = inet_bound(SOCK_STREAM, 1, &other),
	    raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW), s = socket(AF_INET, SOCK_STREAM, 0);
	long before = heap();
	bool good = l >= 0 && l2 >= 0 && raw >= 0 && before > 0;

	for (unsigned i = 0; good && i < SYNS; i++) {
		struct syn p = syn_from(i, name.sin_port);

		good = sendto(raw, &p, sizeof(p), 0, (void *)&name, sizeof(name)) == sizeof(p);
	}
	printf("# heap: %ld kB, after %u requests %ld kB\n", before, SYNS, heap());
	good = good && heap() > before && heap() < before + 100;
	/* Others are served meanwhile. */
	good = good && connect(s, (void *)&other, sizeof(other)) == 0;
	return (close(l) == 0) & (close(l2) == 0) & (close(raw) == 0) & (close(s) == 0) & good;
}

/* Callers that nobody accepts. */
static bool
callers(void)
{
	struct sockaddr_in name;
	int l = inet_bound(SOCK_STREAM, 4, &name), s[CALLERS], done = 0;
	bool good = l >= 0;

	for (unsigned i = 0; i < CALLERS; i++) {
		s[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		good &= FAILS(connect(s[i], (void *)&name, sizeof(name)), EINPROGRESS);
	}
	for (unsigned i = 0; i < CALLERS; i++)
		done += inet_polled(s[i], 0) == POLLOUT;
	for (unsigned i = 0; i < CALLERS; i++)
		close(s[i]);
	return close(l) == 0 && good && done >= 4 && done <= 6;
}

/* Sends a file over a socket. */
static bool
pass(int s, int fd)
{
	char space[CMSG_SPACE(sizeof(fd))] = "", byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = space,
			   .msg_controllen = sizeof(space)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(s, &m, 0) == 1;
}

/* Closes a file that is in flight to nobody then, and another socket: one looks for such files. */
static bool
leave_in_flight(int fd)
{
	int s[2], other[2];

	return socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0 && pass(s[0], fd) && pass(s[0], s[1]) &&
	       pass(s[1], s[0]) && close(fd) == 0 && close(s[0]) == 0 && close(s[1]) == 0 &&
	       socketpair(AF_UNIX, SOCK_STREAM, 0, other) == 0 && close(other[0]) == 0 &&
	       close(other[1]) == 0;
}

/*
 * The first such file is a stream that waits, when it is closed, for a peer which does not read.
 * Whoever collects it does not: the second is closed as soon as before. (On Linux it would not be.)
 */
static bool
nobody_lingers(void)
{
	struct linger forever = {1, INT32_MAX};
	static char much[60000];
	int end[2], p[2];
	bool good = inet_connected(end) && pipe(p) == 0;

	while (good && send(end[0], much, sizeof(much), MSG_DONTWAIT) > 0)
		; /* more than the peer takes */
	good = good && setsockopt(end[0], SOL_SOCKET, SO_LINGER, &forever, sizeof(forever)) == 0 &&
	       leave_in_flight(end[0]) && leave_in_flight(p[1]) && read(p[0], much, 1) == 0;

	/* The stream was closed: its end comes after its data. */
	for (ssize_t n = 1; good && n > 0;)
		good = (n = read(end[1], much, sizeof(much))) >= 0;
	return (close(end[1]) == 0) & (close(p[0]) == 0) & good;
}

/* More than a user may have in flight; but nobody can receive them. (On Linux they may count.) */
static int
sends_garbage(void *arg)
{
	struct rlimit few = {64, 64};
	bool good = setuid(4321) == 0 && setrlimit(RLIMIT_NOFILE, &few) == 0;

	for (int i = 0; good && i < 100; i++) {
		int s[2];

		good = socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0 && pass(s[0], s[0]) &&
		       pass(s[0], s[1]);
		close(s[0]);
		close(s[1]);
	}
	return good ? 0 : 1;
}

void
test_floods(void)
{
	alarm(120);
	result(half_open(), "floods: connections that nobody completes take little memory");
	result(callers(), "floods: so many wait for accept as listen() says");
	result(nobody_lingers(), "floods: a stream in flight to nobody does not wait for its peer");
	result(in_child(sends_garbage, NULL) == 0,
	       "floods: files in flight to nobody make way for others");
}
