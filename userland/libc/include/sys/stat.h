/* sys/stat.h - file attributes and directories. Calls return 0, or -1 with errno. */
#pragma once

#include <sys/types.h>

#include "kernel/abi/fcntl.h"
#include "kernel/abi/stat.h"

int stat(const char *path, struct stat *st);
int fstat(int fd, struct stat *st);
int mkdir(const char *path, mode_t mode);
/* The permission bits of a file, for its owner and user 0. */
int chmod(const char *path, mode_t mode);
