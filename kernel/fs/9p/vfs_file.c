/* vfs_file.c - the host's files: opened, read, written, mapped (v9fs.h). */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/9p/v9fs.h"
#include "kernel/fs/cache/pagecache.h"
#include "kernel/fs/file.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"
#include "kernel/proc/task.h"

static int
v9fs_open(struct file *f)
{
	struct v9fs_inode *node = v9fs_inode(f->vn);
	struct p9_fid *fid = v9fs_created_set(node, NULL);
	int error = 0;

	if (fid == NULL)
		fid = v9fs_fid_open(node, (unsigned)f->flags, &error);
	f->priv = fid;
	return error;
}

static void
v9fs_release(struct file *f)
{
	p9_fid_put(f->priv);
}

/* A request that reads or writes up to `want` bytes: fewer where memory, or the user's share, is
 * short. */
static struct p9_req_t *
io_alloc(const struct p9_fid *fid, size_t want, bool write, uint32_t *most)
{
	struct p9_req_t *req = NULL;

	*most = fid->clnt->msize - P9_IOHDRSZ;
	if (want < *most)
		*most = (uint32_t)want;
	while (req == NULL && *most > 0) {
		req = write ? p9_req_alloc(proc_uidinfo(), P9_IOHDRSZ + *most, P9_IOHDRSZ)
			    : p9_req_alloc(proc_uidinfo(), P9_IOHDRSZ, P9_IOHDRSZ + *most);
		if (req == NULL)
			*most = *most > PAGE_SIZE ? *most / 2 : 0;
	}
	return req;
}

static int64_t
v9fs_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	int error = 0;
	size_t start = u->resid;
	struct p9_fid *fid =
	    f != NULL ? p9_fid_get(f->priv) : v9fs_reader_get(v9fs_inode(vn), &error);
	uint32_t most = 0;
	struct p9_req_t *req = fid != NULL ? io_alloc(fid, start, false, &most) : NULL;
	const uint8_t *data;

	if (fid != NULL && req == NULL && start > 0)
		error = -ENOMEM;
	while (error == 0 && u->resid > 0) {
		uint32_t want = u->resid < most ? (uint32_t)u->resid : most;
		size_t before = u->resid;
		int64_t n = p9_client_fetch(fid, P9_TREAD, *off, want, req, &data);

		error = n < 0 ? (int)n : uio_put_most(u, data, (size_t)n);
		*off += before - u->resid;
		if (n < (int64_t)want)
			break;
		if (error == 0 && u->resid > 0 && proc_signal_kills())
			error = -EINTR;
	}
	p9_req_free(req);
	p9_fid_put(fid);
	return start != u->resid ? (int64_t)(start - u->resid) : error;
}

/* Pages that are there get what was written to the file. */
static void
update_pages(struct vnode *vn, const uint8_t *data, uint64_t off, size_t n)
{
	while (n > 0 && __atomic_load_n(&vn->pages.root, __ATOMIC_RELAXED) != NULL) {
		uint64_t in_page = off % PAGE_SIZE;
		size_t piece = PAGE_SIZE - in_page < n ? PAGE_SIZE - in_page : n;
		char *page;

		pagecache_settle(vn, off / PAGE_SIZE); /* it is not being read */
		page = pagecache_find(vn, off / PAGE_SIZE, true);
		if (page != NULL) {
			memcpy(page + in_page, data, piece);
			page_unref(page);
		}
		data += piece;
		off += piece;
		n -= piece;
	}
}

/* Writes what fits into one request. vn->lock held. */
static int
v9fs_write_piece(struct vnode *vn, struct p9_fid *fid, struct uio *u, uint64_t *off,
		 struct p9_req_t *req, uint32_t most)
{
	size_t before = u->resid, want = before < most ? before : most;
	int error = uio_take_most(u, p9_write_data(req), want);
	int64_t n;

	want = before - u->resid; /* what could be copied */
	if (want == 0)
		return error;
	n = p9_client_write(fid, *off, (uint32_t)want, req);
	if (n <= 0)
		return n < 0 ? (int)n : -EIO;
	update_pages(vn, p9_write_data(req), *off, (size_t)n);
	*off += (uint64_t)n;
	if (*off > vn->size)
		__atomic_store_n(&vn->size, *off, __ATOMIC_SEQ_CST);
	return error == 0 && (size_t)n < want ? -EIO : error;
}

