/* inet.h - AF_INET: Linux's numbers and layouts (include/linux/in.h, tcp.h, if.h, route.h,
 * sockios.h). */
#pragma once

#include <stdint.h>

#define IPPROTO_IP   0
#define IPPROTO_ICMP 1
#define IPPROTO_TCP  6
#define IPPROTO_UDP  17
#define IPPROTO_RAW  255

/* Addresses and ports are in network order. */
struct sockaddr_in {
	uint16_t sin_family;
	uint16_t sin_port;
	uint32_t sin_addr;
	uint8_t sin_zero[8];
};

/* Options of IPPROTO_IP. */
#define IP_TOS          1
#define IP_TTL          2
#define IP_HDRINCL      3
#define IP_MTU_DISCOVER 10
#define IP_RECVERR      11

/* Options of IPPROTO_TCP. */
#define TCP_NODELAY   1
#define TCP_MAXSEG    2
#define TCP_CORK      3
#define TCP_KEEPIDLE  4 /* seconds */
#define TCP_KEEPINTVL 5 /* seconds */
#define TCP_KEEPCNT   6
#define TCP_INFO      11

/* The beginning of Linux's struct tcp_info. Times: us. */
struct tcp_info {
	uint8_t tcpi_state; /* TCP_ESTABLISHED 1 … TCP_CLOSING 11 */
	uint8_t tcpi_ca_state, tcpi_retransmits, tcpi_probes, tcpi_backoff, tcpi_options;
	uint8_t tcpi_wscale, tcpi_delivery_rate_app_limited;
	uint32_t tcpi_rto, tcpi_ato, tcpi_snd_mss, tcpi_rcv_mss;
	uint32_t tcpi_unacked, tcpi_sacked, tcpi_lost, tcpi_retrans, tcpi_fackets;
	uint32_t tcpi_last_data_sent, tcpi_last_ack_sent, tcpi_last_data_recv, tcpi_last_ack_recv;
	uint32_t tcpi_pmtu, tcpi_rcv_ssthresh, tcpi_rtt, tcpi_rttvar, tcpi_snd_ssthresh;
	uint32_t tcpi_snd_cwnd, tcpi_advmss, tcpi_reordering, tcpi_rcv_rtt, tcpi_rcv_space;
	uint32_t tcpi_total_retrans;
};

_Static_assert(sizeof(struct tcp_info) == 104, "Linux's struct tcp_info of 2.6");

/* Requests of ioctl(). */
#define SIOCADDRT      0x890b
#define SIOCDELRT      0x890c
#define SIOCGIFNAME    0x8910
#define SIOCGIFCONF    0x8912
#define SIOCGIFFLAGS   0x8913
#define SIOCSIFFLAGS   0x8914
#define SIOCGIFADDR    0x8915
#define SIOCSIFADDR    0x8916
#define SIOCGIFDSTADDR 0x8917
#define SIOCGIFBRDADDR 0x8919
#define SIOCSIFBRDADDR 0x891a
#define SIOCGIFNETMASK 0x891b
#define SIOCSIFNETMASK 0x891c
#define SIOCGIFMETRIC  0x891d
#define SIOCGIFMTU     0x8921
#define SIOCGIFHWADDR  0x8927
#define SIOCGIFINDEX   0x8933
#define SIOCGIFTXQLEN  0x8942
#define SIOCGIFMAP     0x8970

#define IFNAMSIZ 16

/* Flags of an interface. */
#define IFF_UP        0x1
#define IFF_BROADCAST 0x2
#define IFF_LOOPBACK  0x8
#define IFF_RUNNING   0x40
#define IFF_MULTICAST 0x1000

#define ARPHRD_ETHER    1
#define ARPHRD_LOOPBACK 772

struct ifreq {
	char ifr_name[IFNAMSIZ];
	union {
		struct sockaddr_in addr;
		uint16_t sa_family; /* with the bytes of a hardware address from the third on */
		uint8_t bytes[24];
		int16_t flags;
		int32_t value; /* index, metric, MTU, length of a queue */
	};
};

_Static_assert(sizeof(struct ifreq) == 40, "Linux's struct ifreq");

struct ifconf {
	int32_t ifc_len; /* bytes */
	uint32_t ifc_pad;
	uint64_t ifc_req; /* struct ifreq */
};

#define RTF_UP      0x1
#define RTF_GATEWAY 0x2

struct rtentry {
	uint64_t rt_pad1;
	struct sockaddr_in rt_dst, rt_gateway, rt_genmask;
	uint16_t rt_flags;
	int16_t rt_pad2;
	uint32_t rt_pad3;
	uint64_t rt_pad4;
	uint64_t rt_pad5;
	int16_t rt_metric;
	uint16_t rt_pad6[3];
	uint64_t rt_dev; /* the name of an interface, or 0 */
	uint64_t rt_mtu, rt_window;
	uint16_t rt_irtt;
};

_Static_assert(sizeof(struct rtentry) == 120, "Linux's struct rtentry");
