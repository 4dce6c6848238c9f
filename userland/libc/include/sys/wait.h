/* sys/wait.h - waiting for children. Return the pid, 0 (WNOHANG, none yet), or -1 with errno. */
#pragma once

#include <sys/types.h>

#include "kernel/abi/wait.h"

pid_t wait(int *status);
pid_t waitpid(pid_t pid, int *status, int options);
