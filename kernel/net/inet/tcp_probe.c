/*
 * tcp_probe.c - what is told of connections: DTrace's provider tcp, Linux's events of TCP. probe.c
 * says where lwIP hands segments over. Locking: core.h.
 *
 * lwIP changes the state of a connection, and tells nobody. So each pcb has the state that was told
 * last. It is compared when the next segment of the pcb is sent, in lwIP's callbacks, when the pcb
 * is freed, and, for the pcb that heard or was closed last, when the next packet arrives or the
 * lock is released. Nobody sees anything of the connection between the change and that;
 * but an end that lwIP sends later, into a closed window, is in /proc/net/tcp before it is told.
 */
#include <lwip/ip.h>
#include <lwip/priv/tcp_priv.h>

#include "kernel/net/inet/inet_private.h"
#include "kernel/net/inet/probe.h"
#include "kernel/net/lwip/hooks.h"
#include "ktr/sdt.h"

#define IP(addr) ADDRESS(ip_addr_get_ip4_u32(&(addr)))

/* What D's translators read (tcp.d). */
struct inet_tcp_info {
	const struct tcp_pcb *pcb; /* NULL: no connection */
	uint32_t laddr, raddr;     /* in the order of the network */
	uint16_t lport, rport;
	int32_t pid, state; /* enum tcp_state */
	uint8_t local, active, retransmit;
	uint16_t mss;
	uint32_t suna, snxt, rack, rnxt, swnd, rwnd, cwnd, ssthresh, rto_ms;
};

struct inet_segment {
	const struct tcp_hdr *header;
	uint32_t seq, ack;
	uint16_t sport, dport, window, checksum, urgent;
	uint8_t offset, flags;
};

#define TCP_TYPES                                                                                \
	("struct pbuf *", "struct inet_tcp_info *", "struct ip_hdr *", "struct inet_tcp_info *", \
	 "struct inet_segment *")
#define TCP_ARGS   ("pktinfo_t *", "csinfo_t *", "ipinfo_t *", "tcpsinfo_t *", "tcpinfo_t *")
#define TCP_FORMAT ": packet %p cs %p ip %p tcps %p tcp %p"

SDT_PROVIDER_DEFINE(tcp);
SDT_PROBE_DEFINE_TEXT_XLATE(tcp, , , send, "send", TCP_FORMAT, 5, TCP_TYPES, TCP_ARGS);
SDT_PROBE_DEFINE_TEXT_XLATE(tcp, , , receive, "receive", TCP_FORMAT, 5, TCP_TYPES, TCP_ARGS);
SDT_PROBE_DEFINE_TEXT_XLATE(tcp, , , connect_request, "connect-request", TCP_FORMAT, 5, TCP_TYPES,
			    TCP_ARGS);
SDT_PROBE_DEFINE_TEXT_XLATE(tcp, , , connect_established, "connect-established", TCP_FORMAT, 5,
			    TCP_TYPES, TCP_ARGS);
SDT_PROBE_DEFINE_TEXT_XLATE(tcp, , , connect_refused, "connect-refused", TCP_FORMAT, 5, TCP_TYPES,
			    TCP_ARGS);
SDT_PROBE_DEFINE_TEXT_XLATE(tcp, , , accept_established, "accept-established", TCP_FORMAT, 5,
			    TCP_TYPES, TCP_ARGS);
SDT_PROBE_DEFINE_TEXT_XLATE(tcp, , , accept_refused, "accept-refused", TCP_FORMAT, 5, TCP_TYPES,
			    TCP_ARGS);
SDT_PROBE_DEFINE_TEXT_XLATE(
    tcp, , , state_change, "state-change", ": none0 %p cs %p none2 %p tcps %p none4 %p old %d", 6,
    ("void *", "struct inet_tcp_info *", "void *", "struct inet_tcp_info *", "void *", "int"),
    ("void *", "csinfo_t *", "void *", "tcpsinfo_t *", "void *", "tcplsinfo_t *"));

/* Linux's events (include/trace/events/sock.h, tcp.h), with those fields that their lines show, and
 * without IPv6. */
