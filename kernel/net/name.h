/* name.h - sockets' addresses between the program and the kernel. Thread context of a process. */
#pragma once

#include <stdint.h>

#include "kernel/net/socket.h"

/* Copies a name of len bytes, an int, from the program. 0, -EINVAL, -EFAULT. */
int socket_name_take(struct socket_name *name, uint64_t uname, uint64_t len);
/* Stores it, cut off at what the int at ulen says, and there its length. 0, -EINVAL, -EFAULT. */
int socket_name_give(const struct socket_name *name, uint64_t uname, uint64_t ulen);