/* Writes all, from the end on with O_APPEND. *done: bytes. vn->lock held. */
static int
v9fs_write_all(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off, uint64_t *done)
{
	struct v9fs_inode *node = v9fs_inode(vn);
	uint64_t time = vn->mtime_ns, start = *off;
	struct p9_fid *fid = f->priv;
	struct p9_stat_dotl st;
	struct p9_req_t *req;
	uint32_t most = 0;
	int error;

	if (f->flags & O_APPEND) {
		struct p9_fid *from = v9fs_fid_get(node);

		/* where the end is now; nobody else makes a file longer that has no name */
		if (p9_client_getattr_dotl(from, &st) == 0 && v9fs_is_same(vn, &st))
			v9fs_stat2inode(vn, &st);
		p9_fid_put(from);
		time = vn->mtime_ns;
		start = *off = vn->size;
	}
	error = vnode_check_write(vn, u, *off, vn->size_max);
	vn->mtime_ns = time; /* the host has its own */
	req = error == 0 ? io_alloc(fid, u->resid, true, &most) : NULL;
	if (error == 0 && req == NULL)
		error = -ENOMEM;
	while (error == 0 && u->resid > 0) {
		error = v9fs_write_piece(vn, fid, u, off, req, most);
		if (error == 0 && u->resid > 0 && proc_signal_kills())
			error = -EINTR;
	}
	p9_req_free(req);
	*done = *off - start;
	return error;
}

static int64_t
v9fs_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	uint64_t done = 0;
	int error;

	if (u->resid == 0)
		return 0;
	mutex_lock(&vn->lock);
	error = v9fs_write_all(vn, f, u, off, &done);
	v9fs_note_change(vn);
	mutex_unlock(&vn->lock);
	if (done > 0)
		error = u->sync || (f->flags & O_DSYNC) ? file_sync(f) : 0;
	return error == 0 ? (int64_t)done : error;
}

/* As vnode_ops.truncate. vn->lock held. */
static int
v9fs_truncate(struct vnode *vn, uint64_t size)
{
	struct p9_iattr_dotl a = {.valid = P9_ATTR_SIZE, .size = size};
	int error;
	struct p9_fid *fid = v9fs_fid_check(vn, &error);
	char *page;

	if (fid != NULL)
		error = p9_client_setattr(fid, &a);
	p9_fid_put(fid);
	if (error != 0)
		return error;
	v9fs_note_change(vn);
	if (size >= vn->size) {
		__atomic_store_n(&vn->size, size, __ATOMIC_SEQ_CST);
		return 0;
	}
	vnode_shrink(vn, size);
	pagecache_drop(vn, (size + PAGE_SIZE - 1) / PAGE_SIZE);
	pagecache_settle(vn, size / PAGE_SIZE);
	page = size % PAGE_SIZE != 0 ? pagecache_find(vn, size / PAGE_SIZE, true) : NULL;
	if (page != NULL) {
		memset(page + size % PAGE_SIZE, 0, PAGE_SIZE - size % PAGE_SIZE);
		page_unref(page);
	}
	return 0;
}

/* As vnode_ops.readpage: reads all of it. */
static int
v9fs_readpage(struct vnode *vn, uint64_t index, void *page, uint8_t sectors)
{
	int error;
	struct p9_fid *fid = v9fs_reader_get(v9fs_inode(vn), &error);
	struct p9_req_t *req =
	    fid != NULL ? p9_req_alloc(NULL, P9_IOHDRSZ, P9_IOHDRSZ + PAGE_SIZE) : NULL;
	const uint8_t *data;
	size_t done = 0;

	if (fid != NULL && req == NULL)
		error = -ENOMEM;
	while (error == 0 && done < PAGE_SIZE) {
		int64_t n = p9_client_fetch(fid, P9_TREAD, index * PAGE_SIZE + done,
					    (uint32_t)(PAGE_SIZE - done), req, &data);

		if (n <= 0) {
			error = (int)n;
			break;
		}
		memcpy((char *)page + done, data, (size_t)n);
		done += (size_t)n;
	}
	memset((char *)page + done, 0, PAGE_SIZE - done);
	p9_req_free(req);
	p9_fid_put(fid);
	return error;
}

const struct vnode_ops v9fs_file_ops = {
    .open = v9fs_open,
    .release = v9fs_release,
    .read = v9fs_read,
    .write = v9fs_write,
    .truncate = v9fs_truncate,
    .page = filemap_fault, /* nothing is written by it: mmap() sees to that */
    .readpage = v9fs_readpage,
};