SDT_PROVIDER_DECLARE(sock);
SDT_PROBE_DEFINE_TEXT(sock, , , inet_sock_set_state, "inet_sock_set_state",
		      ": family=AF_INET protocol=IPPROTO_TCP sport=%hu dport=%hu saddr=%pI4 "
		      "daddr=%pI4 oldstate=%s newstate=%s",
		      6, "uint16_t", "uint16_t", "ipaddr_t", "ipaddr_t", "char *", "char *");
SDT_PROBE_DEFINE_TEXT(tcp, , , tcp_retransmit_skb, "tcp_retransmit_skb",
		      ": family=AF_INET sport=%hu dport=%hu saddr=%pI4 daddr=%pI4 state=%s", 5,
		      "uint16_t", "uint16_t", "ipaddr_t", "ipaddr_t", "char *");
SDT_PROBE_DEFINE_TEXT(tcp, , , tcp_send_reset, "tcp_send_reset",
		      ": family=AF_INET sport=%hu dport=%hu saddr=%pI4 daddr=%pI4 state=%s", 5,
		      "uint16_t", "uint16_t", "ipaddr_t", "ipaddr_t", "char *");
SDT_PROBE_DEFINE_TEXT(tcp, , , tcp_receive_reset, "tcp_receive_reset",
		      ": family=AF_INET sport=%hu dport=%hu saddr=%pI4 daddr=%pI4", 4, "uint16_t",
		      "uint16_t", "ipaddr_t", "ipaddr_t");
SDT_PROBE_DEFINE_TEXT(tcp, , , tcp_destroy_sock, "tcp_destroy_sock",
		      ": family=AF_INET sport=%hu dport=%hu saddr=%pI4 daddr=%pI4", 4, "uint16_t",
		      "uint16_t", "ipaddr_t", "ipaddr_t");

/* In EXT_TOLD of a pcb: its state, these bits, and from bit 16 on its port. */
#define TOLD_STATE  0xffu
#define TOLD_ACTIVE 0x100u /* it has begun the connection */
#define TOLD_LISTEN 0x200u /* it is a struct tcp_pcb_listen */

static struct tcp_pcb *watched;       /* its state may have changed; NULL: none */
static const struct tcp_pcb *sending; /* of the segment that goes out now */

static uint32_t
told_of(const struct tcp_pcb *pcb)
{
	return (uint32_t)(uintptr_t)pcb->ext_args[EXT_TOLD].data;
}

static void
told_set(struct tcp_pcb *pcb, uint32_t told)
{
	pcb->ext_args[EXT_TOLD].data = (void *)(uintptr_t)told;
}

/* Returns t. */
static struct inet_tcp_info *
tcp_info_get(struct inet_tcp_info *t, const struct tcp_pcb *pcb)
{
	const struct inet_socket *s;
	uint32_t told;

	*t = (struct inet_tcp_info){.pcb = pcb};
	if (pcb == NULL)
		return t;
	s = pcb->ext_args[EXT_ARG].data;
	told = told_of(pcb);
	if (s == NULL && (told & TOLD_LISTEN) == 0 && pcb->listener != NULL)
		s = pcb->listener->ext_args[EXT_ARG].data; /* nobody has accepted it yet */
	t->pid = s != NULL ? s->pid : 0;
	t->state = (int32_t)(told & TOLD_STATE);
	t->laddr = ip_addr_get_ip4_u32(&pcb->local_ip);
	t->lport = pcb->local_port != 0 ? pcb->local_port : (uint16_t)(told >> 16);
	if (told & TOLD_LISTEN)
		return t;
	t->raddr = ip_addr_get_ip4_u32(&pcb->remote_ip);
	t->rport = pcb->remote_port;
	t->local = t->laddr == t->raddr || ip_addr_isloopback(&pcb->remote_ip);
	t->active = (told & TOLD_ACTIVE) != 0;
	t->mss = pcb->mss;
	t->suna = pcb->lastack;
	t->snxt = pcb->snd_nxt;
	t->rack = t->rnxt = pcb->rcv_nxt;
	t->swnd = pcb->snd_wnd;
	t->rwnd = pcb->rcv_wnd;
	t->cwnd = pcb->cwnd;
	t->ssthresh = pcb->ssthresh;
	t->rto_ms = (uint32_t)pcb->rto * TCP_SLOW_INTERVAL;
	return t;
}

