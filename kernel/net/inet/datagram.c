/*
 * datagram.c - UDP, raw IP, and echo requests of ICMP (SOCK_DGRAM of IPPROTO_ICMP). What the last
 * two need besides is in raw.c. Locking: inet_private.h.
 */
#include <lwip/icmp.h>
#include <lwip/inet_chksum.h>
#include <lwip/prot/udp.h>
#include <lwip/raw.h>
#include <lwip/udp.h>

#include "kernel/abi/errno.h"
#include "kernel/abi/ioctl.h"
#include "kernel/abi/poll.h"
#include "kernel/fs/uio.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/uaccess.h"
#include "kernel/net/inet/inet_private.h"
#include "kernel/net/inet/probe.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(sock);
SDT_PROBE_DECLARE(sock, , , sock_rcvqueue_full);
SDT_PROVIDER_DECLARE(udp);
SDT_PROBE_DECLARE(udp, , , udp_fail_queue_rcv_skb);

#define DATAGRAM_MAX (65535 - IP_HLEN - UDP_HLEN)
#define RAW_MAX      (65535 - IP_HLEN)
#define HEADERS_MAX  160 /* of an error of ICMP: twice IP with options, ICMP, UDP */

struct packet {
	struct list link;
	struct pbuf *p;
	struct sockaddr_in from;
	uint32_t held; /* memory that is counted */
};

static bool
is_udp(const struct inet_socket *s)
{
	return s->so.protocol == IPPROTO_UDP && s->so.type == SOCK_DGRAM;
}

/* ---- what arrives ---- */

/* The memory that a packet takes in a queue. */
static uint32_t
size_of(const struct pbuf *p)
{
	return p->tot_len + PACKET_OVERHEAD + (uint32_t)sizeof(struct packet);
}

/* Does the socket take a packet, however large? Yes while its queue is not full. A packet that
 * it does not take is told to probes. */
static bool
datagram_takes(const struct inet_socket *s, const struct pbuf *p)
{
	if (s->dgram.shut_read)
		return false;
	if (s->dgram.held < s->so.rcvbuf)
		return true;
	if (is_udp(s))
		SDT_PROBE2(udp, , , udp_fail_queue_rcv_skb, -ENOMEM, s->dgram.udp->local_port);
	else
		SDT_PROBE3(sock, , , sock_rcvqueue_full, s->dgram.held, size_of(p), s->so.rcvbuf);
	return false;
}

/* Puts p into the queue, or drops it: there is no memory. */
static void
datagram_enqueue(struct inet_socket *s, struct pbuf *p, const ip_addr_t *ip, uint16_t port)
{
	uint32_t held = size_of(p);
	struct packet *k = NULL;

	if (inet_charge(s, held)) {
		k = kmalloc(sizeof(*k));
		if (k == NULL)
			inet_release(s, held);
	}
	if (k == NULL) {
		pbuf_free(p);
		return;
	}
	*k = (struct packet){.p = p, .from = inet_name(ip, port), .held = held};
	list_append(&s->dgram.packets, &k->link);
	s->dgram.held += held;
	inet_changed(s, POLLIN);
}

/* Takes a packet out of the queue: it is its reader's. */
static void
packet_take(struct inet_socket *s, struct packet *k)
{
	list_remove(&k->link);
	s->dgram.held -= k->held;
	inet_release(s, k->held);
}

static void
udp_arrived(void *arg, struct udp_pcb *pcb, struct pbuf *p, const ip_addr_t *ip, u16_t port)
{
	inet_udp_received(pcb, p);
	if (datagram_takes(arg, p))
		datagram_enqueue(arg, p, ip, port);
	else
		pbuf_free(p);
}

/* Gives each raw socket a copy; the rest of lwIP gets the packet, too. */
static u8_t
raw_arrived(void *arg, struct raw_pcb *pcb, struct pbuf *p, const ip_addr_t *ip)
{
	struct inet_socket *s = arg;
	struct pbuf *copy;

	if ((inet_is_ping(s) && !inet_ping_wants(s, p)) || !datagram_takes(s, p))
		return 0;
	copy = pbuf_clone(PBUF_RAW, PBUF_RAM, p);
	if (copy == NULL)
		return 0;
	if (inet_is_ping(s)) /* its header of IP goes */
		pbuf_remove_header(copy, IPH_HL_BYTES((const struct ip_hdr *)copy->payload));
	datagram_enqueue(s, copy, ip, 0);
	return 0;
}

