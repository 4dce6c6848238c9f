/*
 * syscall.h - system call numbers NR_read, NR_write, … of the architecture that is being built.
 * The table itself is kernel/abi/syscalls.def.
 */
#pragma once

enum {
#define SYSCALL(nr, name, ...) NR_##name = nr,
#include <syscalls.def>
#undef SYSCALL
};
