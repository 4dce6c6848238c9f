/*
 * family.c - the family AF_INET: which kind of socket a program gets, names, and what its user
 * holds.
 */
#include <lwip/netif.h>
#include <lwip/priv/tcp_priv.h>
#include <lwip/udp.h>

#include "kernel/abi/capability.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/string.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/net/inet/inet_private.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/task.h"

#define PORT_PRIVILEGED 1024   /* ports below it want CAP_NET_BIND_SERVICE */
#define PORT_FIRST      0xc000 /* the first port that is given to sockets that want any */
#define PORTS           0x4000

static uint32_t ports_taken[PORTS / 32]; /* bits; guarded by the lock of the network */

void
inet_changed(struct inet_socket *s, unsigned events)
{
	cond_broadcast(&s->changed);
	poll_notify(&s->so.news, events);
}

bool
inet_charge(struct inet_socket *s, size_t n)
{
	return uidinfo_charge(s->so.ui, UIDINFO_KMEM, n);
}

void
inet_release(struct inet_socket *s, size_t n)
{
	if (n > 0)
		uidinfo_release(s->so.ui, UIDINFO_KMEM, n);
}

int
inet_name_parse(const struct socket_name *name, ip_addr_t *ip, uint16_t *port)
{
	struct sockaddr_in in;

	if (name->len < sizeof(in))
		return -EINVAL;
	memcpy(&in, name->data, sizeof(in));
	if (in.sin_family != AF_INET && (in.sin_family != AF_UNSPEC || in.sin_addr != 0))
		return -EAFNOSUPPORT;
	ip_addr_set_ip4_u32_val(*ip, in.sin_addr);
	*port = lwip_ntohs(in.sin_port);
	return 0;
}

bool
inet_name_is_unspec(const struct socket_name *name)
{
	return name->len >= sizeof(name->family) && name->family == AF_UNSPEC;
}

int
inet_bind(struct socket *so, const struct socket_name *name,
	  int (*bind)(struct inet_socket *s, const ip_addr_t *ip, uint16_t port))
{
	uint16_t port;
	ip_addr_t ip;
	int error = inet_name_parse(name, &ip, &port);

	if (error != 0)
		return error;
	inet_lock();
	error = bind(inet_of(so), &ip, port);
	inet_unlock();
	return error;
}

struct sockaddr_in
inet_name(const ip_addr_t *ip, uint16_t port)
{
	return (struct sockaddr_in){AF_INET, lwip_htons(port), ip_addr_get_ip4_u32(ip), {0}};
}

void
inet_name_set(struct socket_name *name, const struct sockaddr_in *from)
{
	name->len = sizeof(*from);
	memcpy(name->data, from, sizeof(*from));
}

int
inet_check_local(const ip_addr_t *ip, uint16_t port)
{
	struct netif *netif;

	if (port != 0 && port < PORT_PRIVILEGED && !capable(CAP_NET_BIND_SERVICE))
		return -EACCES;
	if (ip_addr_isany(ip))
		return 0;
	NETIF_FOREACH(netif)
	{
		const ip_addr_t *own = netif_ip_addr4(netif);

		if (ip_addr_cmp(ip, own) || (ip_addr_isloopback(ip) && ip_addr_isloopback(own)))
			return 0;
	}
	return -EADDRNOTAVAIL;
}

int
inet_check_way(const ip_addr_t *from, const ip_addr_t *to)
{
	if (ip4_route(to) == NULL)
		return -ENETUNREACH;
	if (inet_check_local(from, 0) != 0) /* its interface has another one by now */
		return -EINVAL;
	return ip_addr_isloopback(from) && inet_check_local(to, 0) != 0 ? -EINVAL : 0;
}

ip_addr_t
inet_source(const ip_addr_t *ip)
{
	const struct netif *netif = ip4_route(ip);

	return netif != NULL ? *netif_ip_addr4(netif) : *IP4_ADDR_ANY;
}

/* ---- ports ---- */

static void
port_take(uint16_t port)
{
	if (port >= PORT_FIRST)
		ports_taken[(port - PORT_FIRST) / 32] |= 1u << port % 32;
}

/* The first port from a random one on that is not taken. 0: there is none. */
static uint16_t
port_find(void)
{
	uint32_t start = inet_random();

	for (uint32_t i = 0; i < PORTS; i++) {
		uint32_t n = (start + i) % PORTS;

		if ((ports_taken[n / 32] & 1u << n % 32) == 0)
			return (uint16_t)(PORT_FIRST + n);
	}
	return 0;
}

int
inet_udp_bind(struct udp_pcb *pcb, const ip_addr_t *ip, uint16_t port)
{
	if (port == 0 && pcb->local_port != 0)
		return 0;
	if (port == 0) {
		memset(ports_taken, 0, sizeof(ports_taken));
		for (const struct udp_pcb *p = udp_pcbs; p != NULL; p = p->next)
			port_take(p->local_port);
		port = port_find();
	}
	return port != 0 ? inet_errno(udp_bind(pcb, ip, port)) : -EADDRINUSE;
}

int
inet_udp_autobind(struct udp_pcb *pcb)
{
	int error = inet_udp_bind(pcb, &pcb->local_ip, 0);

	return error == -EADDRINUSE ? -EAGAIN : error;
}

int
inet_tcp_bind_pcb(struct tcp_pcb *pcb, const ip_addr_t *ip, uint16_t port)
{
	if (port == 0 && pcb->local_port != 0)
		return 0;
	if (port == 0) {
		memset(ports_taken, 0, sizeof(ports_taken));
		for (unsigned i = 0; i < NUM_TCP_PCB_LISTS; i++)
			for (const struct tcp_pcb *p = *tcp_pcb_lists[i]; p != NULL; p = p->next)
				port_take(p->local_port);
		port = port_find();
	}
	return port != 0 ? inet_errno(tcp_bind(pcb, ip, port)) : -EADDRINUSE;
}

static int
inet_create(struct socket *so)
{
	struct inet_socket *s = inet_of(so);
	unsigned protocol = so->protocol;

	s->pid = curproc() != NULL ? curproc()->pid : 0; /* lwIP's timers accept, too */
	switch (so->type) {
	case SOCK_STREAM:
		if (protocol != 0 && protocol != IPPROTO_TCP)
			return -EPROTONOSUPPORT;
		so->protocol = IPPROTO_TCP;
		so->ops = &inet_tcp_ops;
		list_init(&s->tcp.queue);
		list_init(&s->tcp.link);
		return 0;
	case SOCK_DGRAM:
		if (protocol != 0 && protocol != IPPROTO_UDP && protocol != IPPROTO_ICMP)
			return -EPROTONOSUPPORT;
		so->protocol = protocol != 0 ? (uint16_t)protocol : IPPROTO_UDP;
		break;
	case SOCK_RAW:
		if (protocol == 0 || protocol > IPPROTO_RAW)
			return -EPROTONOSUPPORT;
		if (!capable(CAP_NET_RAW))
			return -EPERM;
		break;
	default:
		return -ESOCKTNOSUPPORT;
	}
	so->ops = &inet_datagram_ops;
	return inet_datagram_create(s);
}

const struct socket_family inet_family = {
    .domain = AF_INET,
    .size = sizeof(struct inet_socket),
    .create = inet_create,
};
