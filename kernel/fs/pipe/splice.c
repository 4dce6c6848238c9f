/*
 * splice.c - bytes that go from one file to another, and no program sees them: sendfile, splice,
 * tee, vmsplice, copy_file_range.
 *
 * No byte is lost: a pipe's bytes go to a file that has offsets, or to another pipe, under the lock
 * of the pipe, so they leave it exactly when they have arrived. What goes into a pipe has its room
 * there already. What a device does not take goes back into its pipe.
 *
 * Locking: whoever takes the locks of two pipes holds two_pipes. All other bytes go through a page,
 * and no lock is held. Who watches the file is told when the pipe's lock is free.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/file.h"
#include "kernel/fs/fsnotify.h"
#include "kernel/fs/pipe/pipe.h"
#include "kernel/fs/vfs.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/task.h"
#include "kernel/syscall.h"
#include "ktr/ktr.h"

static struct mutex two_pipes = MUTEX_INIT("two pipes");

/* Where bytes come from, or go to. */
struct end {
	struct file *f;
	bool pipe, at; /* at: the file has offsets, or takes any */
	uint64_t uoff; /* address of the program's offset; 0: the file's own counts */
	uint64_t off, begin;
};

static struct file *
splice_get_file(uint64_t fd, bool write)
{
	struct file *f = filetable_get(proc_files(), (uint32_t)fd);

	return f != NULL && (f->flags & O_ACCMODE) != (write ? O_RDONLY : O_WRONLY) ? f : NULL;
}

/* Describes an end. 0; -EBADF, -EFAULT, -EINVAL; -ESPIPE: an offset for a file without one. */
static int
end_open(struct end *e, uint64_t fd, uint64_t uoff, bool write)
{
	int64_t own;

	*e = (struct end){.f = splice_get_file(fd, write), .uoff = uoff};
	if (e->f == NULL)
		return -EBADF;
	e->pipe = is_pipe(e->f);
	own = file_seek(e->f, 0, SEEK_CUR);
	e->at = own >= 0;
	if (uoff != 0 && !e->at)
		return -ESPIPE;
	e->off = e->at ? (uint64_t)own : 0;
	if (uoff != 0 && copy_in(&e->off, uoff, sizeof(e->off)) != 0)
		return -EFAULT;
	e->begin = e->off;
	return (int64_t)e->off < 0 ? -EINVAL : 0;
}

/* The offset moves on. Returns r, or -EFAULT. */
static int64_t
end_close(const struct end *e, int64_t r)
{
	if (r < 0 || !e->at)
		return r;
	if (e->uoff != 0)
		return copy_out(e->uoff, &e->off, sizeof(e->off)) != 0 ? -EFAULT : r;
	file_seek(e->f, (int64_t)e->off, SEEK_SET);
	return r;
}

/* A copy within a file ends where the file ends now, and must not overlap. 0 or -EINVAL. */
static int
cut_within_file(const struct end *in, const struct end *out, size_t *len)
{
	uint64_t size;

	if (in->f->vn != out->f->vn)
		return 0;
	size = vnode_size(in->f->vn);
	size = in->off < size ? size - in->off : 0;
	*len = *len < size ? *len : size;
	return in->off < out->off + *len && out->off < in->off + *len ? -EINVAL : 0;
}

/* Is it a regular file with offsets? */
static bool
is_plain(const struct end *e)
{
	return e->at && S_ISREG(e->f->vn->mode);
}

static int64_t
end_read(const struct end *e, void *page, size_t n, bool nowait)
{
	struct uio_vec v;
	struct uio u;

	uio_init(&u, &v, UIO_KERNEL, page, n);
	u.nowait = nowait;
	return e->at ? file_read_at(e->f, &u, e->off) : file_read_uio(e->f, &u);
}

static int64_t
end_write(const struct end *e, struct uio *u)
{
	return e->at ? file_write_at(e->f, u, e->off) : file_write_uio(e->f, u);
}

