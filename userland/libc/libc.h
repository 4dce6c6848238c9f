/* libc.h - what the files of the libc share among themselves. */
#pragma once

#include <sys/types.h>

#include "kernel/abi/syscall.h"

/* The system call instruction (libc/ARCH/syscall.S): the kernel's result, errors as -errno. */
long syscall_raw(long nr, long a, long b, long c, long d, long e, long f);

/* Turns -errno into -1 and errno. */
long syscall_result(long r);

#define SYSCALL6(name, a, b, c, d, e, f)                                                  \
	syscall_result(syscall_raw(NR_##name, (long)(a), (long)(b), (long)(c), (long)(d), \
				   (long)(e), (long)(f)))
#define SYSCALL0(name)             SYSCALL6(name, 0, 0, 0, 0, 0, 0)
#define SYSCALL1(name, a)          SYSCALL6(name, a, 0, 0, 0, 0, 0)
#define SYSCALL2(name, a, b)       SYSCALL6(name, a, b, 0, 0, 0, 0)
#define SYSCALL3(name, a, b, c)    SYSCALL6(name, a, b, c, 0, 0, 0)
#define SYSCALL4(name, a, b, c, d) SYSCALL6(name, a, b, c, d, 0, 0)

/* Called by crt0 with the initial stack: argc, argv…, NULL, envp…, NULL. */
void libc_start(long *stack) __attribute__((noreturn));