/* tcp_info_get() for a segment that goes out. again: it was sent before. */
static struct inet_tcp_info *
tcp_info_sent(struct inet_tcp_info *t, const struct tcp_pcb *pcb, bool again)
{
	tcp_info_get(t, pcb)->retransmit = again;
	return t;
}

static const char *
linux_state_of(uint32_t state)
{
	static const char *const names[] = {
	    [CLOSED] = "TCP_CLOSE",
	    [LISTEN] = "TCP_LISTEN",
	    [SYN_SENT] = "TCP_SYN_SENT",
	    [SYN_RCVD] = "TCP_SYN_RECV",
	    [ESTABLISHED] = "TCP_ESTABLISHED",
	    [FIN_WAIT_1] = "TCP_FIN_WAIT1",
	    [FIN_WAIT_2] = "TCP_FIN_WAIT2",
	    [CLOSE_WAIT] = "TCP_CLOSE_WAIT",
	    [CLOSING] = "TCP_CLOSING",
	    [LAST_ACK] = "TCP_LAST_ACK",
	    [TIME_WAIT] = "TCP_TIME_WAIT",
	};

	return names[state];
}

/* host: the header's fields are as lwIP leaves them in a segment that it received. */
static struct inet_segment *
segment_get(struct inet_segment *s, const struct tcp_hdr *h, bool host)
{
	uint16_t bits = lwip_ntohs(h->_hdrlen_rsvd_flags);

	*s = (struct inet_segment){
	    .header = h,
	    .seq = host ? h->seqno : lwip_ntohl(h->seqno),
	    .ack = host ? h->ackno : lwip_ntohl(h->ackno),
	    .sport = host ? h->src : lwip_ntohs(h->src),
	    .dport = host ? h->dest : lwip_ntohs(h->dest),
	    .window = host ? h->wnd : lwip_ntohs(h->wnd),
	    .checksum = lwip_ntohs(h->chksum),
	    .urgent = lwip_ntohs(h->urgp),
	    .offset = (uint8_t)(bits >> 12 << 2),
	    .flags = (uint8_t)bits,
	};
	return s;
}

static void
tell_established(const struct tcp_pcb *pcb, bool active)
{
	struct inet_tcp_info t;
	struct inet_segment s;

	if (active)
		SDT_FIRE(tcp, , , connect_established,
			 SDT_ARGS5(inet_arrived, tcp_info_get(&t, pcb), ip4_current_header(), &t,
				   segment_get(&s, ip_next_header_ptr(), true)));
	else
		SDT_FIRE(tcp, , , accept_established,
			 SDT_ARGS5(inet_arrived, tcp_info_get(&t, pcb), ip4_current_header(), &t,
				   segment_get(&s, ip_next_header_ptr(), true)));
}

static void
tell_state(struct tcp_pcb *pcb, enum tcp_state state)
{
	uint32_t told = told_of(pcb), old = told & TOLD_STATE, port = told >> 16;
	struct inet_tcp_info t;

	if (pcb->local_port != 0)
		port = pcb->local_port; /* it goes before the pcb */
	told = state | (told & (TOLD_ACTIVE | TOLD_LISTEN)) | port << 16;
	if (state == SYN_SENT)
		told |= TOLD_ACTIVE;
	if (state == LISTEN)
		told |= TOLD_LISTEN;
	told_set(pcb, told);
	tcp_info_get(&t, pcb);
	SDT_CTR6(tcp, , , state_change, SDT_ARGS6(0, &t, 0, &t, 0, old), KTR_INET,
		 "tcp state: pcb %p state %s local %pI4 lport %u remote %pI4 rport %u", pcb,
		 linux_state_of(state) + 4, ADDRESS(t.laddr), t.lport, ADDRESS(t.raddr), t.rport);
	SDT_PROBE6(sock, , , inet_sock_set_state, t.lport, t.rport, t.laddr, t.raddr,
		   linux_state_of(old), linux_state_of(state));
	if (state == ESTABLISHED && ip4_current_header() != NULL)
		tell_established(pcb, (told & TOLD_ACTIVE) != 0);
}

