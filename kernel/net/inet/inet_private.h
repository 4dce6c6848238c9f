/*
 * inet_private.h - sockets of AF_INET.
 *
 * In:  the operations of sockets (family.c, which shares them out), and lwIP's callbacks.
 * Out: lwIP's raw interface (tcp_write(), udp_sendto() …).
 *
 * To read, in order: core.c, the lock; family.c; tcp.c and tcp_data.c, streams; datagram.c and
 * raw.c, UDP and raw IP; option.c; interface.c and report.c, what ifconfig, route and netstat do
 * and read; probe.c and tcp_probe.c, what is told of it all; tcp_guard.c, what lwIP is not given.
 *
 * Locking: all of a struct inet_socket but its struct socket is guarded by the lock of core.h. The
 * callbacks of lwIP run with it.
 */
#pragma once

#include <lwip/pbuf.h>
#include <lwip/tcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/abi/inet.h"
#include "kernel/lib/list.h"
#include "kernel/net/inet/core.h"
#include "kernel/net/socket.h"

struct udp_pcb;

/*
 * What we keep in a stream's pcb: the pcb itself, its struct inet_socket, its state as it was told
 * last (tcp_probe.c), and its strays (tcp_guard.c). When the pcb goes, lwIP calls the functions
 * that belong to these in this order: so the socket is still there while the end of the connection
 * is told.
 */
enum { EXT_SELF, EXT_ARG, EXT_TOLD, EXT_STRAYS };

/* What a packet takes in memory besides its data, about. */
#define PACKET_OVERHEAD 128

/* A stream. Its pcb is made when it is first bound or connected. The pcb holds a reference to the
 * socket, which therefore stays as long as lwIP has something that its user has sent. */
struct inet_tcp {
	struct tcp_pcb *pcb; /* NULL: not made yet, or lwIP has ended the connection */
	struct pbuf *in, *in_last;
	uint32_t unread;   /* bytes in `in` */
	uint32_t held;     /* memory of `in` */
	uint16_t room;     /* bytes that the last buffer of `in` has room for */
	uint32_t unacked;  /* bytes that are counted for the user, and not acknowledged */
	struct list queue; /* listening: connections that wait for accept() */
	uint32_t queued;   /* in that queue */
	struct list link;  /* in that queue */
	struct sockaddr_in local, peer;
	bool bound; /* to a port of the user's choice: `local` stays after a connection */
	bool listening, connecting, connected;
	bool reading;     /* somebody copies from `in`, without the lock */
	bool turned_away; /* … and somebody else was told meanwhile that there is nothing */
	bool untold;      /* connect() did not wait, and nobody has asked for its result yet */
	bool eof;         /* the peer sends no more, or the connection has failed */
	bool shut_read, shut_write;
	bool answers; /* the reader has sent something since the last bytes arrived */
	bool refused; /* what has come waits in lwIP until something is read */
	bool cork, nodelay;
	uint8_t ttl, tos;                              /* of its pcbs; ttl 0: the default */
	uint32_t keep_idle, keep_interval, keep_count; /* seconds; 0: the default */
};

/* Data of a socket of UDP, or of IP without UDP and TCP. */
struct inet_datagram {
	union {
		struct udp_pcb *udp;
		struct raw_pcb *raw;
	};
	struct list all;     /* not UDP: in inet_raw_sockets */
	struct list packets; /* struct packet (datagram.c) */
	uint32_t held;       /* memory of `packets` */
	uint16_t ping_id;    /* SOCK_DGRAM of IPPROTO_ICMP: network order; 0: none yet */
	bool connected, shut_read, shut_write;
	bool sourced; /* connect() has chosen its own address */
	bool bound;   /* to a port, or number, of the user's choice: it stays after a connection */
};

struct inet_socket {
	struct socket so;
	struct cond changed; /* what somebody may wait for */
	int32_t pid;         /* the process that made it */
	union {
		struct inet_tcp tcp;
		struct inet_datagram dgram;
	};
};

extern const struct socket_ops inet_tcp_ops, inet_datagram_ops;
extern struct list inet_raw_sockets; /* lwIP shows nobody its own list */

static inline bool
inet_is_ping(const struct inet_socket *s)
{
	return s->so.type == SOCK_DGRAM && s->so.protocol == IPPROTO_ICMP;
}

