/*
 * signal.h - signal numbers and actions, Linux's values.
 * Kestrel has default actions and SIG_IGN; a handler address is refused with EINVAL.
 */
#pragma once

#include <stdint.h>

#define SIGHUP   1
#define SIGINT   2
#define SIGQUIT  3
#define SIGILL   4
#define SIGTRAP  5
#define SIGABRT  6
#define SIGBUS   7
#define SIGFPE   8
#define SIGKILL  9
#define SIGUSR1  10
#define SIGSEGV  11
#define SIGUSR2  12
#define SIGPIPE  13
#define SIGALRM  14
#define SIGTERM  15
#define SIGCHLD  17
#define SIGCONT  18
#define SIGSTOP  19
#define SIGTSTP  20
#define SIGTTIN  21
#define SIGTTOU  22
#define SIGURG   23
#define SIGXCPU  24
#define SIGXFSZ  25
#define SIGWINCH 28
#define SIGSYS   31
#define NSIG     64

/* Who sent a signal: si_code. */
#define SI_USER   0    /* kill() */
#define SI_KERNEL 0x80 /* the kernel */

#define SIG_DFL 0
#define SIG_IGN 1

struct kernel_sigaction { /* what rt_sigaction takes */
	uint64_t sa_handler;
	uint64_t sa_flags;
	uint64_t sa_restorer;
	uint64_t sa_mask;
};