void
inet_tcp_look(struct tcp_pcb *pcb)
{
	if (pcb->state != (told_of(pcb) & TOLD_STATE))
		tell_state(pcb, pcb->state);
}

void
inet_tcp_watch(struct tcp_pcb *pcb)
{
	if (watched != NULL)
		inet_tcp_look(watched);
	watched = pcb;
}

static void
pcb_freed(u8_t id, void *arg)
{
	struct tcp_pcb *pcb = arg;
	struct inet_tcp_info t;

	if (pcb == NULL)
		return;
	if ((told_of(pcb) & TOLD_STATE) != CLOSED)
		tell_state(pcb, CLOSED);
	tcp_info_get(&t, pcb);
	SDT_PROBE4(tcp, , , tcp_destroy_sock, t.lport, t.rport, t.laddr, t.raddr);
	if (watched == pcb)
		watched = NULL;
	if (sending == pcb)
		sending = NULL;
}

static err_t
pcb_arrived(u8_t id, struct tcp_pcb_listen *listener, struct tcp_pcb *pcb)
{
	told_set(pcb, LISTEN);
	inet_tcp_know(pcb);
	return ERR_OK;
}

void
inet_tcp_know(struct tcp_pcb *pcb)
{
	static const struct tcp_ext_arg_callbacks callbacks = {.destroy = pcb_freed,
							       .passive_open = pcb_arrived};

	tcp_ext_arg_set_callbacks(pcb, EXT_SELF, &callbacks);
	tcp_ext_arg_set(pcb, EXT_SELF, pcb);
	inet_tcp_look(pcb);
}

/* As lwIP decides whether a reset counts (tcp_process()). */
static bool
is_reset(const struct tcp_pcb *pcb, const struct tcp_hdr *h)
{
	return (TCPH_FLAGS(h) & TCP_RST) != 0 && pcb->state != LISTEN && pcb->state != TIME_WAIT &&
	       (pcb->state == SYN_SENT ? h->ackno == pcb->snd_nxt : h->seqno == pcb->rcv_nxt);
}

/* Fires the probe of a segment. bytes: of data. pcb NULL: there is no connection. */
static void
tell_received(const struct tcp_pcb *pcb, const struct tcp_hdr *h, uint32_t bytes)
{
	struct inet_tcp_info t;
	struct inet_segment s;

	SDT_CTR6(tcp, , , receive,
		 SDT_ARGS5(inet_arrived, tcp_info_get(&t, pcb), ip4_current_header(), &t,
			   segment_get(&s, h, true)),
		 KTR_INET, "tcp receive: pcb %p seq %u ack %u flags %#x bytes %u window %u", pcb,
		 h->seqno, h->ackno, TCPH_FLAGS(h), bytes, h->wnd);
}

void
inet_tcp_heard(struct tcp_pcb *pcb, const struct tcp_hdr *h, struct pbuf *p)
{
	struct inet_tcp_info t;
	struct inet_segment s;

	inet_tcp_watch(pcb);
	inet_arrived = p;
	tell_received(pcb, h, p->tot_len);
	if (!is_reset(pcb, h))
		return;
	if (pcb->state == SYN_SENT)
		SDT_FIRE(tcp, , , connect_refused,
			 SDT_ARGS5(p, tcp_info_get(&t, pcb), ip4_current_header(), &t,
				   segment_get(&s, h, true)));
	SDT_PROBE4(tcp, , , tcp_receive_reset, pcb->local_port, pcb->remote_port,
		   ip_addr_get_ip4_u32(&pcb->local_ip), ip_addr_get_ip4_u32(&pcb->remote_ip));
}

uint32_t *
inet_tcp_sends(const struct tcp_pcb *pcb, uint32_t *options)
{
	sending = pcb;
	return options;
}

