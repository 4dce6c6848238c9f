/* sys/mman.h - anonymous memory. */
#pragma once

#include <sys/types.h>

#include "kernel/abi/mman.h"

#define MAP_FAILED ((void *)-1)

/* Only MAP_PRIVATE | MAP_ANONYMOUS maps exist: fd is -1, offset 0. MAP_FAILED with errno. */
void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
int munmap(void *addr, size_t len);
int mprotect(void *addr, size_t len, int prot);
