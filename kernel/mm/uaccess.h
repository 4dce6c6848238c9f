/*
 * uaccess.h - copies between kernel and user memory. A bad user pointer is an error, not a crash.
 *
 * Thread context of a user process; may sleep (it serves page faults). With interrupts off, as
 * with a spin lock held, it does not: then a page that is not there now is -EFAULT.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* 0, or -EFAULT when a byte of the user range is not accessible (part of dst may be written). */
int copy_in(void *dst, uint64_t usrc, size_t n);
int copy_out(uint64_t udst, const void *src, size_t n);
/*
 * Copies a structure of `size` bytes, of which the kernel knows `known`, into dst, which is zeroed.
 * 0, -EFAULT; -EINVAL: it is shorter than the first version; -E2BIG: what the kernel does not know
 * is not 0.
 */
int copy_in_versioned(void *dst, size_t known, uint64_t usrc, size_t size, size_t first);
/* Length of the string (without NUL), -EFAULT, or -ENAMETOOLONG when it has no NUL within size. */
int copy_in_str(char *dst, uint64_t usrc, size_t size);
