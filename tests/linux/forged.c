/* forged.c - segments of TCP that no connection has sent, by a raw socket; for user 0, on Kestrel.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define WINDOW 61440 /* of Kestrel's streams */

static char bytes[WINDOW];

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

static bool
forge_end(struct forge *f, bool good)
{
	return (close(f->end[0]) == 0) & (close(f->end[1]) == 0) & (close(f->raw) == 0) &
	       (close(f->heard) == 0) & good;
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

void
test_forged(void)
{
	alarm(120);
	result(answers_end(), "forged: two ends that disagree do not answer each other for ever");
}
