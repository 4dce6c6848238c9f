/*
 * uio.c - moves the bytes of a read or write.
 * Invariant: resid is the sum of the unmoved bytes of vec[0] and of the pieces after it. Locking:
 * the caller's.
 */
#include "kernel/fs/uio.h"

#include "kernel/lib/string.h"
#include "kernel/mm/uaccess.h"

void
uio_init(struct uio *u, struct uio_vec *v, enum uio_space space, const void *buf, size_t len)
{
	*v = (struct uio_vec){.base = (uint64_t)(uintptr_t)buf, .len = len};
	*u = (struct uio){.first = v, .vec = v, .resid = len, .space = space};
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

int
uio_put_zero(struct uio *u, size_t n)
{
	static const char zeroes[512];

	if (n > u->resid)
		n = u->resid;
	while (n > 0) {
		size_t piece = n < sizeof(zeroes) ? n : sizeof(zeroes);
		int error = uio_put(u, zeroes, piece);

		if (error < 0)
			return error;
		n -= piece;
	}
	return 0;
}
