/* datagrams.c - UDP and raw IP over the loopback: the same on Linux. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

static char data[70000];

static bool
closed(const int s[2], bool good)
{
	return (close(s[0]) == 0) & (close(s[1]) == 0) & good;
}

static bool
messages(void)
{
	struct sockaddr_in name, mine, from;
	socklen_t len = sizeof(from);
	int s[2] = {inet_bound(SOCK_DGRAM, -1, &name), inet_bound(SOCK_DGRAM, -1, &mine)}, n = 0;
	bool good = s[0] >= 0 && s[1] >= 0 && inet_polled(s[0], 0) == POLLOUT &&
		    sendto(s[1], "one", 3, 0, (void *)&name, sizeof(name)) == 3 &&
		    sendto(s[1], "", 0, 0, (void *)&name, sizeof(name)) == 0 &&
		    sendto(s[1], "three", 5, 0, (void *)&name, sizeof(name)) == 5;

	good =
	    good && inet_polled(s[0], 5000) == (POLLIN | POLLOUT) &&
	    ioctl(s[0], FIONREAD, &n) == 0 && n == 3 && recv(s[0], data, 9, MSG_PEEK) == 3 &&
	    FAILS(recv(s[0], data, 9, MSG_ERRQUEUE), EAGAIN) &&
	    recvfrom(s[0], data, 9, 0, (void *)&from, &len) == 3 && memcmp(data, "one", 3) == 0 &&
	    len == sizeof(from) && from.sin_port == mine.sin_port && recv(s[0], data, 9, 0) == 0 &&
	    recv(s[0], data, 2, MSG_TRUNC) == 5 && FAILS(recv(s[0], data, 2, MSG_DONTWAIT), EAGAIN);
	return closed(s, good);
}

static bool
cut_off(void)
{
	struct sockaddr_in name;
	int s[2] = {inet_bound(SOCK_DGRAM, -1, &name), socket(AF_INET, SOCK_DGRAM, 0)};
	struct iovec piece = {data, 4};
	struct msghdr m = {.msg_iov = &piece, .msg_iovlen = 1};
	bool good = FAILS(send(s[1], "x", 1, 0), EDESTADDRREQ) &&
		    connect(s[1], (void *)&name, sizeof(name)) == 0 &&
		    send(s[1], "longer", 6, 0) == 6 && recvmsg(s[0], &m, 0) == 4 &&
		    (m.msg_flags & MSG_TRUNC);

	good = good && FAILS(send(s[1], data, 65508, 0), EMSGSIZE) &&
	       send(s[1], data, 65507, 0) == 65507 && recv(s[0], data, sizeof(data), 0) == 65507;
	return closed(s, good);
}

static bool
connected(void)
{
	struct sockaddr_in name, other, mine;
	socklen_t len = sizeof(mine);
	int s[2] = {inet_bound(SOCK_DGRAM, -1, &name), socket(AF_INET, SOCK_DGRAM, 0)},
	    third = inet_bound(SOCK_DGRAM, -1, &other);
	struct sockaddr_in none = {.sin_family = AF_UNSPEC};
	bool good = FAILS(getpeername(s[1], (void *)&mine, &len), ENOTCONN) &&
		    connect(s[1], (void *)&name, sizeof(name)) == 0 &&
		    getsockname(s[1], (void *)&mine, &len) == 0 && mine.sin_port != 0 &&
		    mine.sin_addr.s_addr == htonl(INADDR_LOOPBACK);

	/* Only its peer reaches it. */
	good = good && sendto(third, "no", 2, 0, (void *)&mine, sizeof(mine)) == 2 &&
	       sendto(s[0], "yes", 3, 0, (void *)&mine, sizeof(mine)) == 3 &&
	       recv(s[1], data, 9, 0) == 3 && FAILS(recv(s[1], data, 9, MSG_DONTWAIT), EAGAIN);
	good = good && shutdown(s[1], SHUT_RD) == 0 &&
	       inet_polled(s[1], 0) == (POLLIN | POLLOUT | POLLRDHUP) &&
	       recv(s[1], data, 9, 0) == 0 && FAILS(shutdown(s[0], SHUT_RD), ENOTCONN);
	good = good && connect(s[1], (void *)&none, sizeof(none)) == 0 &&
	       FAILS(getpeername(s[1], (void *)&mine, &len), ENOTCONN);
	return closed(s, good) && close(third) == 0;
}