static inline struct inet_socket *
inet_of(struct socket *so)
{
	return (struct inet_socket *)so;
}

/* The state of s has changed: wakes who waits. events: POLLIN, POLLOUT or both. */
void inet_changed(struct inet_socket *s, unsigned events);
/* Counts n bytes for the socket's user; false: the limit is reached. */
bool inet_charge(struct inet_socket *s, size_t n);
void inet_release(struct inet_socket *s, size_t n);

/* The parts of an address that a program gave. 0, -EINVAL, -EAFNOSUPPORT. */
int inet_name_parse(const struct socket_name *name, ip_addr_t *ip, uint16_t *port);
/* Does connect() to it end a connection? */
bool inet_name_is_unspec(const struct socket_name *name);
/* Calls bind() with the lock and the parts of the address. 0 or -errno. */
int inet_bind(struct socket *so, const struct socket_name *name,
	      int (*bind)(struct inet_socket *s, const ip_addr_t *ip, uint16_t port));
struct sockaddr_in inet_name(const ip_addr_t *ip, uint16_t port);
void inet_name_set(struct socket_name *name, const struct sockaddr_in *from);
/*
 * May the user bind to this address? 0; -EACCES; -EADDRNOTAVAIL if it is not this machine's. All
 * addresses of 127/8 are. Lock held.
 */
int inet_check_local(const ip_addr_t *ip, uint16_t port);
/*
 * Can packets with the source `from`, which may be "any", go to `to`? 0; -ENETUNREACH; -EINVAL if
 * `from` is not this machine's, or is a loopback address while `to` is another machine's. Lock
 * held.
 */
int inet_check_way(const ip_addr_t *from, const ip_addr_t *to);
/*
 * Gives the pcb a port. For port 0 it chooses a free one, unless the pcb has one already: lwIP's
 * own choice can be guessed, and takes long when many are taken. 0, -EADDRINUSE, or another -errno.
 * Lock held.
 */
int inet_udp_bind(struct udp_pcb *pcb, const ip_addr_t *ip, uint16_t port);
/* Chooses a port for a pcb that sends, or connects, without one. -EAGAIN: none is free. */
int inet_udp_autobind(struct udp_pcb *pcb);
int inet_tcp_bind_pcb(struct tcp_pcb *pcb, const ip_addr_t *ip, uint16_t port);
/* This machine's address for packets to ip. Any: there is none. Lock held. */
ip_addr_t inet_source(const ip_addr_t *ip);

/* datagram.c: makes the pcb. 0 or -errno. */
int inet_datagram_create(struct inet_socket *s);
/* raw.c, for inet_is_ping(): is a packet an answer to what the socket has sent? Lock held. */
bool inet_ping_wants(const struct inet_socket *s, const struct pbuf *p);
/* Gives the echo requests of s a number; 0: any that is free. 0 or -EADDRINUSE. Lock held. */
int inet_ping_bind(struct inet_socket *s, uint16_t id);
/* Makes a program's packet one that can be sent to `to`; not for UDP. 0 or -errno. Lock held. */
int inet_raw_finish(struct inet_socket *s, struct pbuf *p, const ip_addr_t *to);
/* option.c: gives a pcb of a stream the socket's options. Lock held. */
void inet_tcp_apply(struct inet_socket *s);
/* The number that Linux gives the state of a pcb. NULL: it has ended. */
uint8_t inet_tcp_state(const struct tcp_pcb *pcb);

/* tcp_data.c: callbacks, and operations. */
err_t inet_tcp_received(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err);
err_t inet_tcp_sent(void *arg, struct tcp_pcb *pcb, uint16_t len);
void inet_tcp_discard(struct inet_socket *s); /* what was not read */
bool inet_tcp_writable(const struct inet_socket *s);
/* Waits until nobody copies from `in`. 0, -EINTR, or -EAGAIN: somebody still does. Lock held. */
int inet_tcp_readers_end(struct inet_socket *s, bool nowait, uint64_t deadline);
int64_t inet_tcp_send(struct socket *so, struct socket_message *m);
int64_t inet_tcp_receive(struct socket *so, struct socket_message *m);

/* option.c */
int inet_set_option(struct socket *so, int level, int name, uint64_t uvalue, uint32_t len);
int inet_get_option(struct socket *so, int level, int name, uint64_t uvalue, uint64_t ulen);
void inet_option_changed(struct socket *so, int name);
