/* probe.h - tells what the network does (probe.c, tcp_probe.c). All with the lock of core.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ip_hdr;
struct netif;
struct pbuf;
struct tcp_hdr;
struct tcp_pcb;
struct udp_pcb;

/* What the log's formats want for an address. */
#define ADDRESS(u32) ((void *)(uintptr_t)(u32))

/* What Linux's drivers return when a packet does not go out. */
#define NETDEV_TX_BUSY 0x10

/* What is sent to this machine itself is told as the loopback's, whatever address it is sent to. */
extern const struct netif *inet_loopback;
extern bool inet_delivering; /* what arrives was sent to this machine itself */

extern struct pbuf *inet_arrived; /* what has arrived last; it may have been freed */

/* A frame, or on the loopback a packet, is handed to a driver; was; has arrived, of len bytes. */
void inet_dev_queue(const struct netif *netif, const struct pbuf *p);
void inet_dev_xmit(const struct netif *netif, const struct pbuf *p, int rc);
void inet_dev_receive(const struct netif *netif, const struct pbuf *p, uint32_t len);
/* A packet of IP goes to an interface. */
void inet_ip_sent(struct pbuf *p, const struct netif *netif);
/* The pcb whose datagrams are sent from now on. NULL: nobody's. */
void inet_udp_sends(const struct udp_pcb *pcb);
/* A datagram for a socket; p is its data. In lwIP's callback. */
void inet_udp_received(const struct udp_pcb *pcb, struct pbuf *p);

/* A packet of TCP is complete; h: its header. For probe.c. */
void inet_segment_sent(struct pbuf *p, const struct ip_hdr *ip, const struct tcp_hdr *h);

/* A pcb was made: from now on its changes of state are told. */
void inet_tcp_know(struct tcp_pcb *pcb);
/* Tells the state of a pcb, if that has changed. */
void inet_tcp_look(struct tcp_pcb *pcb);
/* What follows may change the state of a pcb, or free it. NULL: what followed is over. */
void inet_tcp_watch(struct tcp_pcb *pcb);
