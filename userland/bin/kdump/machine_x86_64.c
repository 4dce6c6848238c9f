/* machine_x86_64.c - system calls and structs of x86_64, for any machine that reads its traces. */
#include "kernel/abi/x86_64/abi_md.h"

#define MACHINE      kdump_x86_64
#define MACHINE_NAME "x86_64"
#define SYSCALLS     "kernel/abi/x86_64/syscalls.def"
#include "userland/bin/kdump/machine.def"
