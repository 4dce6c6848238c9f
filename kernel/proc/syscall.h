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
