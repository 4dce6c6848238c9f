/* forged.c - segments of TCP that no connection has sent, by a raw socket; for user 0, on Kestrel.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define WINDOW 61440 /* of Kestrel's streams */

static char bytes[WINDOW + 100];

struct segment {
	struct iphdr ip;
	struct tcphdr tcp;
	char data[2000]; /* options, and bytes */
};

/* A connection, and what its first end would send next to the other one. */
struct forge {
	int end[2], raw, heard;
	struct segment next;
};

/* The next segment of TCP that has arrived, between these ports. How many bytes; -1: none is there.
 */
static ssize_t
hear(int raw, uint16_t source, uint16_t dest, struct segment *found)
{
	ssize_t n;

	do
		n = recv(raw, found, sizeof(*found), MSG_DONTWAIT);
	while (n > 0 && (found->tcp.source != source || found->tcp.dest != dest));
	return n;
}

/* A segment without data, and without numbers. */
static struct segment
segment_between(uint16_t source, uint16_t dest)
{
	return (struct segment){
	    .ip = {.version = 4,
		   .ihl = 5,
		   .ttl = 64,
		   .protocol = IPPROTO_TCP,
		   .saddr = htonl(INADDR_LOOPBACK),
		   .daddr = htonl(INADDR_LOOPBACK)},
	    .tcp = {.source = source, .dest = dest, .doff = 5, .ack = 1, .window = htons(WINDOW)}};
}

/* Sends it with n bytes of options and data. (The loopback looks at no checksum of TCP.) */
static bool
send_segment(int raw, struct segment *s, size_t n)
{
	struct sockaddr_in to = inet_local(0);

	n += sizeof(s->ip) + sizeof(s->tcp);
	s->ip.tot_len = htons((uint16_t)n);
	return sendto(raw, s, n, 0, (void *)&to, sizeof(to)) == (ssize_t)n;
}

/* The first end has sent a byte, which says what it sends next. */
static bool
forge_begin(struct forge *f)
{
	struct sockaddr_in from, to;
	socklen_t len = sizeof(from);
	struct segment seen;
	bool good;

	f->raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	good = inet_connected(f->end) && getsockname(f->end[0], (void *)&from, &len) == 0 &&
	       getpeername(f->end[0], (void *)&to, &len) == 0;
	f->heard = socket(AF_INET, SOCK_RAW, IPPROTO_TCP);
	good = good && write(f->end[0], "x", 1) == 1 && read(f->end[1], bytes, 1) == 1 &&
	       hear(f->heard, from.sin_port, to.sin_port, &seen) == 41;
	f->next = segment_between(from.sin_port, to.sin_port);
	f->next.tcp.seq = htonl(ntohl(seen.tcp.seq) + 1);
	f->next.tcp.ack_seq = seen.tcp.ack_seq;
	return good;
}

/* Ends disagree: so none waits for what the other one acknowledges. */
static bool
reset(int s)
{
	struct linger none = {1, 0};

	return setsockopt(s, SOL_SOCKET, SO_LINGER, &none, sizeof(none)) == 0 && close(s) == 0;
}

static bool
forge_end(struct forge *f, bool good)
{
	return reset(f->end[0]) & reset(f->end[1]) & (close(f->raw) == 0) & (close(f->heard) == 0) &
	       good;
}

/* Sends that many numbers later than the first end would go on. */
static bool
forge_send(struct forge *f, uint32_t later, size_t n)
{
	struct segment s = f->next;

	s.tcp.seq = htonl(ntohl(s.tcp.seq) + later);
	return send_segment(f->raw, &s, n);
}

/* One end has got a byte that the other one has not sent: each answers what the other one says. */
static bool
answers_end(void)
{
	struct forge f;
	int other[2];
	bool good = forge_begin(&f) && forge_send(&f, 0, 1) && read(f.end[1], bytes, 2) == 1;

	good = good && inet_connected(other) && write(other[0], "y", 1) == 1 &&
	       read(other[1], bytes, 1) == 1;
	return (close(other[0]) == 0) & (close(other[1]) == 0) & forge_end(&f, good);
}

/* The second end has bytes that it cannot send yet; then its peer wants a byte a segment. */
static bool
sizes_stay(void)
{
	static const char mss[] = {TCPOPT_MAXSEG, TCPOLEN_MAXSEG, 0, 1};
	struct forge f;
	bool good = forge_begin(&f) && send(f.end[1], bytes, WINDOW, 0) == WINDOW &&
		    write(f.end[1], "waiting", 7) == 7;

	f.next.tcp.window = 0;
	f.next.tcp.doff = 6;
	memcpy(f.next.data, mss, sizeof(mss));
	good = good && forge_send(&f, 0, sizeof(mss)) && write(f.end[1], " bytes", 6) == 6 &&
	       recv(f.end[0], bytes, WINDOW + 13, MSG_WAITALL) == WINDOW + 13 &&
	       memcmp(bytes + WINDOW, "waiting bytes", 13) == 0;
	return forge_end(&f, good);
}

