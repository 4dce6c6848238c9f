/*
 * lwipopts.h - which parts of lwIP are compiled, and its bounds (lwIP 2.1.3,
 * src/include/lwip/opt.h).
 *
 * lwIP runs under one mutex, inet_lock() (kernel/net/inet/core.c), and has no threads or timers of
 * its own. Its memory is the kernel's heap. The bytes that a socket holds of it are counted for its
 * user, and so is the pcb of a stream. The rest is not: what lwIP adds to each write (some 180
 * bytes, 512 times a connection at most), the bytes that it keeps because they came out of order,
 * or because the user has too much already (a window a connection), the pcbs of datagrams, the pcbs
 * of connections that are not complete (for each socket that listens, some 600 bytes as often as
 * its backlog says: any host can open them), and a datagram while it is made.
 */
#pragma once

#define NO_SYS                  1
#define SYS_LIGHTWEIGHT_PROT    0
#define LWIP_TIMERS             0 /* core.c: an idle network has none */
#define LWIP_SOCKET             0
#define LWIP_NETCONN            0
#define LWIP_ASSERT_CORE_LOCKED inet_assert_locked
#define LWIP_STATS              1
#define MIB2_STATS              1 /* /proc/net/dev */
#define LINK_STATS              0
#define ETHARP_STATS            0
#define IP_STATS                0
#define IPFRAG_STATS            0
#define ICMP_STATS              0
#define UDP_STATS               0
#define TCP_STATS               0
#define MEM_STATS               0
#define MEMP_STATS              0
#define SYS_STATS               0

#define MEM_LIBC_MALLOC 1
#define MEMP_MEM_MALLOC 1
#define MEM_ALIGNMENT   8
#define mem_clib_malloc kmalloc
#define mem_clib_free   kfree
#define mem_clib_calloc inet_calloc

#define LWIP_IPV4             1
#define LWIP_ARP              1
#define LWIP_ICMP             1
#define LWIP_RAW              1
#define LWIP_UDP              1
#define LWIP_TCP              1
#define LWIP_DNS              0
#define IP_REASSEMBLY         1
#define IP_REASS_MAX_PBUFS    128
#define IP_FRAG               1
#define IP_SOF_BROADCAST      1
#define IP_SOF_BROADCAST_RECV 0
#define SO_REUSE              1
#define LWIP_BROADCAST_PING   0
#define ICMP_TTL              64
#define IP_DEFAULT_TTL        64
#define ARP_QUEUEING          1
#define ARP_QUEUE_LEN         64
#define ETH_PAD_SIZE          0

/* A segment and its headers are a page of the heap. A window of 16 bits is enough for it. */
#define TCP_MSS                   3840
#define TCP_WND                   61440
#define TCP_SND_BUF               61440
#define TCP_SND_QUEUELEN          512
#define TCP_SNDLOWAT              20480
#define TCP_OVERSIZE              128
#define TCP_QUEUE_OOSEQ           1
#define TCP_OOSEQ_MAX_BYTES       TCP_WND
#define TCP_OOSEQ_MAX_PBUFS       64
#define TCP_LISTEN_BACKLOG        1
#define LWIP_HOOK_TCP_ISN(...)    inet_random()
#define LWIP_TCP_KEEPALIVE        1
#define LWIP_TCP_PCB_NUM_EXT_ARGS 4 /* inet_private.h */
#define LWIP_HOOK_FILENAME        "hooks.h"

#define LWIP_HAVE_LOOPIF                   1
#define LWIP_NETIF_LOOPBACK                1
#define LWIP_NETIF_LOOPBACK_MULTITHREADING 0
#define LWIP_LOOPBACK_MAX_PBUFS            1024
#define LWIP_NETIF_API                     0
#define LWIP_NETIF_HWADDRHINT              0
#define LWIP_CHECKSUM_CTRL_PER_NETIF       1 /* the loopback needs no checksums */

#define LWIP_NO_CTYPE_H    1
#define LWIP_NO_INTTYPES_H 1
#define LWIP_NO_LIMITS_H   1
