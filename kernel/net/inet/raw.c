/*
 * raw.c - what raw IP and echo requests of ICMP need besides what they share with UDP (datagram.c):
 * numbers of requests, headers. Locking: inet_private.h.
 */
#include <lwip/icmp.h>
#include <lwip/inet_chksum.h>
#include <lwip/ip4.h>
#include <lwip/netif.h>
#include <lwip/raw.h>

#include "kernel/abi/errno.h"
#include "kernel/lib/random.h"
#include "kernel/net/inet/inet_private.h"

struct list inet_raw_sockets = LIST_INIT(inet_raw_sockets);

bool
inet_ping_wants(const struct inet_socket *s, const struct pbuf *p)
{
	uint16_t hlen = IPH_HL_BYTES((const struct ip_hdr *)p->payload);
	const struct icmp_echo_hdr *echo = (const void *)((const char *)p->payload + hlen);

	return p->len >= hlen + sizeof(*echo) && echo->type == ICMP_ER &&
	       echo->id == s->dgram.ping_id;
}

/* May the socket have this number? Two have one only if both are SO_REUSEADDR. */
static bool
ping_may_have(const struct inet_socket *s, uint16_t id)
{
	list_for_each_entry (const struct inet_socket, other, &inet_raw_sockets, dgram.all)
		if (inet_is_ping(other) && other != s && other->dgram.ping_id == id &&
		    !(socket_has(&s->so, SO_REUSEADDR) && socket_has(&other->so, SO_REUSEADDR)))
			return false;
	return true;
}

int
inet_ping_bind(struct inet_socket *s, uint16_t id)
{
	uint16_t first = (uint16_t)inet_random();

	for (uint32_t i = 0; id == 0 && i <= UINT16_MAX; i++) {
		uint16_t next = (uint16_t)(first + i);

		if (next != 0 && ping_may_have(s, lwip_htons(next)))
			id = next;
	}
	if (id == 0 || !ping_may_have(s, lwip_htons(id)))
		return -EADDRINUSE;
	s->dgram.ping_id = lwip_htons(id);
	return 0;
}

/* Makes an echo request of what a program gave: number and checksum. */
static int
ping_finish(struct inet_socket *s, struct pbuf *p)
{
	struct icmp_echo_hdr *echo = p->payload;

	int error;

	if (p->len < sizeof(*echo) || echo->type != ICMP_ECHO || echo->code != 0)
		return -EINVAL;
	error = s->dgram.ping_id == 0 ? inet_ping_bind(s, 0) : 0;
	if (error != 0)
		return error;
	echo->id = s->dgram.ping_id;
	echo->chksum = 0;
	echo->chksum = inet_chksum_pbuf(p);
	return 0;
}

/* Completes the header that a program gave (IP_HDRINCL), as raw(7) says. 0 or -errno. */
static int
header_finish(const struct raw_pcb *pcb, struct pbuf *p, const ip_addr_t *to)
{
	const struct netif *netif = ip4_route(to);
	struct ip_hdr *ip = p->payload;

	if (ip_addr_isbroadcast(to, netif) && !ip_get_option(pcb, SOF_BROADCAST))
		return -EACCES;
	if (netif->mtu != 0 && p->tot_len > netif->mtu)
		return -EMSGSIZE;
	if (p->len < IP_HLEN || IPH_HL_BYTES(ip) > p->len)
		return -EINVAL;
	if (IPH_HL_BYTES(ip) < IP_HLEN)
		return 0; /* it is none */
	if (ip->src.addr == 0)
		ip->src.addr = ip_addr_get_ip4_u32(netif_ip_addr4(netif));
	if (ip->_id == 0)
		ip->_id = (uint16_t)inet_random();
	ip->_len = lwip_htons(p->tot_len);
	ip->_chksum = 0;
	ip->_chksum = inet_chksum(ip, IPH_HL_BYTES(ip));
	return 0;
}

int
inet_raw_finish(struct inet_socket *s, struct pbuf *p, const ip_addr_t *to)
{
	if (inet_is_ping(s))
		return ping_finish(s, p);
	return raw_is_flag_set(s->dgram.raw, RAW_FLAGS_HDRINCL) ? header_finish(s->dgram.raw, p, to)
								: 0;
}