#define NARROW 1000 /* bytes of a window that is almost full */

/* More than fits comes before what is to be before it. Nothing of it is kept. */
static bool
windows_hold(void)
{
	struct forge f;
	bool good = forge_begin(&f) &&
		    send(f.end[0], bytes, WINDOW - NARROW, 0) == WINDOW - NARROW &&
		    forge_send(&f, WINDOW - NARROW + 1, NARROW + 460) &&
		    write(f.end[0], "y", 1) == 1 && shutdown(f.end[0], SHUT_WR) == 0;

	good = good && recv(f.end[1], bytes, sizeof(bytes), MSG_WAITALL) == WINDOW - NARROW + 1 &&
	       bytes[WINDOW - NARROW] == 'y';
	return forge_end(&f, good);
}

/* The end comes early, and then bytes that are after it, until the window is full. */
static bool
ends_hold(void)
{
	struct forge f;
	bool good = forge_begin(&f) && send(f.end[0], bytes, WINDOW - NARROW, 0) == WINDOW - NARROW;

	f.next.tcp.fin = 1;
	good = good && forge_send(&f, WINDOW - NARROW + 10, 0) &&
	       write(f.end[0], bytes, NARROW) == NARROW &&
	       recv(f.end[1], bytes, sizeof(bytes), MSG_DONTWAIT) == WINDOW - NARROW;
	return forge_end(&f, good);
}

/* A connection whose other end is forged, and what that would send next. */
struct peer {
	int a, raw;
	struct segment next;
};

/*
 * The peer's window is nothing. It has the port of a connection that is over, which is remembered:
 * nobody resets what it does.
 */
static bool
peer_begin(struct peer *p)
{
	struct sockaddr_in to, from;
	socklen_t len = sizeof(from);
	int l = inet_bound(SOCK_STREAM, 2, &to), a, heard, s = socket(AF_INET, SOCK_STREAM, 0);
	struct segment seen = {0};
	bool good =
	    connect(s, (void *)&to, sizeof(to)) == 0 && getsockname(s, (void *)&from, &len) == 0;

	p->raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	a = accept(l, NULL, NULL);
	good = good && shutdown(s, SHUT_WR) == 0 && read(a, bytes, 1) == 0 && close(a) == 0 &&
	       read(s, bytes, 1) == 0 && close(s) == 0;
	heard = socket(AF_INET, SOCK_RAW, IPPROTO_TCP);
	p->next = segment_between(from.sin_port, to.sin_port);
	p->next.tcp.syn = 1;
	p->next.tcp.ack = p->next.tcp.window = 0;
	good = good && send_segment(p->raw, &p->next, 0) &&
	       hear(heard, to.sin_port, from.sin_port, &seen) >= 40 && seen.tcp.syn;
	p->next.tcp.syn = 0;
	p->next.tcp.ack = 1;
	p->next.tcp.seq = htonl(1);
	p->next.tcp.ack_seq = htonl(ntohl(seen.tcp.seq) + 1);
	good = good && send_segment(p->raw, &p->next, 0);
	p->a = good ? accept(l, NULL, NULL) : -1;
	return (close(l) == 0) & (close(heard) == 0) & (p->a >= 0);
}

static bool
small_windows(void)
{
	struct peer p;
	bool good = peer_begin(&p) && write(p.a, bytes, 100) == 100;

	p.next.tcp.window = htons(2);
	good = good && send_segment(p.raw, &p.next, 0) && write(p.a, "more", 4) == 4;
	return reset(p.a) & (close(p.raw) == 0) & good;
}

/* Of many segments from after the window, the last one acknowledges what was sent. */
static bool
acknowledgements_count(void)
{
	struct peer p;
	bool good = peer_begin(&p);
	int left = -1;

	p.next.tcp.window = htons(WINDOW);
	good = good && send_segment(p.raw, &p.next, 0) && write(p.a, bytes, 100) == 100;
	p.next.tcp.seq = htonl(1 + WINDOW);
	for (int i = 0; i < 100; i++)
		good = good && send_segment(p.raw, &p.next, 0);
	good = good && ioctl(p.a, TIOCOUTQ, &left) == 0 && left == 100;
	p.next.tcp.ack_seq = htonl(ntohl(p.next.tcp.ack_seq) + 100);
	good = good && send_segment(p.raw, &p.next, 0) && ioctl(p.a, TIOCOUTQ, &left) == 0 &&
	       left == 0;
	return reset(p.a) & (close(p.raw) == 0) & good;
}

void
test_forged(void)
{
	alarm(120);
	result(answers_end(), "forged: two ends that disagree do not answer each other for ever");
	result(sizes_stay(), "forged: the size of segments is what it was at the connection");
	result(windows_hold(), "forged: what is beyond the window is not kept");
	result(ends_hold(), "forged: what is after the end is not kept");
	result(small_windows(), "forged: a window that was nothing becomes small");
	result(acknowledgements_count(),
	       "forged: what strays acknowledge counts, however many come");
}
