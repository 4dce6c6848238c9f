/* report.c - the tables of /proc/net (report.h). Locking: inet_private.h. */
#include "kernel/net/inet/report.h"

#include <lwip/netif.h>
#include <lwip/priv/tcp_priv.h>
#include <lwip/raw.h>
#include <lwip/udp.h>

#include "kernel/lib/sbuf.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/net/inet/inet_private.h"
#include "kernel/net/inet/interface.h"

#define UNCONNECTED 7 /* Linux's TCP_CLOSE, which datagrams have, too */

/* One row of a table of sockets. s NULL: lwIP alone has it. */
struct row {
	const struct inet_socket *s;
	struct sockaddr_in local, peer;
	unsigned state;
	uint32_t out, in; /* bytes that wait */
};

static void
inet_print_row(unsigned n, const struct row *r, struct sbuf *out)
{
	const struct socket *so = r->s != NULL ? &r->s->so : NULL;
	uint64_t ino = so != NULL ? __atomic_load_n(&so->ino, __ATOMIC_RELAXED) : 0;

	sbuf_printf(
	    out,
	    "%4u: %08X:%04X %08X:%04X %02X %08X:%08X 00:00000000 00000000 %5u %8u %lu %u %016x\n",
	    n, r->local.sin_addr, lwip_ntohs(r->local.sin_port), r->peer.sin_addr,
	    lwip_ntohs(r->peer.sin_port), r->state, r->out, r->in, ino != 0 ? so->ui->uid : 0, 0,
	    ino, so != NULL ? __atomic_load_n(&so->refs, __ATOMIC_RELAXED) : 0, 0);
}

/* Prints the streams of a list of lwIP's; n: rows that there are already. Returns how many then. */
static unsigned
print_streams(const struct tcp_pcb *pcb, unsigned n, struct sbuf *out)
{
	for (; pcb != NULL; pcb = pcb->next) {
		const struct inet_socket *s = tcp_ext_arg_get(pcb, EXT_ARG);
		bool listens = pcb->state == LISTEN;
		struct row r = {.s = s,
				.local = inet_name(&pcb->local_ip, pcb->local_port),
				.state = inet_tcp_state(pcb)};

		if (!listens)
			r.peer = inet_name(&pcb->remote_ip, pcb->remote_port);
		if (s != NULL && !listens) {
			r.out = s->tcp.unacked;
			r.in = s->tcp.unread;
		}
		inet_print_row(n++, &r, out);
	}
	return n;
}

static void
print_tcp(struct sbuf *out)
{
	unsigned n;

	sbuf_puts(out, "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
		       "retrnsmt   uid  timeout inode\n");
	n = print_streams(tcp_listen_pcbs.pcbs, 0, out);
	n = print_streams(tcp_active_pcbs, n, out);
	print_streams(tcp_tw_pcbs, n, out);
}

static void
print_udp(struct sbuf *out)
{
	unsigned n = 0;

	for (const struct udp_pcb *pcb = udp_pcbs; pcb != NULL; pcb = pcb->next) {
		const struct inet_socket *s = pcb->recv_arg;

		inet_print_row(n++,
			       &(struct row){.s = s,
					     .local = inet_name(&pcb->local_ip, pcb->local_port),
					     .peer = inet_name(&pcb->remote_ip, pcb->remote_port),
					     .state = s->dgram.connected ? 1 : UNCONNECTED,
					     .in = s->dgram.held},
			       out);
	}
}

/* A raw socket's port is its protocol. */
static void
print_raw(struct sbuf *out)
{
	unsigned n = 0;

	list_for_each_entry (const struct inet_socket, s, &inet_raw_sockets, dgram.all) {
		const struct raw_pcb *pcb = s->dgram.raw;

		inet_print_row(n++,
			       &(struct row){.s = s,
					     .local = inet_name(&pcb->local_ip, s->so.protocol),
					     .peer = inet_name(&pcb->remote_ip, 0),
					     .state = s->dgram.connected ? 1 : UNCONNECTED,
					     .in = s->dgram.held},
			       out);
	}
}

static void
print_interfaces(struct sbuf *out)
{
	const struct netif *netif;
	char name[IFNAMSIZ];

	sbuf_puts(out,
		  "Inter-|   Receive                                                |  Transmit\n"
		  " face |bytes    packets errs drop fifo frame compressed multicast|"
		  "bytes    packets errs drop fifo colls carrier compressed\n");
	NETIF_FOREACH(netif)
	{
		const struct stats_mib2_netif_ctrs *c = &netif->mib2_counters;

		inet_interface_name(netif, name);
		sbuf_printf(
		    out,
		    "%6s: %7u %7u %4u %4u    0     0          0 %9u %8u %7u %4u %4u    0     0       0          0\n",
		    name, c->ifinoctets, c->ifinucastpkts + c->ifinnucastpkts, c->ifinerrors,
		    c->ifindiscards, c->ifinnucastpkts, c->ifoutoctets,
		    c->ifoutucastpkts + c->ifoutnucastpkts, c->ifouterrors, c->ifoutdiscards);
	}
}

static void
print_route(const struct netif *netif, uint32_t to, uint32_t gateway, uint32_t mask,
	    struct sbuf *out)
{
	char name[IFNAMSIZ];

	inet_interface_name(netif, name);
	sbuf_printf(out, "%s\t%08X\t%08X\t%04X\t0\t0\t0\t%08X\t0\t0\t0\n", name, to, gateway,
		    RTF_UP | (gateway != 0 ? RTF_GATEWAY : 0), mask);
}

static void
print_routes(struct sbuf *out)
{
	const struct netif *netif;

	sbuf_puts(
	    out,
	    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n");
	if (netif_default != NULL)
		print_route(netif_default, 0, ip_addr_get_ip4_u32(netif_ip_gw4(netif_default)), 0,
			    out);
	NETIF_FOREACH(netif)
	{
		uint32_t mask = ip_addr_get_ip4_u32(netif_ip_netmask4(netif));

		if (!(inet_interface_flags(netif) & IFF_LOOPBACK) && netif_is_up(netif))
			print_route(netif, ip_addr_get_ip4_u32(netif_ip_addr4(netif)) & mask, 0,
				    mask, out);
	}
}

void
inet_print(enum inet_table table, struct sbuf *out)
{
	inet_lock();
	if (table == INET_TABLE_TCP)
		print_tcp(out);
	if (table == INET_TABLE_UDP || table == INET_TABLE_RAW)
		sbuf_puts(out, "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
			       "retrnsmt   uid  timeout inode ref pointer\n");
	if (table == INET_TABLE_UDP)
		print_udp(out);
	if (table == INET_TABLE_RAW)
		print_raw(out);
	if (table == INET_TABLE_DEV)
		print_interfaces(out);
	if (table == INET_TABLE_ROUTE)
		print_routes(out);
	inet_unlock();
}
