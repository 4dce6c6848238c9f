/* errno.h - the error number of the last failed call. A program has one thread, so one errno. */
#pragma once

#include "kernel/abi/errno.h"

#define ENOTSUP EOPNOTSUPP

extern int errno;
