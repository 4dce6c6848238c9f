/*
 * hooks.h - what lwIP calls of ours: those of its files that have hooks include it last (lwIP
 * 2.1.3, src/include/lwip/opt.h, LWIP_HOOK_FILENAME). The functions are in kernel/net/inet/probe.c,
 * those of TCP in tcp_probe.c and tcp_guard.c.
 */
#pragma once

#include <lwip/ip4_addr.h>
#include <lwip/pbuf.h>
#include <stdbool.h>

struct netif;
struct tcp_hdr;
struct tcp_pcb;

/* Called when IP has received a packet, of which only the version was checked. True if its
 * addresses are false; then the packet was freed. */
bool inet_ip_received(struct pbuf *p, struct netif *netif);
/* Called for a segment of a connection, or for a socket that listens. p is what follows the
 * header; the header's ports, numbers and window are in the order of the host. */
void inet_tcp_heard(struct tcp_pcb *pcb, const struct tcp_hdr *h, struct pbuf *p);
/* The options of a segment: how many bytes, how many of them stand after the header, and where the
 * others are (NULL if there are none). */
struct tcp_options {
	uint16_t all, first;
	uint8_t *rest;
};
/* For the same segment: ERR_OK, or lwIP drops it. Takes options out that lwIP must not see. */
err_t inet_tcp_admit(struct tcp_pcb *pcb, struct tcp_hdr *h, const struct tcp_options *o,
		     const struct pbuf *p);
/* The segment that is being made belongs to the pcb. NULL: to none. Returns `options`. */
uint32_t *inet_tcp_sends(const struct tcp_pcb *pcb, uint32_t *options);
/* netif_loop_output() and ip4_frag(), to which ip4.c hands a packet that is complete. */
err_t inet_loop_output(struct netif *netif, struct pbuf *p);
err_t inet_frag(struct pbuf *p, struct netif *netif, const ip4_addr_t *to);

#ifdef LWIP_HDR_RAW_PRIV_H /* ip4.c asks what an interface accepts besides its own address */
#undef LWIP_AUTOIP
#define LWIP_AUTOIP 1
#define autoip_accept_packet(netif, to) \
	(ip4_addr_isloopback(to) && ip4_addr_isloopback(netif_ip4_addr(netif)))
#endif

#define LWIP_HOOK_IP4_INPUT(p, netif) inet_ip_received(p, netif)
#define LWIP_HOOK_TCP_INPACKET_PCB(pcb, h, optlen, opt1len, opt2, p) \
	(inet_tcp_heard(pcb, h, p),                                  \
	 inet_tcp_admit(pcb, h, &(struct tcp_options){optlen, opt1len, opt2}, p))
#define LWIP_HOOK_TCP_OUT_ADD_TCPOPTS(p, h, pcb, options) inet_tcp_sends(pcb, options)
#define netif_loop_output(netif, p)                       inet_loop_output(netif, p)
#define ip4_frag(p, netif, to)                            inet_frag(p, netif, to)
