/* ways.c - sockets at the edges: this machine's other addresses, headers that programs make, what
 * does not fit, and what is left of a socket. The same on Linux. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define LONG_MS 5000

static char data[70000];

static struct sockaddr_in
at(const char *address, uint16_t port)
{
	struct sockaddr_in name = inet_local(port);

	inet_pton(AF_INET, address, &name.sin_addr);
	return name;
}

static bool
is_at(const struct sockaddr_in *name, const char *address)
{
	return name->sin_addr.s_addr == at(address, 0).sin_addr.s_addr;
}

static bool
closed(const int s[2], bool good)
{
	return (close(s[0]) == 0) & (close(s[1]) == 0) & good;
}

/* A connection from and to other addresses of the loopback. from NULL: from any. */
static bool
connects(const char *from, const char *to)
{
	struct sockaddr_in name, any = at("0.0.0.0", 0),
				 mine = at(from != NULL ? from : "0.0.0.0", 0), peer;
	socklen_t len = sizeof(name);
	int l = socket(AF_INET, SOCK_STREAM, 0),
	    s[2] = {socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), -1};
	bool good = bind(l, (void *)&any, len) == 0 && listen(l, 1) == 0 &&
		    getsockname(l, (void *)&any, &len) == 0 &&
		    (from == NULL || bind(s[0], (void *)&mine, len) == 0);

	name = at(to, any.sin_port);
	good = good && FAILS(connect(s[0], (void *)&name, len), EINPROGRESS) &&
	       (inet_polled(s[0], LONG_MS) & POLLOUT) && inet_error(s[0]) == 0 &&
	       (inet_polled(l, LONG_MS) & POLLIN);
	s[1] = good ? accept(l, (void *)&peer, &len) : dup(l);
	good = good && is_at(&peer, from != NULL ? from : "127.0.0.1") &&
	       getsockname(s[1], (void *)&mine, &len) == 0 && is_at(&mine, to) &&
	       write(s[1], "x", 1) == 1 && (inet_polled(s[0], LONG_MS) & POLLIN);
	return close(l) == 0 && closed(s, good);
}

static bool
loopbacks(void)
{
	struct sockaddr_in name, mine = at("127.0.0.2", 0), from,
				 far = at("198.51.100.1", htons(9)),
				 not_mine = at("198.51.100.2", 0);
	socklen_t len = sizeof(name);
	int s[2] = {inet_bound(SOCK_DGRAM, -1, &name), socket(AF_INET, SOCK_DGRAM, 0)}, t;
	bool good = connects(NULL, "127.0.1.1") && connects("127.0.0.2", "127.0.0.1") &&
		    connects("127.0.0.2", "127.9.8.7");

	/* From one own address to another one, and back. */
	good = good && bind(s[1], (void *)&mine, len) == 0 &&
	       getsockname(s[1], (void *)&mine, &len) == 0 && is_at(&mine, "127.0.0.2") &&
	       sendto(s[1], "one", 3, 0, (void *)&name, len) == 3 &&
	       inet_polled(s[0], LONG_MS) == (POLLIN | POLLOUT) &&
	       recvfrom(s[0], data, 9, 0, (void *)&from, &len) == 3 && is_at(&from, "127.0.0.2") &&
	       from.sin_port == mine.sin_port && connect(s[0], (void *)&from, len) == 0 &&
	       send(s[0], "two", 3, 0) == 3 && inet_polled(s[1], LONG_MS) == (POLLIN | POLLOUT) &&
	       connect(s[1], (void *)&name, len) == 0 && send(s[1], "three", 5, 0) == 5 &&
	       inet_polled(s[0], LONG_MS) == (POLLIN | POLLOUT);
	/* It is no way to other machines. */
	good = good && sendto(s[1], "x", 1, 0, (void *)&far, len) == -1 &&
	       (errno == EINVAL || errno == ENETUNREACH) &&
	       connect(s[1], (void *)&far, len) == -1 && (errno == EINVAL || errno == ENETUNREACH);
	t = socket(AF_INET, SOCK_STREAM, 0);
	mine.sin_port = 0;
	good = good && FAILS(bind(t, (void *)&not_mine, len), EADDRNOTAVAIL) &&
	       bind(t, (void *)&mine, len) == 0 && connect(t, (void *)&far, len) == -1 &&
	       (errno == EINVAL || errno == ENETUNREACH);
	return close(t) == 0 && closed(s, good);
}

struct datagram {
	struct iphdr ip;
	struct udphdr udp;
};