/* The socket that sent the packet which was refused; udp, ip: its headers. NULL: none. */
static struct inet_socket *
find_sender(const struct ip_hdr *ip, const struct udp_hdr *udp)
{
	for (struct udp_pcb *pcb = udp_pcbs; pcb != NULL; pcb = pcb->next)
		if ((pcb->flags & UDP_FLAGS_CONNECTED) && pcb->local_port == lwip_ntohs(udp->src) &&
		    pcb->remote_port == lwip_ntohs(udp->dest) &&
		    ip_addr_get_ip4_u32(&pcb->remote_ip) == ip->dest.addr)
			return pcb->recv_arg;
	return NULL;
}

/* ICMP says that nobody listens at a port (RFC 792). */
static u8_t
icmp_arrived(void *arg, struct raw_pcb *pcb, struct pbuf *p, const ip_addr_t *from)
{
	char bytes[HEADERS_MAX];
	size_t len = pbuf_copy_partial(p, bytes, sizeof(bytes), 0);
	size_t at = IPH_HL_BYTES((struct ip_hdr *)bytes), inner;
	const struct icmp_echo_hdr *icmp = (void *)(bytes + at);
	const struct ip_hdr *ip = (void *)(bytes + at + sizeof(*icmp));
	struct inet_socket *s;

	if (at + sizeof(*icmp) + IP_HLEN > len || icmp->type != ICMP_DUR ||
	    icmp->code != ICMP_DUR_PORT || IPH_PROTO(ip) != IP_PROTO_UDP)
		return 0;
	inner = at + sizeof(*icmp) + IPH_HL_BYTES(ip);
	if (inner + UDP_HLEN > len)
		return 0;
	s = find_sender(ip, (void *)(bytes + inner));
	if (s != NULL) {
		socket_set_error(&s->so, ECONNREFUSED);
		inet_changed(s, POLLIN | POLLOUT);
	}
	return 0;
}

/* The first socket of UDP makes the pcb that hears of errors. False: no memory. */
static bool
hear_errors(void)
{
	static struct raw_pcb *errors;

	if (errors == NULL) {
		errors = raw_new(IP_PROTO_ICMP);
		if (errors != NULL)
			raw_recv(errors, icmp_arrived, NULL);
	}
	return errors != NULL;
}

/* ---- operations ---- */

static int
make_pcb(struct inet_socket *s)
{
	if (is_udp(s)) {
		s->dgram.udp = hear_errors() ? udp_new() : NULL;
		if (s->dgram.udp == NULL)
			return -ENOBUFS;
		udp_recv(s->dgram.udp, udp_arrived, s);
		return 0;
	}
	s->dgram.raw = raw_new((uint8_t)s->so.protocol);
	if (s->dgram.raw == NULL)
		return -ENOBUFS;
	if (s->so.protocol == IPPROTO_RAW)
		raw_set_flags(s->dgram.raw, RAW_FLAGS_HDRINCL);
	else
		raw_recv(s->dgram.raw, raw_arrived, s);
	list_append(&inet_raw_sockets, &s->dgram.all);
	return 0;
}

int
inet_datagram_create(struct inet_socket *s)
{
	int error;

	list_init(&s->dgram.packets);
	inet_lock();
	error = make_pcb(s);
	inet_unlock();
	return error;
}

/* A socket's port, or the number of its echo requests. 0: it has none yet. */
static uint16_t
port_of(const struct inet_socket *s)
{
	return is_udp(s) ? s->dgram.udp->local_port : s->dgram.ping_id;
}

static int
datagram_bind_locked(struct inet_socket *s, const ip_addr_t *ip, uint16_t port)
{
	int error = inet_check_local(ip, is_udp(s) ? port : 0);

	if (error == 0 && port_of(s) != 0)
		error = -EINVAL;
	if (error == 0 && inet_is_ping(s))
		error = inet_ping_bind(s, port);
	if (error == 0)
		error = is_udp(s) ? inet_udp_bind(s->dgram.udp, ip, port)
				  : inet_errno(raw_bind(s->dgram.raw, ip));
	s->dgram.bound |= error == 0 && port != 0;
	return error;
}

