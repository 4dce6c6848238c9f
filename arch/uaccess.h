/*
 * uaccess.h - contract: copies that a fault ends, when it cannot be served (arch/fixup.h).
 *
 * Of a copy from or to user memory, only a fault on a user's address does: kernel/mm/uaccess.c
 * checks the user's range before, and a fault on the kernel's side is a panic. Thread context, no
 * spin lock held: such faults may sleep.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True when all n bytes were copied. User memory is opened (SMAP, PAN) only inside. */
bool arch_copy_user(void *dst, const void *src, size_t n);
/* Copies up to and with the NUL; length without it, n when there is none in n bytes, -1 on a fault.
 */
long arch_copy_user_str(char *dst, const char *src, size_t n);
/* 8 bytes of kernel memory, for the debugger; false if not readable. Any context. */
bool arch_probe_read(uint64_t *v, const void *src);
/* A copy that never sleeps and never serves a fault. False if any byte is not readable, or not
 * writable where it goes. */
bool arch_probe_copy(void *dst, const void *src, size_t n);
