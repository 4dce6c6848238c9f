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

/* Older forms, which only the older architectures' tables have; and x86_64's own. */
int64_t sys_open(const uint64_t a[6]);
int64_t sys_stat(const uint64_t a[6]);
int64_t sys_pipe(const uint64_t a[6]);
int64_t sys_dup2(const uint64_t a[6]);
int64_t sys_fork(const uint64_t a[6]);
int64_t sys_rename(const uint64_t a[6]);
int64_t sys_mkdir(const uint64_t a[6]);
int64_t sys_rmdir(const uint64_t a[6]);
int64_t sys_unlink(const uint64_t a[6]);
int64_t sys_arch_prctl(const uint64_t a[6]);
