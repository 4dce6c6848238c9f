/*
 * syscall.h - every system call: int64_t sys_NAME(const uint64_t a[6]) takes the six argument
 * registers and returns a result or -errno. Thread context of the process, interrupts on. The
 * meanings are Linux's; kernel/abi/kestrel.h describes Kestrel's own calls.
 */
#pragma once

#include <stdint.h>

#define SYSCALL(nr, name, nargs) int64_t sys_##name(const uint64_t a[6]);
#include <syscalls.def>
#undef SYSCALL

/* Older forms, which only the tables of older architectures have, and one of x86_64's own. */
int64_t sys_open(const uint64_t a[6]);
int64_t sys_stat(const uint64_t a[6]);
int64_t sys_pipe(const uint64_t a[6]);
int64_t sys_dup2(const uint64_t a[6]);
int64_t sys_fork(const uint64_t a[6]);
int64_t sys_rename(const uint64_t a[6]);
int64_t sys_link(const uint64_t a[6]);
int64_t sys_symlink(const uint64_t a[6]);
int64_t sys_mkdir(const uint64_t a[6]);
int64_t sys_mknod(const uint64_t a[6]);
int64_t sys_rmdir(const uint64_t a[6]);
int64_t sys_unlink(const uint64_t a[6]);
int64_t sys_prctl(const uint64_t a[6]);
int64_t sys_arch_prctl(const uint64_t a[6]);
int64_t sys_lstat(const uint64_t a[6]);
int64_t sys_access(const uint64_t a[6]);
int64_t sys_readlink(const uint64_t a[6]);
int64_t sys_getpgrp(const uint64_t a[6]);
int64_t sys_time(const uint64_t a[6]);
int64_t sys_vfork(const uint64_t a[6]);
int64_t sys_pause(const uint64_t a[6]);
int64_t sys_poll(const uint64_t a[6]);
int64_t sys_select(const uint64_t a[6]);
int64_t sys_alarm(const uint64_t a[6]);
int64_t sys_chmod(const uint64_t a[6]);
int64_t sys_chown(const uint64_t a[6]);
int64_t sys_lchown(const uint64_t a[6]);
int64_t sys_epoll_create(const uint64_t a[6]);
int64_t sys_epoll_wait(const uint64_t a[6]);
int64_t sys_eventfd(const uint64_t a[6]);
int64_t sys_signalfd(const uint64_t a[6]);
