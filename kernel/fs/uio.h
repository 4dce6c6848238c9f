/*
 * uio.h - the source or destination of a read or write: pieces of user memory or kernel memory.
 *
 * File systems and devices move data with these functions and need not know which it is. Thread
 * context. Moving user memory may sleep (page faults), so no spin lock may be held.
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

#define UIO_MAX    0x7ffff000ul /* bytes of one transfer at most, as in Linux */
#define UIO_PIECES 1024         /* of one transfer at most */
#define UIO_FEW    8

enum uio_space { UIO_KERNEL, UIO_USER };

struct uio {
	const struct uio_vec *first; /* all pieces, also those that were moved; for tracers */
	const struct uio_vec *vec;   /* the current piece */
	size_t at;                   /* bytes of it already moved */
	size_t resid;                /* bytes left in all pieces */
	enum uio_space space;
	bool nowait; /* as O_NONBLOCK, for those that have vnode_ops.nowait */
	bool sync;   /* as O_DSYNC, for files on disks */
	bool part;   /* a pipe may take a part of what is otherwise written together */
	bool untold; /* the writer tells fsnotify() himself: he holds the lock of a vnode */
};

/* Describes one piece. *u keeps a pointer to *v. */
void uio_init(struct uio *u, struct uio_vec *v, enum uio_space space, const void *buf, size_t len);
/*
 * Describes `count` pieces of user memory by the struct uio_vec at uvec, UIO_MAX bytes together.
 * `few` has room for the descriptions if they are few. uio_release() must follow. -EINVAL if there
 * are too many pieces, or a length is negative; -EFAULT, -ENOMEM.
 */
int uio_import(struct uio *u, struct uio_vec few[UIO_FEW], uint64_t uvec, uint64_t count);
void uio_release(const struct uio *u, const struct uio_vec few[UIO_FEW]);
/*
 * Copies n bytes from kernel memory to the reader, or fewer if its buffer ends. 0 or -EFAULT.
 * u->resid says how much has moved; a piece moves as a whole or not at all.
 */
int uio_put(struct uio *u, const void *src, size_t n);
/* Copies n bytes from the writer to kernel memory; otherwise as uio_put(). */
int uio_take(struct uio *u, void *dst, size_t n);
/* For use after -EFAULT: move those of the remaining bytes that come before the missing page.
 * Return -EFAULT. */
int uio_put_part(struct uio *u, const void *src, size_t n);
int uio_take_part(struct uio *u, void *dst, size_t n);
/* uio_put() or uio_take(), for files: moves all that is there. */
static inline int
uio_put_most(struct uio *u, const void *src, size_t n)
{
	size_t before = u->resid, moved;

	if (uio_put(u, src, n) == 0)
		return 0;
	moved = before - u->resid;
	return uio_put_part(u, (const char *)src + moved, n - moved);
}
static inline int
uio_take_most(struct uio *u, void *dst, size_t n)
{
	size_t before = u->resid, moved;

	if (uio_take(u, dst, n) == 0)
		return 0;
	moved = before - u->resid;
	return uio_take_part(u, (char *)dst + moved, n - moved);
}
/* As uio_put_most(), with zeroes. */
int uio_put_zero(struct uio *u, size_t n);
