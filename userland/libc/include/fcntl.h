/* fcntl.h - opening files. Return a descriptor or 0, or -1 with errno. */
#pragma once

#include <sys/types.h>

#include "kernel/abi/fcntl.h"

/* A mode follows the flags when O_CREAT is among them. */
int open(const char *path, int flags, ...);
int openat(int dir, const char *path, int flags, ...);
/* F_DUPFD and F_SET* take one int. */
int fcntl(int fd, int cmd, ...);