/*
 * Was the whole segment sent before? snd_nxt is still what it was then. A probe of a closed window
 * does not count: lwIP moves snd_nxt before it sends the probe's byte, and sends no other bytes
 * while it probes.
 */
static bool
is_again(const struct tcp_pcb *pcb, uint32_t seq, uint32_t length)
{
	if (length == 0)
		return false;
	if (pcb->state == SYN_SENT) /* it begins with snd_nxt after its number */
		return pcb->nrtx > 0;
	return pcb->persist_backoff == 0 && TCP_SEQ_LEQ(seq + length, pcb->snd_nxt);
}

/* The answer to a segment for which there is no connection. */
static void
tell_refused(struct pbuf *p, const struct ip_hdr *ip, const struct tcp_hdr *h)
{
	const struct ip_hdr *arrived = ip4_current_header();
	const struct tcp_hdr *asked = ip_next_header_ptr();
	struct inet_tcp_info t;
	struct inet_segment s;

	tell_received(NULL, asked,
		      lwip_ntohs(arrived->_len) - IPH_HL_BYTES(arrived) - TCPH_HDRLEN_BYTES(asked));
	if ((TCPH_FLAGS(asked) & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		SDT_FIRE(tcp, , , accept_refused,
			 SDT_ARGS5(p, tcp_info_get(&t, NULL), ip, &t, segment_get(&s, h, false)));
}

/* What is seldom: the first segment, a reset. */
static void
segment_sent_flags(struct pbuf *p, const struct ip_hdr *ip, const struct tcp_hdr *h,
		   const struct tcp_pcb *pcb, bool again)
{
	uint8_t flags = TCPH_FLAGS(h);
	struct inet_tcp_info t;
	struct inet_segment s;

	if ((flags & (TCP_SYN | TCP_ACK)) == TCP_SYN && !again)
		SDT_FIRE(tcp, , , connect_request,
			 SDT_ARGS5(p, tcp_info_get(&t, pcb), ip, &t, segment_get(&s, h, false)));
	tcp_info_get(&t, pcb);
	if ((flags & TCP_RST) && pcb != NULL)
		SDT_PROBE5(tcp, , , tcp_send_reset, t.lport, t.rport, t.laddr, t.raddr,
			   linux_state_of((uint32_t)t.state));
	else if ((flags & TCP_RST) && ip4_current_header() != NULL)
		tell_refused(p, ip, h);
}

void
inet_segment_sent(struct pbuf *p, const struct ip_hdr *ip, const struct tcp_hdr *h)
{
	uint32_t bytes = p->tot_len - IPH_HL_BYTES(ip) - TCPH_HDRLEN_BYTES(h);
	struct tcp_pcb *pcb = (struct tcp_pcb *)sending;
	bool fresh = (TCPH_FLAGS(h) & (TCP_SYN | TCP_FIN)) != 0, again = false;
	struct inet_tcp_info t;
	struct inet_segment s;

	sending = NULL;
	if (pcb != NULL) {
		inet_tcp_look(pcb);
		again = (told_of(pcb) & TOLD_LISTEN) == 0 &&
			is_again(pcb, lwip_ntohl(h->seqno), bytes + fresh);
	}
	if (TCPH_FLAGS(h) & (TCP_SYN | TCP_RST))
		segment_sent_flags(p, ip, h, pcb, again);
	SDT_CTR6(tcp, , , send,
		 SDT_ARGS5(p, tcp_info_sent(&t, pcb, again), ip, &t, segment_get(&s, h, false)),
		 KTR_INET, "tcp send: pcb %p seq %u ack %u flags %#x bytes %u again %u", pcb,
		 lwip_ntohl(h->seqno), lwip_ntohl(h->ackno), TCPH_FLAGS(h), bytes, again);
	if (again)
		SDT_PROBE5(tcp, , , tcp_retransmit_skb, pcb->local_port, pcb->remote_port,
			   ip_addr_get_ip4_u32(&pcb->local_ip),
			   ip_addr_get_ip4_u32(&pcb->remote_ip), linux_state_of(pcb->state));
}
