/*
 * uio.h - where the bytes of a read or write go to or come from: pieces of user memory, or of the
 * kernel's.
 *
 * File systems and devices move data through it and need not know which. Thread context; moving
 * user memory may sleep (page faults), so no spin lock may be held.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Linux's struct iovec. */
struct uio_vec {
	uint64_t base; /* address */
	uint64_t len;  /* bytes */
};

enum uio_space { UIO_KERNEL, UIO_USER };

struct uio {
	const struct uio_vec *vec; /* piece that is being moved */
	size_t at;                 /* bytes of it already moved */
	size_t resid;              /* bytes left in all pieces */
	enum uio_space space;
};

/* One piece: fills *u, which keeps a pointer to *v. */
void uio_init(struct uio *u, struct uio_vec *v, enum uio_space space, const void *buf, size_t len);
/*
 * Copies up to n bytes from kernel memory into the reader's buffer, or fewer when it has no more
 * room. 0, or -EFAULT; u->resid tells how far it came.
 */
int uio_put(struct uio *u, const void *src, size_t n);
/* The same from the writer's buffer into kernel memory. */
int uio_take(struct uio *u, void *dst, size_t n);
/* uio_put() of zeroes. */
int uio_put_zero(struct uio *u, size_t n);