/* Moves up to a page from a file into a pipe. Bytes, 0 at the end, or -errno. */
static int64_t
page_to_pipe(struct end *in, struct end *out, char *page, size_t want, bool nowait)
{
	int64_t kept = pipe_keep_room(out->f, want, nowait), n, r;

	if (kept < 0)
		return kept;
	n = end_read(in, page, (size_t)kept, nowait);
	r = pipe_fill_kept(out->f, page, n > 0 ? (size_t)n : 0, (size_t)kept);
	return n > 0 ? r : n;
}

/* Moves bytes by a page from a pipe, or a file with offsets, to a file that is no pipe. */
static int64_t
page_to_file(struct end *in, struct end *out, char *page, size_t want, bool nowait)
{
	int64_t n =
	    in->pipe ? pipe_take(in->f, page, want, nowait) : end_read(in, page, want, nowait);
	int64_t w;
	struct uio_vec v;
	struct uio u;

	if (n <= 0)
		return n;
	uio_init(&u, &v, UIO_KERNEL, page, (size_t)n);
	w = end_write(out, &u);
	if (in->pipe)
		pipe_put_back(in->f, page, (size_t)n, (size_t)(n - (w > 0 ? w : 0)));
	return w;
}

/* Moves bytes through a page. nowait: without waiting for a pipe. */
static int64_t
through_page(struct end *in, struct end *out, size_t len, bool nowait)
{
	char *page = page_alloc(0, PAGE_OTHER);
	int64_t n = 0;
	size_t done = 0;

	if (page == NULL)
		return -ENOMEM;
	while (done < len && !(done > 0 && proc_signal_pending())) {
		size_t want = len - done < PAGE_SIZE ? len - done : PAGE_SIZE;

		n = (out->pipe ? page_to_pipe : page_to_file)(in, out, page, want,
							      nowait || done > 0);
		if (n <= 0)
			break;
		in->off += (uint64_t)n;
		out->off += (uint64_t)n;
		done += (size_t)n;
		if (!in->at)
			break; /* the next read might wait */
	}
	page_free(page, 0);
	return done > 0 ? (int64_t)done : n;
}

/* Moves bytes of a pipe into `end`: as many as it takes without waiting. */
static int64_t
splice_sink(void *end, struct uio *u)
{
	u->nowait = u->part = u->untold = true;
	return end_write(end, u);
}

/* Moves bytes from a pipe to another end, as pipe_give() does. */
static int64_t
splice_give(const struct end *in, struct end *out, size_t len, bool nowait, bool take)
{
	int64_t r = pipe_give(in->f, len, nowait, take, splice_sink, out);

	if (r > 0)
		fsnotify(out->f->vn, IN_MODIFY);
	return r;
}

/* Moves or copies bytes of a pipe to another. */
static int64_t
pipe_to_pipe(struct end *in, struct end *out, size_t len, bool nowait, bool copy)
{
	int64_t r;

	nowait |= (in->f->flags | out->f->flags) & O_NONBLOCK;
	do {
		r = pipe_await_room(out->f, nowait);
		if (r == 0)
			r = pipe_await_data(in->f, nowait);
		if (r <= 0)
			return r;
		mutex_lock(&two_pipes);
		r = splice_give(in, out, len, true, !copy);
		mutex_unlock(&two_pipes);
	} while (r == -EAGAIN && !nowait); /* others were faster */
	return r;
}

static int64_t
pipe_to_file(struct end *in, struct end *out, size_t len, bool nowait)
{
	int64_t r;

	if (!out->at)
		return through_page(in, out, len, nowait);
	r = splice_give(in, out, len, nowait, true);
	if (r > 0)
		out->off += (uint64_t)r;
	return r;
}

