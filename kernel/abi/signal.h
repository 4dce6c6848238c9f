/*
 * signal.h - signal numbers, actions, and what a handler gets: Linux's values and layouts.
 */
#pragma once

#include <stdint.h>

#define SIGHUP    1
#define SIGINT    2
#define SIGQUIT   3
#define SIGILL    4
#define SIGTRAP   5
#define SIGABRT   6
#define SIGBUS    7
#define SIGFPE    8
#define SIGKILL   9
#define SIGUSR1   10
#define SIGSEGV   11
#define SIGUSR2   12
#define SIGPIPE   13
#define SIGALRM   14
#define SIGTERM   15
#define SIGCHLD   17
#define SIGCONT   18
#define SIGSTOP   19
#define SIGTSTP   20
#define SIGTTIN   21
#define SIGTTOU   22
#define SIGURG    23
#define SIGXCPU   24
#define SIGXFSZ   25
#define SIGVTALRM 26
#define SIGPROF   27
#define SIGWINCH  28
#define SIGIO     29
#define SIGSYS    31
#define SIGRTMIN  32 /* from here on signals are queued: each one that is sent is kept */
#define NSIG      64

/* Why a signal was sent: si_code. */
#define SI_USER       0    /* kill() */
#define SI_KERNEL     0x80 /* the kernel */
#define SI_TIMER      (-2) /* a timer of timer_create() */
#define SI_TKILL      (-6) /* tgkill() */
#define FAULT_CODE    1    /* of a fault: SEGV_MAPERR, FPE_INTDIV, BUS_ADRALN, ... */
#define TRAP_TRACE    2    /* SIGTRAP: a single step */
#define ILL_ILLOPN    2    /* SIGILL: an operand */
#define FPE_FLTDIV    3    /* SIGFPE: of floating-point numbers: a division by 0 */
#define FPE_FLTOVF    4    /* ... too large */
#define FPE_FLTUND    5    /* ... too small */
#define FPE_FLTRES    6    /* ... not exact */
#define FPE_FLTINV    7    /* ... no result */
#define SEGV_ACCERR   2    /* the address is mapped, but not for this access */
#define POLL_IN       1    /* with F_SETSIG: more to read */
#define POLL_OUT      2    /* ... more room */
#define POLL_MSG      3    /* ... something has happened in a directory */
#define CLD_EXITED    1    /* SIGCHLD: what happened to the child */
#define CLD_KILLED    2
#define CLD_TRAPPED   4
#define CLD_STOPPED   5
#define CLD_CONTINUED 6

#define SIG_DFL 0
#define SIG_IGN 1

/* sa_flags */
#define SA_NOCLDSTOP 0x00000001ul /* no SIGCHLD when a child stops or continues */
#define SA_NOCLDWAIT 0x00000002ul /* children leave no zombies */
#define SA_SIGINFO   0x00000004ul /* the handler takes three arguments; it always gets them */
#define SA_RESTORER  0x04000000ul /* the handler returns to sa_restorer */
#define SA_ONSTACK   0x08000000ul /* it runs on the stack of sigaltstack() */
#define SA_RESTART   0x10000000ul /* a call that it interrupts begins again */
#define SA_NODEFER   0x40000000ul /* the signal is not blocked meanwhile */
#define SA_RESETHAND 0x80000000ul /* only once */

/* how, of rt_sigprocmask() */
#define SIG_BLOCK   0
#define SIG_UNBLOCK 1
#define SIG_SETMASK 2

struct kernel_sigaction { /* what rt_sigaction takes */
	uint64_t sa_handler;
	uint64_t sa_flags;
	uint64_t sa_restorer;
	uint64_t sa_mask;
};

struct siginfo {
	int32_t si_signo, si_errno, si_code, si_pad;
	union {
		uint64_t si_addr; /* of a fault */
		struct {
			uint32_t si_pid, si_uid;
			int32_t si_status; /* SIGCHLD: exit status or signal */
		};
		struct { /* SI_TIMER */
			int32_t si_tid, si_overrun;
			uint64_t si_value;
		};
		struct {                  /* POLL_IN, POLL_OUT */
			uint64_t si_band; /* POLL… */
			int32_t si_fd;
		};
		uint8_t si_bytes[112];
	};
};

_Static_assert(sizeof(struct siginfo) == 128, "Linux's siginfo_t");

struct signalfd_siginfo { /* what is read from a signalfd */
	uint32_t ssi_signo;
	int32_t ssi_errno, ssi_code;
	uint32_t ssi_pid, ssi_uid;
	int32_t ssi_fd;
	uint32_t ssi_tid, ssi_band, ssi_overrun, ssi_trapno;
	int32_t ssi_status, ssi_int;
	uint64_t ssi_ptr, ssi_utime, ssi_stime, ssi_addr;
	uint8_t ssi_pad[48];
};

_Static_assert(sizeof(struct signalfd_siginfo) == 128, "Linux's signalfd_siginfo");

/* sigev_notify: how a timer tells that it has expired */
#define SIGEV_SIGNAL    0
#define SIGEV_NONE      1
#define SIGEV_THREAD    2 /* the C library's; to the kernel as SIGEV_SIGNAL */
#define SIGEV_THREAD_ID 4

struct sigevent {
	uint64_t sigev_value;
	int32_t sigev_signo, sigev_notify;
	int32_t sigev_tid; /* SIGEV_THREAD_ID */
	int32_t sigev_pad[11];
};

_Static_assert(sizeof(struct sigevent) == 64, "Linux's sigevent_t");

#define SS_ONSTACK    1
#define SS_DISABLE    2
#define SS_AUTODISARM (1u << 31) /* a handler begins without the stack */

struct sigaltstack { /* stack_t */
	uint64_t ss_sp;
	int32_t ss_flags, ss_pad;
	uint64_t ss_size;
};
