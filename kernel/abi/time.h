/* time.h - clocks and struct timespec, Linux's layout. */
#pragma once

#include <stdint.h>

#define CLOCK_REALTIME           0
#define CLOCK_MONOTONIC          1
#define CLOCK_PROCESS_CPUTIME_ID 2
#define CLOCK_THREAD_CPUTIME_ID  3
#define CLOCK_MONOTONIC_RAW      4 /* as CLOCK_MONOTONIC, and so are 6 and 7 */
#define CLOCK_REALTIME_COARSE    5 /* as CLOCK_REALTIME */
#define CLOCK_MONOTONIC_COARSE   6
#define CLOCK_BOOTTIME           7

#define TIMER_ABSTIME 1

/* tv_nsec of utimensat(): the time now; leave the time alone. */
#define UTIME_NOW  0x3fffffff
#define UTIME_OMIT 0x3ffffffe

#define CLK_TCK 100 /* units a second of times() */

struct timeval {
	int64_t tv_sec;
	int64_t tv_usec; /* 0 to 999,999 */
};

#define ITIMER_REAL 0

struct itimerval {
	struct timeval it_interval; /* 0: once */
	struct timeval it_value;    /* 0: the timer does not run */
};

struct tms { /* times(): in 1/CLK_TCK seconds */
	int64_t tms_utime, tms_stime, tms_cutime, tms_cstime;
};

struct timespec {
	int64_t tv_sec;
	int64_t tv_nsec; /* 0 to 999,999,999 */
};
