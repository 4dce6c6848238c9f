/* sys/ioctl.h - device requests. */
#pragma once

#include "kernel/abi/ioctl.h"

/* One argument after the request, a pointer or a long. -1 with errno. */
int ioctl(int fd, unsigned long request, ...);