static int
inet_datagram_bind(struct socket *so, const struct socket_name *name)
{
	return inet_bind(so, name, datagram_bind_locked);
}

static const ip_addr_t *
local_of(const struct inet_socket *s)
{
	return is_udp(s) ? &s->dgram.udp->local_ip : &s->dgram.raw->local_ip;
}

/* Gives up the source that connect() has chosen. */
static void
forget_source(struct inet_socket *s)
{
	if (s->dgram.sourced)
		ip_addr_set_any(false, &s->dgram.udp->local_ip);
	s->dgram.sourced = false;
}

/* Gives up a port that the user has not chosen. lwIP has a list of all pcbs with a port. */
static void
forget_port(struct inet_socket *s)
{
	struct udp_pcb **at = &udp_pcbs;

	if (s->dgram.bound)
		return;
	s->dgram.ping_id = 0;
	if (!is_udp(s) || s->dgram.udp->local_port == 0)
		return;
	while (*at != s->dgram.udp)
		at = &(*at)->next;
	*at = s->dgram.udp->next;
	s->dgram.udp->local_port = 0;
}

static void
datagram_disconnect(struct inet_socket *s)
{
	s->dgram.connected = false;
	forget_source(s);
	forget_port(s);
	if (is_udp(s))
		udp_disconnect(s->dgram.udp);
	else
		raw_disconnect(s->dgram.raw);
}

static int
datagram_connect_locked(struct inet_socket *s, ip_addr_t ip, uint16_t port)
{
	int error;

	if (ip_addr_isany(&ip))
		ip_addr_set_loopback(false, &ip);
	error = inet_check_way(s->dgram.sourced ? IP4_ADDR_ANY : local_of(s), &ip);
	if (error == 0 && is_udp(s))
		error = inet_udp_autobind(s->dgram.udp);
	if (error == 0)
		error = inet_errno(is_udp(s) ? udp_connect(s->dgram.udp, &ip, port)
					     : raw_connect(s->dgram.raw, &ip));
	if (error != 0)
		return error;
	s->dgram.connected = true;
	forget_source(s);
	if (is_udp(s) && ip_addr_isany(&s->dgram.udp->local_ip)) {
		ip_addr_copy(s->dgram.udp->local_ip, inet_source(&ip));
		s->dgram.sourced = true;
	}
	return 0;
}

static int
inet_datagram_connect(struct socket *so, const struct socket_name *name, bool nowait)
{
	struct inet_socket *s = inet_of(so);
	uint16_t port;
	ip_addr_t ip;
	int error = 0;

	inet_lock();
	if (inet_name_is_unspec(name)) {
		datagram_disconnect(s);
	} else {
		error = inet_name_parse(name, &ip, &port);
		if (error == 0)
			error = datagram_connect_locked(s, ip, port);
	}
	inet_unlock();
	return error;
}

static int
inet_datagram_getname(struct socket *so, struct socket_name *name, enum socket_end end)
{
	bool peer = end != SOCKET_OWN;
	const struct inet_socket *s = inet_of(so);
	struct sockaddr_in in;
	int error = 0;

	inet_lock();
	if (peer && !s->dgram.connected)
		error = -ENOTCONN;
	else if (is_udp(s))
		in = peer ? inet_name(&s->dgram.udp->remote_ip, s->dgram.udp->remote_port)
			  : inet_name(&s->dgram.udp->local_ip, s->dgram.udp->local_port);
	else
		in = inet_name(peer ? &s->dgram.raw->remote_ip : &s->dgram.raw->local_ip,
			       inet_is_ping(s) ? lwip_ntohs(s->dgram.ping_id) : so->protocol);
	inet_unlock();
	if (error == 0)
		inet_name_set(name, &in);
	return error;
}

/* Sends by UDP. lwIP's udp_sendto() sends from no address but that of the interface. */
static err_t
udp_send_from(struct udp_pcb *pcb, struct pbuf *p, const ip_addr_t *to, uint16_t port)
{
	if (ip_addr_isany(&pcb->local_ip))
		return udp_sendto(pcb, p, to, port);
	return udp_sendto_if_src(pcb, p, to, port, ip4_route(to), &pcb->local_ip);
}

