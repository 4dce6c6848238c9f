/*
 * syscall.h - every system call: int64_t sys_NAME(const uint64_t a[6]) takes the six argument
 * registers and returns a result or -errno. Thread context of the process, interrupts on. The
 * meanings are Linux's; kernel/abi/kestrel.h describes Kestrel's own calls.
 */
#pragma once

#include <stdint.h>

/* Of all architectures: the older forms are compiled for those, too, that do not have them. */
#define SYSCALL(nr, name, ...) int64_t sys_##name(const uint64_t a[6]);
#include "kernel/abi/syscalls.def"
#undef SYSCALL

/* Defines a system call that is an expression of a[]. */
#define SYSCALL_IS(name, ...)                   \
	int64_t sys_##name(const uint64_t a[6]) \
	{                                       \
		return __VA_ARGS__;             \
	}

/* What a system call does that a signal has interrupted. */
enum syscall_restart {
	RESTART_NOT,    /* the call does not begin again; or there is no such call */
	RESTART_FINAL,  /* it ends with EINTR */
	RESTART_WAITED, /* for a handler the call ends; it begins again if there was none */
	RESTART_TIMED,  /* like Linux: WAITED with a timeout, the fourth argument, else AGAIN */
	RESTART_AGAIN, /* it begins again, unless a handler without SA_RESTART ran; of a socket with
			* a timeout: FINAL (proc_call_final()) */
	RESTART_ALWAYS, /* it begins again */
};

/*
 * May a call that returns ENOMEM be made again? Not if it may have had an effect that it would not
 * have again: of several commands to a file of tracefs some are done then. rt_sigreturn() has not
 * failed: it returns what the interrupted program had in this register.
 */
enum syscall_enomem { ENOMEM_RETRY, ENOMEM_ONCE };

/* A row of kernel/abi/syscalls.def. */
struct syscall {
	const char *name; /* "": unknown */
	enum syscall_restart restart;
	enum syscall_enomem enomem;
};

/* The row of any number; an unknown one has an empty name. */
const struct syscall *syscall_find(uint64_t nr);
