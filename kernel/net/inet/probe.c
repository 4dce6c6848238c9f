/*
 * probe.c - what the network does, told: DTrace's providers ip and udp, Linux's events of net, and
 * the same in the log. tcp_probe.c is the part of TCP. Locking: core.h.
 *
 * lwIP is as its authors wrote it. Packets are seen where lwIP hands them over (lwip/hooks.h):
 *
 *	tcp_out.c ──► inet_tcp_sends()      the pcb of the segment that follows
 *	ip4.c ──┬───► inet_loop_output() ─┐ a packet is complete
 *	        ├───► inet_frag() ────────┤ … but it is sent in fragments
 *	        └───► netif->output() ────┴─► inet_ip_sent()
 *	ip4.c ──────► inet_ip_received()    true: it is no packet for this machine
 *	tcp_in.c ───► inet_tcp_heard()      a segment, and its pcb; then inet_tcp_admit()
 */
#include <lwip/ip.h>
#include <lwip/ip4_frag.h>
#include <lwip/netif.h>
#include <lwip/prot/ethernet.h>
#include <lwip/prot/tcp.h>
#include <lwip/prot/udp.h>
#include <lwip/snmp.h>
#include <lwip/udp.h>

#include "kernel/net/inet/inet_private.h"
#include "kernel/net/inet/probe.h"
#include "kernel/net/lwip/hooks.h"
#include "ktr/sdt.h"

#undef netif_loop_output /* here they are lwIP's */
#undef ip4_frag

/* What D's translators read (ip.d, udp.d). */
struct inet_udp_info {
	const struct udp_pcb *pcb; /* NULL: no socket */
	uint32_t laddr, raddr;
	uint16_t lport, rport;
	int32_t pid;
};

#define IP_TYPES                                                                            \
	("struct pbuf *", "void *", "struct ip_hdr *", "struct netif *", "struct ip_hdr *", \
	 "void *")
#define IP_ARGS \
	("pktinfo_t *", "csinfo_t *", "ipinfo_t *", "ifinfo_t *", "ipv4info_t *", "ipv6info_t *")
#define IP_FORMAT ": packet %p cs %p ip %p if %p ipv4 %p ipv6 %p"
#define UDP_TYPES                                                                                \
	("struct pbuf *", "struct inet_udp_info *", "struct ip_hdr *", "struct inet_udp_info *", \
	 "struct udp_hdr *")
#define UDP_ARGS   ("pktinfo_t *", "csinfo_t *", "ipinfo_t *", "udpsinfo_t *", "udpinfo_t *")
#define UDP_FORMAT ": packet %p cs %p ip %p udps %p udp %p"

SDT_PROVIDER_DEFINE(ip);
SDT_PROBE_DEFINE_TEXT_XLATE(ip, , , send, "send", IP_FORMAT, 6, IP_TYPES, IP_ARGS);
SDT_PROBE_DEFINE_TEXT_XLATE(ip, , , receive, "receive", IP_FORMAT, 6, IP_TYPES, IP_ARGS);

SDT_PROVIDER_DEFINE(udp);
SDT_PROBE_DEFINE_TEXT_XLATE(udp, , , send, "send", UDP_FORMAT, 5, UDP_TYPES, UDP_ARGS);
SDT_PROBE_DEFINE_TEXT_XLATE(udp, , , receive, "receive", UDP_FORMAT, 5, UDP_TYPES, UDP_ARGS);

/* Linux's lines (include/trace/events/net.h, sock.h, udp.h); the fields are what they show. */
SDT_PROVIDER_DEFINE(net);
SDT_PROBE_DEFINE_TEXT(net, , , net_dev_queue, "net_dev_queue", ": dev=%s skbaddr=%p len=%u", 3,
		      "char *", "struct pbuf *", "uint32_t");
SDT_PROBE_DEFINE_TEXT(net, , , net_dev_xmit, "net_dev_xmit", ": dev=%s skbaddr=%p len=%u rc=%d", 4,
		      "char *", "struct pbuf *", "uint32_t", "int");
SDT_PROBE_DEFINE_TEXT(net, , , netif_receive_skb, "netif_receive_skb", ": dev=%s skbaddr=%p len=%u",
		      3, "char *", "struct pbuf *", "uint32_t");