/* Makes a program's packet one that can be sent to `to`. 0 or -errno. */
static int
datagram_finish(struct inet_socket *s, struct pbuf *p, const ip_addr_t *to)
{
	int error = inet_check_way(local_of(s), to);

	if (error != 0)
		return error;
	return is_udp(s) ? inet_udp_autobind(s->dgram.udp) : inet_raw_finish(s, p, to);
}

/* Sends a packet. ip: where to; NULL: to the peer. */
static int
datagram_send_locked(struct inet_socket *s, struct pbuf *p, const ip_addr_t *ip, uint16_t port)
{
	int error = socket_take_error(&s->so);
	ip_addr_t to;
	err_t err;

	if (error == 0 && s->dgram.shut_write)
		error = -EPIPE;
	if (error == 0 && ip == NULL && !s->dgram.connected)
		error = -EDESTADDRREQ;
	if (error != 0)
		return error;
	to = ip != NULL ? *ip : is_udp(s) ? s->dgram.udp->remote_ip : s->dgram.raw->remote_ip;
	if (ip_addr_isany(&to))
		ip_addr_set_loopback(false, &to);
	error = datagram_finish(s, p, &to);
	if (error != 0)
		return error;
	inet_udp_sends(is_udp(s) ? s->dgram.udp : NULL);
	if (is_udp(s))
		err = udp_send_from(s->dgram.udp, p, &to,
				    ip != NULL ? port : s->dgram.udp->remote_port);
	else
		err = raw_sendto(s->dgram.raw, p, &to);
	inet_udp_sends(NULL);
	/* lwIP calls a broadcast without SO_BROADCAST a wrong value. */
	return err == ERR_VAL ? -EACCES : err == ERR_MEM ? -ENOBUFS : inet_errno(err);
}

