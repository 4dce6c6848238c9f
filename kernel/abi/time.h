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

/* CPU clocks of other threads and processes: ~number << 3, and these bits. */
#define CPUCLOCK_MASK      3
#define CPUCLOCK_SCHED     2
#define CPUCLOCK_PERTHREAD 4 /* of a thread */

#define TIMER_ABSTIME 1

/* tv_nsec of utimensat(): the time now; leave the time alone. */
#define UTIME_NOW  0x3fffffff
#define UTIME_OMIT 0x3ffffffe

#define CLK_TCK 100 /* units a second of times() */

struct timeval {
	int64_t tv_sec;
	int64_t tv_usec; /* 0 to 999,999 */
};

#define ITIMER_REAL    0
#define ITIMER_VIRTUAL 1 /* of time in the program: SIGVTALRM */
#define ITIMER_PROF    2 /* of time on a CPU: SIGPROF */

struct itimerval {
	struct timeval it_interval; /* 0: once */
	struct timeval it_value;    /* 0: the timer does not run */
};

struct tms { /* times(): in 1/CLK_TCK seconds */
	int64_t tms_utime, tms_stime, tms_cutime, tms_cstime;
};

#define ADJ_OFFSET_SINGLESHOT 0x8001 /* of timex: the clock is to catch up so much */
#define ADJ_OFFSET_SS_READ    0xa001 /* nothing is set */
#define STA_UNSYNC            0x40
#define TIME_ERROR            5 /* what the call returns: no other clock corrects this one */

struct timex {
	uint32_t modes;
	int64_t offset, freq, maxerror, esterror;
	int32_t status;
	int64_t constant, precision, tolerance;
	struct timeval time;
	int64_t tick; /* us */
	int64_t rest[8];
	int32_t tai, pad[11];
};

_Static_assert(sizeof(struct timex) == 208, "Linux's struct timex");

struct timespec {
	int64_t tv_sec;
	int64_t tv_nsec; /* 0 to 999,999,999 */
};
