/*
 * heap.h - the kernel heap: size classes (16 bytes to 2 KiB) over pages; larger sizes are whole
 * pages.
 * Locking: one spin lock for each class. Any context but NMI; never sleeps.
 * Trace: class MALLOC: size, address and caller.
 */
#pragma once

#include <stddef.h>

/* After page_init(), before the first kmalloc(). */
void heap_init(void);
/* Aligned to 16 bytes, not zeroed. NULL: out of memory, or size is above 256 MiB. */
void *kmalloc(size_t size);
/* Zeroed. */
void *kzalloc(size_t size);
/* NULL is allowed. Panics, where it can tell, on a second free or a pointer not from kmalloc(). */
void kfree(void *p);
/* Bytes that the block at p occupies, rounding included. */
size_t kmalloc_size(const void *p);

/* Bytes allocated and not yet freed. */
size_t heap_bytes_used(void);