/* connect(AF_UNSPEC) gives up a port, but not one that the program has chosen. */
static bool
ports_are_given_up(void)
{
	struct sockaddr none = {.sa_family = AF_UNSPEC};
	struct sockaddr_in name, own, any = inet_local(0), now;
	socklen_t len = sizeof(now);
	int s[2] = {inet_bound(SOCK_DGRAM, -1, &name), socket(AF_INET, SOCK_DGRAM, 0)},
	    gone = inet_bound(SOCK_DGRAM, -1, &own);
	bool good = close(gone) == 0;

	for (unsigned i = 0; good && i < 2; i++)
		good = connect(s[1], (void *)&name, sizeof(name)) == 0 &&
		       FAILS(bind(s[1], (void *)&any, sizeof(any)), EINVAL) &&
		       connect(s[1], &none, sizeof(none)) == 0 &&
		       getsockname(s[1], (void *)&now, &len) == 0 && now.sin_port == 0;
	good = good && bind(s[1], (void *)&own, sizeof(own)) == 0 &&
	       connect(s[1], (void *)&name, sizeof(name)) == 0 &&
	       connect(s[1], &none, sizeof(none)) == 0 &&
	       FAILS(bind(s[1], (void *)&any, sizeof(any)), EINVAL) &&
	       sendto(s[0], "here", 4, 0, (void *)&own, sizeof(own)) == 4 &&
	       inet_polled(s[1], 5000) == (POLLIN | POLLOUT) && recv(s[1], data, 9, 0) == 4;
	return closed(s, good);
}

static bool
refused(void)
{
	struct sockaddr_in name;
	int s = socket(AF_INET, SOCK_DGRAM, 0), gone = inet_bound(SOCK_DGRAM, -1, &name);
	bool good = close(gone) == 0 && connect(s, (void *)&name, sizeof(name)) == 0 &&
		    send(s, "x", 1, 0) == 1 && (inet_polled(s, 5000) & POLLERR) &&
		    FAILS(recv(s, data, 1, 0), ECONNREFUSED) &&
		    FAILS(recv(s, data, 1, MSG_DONTWAIT), EAGAIN);

	/* The next send tells it, too. */
	good = good && send(s, "x", 1, 0) == 1 && (inet_polled(s, 5000) & POLLERR) &&
	       FAILS(send(s, "x", 1, 0), ECONNREFUSED) && inet_error(s) == 0;
	return close(s) == 0 && good;
}

/* What nobody reads is dropped, and does not take all memory. */
static bool
flood(void)
{
	struct sockaddr_in name;
	int s[2] = {inet_bound(SOCK_DGRAM, -1, &name), socket(AF_INET, SOCK_DGRAM, 0)};
	unsigned sent = how_often(20000), got = 0;
	bool good = connect(s[1], (void *)&name, sizeof(name)) == 0;

	for (unsigned i = 0; good && i < sent; i++)
		good = send(s[1], data, 100, 0) == 100;
	while (recv(s[0], data, 100, MSG_DONTWAIT) == 100)
		got++;
	return closed(s, good && got > 50 && (got < 2000 || sent < 2000));
}

/* The same of a raw socket, which hears what the machine asks itself. */
static bool
raw_flood(void)
{
	struct sockaddr_in name = inet_local(0);
	int s = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	unsigned sent = how_often(2000), got = 0;
	bool good = true;

	if (geteuid() != 0)
		return FAILS(s, EPERM);
	for (unsigned i = 0; good && i < sent; i++)
		good = sendto(s, data, 1000, 0, (void *)&name, sizeof(name)) == 1000;
	while (recv(s, data, sizeof(data), MSG_DONTWAIT) == 1020)
		got++;
	return close(s) == 0 && good && got > 50 && (got < 1500 || sent < 1500);
}

/* For tests of the network's probes: two sockets have one port, and send; and a segment of TCP says
 * that its header is longer than it is. 0: done. */
int
datagrams_told(const char *address)
{
	struct sockaddr_in name, to = inet_local(htons(9)), other = to;
	int s[2] = {inet_bound(SOCK_DGRAM, -1, &name), socket(AF_INET, SOCK_DGRAM, 0)},
	    raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	struct {
		struct iphdr ip;
		struct tcphdr tcp;
	} segment = {{.version = 4,
		      .ihl = 5,
		      .protocol = IPPROTO_TCP,
		      .ttl = 64,
		      .tot_len = htons(sizeof(segment)),
		      .saddr = to.sin_addr.s_addr,
		      .daddr = to.sin_addr.s_addr},
		     {.source = htons(7), .dest = htons(9), .doff = 15}};
	bool good =
	    sendto(s[0], "a", 1, 0, (void *)&to, sizeof(to)) == 1 &&
	    inet_pton(AF_INET, address, &name.sin_addr) == 1 &&
	    inet_pton(AF_INET, address, &other.sin_addr) == 1 &&
	    bind(s[1], (void *)&name, sizeof(name)) == 0 &&
	    sendto(s[1], "bc", 2, 0, (void *)&other, sizeof(other)) == 2 &&
	    sendto(raw, &segment, sizeof(segment), 0, (void *)&to, sizeof(to)) == sizeof(segment);

	return closed(s, good) && close(raw) == 0 ? 0 : 1;
}