SDT_PROBE_DEFINE_TEXT(net, , , netif_rx, "netif_rx", ": dev=%s skbaddr=%p len=%u", 3, "char *",
		      "struct pbuf *", "uint32_t");
SDT_PROVIDER_DEFINE(sock);
SDT_PROBE_DEFINE_TEXT(sock, , , sock_rcvqueue_full, "sock_rcvqueue_full",
		      ": rmem_alloc=%d truesize=%u sk_rcvbuf=%d", 3, "int", "uint32_t", "int");
SDT_PROBE_DEFINE_TEXT(udp, , , udp_fail_queue_rcv_skb, "udp_fail_queue_rcv_skb", ": rc=%d port=%hu",
		      2, "int", "uint16_t");

struct pbuf *inet_arrived;
static const struct udp_pcb *sending; /* whose datagram goes out now; NULL: nobody's */

/* ---- interfaces ---- */

/* A constant text, which D and the log can read: there is one card at most (card.c). */
static const char *
interface_of(const struct netif *netif)
{
	return netif == inet_loopback ? "lo" : "eth0";
}

/* The bytes of a frame: those of Linux's loopback begin with a header of Ethernet, too. */
static uint32_t
frame_bytes(const struct netif *netif, const struct pbuf *p)
{
	return p->tot_len + (netif == inet_loopback ? SIZEOF_ETH_HDR : 0);
}

void
inet_dev_queue(const struct netif *netif, const struct pbuf *p)
{
	SDT_PROBE3(net, , , net_dev_queue, interface_of(netif), p, frame_bytes(netif, p));
}

void
inet_dev_xmit(const struct netif *netif, const struct pbuf *p, int rc)
{
	SDT_PROBE4(net, , , net_dev_xmit, interface_of(netif), p, frame_bytes(netif, p), rc);
}

void
inet_dev_receive(const struct netif *netif, const struct pbuf *p, uint32_t len)
{
	SDT_PROBE3(net, , , netif_receive_skb, interface_of(netif), p, len);
}

/* ---- what arrives ---- */

/* Is a header of IP there, and what it says of lengths possible? */
static bool
is_sound(const struct pbuf *p)
{
	const struct ip_hdr *ip = p->payload;

	return p->len >= IP_HLEN && IPH_HL_BYTES(ip) >= IP_HLEN && IPH_HL_BYTES(ip) <= p->len &&
	       lwip_ntohs(IPH_LEN(ip)) >= IPH_HL_BYTES(ip) && lwip_ntohs(IPH_LEN(ip)) <= p->tot_len;
}

/*
 * Has the packet come by a card, though it says that it comes from this machine itself, or goes to
 * its loopback? Programs trust such addresses.
 */
static bool
is_false_packet(const struct ip_hdr *ip)
{
	ip4_addr_t from = {ip->src.addr}, to = {ip->dest.addr};
	const struct netif *netif;

	if (inet_delivering)
		return false;
	if (ip4_addr_isloopback(&from) || ip4_addr_isloopback(&to))
		return true;
	NETIF_FOREACH(netif)
	if (!ip4_addr_isany_val(from) && ip4_addr_cmp(&from, netif_ip4_addr(netif)))
		return true;
	return false;
}

bool
inet_ip_received(struct pbuf *p, struct netif *netif)
{
	const struct netif *by = inet_delivering ? inet_loopback : netif;
	const struct ip_hdr *ip = p->payload;

	inet_tcp_watch(NULL);
	inet_arrived = p;
	if (inet_delivering)
		inet_dev_receive(by, p, p->tot_len);
	if (!is_sound(p))
		return false;
	SDT_CTR6(ip, , , receive, SDT_ARGS6(p, 0, ip, by, ip, 0), KTR_INET,
		 "ip receive: interface %s source %pI4 destination %pI4 protocol %u bytes %u id %u",
		 interface_of(by), ADDRESS(ip->src.addr), ADDRESS(ip->dest.addr), ip->_proto,
		 lwip_ntohs(ip->_len), lwip_ntohs(ip->_id));
	if (!is_false_packet(ip))
		return false;
	MIB2_STATS_NETIF_INC(netif, ifinerrors);
	pbuf_free(p);
	return true;
}

