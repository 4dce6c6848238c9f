/* socket.h - sockets: Linux's numbers and layouts (include/linux/socket.h, asm-generic/socket.h).
 */
#pragma once

#include <stdint.h>

/* Families. */
#define AF_UNSPEC 0
#define AF_UNIX   1
#define AF_INET   2
#define AF_MAX    46

/* Types; flags that may be added to one. */
#define SOCK_STREAM    1
#define SOCK_DGRAM     2
#define SOCK_RAW       3
#define SOCK_RDM       4
#define SOCK_SEQPACKET 5
#define SOCK_TYPE_MASK 0xf
#define SOCK_NONBLOCK  04000    /* O_NONBLOCK */
#define SOCK_CLOEXEC   02000000 /* O_CLOEXEC */

#define SOMAXCONN 4096

#define SHUT_RD   0
#define SHUT_WR   1
#define SHUT_RDWR 2

/* Flags of a message. */
#define MSG_OOB          0x1
#define MSG_PEEK         0x2
#define MSG_DONTROUTE    0x4
#define MSG_CTRUNC       0x8
#define MSG_TRUNC        0x20
#define MSG_DONTWAIT     0x40
#define MSG_EOR          0x80
#define MSG_WAITALL      0x100
#define MSG_CONFIRM      0x800
#define MSG_ERRQUEUE     0x2000
#define MSG_NOSIGNAL     0x4000
#define MSG_MORE         0x8000
#define MSG_WAITFORONE   0x10000
#define MSG_CMSG_CLOEXEC 0x40000000

/* Levels of options and of control messages. */
#define SOL_SOCKET 1

/* Options of SOL_SOCKET. */
#define SO_DEBUG       1
#define SO_REUSEADDR   2
#define SO_TYPE        3
#define SO_ERROR       4
#define SO_DONTROUTE   5
#define SO_BROADCAST   6
#define SO_SNDBUF      7
#define SO_RCVBUF      8
#define SO_KEEPALIVE   9
#define SO_OOBINLINE   10
#define SO_PRIORITY    12
#define SO_LINGER      13
#define SO_REUSEPORT   15
#define SO_PASSCRED    16
#define SO_PEERCRED    17
#define SO_RCVLOWAT    18
#define SO_SNDLOWAT    19
#define SO_RCVTIMEO    20
#define SO_SNDTIMEO    21
#define SO_ACCEPTCONN  30
#define SO_SNDBUFFORCE 32
#define SO_RCVBUFFORCE 33
#define SO_PROTOCOL    38
#define SO_DOMAIN      39

/* Control messages of SOL_SOCKET. */
#define SCM_RIGHTS      1
#define SCM_CREDENTIALS 2
#define SCM_MAX_FD      253 /* files of one message */

struct ucred {
	uint32_t pid, uid, gid;
};

struct linger {
	int32_t l_onoff;
	int32_t l_linger; /* seconds */
};

struct sockaddr {
	uint16_t sa_family;
	char sa_data[14];
};

#define SOCKADDR_MAX 128 /* bytes of struct sockaddr_storage */

#define UNIX_PATH_MAX 108

struct sockaddr_un {
	uint16_t sun_family;
	char sun_path[UNIX_PATH_MAX]; /* a first byte 0: an abstract name, whose length counts */
};

struct msghdr {
	uint64_t msg_name;
	int32_t msg_namelen;
	uint32_t msg_pad;
	uint64_t msg_iov; /* struct iovec */
	uint64_t msg_iovlen;
	uint64_t msg_control; /* struct cmsghdr and data, each aligned to 8 bytes */
	uint64_t msg_controllen;
	uint32_t msg_flags;
	uint32_t msg_pad2;
};

_Static_assert(sizeof(struct msghdr) == 56, "Linux's struct user_msghdr");

struct mmsghdr {
	struct msghdr msg_hdr;
	uint32_t msg_len;
	uint32_t msg_pad;
};

_Static_assert(sizeof(struct mmsghdr) == 64, "Linux's struct mmsghdr");

struct cmsghdr {
	uint64_t cmsg_len; /* of the header and the data */
	int32_t cmsg_level;
	int32_t cmsg_type;
};

#define CMSG_ALIGN(n) (((n) + 7) & ~7ul)