/* Prints the datagrams for port 514 that arrive, until one is `last`. 0: done. */
int
datagrams_heard(const char *last)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(514)};
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	char text[64] = "";

	if (bind(s, (void *)&name, sizeof(name)) != 0)
		return 1;
	for (puts("listens"); strcmp(text, last) != 0; printf("heard %s\n", text)) {
		ssize_t n;

		fflush(stdout);
		n = recv(s, text, sizeof(text) - 1, 0);
		if (n < 0)
			return 1;
		text[n] = '\0';
	}
	return close(s);
}

uint16_t
inet_checksum(const void *bytes, size_t n)
{
	const uint16_t *word = bytes;
	uint32_t sum = 0;

	for (size_t i = 0; i < n / 2; i++)
		sum += word[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

/* Asks the machine itself for an echo. */
static bool
echo(void)
{
	struct sockaddr_in name = inet_local(0), from;
	struct icmphdr ask = {.type = ICMP_ECHO, .un.echo = {.id = 0x1234, .sequence = 7}};
	const struct icmphdr *answer;
	socklen_t len = sizeof(from);
	int s = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	ssize_t n;

	if (geteuid() != 0)
		return FAILS(s, EPERM);
	ask.checksum = inet_checksum(&ask, sizeof(ask));
	if (sendto(s, &ask, sizeof(ask), 0, (void *)&name, sizeof(name)) != sizeof(ask))
		return false;
	do { /* it hears its own request, too */
		n = recvfrom(s, data, sizeof(data), 0, (void *)&from, &len);
		answer = (void *)(data + (data[0] & 15) * 4);
	} while (n > 0 && answer->type != ICMP_ECHOREPLY);
	return n == 28 && answer->un.echo.id == 0x1234 && answer->un.echo.sequence == 7 &&
	       inet_checksum(data, 20) == 0 && inet_checksum(answer, 8) == 0 &&
	       from.sin_addr.s_addr == htonl(INADDR_LOOPBACK) && close(s) == 0;
}

/* A socket for echo requests has a number, once, and an answer comes from no port. */
static bool
pings(void)
{
	struct sockaddr_in name = inet_local(htons(4242)), from;
	struct icmphdr ask = {.type = ICMP_ECHO}, answer;
	socklen_t len = sizeof(from);
	int s = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
	bool good;

	if (s < 0)
		return errno == EACCES; /* Linux's net.ipv4.ping_group_range */
	good = bind(s, (void *)&name, sizeof(name)) == 0 &&
	       FAILS(bind(s, (void *)&name, sizeof(name)), EINVAL) &&
	       sendto(s, &ask, sizeof(ask), 0, (void *)&name, sizeof(name)) == sizeof(ask) &&
	       recvfrom(s, &answer, sizeof(answer), 0, (void *)&from, &len) == sizeof(answer) &&
	       answer.type == ICMP_ECHOREPLY && answer.un.echo.id == htons(4242) &&
	       from.sin_addr.s_addr == htonl(INADDR_LOOPBACK) && from.sin_port == 0;
	return close(s) == 0 && good;
}

static bool
kinds(void)
{
	return FAILS(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP), EPROTONOSUPPORT) &&
	       FAILS(socket(AF_INET, SOCK_DGRAM, IPPROTO_TCP), EPROTONOSUPPORT) &&
	       FAILS(socket(AF_INET, SOCK_SEQPACKET, 0), ESOCKTNOSUPPORT) &&
	       FAILS(socket(AF_INET, 0, 0), ESOCKTNOSUPPORT) &&
	       (geteuid() != 0 || FAILS(socket(AF_INET, SOCK_RAW, 0), EPROTONOSUPPORT));
}

void
test_datagrams(void)
{
	result(messages(), "datagrams: each is received whole, with its sender");
	result(cut_off(), "datagrams: what does not fit is cut off, and told");
	result(connected(),
	       "datagrams: a connected socket hears its peer only, until it is shut down");
	result(ports_are_given_up(), "datagrams: who ends a connection gives up its port");
	result(refused(), "datagrams: a port where nobody listens refuses");
	result(flood(), "datagrams: what nobody reads is dropped");
	result(raw_flood(), "datagrams: what nobody reads of a raw socket is dropped");
	result(echo(), "datagrams: a raw socket asks for an echo");
	result(pings(), "datagrams: a socket for echo requests hears the answers");
	result(kinds(), "datagrams: a protocol that is not of the type is refused");
}
