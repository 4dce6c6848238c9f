/* raw.h - system calls as they are: the kernel's result, errors as -errno. */
#pragma once

#include <errno.h>
#include <unistd.h>

#include "kernel/abi/syscall.h"

static inline long
syscall_raw(long nr, long a, long b, long c, long d, long e, long f)
{
	long r = syscall(nr, a, b, c, d, e, f);

	return r == -1 ? -errno : r;
}

#define SYSCALL6(name, a, b, c, d, e, f) \
	syscall(NR_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define SYSCALL0(name)             SYSCALL6(name, 0, 0, 0, 0, 0, 0)
#define SYSCALL1(name, a)          SYSCALL6(name, a, 0, 0, 0, 0, 0)
#define SYSCALL2(name, a, b)       SYSCALL6(name, a, b, 0, 0, 0, 0)
#define SYSCALL3(name, a, b, c)    SYSCALL6(name, a, b, c, 0, 0, 0)
#define SYSCALL4(name, a, b, c, d) SYSCALL6(name, a, b, c, d, 0, 0)
