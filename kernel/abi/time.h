/* time.h - clocks and struct timespec, Linux's layout. */
#pragma once

#include <stdint.h>

#define CLOCK_REALTIME  0
#define CLOCK_MONOTONIC 1

struct timespec {
	int64_t tv_sec;
	int64_t tv_nsec; /* 0 to 999,999,999 */
};
