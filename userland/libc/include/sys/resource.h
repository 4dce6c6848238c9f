/* sys/resource.h - limits of a process. */
#pragma once

#include <sys/types.h>

#include "kernel/abi/resource.h"

int getrlimit(int resource, struct rlimit *limit);
int setrlimit(int resource, const struct rlimit *limit);
/* Of process pid, or its own if that is 0; new and old may be NULL. */
int prlimit(pid_t pid, int resource, const struct rlimit *new, struct rlimit *old);
