/*
 * uio.c - moves the bytes of a read or write.
 * Invariant: resid is the sum of the unmoved bytes of vec[0] and of the pieces after it. Locking:
 * the caller's.
 */
#include "kernel/fs/uio.h"

#include "kernel/abi/errno.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uaccess.h"

void
uio_init(struct uio *u, struct uio_vec *v, enum uio_space space, const void *buf, size_t len)
{
	*v = (struct uio_vec){.base = (uint64_t)(uintptr_t)buf, .len = len};
	*u = (struct uio){.first = v, .vec = v, .resid = len, .space = space};
}

/* Computes the total length, and shortens the pieces to UIO_MAX together. 0 or -EINVAL. */
static int
sum_pieces(struct uio_vec *v, uint64_t count, size_t *total)
{
	*total = 0;
	for (uint64_t i = 0; i < count; i++) {
		if (v[i].len > INT64_MAX)
			return -EINVAL;
		if (v[i].len > UIO_MAX - *total)
			v[i].len = UIO_MAX - *total;
		*total += v[i].len;
	}
	return 0;
}

int
uio_import(struct uio *u, struct uio_vec few[UIO_FEW], uint64_t uvec, uint64_t count)
{
	struct uio_vec *v = few;
	int error;

	if (count > UIO_PIECES)
		return -EINVAL;
	if (count > UIO_FEW)
		v = kmalloc(count * sizeof(*v));
	if (v == NULL)
		return -ENOMEM;
	*u = (struct uio){.first = v, .vec = v, .space = UIO_USER};
	error = copy_in(v, uvec, count * sizeof(*v));
	if (error == 0)
		error = sum_pieces(v, count, &u->resid);
	if (error != 0)
		uio_release(u, few);
	return error;
}

void
uio_release(const struct uio *u, const struct uio_vec few[UIO_FEW])
{
	if (u->first != few)
		kfree((void *)(uintptr_t)u->first);
}

enum direction { PUT, TAKE };

static int
move_piece(const struct uio *u, void *kernel, size_t n, enum direction dir)
{
	uint64_t addr = u->vec->base + u->at;

	if (u->space == UIO_USER)
		return dir == PUT ? copy_out(addr, kernel, n) : copy_in(kernel, addr, n);
	if (dir == PUT)
		memcpy((void *)(uintptr_t)addr, kernel, n);
	else
		memcpy(kernel, (const void *)(uintptr_t)addr, n);
	return 0;
}

static int
uio_move(struct uio *u, char *kernel, size_t n, enum direction dir)
{
	if (n > u->resid)
		n = u->resid;
	while (n > 0) {
		size_t piece = u->vec->len - u->at;
		int error;

		if (piece == 0) {
			u->vec++;
			u->at = 0;
			continue;
		}
		if (piece > n)
			piece = n;
		error = move_piece(u, kernel, piece, dir);
		if (error < 0)
			return error;
		u->at += piece;
		u->resid -= piece;
		kernel += piece;
		n -= piece;
	}
	return 0;
}

int
uio_put(struct uio *u, const void *src, size_t n)
{
	return uio_move(u, (char *)(uintptr_t)src, n, PUT);
}

int
uio_take(struct uio *u, void *dst, size_t n)
{
	return uio_move(u, dst, n, TAKE);
}

/* Moves what is before the page that is missing in the current piece. -EFAULT. */
static int
move_part(struct uio *u, char *kernel, size_t n, enum direction dir)
{
	size_t part;

	n = n < u->resid ? n : u->resid;
	n = n < u->vec->len - u->at ? n : u->vec->len - u->at;
	while ((part = PAGE_SIZE - (u->vec->base + u->at) % PAGE_SIZE) < n &&
	       move_piece(u, kernel, part, dir) == 0) {
		u->at += part;
		u->resid -= part;
		kernel += part;
		n -= part;
	}
	return -EFAULT;
}

int
uio_put_part(struct uio *u, const void *src, size_t n)
{
	return move_part(u, (char *)(uintptr_t)src, n, PUT);
}

int
uio_take_part(struct uio *u, void *dst, size_t n)
{
	return move_part(u, dst, n, TAKE);
}

int
uio_put_zero(struct uio *u, size_t n)
{
	static const char zeroes[PAGE_SIZE];

	if (n > u->resid)
		n = u->resid;
	while (n > 0) {
		size_t piece = n < sizeof(zeroes) ? n : sizeof(zeroes);
		int error = uio_put_most(u, zeroes, piece);

		if (error < 0)
			return error;
		n -= piece;
	}
	return 0;
}
