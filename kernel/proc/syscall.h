/*
 * syscall.h - every system call of the kernel: int64_t sys_NAME(const uint64_t a[6]), the six
 * argument registers in, a result or -errno out. Thread context of the process, interrupts on. What
 * each does is Linux's; Kestrel's own are in kernel/abi/kestrel.h.
 */
#pragma once

#include <stdint.h>

#define SYSCALL(nr, name, nargs) int64_t sys_##name(const uint64_t a[6]);
#include <syscalls.def>
#undef SYSCALL