int64_t
sys_splice(const uint64_t a[6])
{
	size_t len = a[4] < UIO_MAX ? a[4] : UIO_MAX;
	bool nowait = a[5] & SPLICE_F_NONBLOCK;
	struct end in, out;
	int64_t r;

	if ((uint32_t)a[5] & ~SPLICE_F_ALL)
		return -EINVAL;
	if (len == 0)
		return 0;
	r = end_open(&in, a[0], a[1], false);
	if (r == 0)
		r = end_open(&out, a[2], a[3], true);
	if (r != 0)
		return r;
	if ((!in.pipe && !out.pipe) || in.f->vn == out.f->vn || (out.f->flags & O_APPEND))
		return -EINVAL;
	r = in.pipe && out.pipe ? pipe_to_pipe(&in, &out, len, nowait, false)
	    : in.pipe           ? pipe_to_file(&in, &out, len, nowait)
				: through_page(&in, &out, len, nowait);
	CTR5(KTR_VFS, "splice: from %d to %d size %lu flags %#x result %ld", (int)a[0], (int)a[2],
	     len, (unsigned)a[5], r);
	return end_close(&in, end_close(&out, r));
}

int64_t
sys_tee(const uint64_t a[6])
{
	struct end in, out;
	int r;

	if ((uint32_t)a[3] & ~SPLICE_F_ALL)
		return -EINVAL;
	if (a[2] == 0)
		return 0;
	r = end_open(&in, a[0], 0, false);
	if (r == 0)
		r = end_open(&out, a[1], 0, true);
	if (r == 0 && (!in.pipe || !out.pipe || in.f->vn == out.f->vn))
		r = -EINVAL;
	return r != 0 ? r : pipe_to_pipe(&in, &out, a[2], a[3] & SPLICE_F_NONBLOCK, true);
}

/* The pages of a program are copied, so SPLICE_F_GIFT changes nothing. */
int64_t
sys_vmsplice(const uint64_t a[6])
{
	struct file *f = filetable_get(proc_files(), (uint32_t)a[0]);

	if ((uint32_t)a[3] & ~SPLICE_F_ALL)
		return -EINVAL;
	if (f == NULL || !is_pipe(f))
		return -EBADF;
	return file_move_pieces(f, a[1], a[2], (f->flags & O_ACCMODE) != O_RDONLY,
				a[3] & SPLICE_F_NONBLOCK);
}

int64_t
sys_sendfile(const uint64_t a[6])
{
	struct end in, out;
	int64_t r = end_open(&in, a[1], a[2], false);

	if (r == 0)
		r = end_open(&out, a[0], 0, true);
	if (r == 0 && (!is_plain(&in) || (out.f->flags & O_APPEND)))
		r = -EINVAL;
	if (r == 0)
		r = through_page(&in, &out, a[3] < UIO_MAX ? a[3] : UIO_MAX, false);
	CTR4(KTR_VFS, "sendfile: from %d to %d size %lu result %ld", (int)a[1], (int)a[0], a[3], r);
	return end_close(&in, end_close(&out, r));
}

int64_t
sys_copy_file_range(const uint64_t a[6])
{
	size_t len = a[4] < UIO_MAX ? a[4] : UIO_MAX;
	struct end in, out;
	int64_t r;

	if ((uint32_t)a[5] != 0)
		return -EINVAL;
	r = end_open(&in, a[0], a[1], false);
	if (r == 0)
		r = end_open(&out, a[2], a[3], true);
	if (r == 0 && (S_ISDIR(in.f->vn->mode) || S_ISDIR(out.f->vn->mode)))
		r = -EISDIR;
	if (r == 0 && (!is_plain(&in) || !is_plain(&out)))
		r = -EINVAL;
	if (r == 0 && (out.f->flags & O_APPEND))
		r = -EBADF;
	if (r == 0)
		r = cut_within_file(&in, &out, &len);
	if (r == 0)
		r = through_page(&in, &out, len, false);
	return end_close(&in, end_close(&out, r));
}
