/* poll.h - readiness of files, Linux's values. */
#pragma once

#include <stdint.h>

#define POLLIN     0x001
#define POLLPRI    0x002
#define POLLOUT    0x004
#define POLLERR    0x008  /* always told: nobody reads what would be written */
#define POLLHUP    0x010  /* always told: nobody writes any more */
#define POLLNVAL   0x020  /* always told: no open file */
#define POLLRDNORM 0x040  /* as POLLIN */
#define POLLWRNORM 0x100  /* as POLLOUT */
#define POLLWRBAND 0x200  /* only in si_band */
#define POLLMSG    0x400  /* only in si_band */
#define POLLRDHUP  0x2000 /* the peer sends no more */

struct pollfd {
	int32_t fd; /* negative: left out */
	int16_t events, revents;
};