static int64_t
inet_datagram_send(struct socket *so, struct socket_message *m)
{
	struct inet_socket *s = inet_of(so);
	size_t n = m->uio->resid;
	ip_addr_t ip;
	uint16_t port = 0;
	bool to = m->name != NULL && m->name->len > 0;
	struct pbuf *p;
	int error = to ? inet_name_parse(m->name, &ip, &port) : 0;

	if (m->flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (error == 0 && to && is_udp(s) && port == 0)
		error = -EINVAL;
	if (error == 0 && n > (is_udp(s) ? DATAGRAM_MAX : RAW_MAX))
		error = -EMSGSIZE;
	if (error != 0)
		return error;
	p = pbuf_alloc(is_udp(s) ? PBUF_TRANSPORT : PBUF_IP, (uint16_t)n, PBUF_RAM);
	if (p == NULL)
		return -ENOBUFS;
	error = uio_take(m->uio, p->payload, n);
	inet_lock();
	if (error == 0)
		error = datagram_send_locked(s, p, to ? &ip : NULL, port);
	pbuf_free(p); /* freed with the lock held: ARP may have the buffer in its queue */
	inet_unlock();
	return error == 0 ? (int64_t)n : error;
}

/* Waits for a packet. 1; 0 at the end; -errno. */
static int
await_packet(struct inet_socket *s, bool nowait)
{
	uint64_t deadline = socket_deadline(s->so.rcvtimeo);
	int error;

	for (;;) {
		error = socket_take_error(&s->so);
		if (error != 0)
			return error;
		if (!list_empty(&s->dgram.packets))
			return 1;
		if (s->dgram.shut_read)
			return 0;
		if (nowait)
			return -EAGAIN;
		error = inet_wait(&s->changed, "udprecv", deadline);
		if (error != 0)
			return error == -ETIMEDOUT ? -EAGAIN : error;
	}
}

/* Copies a packet to the reader. Its length, or what was copied of it; -EFAULT. */
static int64_t
packet_give(const struct packet *k, struct socket_message *m)
{
	size_t total = k->p->tot_len, start = m->uio->resid;
	int error = 0;

	for (const struct pbuf *p = k->p; p != NULL && error == 0 && m->uio->resid > 0; p = p->next)
		error =
		    uio_put(m->uio, p->payload, p->len < m->uio->resid ? p->len : m->uio->resid);
	if (error != 0)
		return error;
	if (total > start)
		m->told_flags |= MSG_TRUNC;
	if (m->name != NULL)
		inet_name_set(m->name, &k->from);
	return (int64_t)(total <= start || (m->flags & MSG_TRUNC) ? total : start);
}

static int64_t
inet_datagram_receive(struct socket *so, struct socket_message *m)
{
	struct inet_socket *s = inet_of(so);
	struct packet *k, seen;
	int64_t n;

	if (m->flags & MSG_ERRQUEUE)
		return -EAGAIN; /* there is never anything */
	if (m->flags & MSG_OOB)
		return -EOPNOTSUPP;
	inet_lock();
	n = await_packet(s, m->nowait);
	if (n <= 0) {
		inet_unlock();
		return n;
	}
	k = list_entry(s->dgram.packets.next, struct packet, link);
	seen = *k;
	if (m->flags & MSG_PEEK) {
		pbuf_ref(seen.p);
	} else {
		packet_take(s, k);
		kfree(k);
	}
	inet_unlock();
	/* Without the lock: the reader's memory may have to be made first. */
	n = packet_give(&seen, m);
	inet_lock();
	pbuf_free(seen.p);
	inet_unlock();
	return n;
}

static int
inet_datagram_shutdown(struct socket *so, int how)
{
	struct inet_socket *s = inet_of(so);
	int error;

	inet_lock();
	error = s->dgram.connected ? 0 : -ENOTCONN;
	s->dgram.shut_read |= how != SHUT_WR;
	s->dgram.shut_write |= how != SHUT_RD;
	inet_changed(s, POLLIN | POLLOUT);
	inet_unlock();
	return error;
}

static unsigned
inet_datagram_poll(struct socket *so)
{
	const struct inet_socket *s = inet_of(so);
	bool over;
	unsigned found;

	inet_lock();
	over = s->dgram.shut_read && s->dgram.shut_write;
	found = (!list_empty(&s->dgram.packets) || s->dgram.shut_read ? POLLIN : 0) |
		(s->dgram.shut_read ? POLLRDHUP : 0) | (over ? POLLHUP : 0) | POLLOUT;
	inet_unlock();
	return found | (__atomic_load_n(&so->error, __ATOMIC_RELAXED) != 0 ? POLLERR : 0);
}

static int64_t
inet_datagram_ioctl(struct socket *so, unsigned request, uint64_t arg)
{
	struct inet_socket *s = inet_of(so);
	int32_t n = 0;

	if (request != FIONREAD && request != TIOCOUTQ)
		return -ENOTTY;
	inet_lock();
	if (request == FIONREAD && !list_empty(&s->dgram.packets))
		n = list_entry(s->dgram.packets.next, struct packet, link)->p->tot_len;
	inet_unlock();
	return copy_out(arg, &n, sizeof(n));
}

static void
inet_datagram_release(struct socket *so)
{
	struct inet_socket *s = inet_of(so);

	inet_lock();
	if (is_udp(s)) {
		udp_remove(s->dgram.udp);
	} else {
		raw_remove(s->dgram.raw);
		list_remove(&s->dgram.all);
	}
	while (!list_empty(&s->dgram.packets)) {
		struct packet *k = list_entry(s->dgram.packets.next, struct packet, link);

		packet_take(s, k);
		pbuf_free(k->p);
		kfree(k);
	}
	inet_unlock();
}

static void
inet_datagram_destroy(struct socket *so)
{
	/* release() has freed all. */
}

const struct socket_ops inet_datagram_ops = {
    .bind = inet_datagram_bind,
    .connect = inet_datagram_connect,
    .getname = inet_datagram_getname,
    .send = inet_datagram_send,
    .receive = inet_datagram_receive,
    .shutdown = inet_datagram_shutdown,
    .poll = inet_datagram_poll,
    .ioctl = inet_datagram_ioctl,
    .set_option = inet_set_option,
    .get_option = inet_get_option,
    .option_changed = inet_option_changed,
    .release = inet_datagram_release,
    .destroy = inet_datagram_destroy,
};
