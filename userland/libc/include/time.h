/* time.h - clocks and sleeping. */
#pragma once

#include <sys/types.h>

#include "kernel/abi/time.h"

/* 0, or -1 with errno. */
int clock_gettime(int clock, struct timespec *ts);
/* -1 with EINTR when a signal cut it short; *rest then holds what was left (rest may be NULL). */
int nanosleep(const struct timespec *ts, struct timespec *rest);
/* Seconds since 1970, as far as the kernel knows; also into *t unless NULL. */
time_t time(time_t *t);
