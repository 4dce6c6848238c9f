/* sys/types.h - the names that system call prototypes use. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef long ssize_t;
typedef int64_t off_t;
typedef int64_t time_t;
typedef int32_t pid_t;
typedef uint32_t uid_t;
typedef uint32_t gid_t;
typedef uint32_t mode_t;
typedef uint64_t ino_t;
typedef uint64_t dev_t;
