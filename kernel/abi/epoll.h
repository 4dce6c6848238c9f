/* epoll.h - sets of files to wait for, Linux's values. Readiness: EPOLLIN is POLLIN, and so on. */
#pragma once

#include <abi_md.h> /* EPOLL_EVENT_LAYOUT */
#include <stdint.h>

#define EPOLL_CTL_ADD 1
#define EPOLL_CTL_DEL 2
#define EPOLL_CTL_MOD 3

#define EPOLLIN        0x001u
#define EPOLLPRI       0x002u
#define EPOLLOUT       0x004u
#define EPOLLERR       0x008u
#define EPOLLHUP       0x010u
#define EPOLLRDNORM    0x040u
#define EPOLLWRNORM    0x100u
#define EPOLLRDHUP     0x2000u
#define EPOLLEXCLUSIVE (1u << 28) /* of several sets that wait, only some need to be told */
#define EPOLLWAKEUP    (1u << 29)
#define EPOLLONESHOT   (1u << 30) /* told once, then not until EPOLL_CTL_MOD */
#define EPOLLET        (1u << 31) /* each event is told once */

struct epoll_event {
	uint32_t events;
	uint64_t data; /* the program's own */
} EPOLL_EVENT_LAYOUT;