/* What a raw socket receives to that port. */
static bool
heard(int s, uint16_t port, struct datagram *d)
{
	do {
		if (inet_polled(s, LONG_MS) != (POLLIN | POLLOUT) ||
		    recv(s, d, sizeof(*d), 0) != sizeof(*d))
			return false;
	} while (d->udp.dest != port);
	return true;
}

/* IP_HDRINCL: length and checksum of the header are filled in, source and number if they are 0. */
static bool
headers(void)
{
	struct sockaddr_in name, from;
	socklen_t len = sizeof(from);
	int s = inet_bound(SOCK_DGRAM, -1, &name), raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW),
	    hears = socket(AF_INET, SOCK_RAW, IPPROTO_UDP);
	struct datagram d = {{.version = 4,
			      .ihl = 5,
			      .ttl = 64,
			      .protocol = IPPROTO_UDP,
			      .id = htons(0x1234),
			      .check = 0x1111,
			      .daddr = htonl(INADDR_LOOPBACK)},
			     {.source = htons(7), .dest = name.sin_port, .len = htons(8)}},
			heard_d, other;
	bool good = sendto(raw, &d, sizeof(d), 0, (void *)&name, len) == sizeof(d) &&
		    inet_polled(s, LONG_MS) == (POLLIN | POLLOUT) &&
		    recvfrom(s, data, 9, 0, (void *)&from, &len) == 0 &&
		    is_at(&from, "127.0.0.1") && from.sin_port == htons(7) &&
		    heard(hears, name.sin_port, &heard_d) && heard_d.ip.id == d.ip.id &&
		    heard_d.ip.tot_len == htons(sizeof(d)) &&
		    inet_checksum(&heard_d.ip, sizeof(heard_d.ip)) == 0;

	d.ip.id = 0;
	d.ip.saddr = at("127.0.0.3", 0).sin_addr.s_addr;
	for (int i = 0; i < 2; i++)
		good = good && sendto(raw, &d, sizeof(d), 0, (void *)&name, len) == sizeof(d);
	good = good && heard(hears, name.sin_port, &heard_d) &&
	       heard(hears, name.sin_port, &other) && heard_d.ip.saddr == d.ip.saddr &&
	       (heard_d.ip.id != 0 || other.ip.id != 0);
	/* A header that is not there. */
	good = good && FAILS(sendto(raw, &d, 19, 0, (void *)&name, len), EINVAL);
	d.ip.ihl = 15;
	good = good && FAILS(sendto(raw, &d, sizeof(d), 0, (void *)&name, len), EINVAL);
	return close(hears) == 0 && closed((int[2]){s, raw}, good);
}

/* A packet fits into a queue where nothing is, however large it is; and sizes are Linux's. */
static bool
large(void)
{
	struct sockaddr_in name;
	socklen_t len = sizeof(int);
	int s[2] = {inet_bound(SOCK_DGRAM, -1, &name), socket(AF_INET, SOCK_DGRAM, 0)}, least = 1,
	    negative = -1, size;
	bool good = setsockopt(s[0], SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)) == 0 &&
		    getsockopt(s[0], SOL_SOCKET, SO_RCVBUF, &least, &len) == 0 && least < 10000 &&
		    connect(s[1], (void *)&name, sizeof(name)) == 0;

	for (int i = 0; i < 3; i++)
		good = good && send(s[1], data, 20000, 0) == 20000;
	good = good && inet_polled(s[0], LONG_MS) == (POLLIN | POLLOUT) &&
	       recv(s[0], data, sizeof(data), 0) == 20000 &&
	       FAILS(recv(s[0], data, 1, MSG_DONTWAIT), EAGAIN);
	if (geteuid() == 0)
		good = good &&
		       setsockopt(s[0], SOL_SOCKET, SO_RCVBUFFORCE, &negative, sizeof(int)) == 0 &&
		       getsockopt(s[0], SOL_SOCKET, SO_RCVBUF, &size, &len) == 0 && size == least;
	return closed(s, good);
}

