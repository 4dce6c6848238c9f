/*
 * heap.h - the kernel heap: size classes (16 bytes to 2 KiB) over pages; larger sizes are pages.
 * Locking: one spin lock a class. Any context but NMI; never sleeps.
 * Trace: class MALLOC: size, address and caller.
 */
#pragma once

#include <stddef.h>

/* After page_init(), before the first kmalloc(). */
void heap_init(void);
/* Aligned to 16 bytes, not zeroed. NULL when memory is out or size is beyond 256 MiB. */
void *kmalloc(size_t size);
/* Zeroed. */
void *kzalloc(size_t size);
/* NULL is allowed. Freeing twice or freeing a foreign pointer is a panic where it can be seen. */
void kfree(void *p);
/* Bytes that the block at p takes up, with what was rounded up. */
size_t kmalloc_size(const void *p);
/* A copy of s, or NULL. */
char *kstrdup(const char *s);

/* Bytes handed out and not yet freed. */
size_t heap_bytes_used(void);