/* Returns u. A socket that is not connected has the packet's addresses. */
static struct inet_udp_info *
udp_info_get(struct inet_udp_info *u, const struct udp_pcb *pcb, uint32_t local, uint32_t remote,
	     uint16_t lport, uint16_t rport)
{
	const struct inet_socket *s = pcb != NULL ? pcb->recv_arg : NULL;

	*u = (struct inet_udp_info){.pcb = pcb,
				    .laddr = local,
				    .raddr = remote,
				    .lport = lwip_ntohs(lport),
				    .rport = lwip_ntohs(rport),
				    .pid = s != NULL ? s->pid : 0};
	return u;
}

void
inet_udp_received(const struct udp_pcb *pcb, struct pbuf *p)
{
	const struct ip_hdr *ip = ip4_current_header();
	const struct udp_hdr *h = ip_next_header_ptr();
	struct inet_udp_info u;

	SDT_CTR5(udp, , , receive,
		 SDT_ARGS5(p, udp_info_get(&u, pcb, ip->dest.addr, ip->src.addr, h->dest, h->src),
			   ip, &u, h),
		 KTR_INET, "udp receive: source %pI4 sport %u destination %pI4 dport %u bytes %u",
		 ADDRESS(ip->src.addr), lwip_ntohs(h->src), ADDRESS(ip->dest.addr),
		 lwip_ntohs(h->dest), p->tot_len);
}

/* ---- what is sent ---- */

void
inet_udp_sends(const struct udp_pcb *pcb)
{
	sending = pcb;
}

static void
datagram_sent(struct pbuf *p, const struct ip_hdr *ip, const struct udp_hdr *h)
{
	struct inet_udp_info u;

	SDT_CTR5(udp, , , send,
		 SDT_ARGS5(p,
			   udp_info_get(&u, sending, ip->src.addr, ip->dest.addr, h->src, h->dest),
			   ip, &u, h),
		 KTR_INET, "udp send: source %pI4 sport %u destination %pI4 dport %u bytes %u",
		 ADDRESS(ip->src.addr), lwip_ntohs(h->src), ADDRESS(ip->dest.addr),
		 lwip_ntohs(h->dest), p->tot_len - IPH_HL_BYTES(ip) - UDP_HLEN);
}

/* A packet is complete. What a raw socket sends may say anything of lengths. */
static void
transport_sent(struct pbuf *p)
{
	const struct ip_hdr *ip = p->payload;
	uint32_t at = IPH_HL_BYTES(ip);
	const void *h = (const char *)p->payload + at;

	if (ip->_proto == IP_PROTO_TCP && p->len >= at + TCP_HLEN &&
	    p->tot_len >= at + TCPH_HDRLEN_BYTES((const struct tcp_hdr *)h))
		inet_segment_sent(p, ip, h);
	else if (ip->_proto == IP_PROTO_UDP && p->len >= at + UDP_HLEN)
		datagram_sent(p, ip, h);
}

void
inet_ip_sent(struct pbuf *p, const struct netif *netif)
{
	const struct ip_hdr *ip = p->payload;

	if ((ip->_offset & PP_HTONS(IP_OFFMASK | IP_MF)) == 0)
		transport_sent(p);
	SDT_CTR6(ip, , , send, SDT_ARGS6(p, 0, ip, netif, ip, 0), KTR_INET,
		 "ip send: interface %s source %pI4 destination %pI4 protocol %u bytes %u id %u",
		 interface_of(netif), ADDRESS(ip->src.addr), ADDRESS(ip->dest.addr), ip->_proto,
		 lwip_ntohs(ip->_len), lwip_ntohs(ip->_id));
}

err_t
inet_loop_output(struct netif *netif, struct pbuf *p)
{
	err_t err;

	inet_ip_sent(p, inet_loopback);
	inet_dev_queue(inet_loopback, p);
	err = netif_loop_output(netif, p);
	if (err == ERR_OK)
		SDT_PROBE3(net, , , netif_rx, interface_of(inet_loopback), netif->loop_last,
			   p->tot_len);
	inet_dev_xmit(inet_loopback, p, err == ERR_OK ? 0 : NETDEV_TX_BUSY);
	return err;
}

err_t
inet_frag(struct pbuf *p, struct netif *netif, const ip4_addr_t *to)
{
	err_t err = ip4_frag(p, netif, to);

	if (err == ERR_OK)
		transport_sent(p);
	return err;
}