/* A number of echo requests is one socket's, unless all who have it share it. */
static bool
ping_numbers(void)
{
	struct sockaddr_in name = inet_local(htons(4243)), mine;
	socklen_t len = sizeof(name);
	struct icmphdr ask = {.type = ICMP_ECHO};
	int s[2] = {socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP),
		    socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP)},
	    on = 1;
	bool good;

	if (s[0] < 0)
		return errno == EACCES; /* Linux's net.ipv4.ping_group_range */
	good = bind(s[0], (void *)&name, len) == 0 &&
	       FAILS(bind(s[1], (void *)&name, len), EADDRINUSE) &&
	       setsockopt(s[1], SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	       FAILS(bind(s[1], (void *)&name, len), EADDRINUSE) &&
	       sendto(s[1], &ask, sizeof(ask), 0, (void *)&name, len) == sizeof(ask) &&
	       getsockname(s[1], (void *)&mine, &len) == 0 && mine.sin_port != name.sin_port &&
	       mine.sin_port != 0 && close(s[1]) == 0;
	s[1] = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
	for (int i = 0; i < 2; i++)
		good = good && setsockopt(s[i], SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0;
	return closed(s, good && bind(s[1], (void *)&name, len) == 0);
}

/* Only a stream sends SIGPIPE. */
static int
sends_after_end(void *arg)
{
	int s[2], type = *(int *)arg;

	signal(SIGPIPE, SIG_DFL);
	return socketpair(AF_UNIX, type, 0, s) == 0 && close(s[1]) == 0 &&
		       FAILS(send(s[0], "x", 1, 0), EPIPE) && FAILS(write(s[0], "x", 1), EPIPE)
		   ? 0
		   : 1;
}

static bool
pipes_break(void)
{
	int stream = SOCK_STREAM, packets = SOCK_SEQPACKET;

	return in_child(sends_after_end, &stream) == 128 + SIGPIPE &&
	       in_child(sends_after_end, &packets) == 0;
}

static int lowest[2]; /* descriptors that are free */
static atomic_bool over;

/* Looks for descriptors that nobody was told of. How many there were. */
static void *
look_for_files(void *arg)
{
	intptr_t n = 0;

	while (!over)
		n += fcntl(lowest[0], F_GETFD) >= 0 || fcntl(lowest[1], F_GETFD) >= 0;
	return (void *)n;
}

/* Pairs whose numbers cannot be stored are never there. */
static bool
faults(void)
{
	unsigned n = how_often(2000);
	pthread_t thread;
	void *seen = NULL;
	bool good;

	lowest[0] = dup(0);
	lowest[1] = dup(0);
	good = close(lowest[0]) == 0 && close(lowest[1]) == 0 &&
	       pthread_create(&thread, NULL, look_for_files, NULL) == 0;
	for (unsigned i = 0; good && i < n; i++)
		good = FAILS(socketpair(AF_UNIX, SOCK_STREAM, 0, NOWHERE), EFAULT) &&
		       FAILS(pipe(NOWHERE), EFAULT);
	over = true;
	return pthread_join(thread, &seen) == 0 && good && seen == NULL;
}

/* The row of a connection in /proc/net/tcp, by its ports: has it an owner's file? */
static bool
row(const struct sockaddr_in *local, const struct sockaddr_in *peer, unsigned long *ino)
{
	char line[256], local_end[16], peer_end[16];
	FILE *f = fopen("/proc/net/tcp", "r");
	bool there = false;

	snprintf(local_end, sizeof(local_end), ":%04X ", ntohs(local->sin_port));
	snprintf(peer_end, sizeof(peer_end), ":%04X ", ntohs(peer->sin_port));
	while (f != NULL && !there && fgets(line, sizeof(line), f) != NULL) {
		char *at = strstr(line, local_end);

		there = at != NULL && strncmp(at + 15 - 1, peer_end, 5) == 0 &&
			sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %*s %*s %lu", ino) == 1;
	}
	if (f != NULL)
		fclose(f);
	return there;
}

/* A socket that is closed, but whose peer is not, has no file. */
static bool
rows(void)
{
	struct sockaddr_in mine, peer;
	socklen_t len = sizeof(mine);
	unsigned long before = 0, after = 1;
	int end[2];
	bool good = inet_connected(end) && getsockname(end[0], (void *)&mine, &len) == 0 &&
		    getpeername(end[0], (void *)&peer, &len) == 0 && row(&mine, &peer, &before) &&
		    before != 0 && close(end[0]) == 0 && row(&mine, &peer, &after) && after == 0;

	return close(end[1]) == 0 && good;
}

void
test_ways(void)
{
	result(loopbacks(), "ways: all of 127/8 is this machine, from each address to each other");
	if (geteuid() == 0)
		result(headers(), "ways: a header that a program makes is completed, or refused");
	result(large(), "ways: one packet is taken, however small the buffer is");
	result(ping_numbers(), "ways: no two sockets ask for echoes by one number");
	result(pipes_break(), "ways: only streams send SIGPIPE");
	result(faults(), "ways: pairs whose numbers cannot be stored never have any");
	result(rows(), "ways: what is left of a closed connection has no file");
}
