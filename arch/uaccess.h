/*
 * uaccess.h - contract: copies that a fault may end (arch/fixup.h).
 *
 * arch_copy_user() and arch_copy_user_str() end at a fault in user space only. kernel/mm/uaccess.c
 * checks the user's range first; a fault on the kernel's side panics. Thread context.
 * These faults may sleep, but with interrupts off: then the copy ends at them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True: all n bytes were copied. User memory is accessible (SMAP, PAN) only inside. */
bool arch_copy_user(void *dst, const void *src, size_t n);
/* Copies up to and including the NUL. Returns the length without it; n: no NUL in n bytes; -1: a
 * fault. */
long arch_copy_user_str(char *dst, const char *src, size_t n);
/* Reads 8 bytes of kernel memory, for the debugger. False: not readable. Any context. */
bool arch_probe_read(uint64_t *v, const void *src);
/* Copies without serving faults. False: bytes are not readable or not writable. */
bool arch_probe_copy(void *dst, const void *src, size_t n);
