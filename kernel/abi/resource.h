/*
 * resource.h - limits of a process, with Linux's numbers (include/uapi/asm-generic/resource.h).
 * RLIMIT_NPROC is no limit for root, nor with CAP_SYS_RESOURCE or CAP_SYS_ADMIN.
 */
#pragma once

#include "kernel/abi/time.h"

#define RLIMIT_CPU        0
#define RLIMIT_FSIZE      1 /* bytes of a file that is written: SIGXFSZ, and EFBIG */
#define RLIMIT_DATA       2
#define RLIMIT_STACK      3
#define RLIMIT_CORE       4
#define RLIMIT_RSS        5
#define RLIMIT_NPROC      6 /* processes of the user at a fork, or execve() after setuid(): EAGAIN */
#define RLIMIT_NOFILE     7 /* open files, one more than the highest descriptor: EMFILE */
#define RLIMIT_MEMLOCK    8
#define RLIMIT_AS         9 /* bytes of the address space at mmap and brk: ENOMEM */
#define RLIMIT_LOCKS      10
#define RLIMIT_SIGPENDING 11
#define RLIMIT_MSGQUEUE   12
#define RLIMIT_NICE       13 /* 20 less the best niceness that is set without CAP_SYS_NICE */
#define RLIMIT_RTPRIO     14 /* the best real-time priority that is set without CAP_SYS_NICE */
#define RLIMIT_RTTIME     15
#define RLIMIT_NLIMITS    16

#define RLIM_INFINITY (~0ul)

/* getpriority() and setpriority(): of a thread, a process group, a user. */
#define PRIO_PROCESS 0
#define PRIO_PGRP    1
#define PRIO_OF_USER 2

/* ioprio_set(): the same, one higher. A class, and in it a level of 0 to 7. */
#define IOPRIO_CLASS(prio) ((prio) >> 13)
#define IOPRIO_LEVEL(prio) ((prio)&0x1fff)
#define IOPRIO_CLASS_NONE  0
#define IOPRIO_CLASS_RT    1
#define IOPRIO_CLASS_BE    2
#define IOPRIO_CLASS_IDLE  3

#define NICE_MIN (-20)
#define NICE_MAX 19

#define RUSAGE_SELF     0
#define RUSAGE_CHILDREN (-1)
#define RUSAGE_THREAD   1

struct rusage { /* what is not counted is 0 */
	struct timeval ru_utime, ru_stime;
	long ru_maxrss; /* KiB */
	long ru_ixrss, ru_idrss, ru_isrss;
	long ru_minflt, ru_majflt; /* page faults without a disk, and with one */
	long ru_nswap, ru_inblock, ru_oublock, ru_msgsnd, ru_msgrcv, ru_nsignals;
	long ru_nvcsw, ru_nivcsw; /* switches: because it waited; although it could go on */
};

struct rlimit {
	unsigned long rlim_cur; /* counts */
	unsigned long rlim_max; /* of rlim_cur; CAP_SYS_RESOURCE raises it */
};
