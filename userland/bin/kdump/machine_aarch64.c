/* machine_aarch64.c - system calls and structs of aarch64, for any machine that reads its traces.
 */
#include "kernel/abi/aarch64/abi_md.h"

#define MACHINE      kdump_aarch64
#define MACHINE_NAME "aarch64"
#define SYSCALLS     "kernel/abi/aarch64/syscalls.def"
#include "userland/bin/kdump/machine.def"
