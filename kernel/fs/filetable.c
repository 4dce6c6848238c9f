/*
 * filetable.c - a process's descriptors.
 * Invariant: each slot that is not NULL holds one reference. Locking: file.h.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/file.h"
#include "kernel/fs/fsnotify.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"
#include "kernel/sched/thread.h"
#include "ktr/ktr.h"

static int max_files = FILES_MAX;
SYSCTL_INT(kern_maxfilesperproc, "kern.maxfilesperproc", SYSCTL_WR | SYSCTL_TUN, &max_files, 3,
	   FILES_MAX, "descriptors that a process may open");

unsigned
filetable_limit(void)
{
	uint64_t limit = proc_limit(RLIMIT_NOFILE);

	return limit < (unsigned)max_files ? (unsigned)limit : (unsigned)max_files;
}

struct filetable *
filetable_create(struct uidinfo *ui)
{
	struct filetable *ft = uidinfo_alloc(ui, sizeof(*ft));

	if (ft != NULL) {
		ft->lock = (struct spinlock)SPINLOCK_INIT("files");
		ft->ui = ui;
		ft->refs = 1;
		ft->size = FILES_FIRST;
		ft->files = ft->first_files;
		ft->used = &ft->first_used;
		ft->close_on_exec = &ft->first_close_on_exec;
	}
	return ft;
}

static inline bool
is_set(const uint64_t *bits, unsigned fd)
{
	return bits[fd / 64] >> fd % 64 & 1;
}

static inline void
filetable_set_bit(uint64_t *bits, unsigned fd, bool on)
{
	if (on)
		bits[fd / 64] |= 1ull << fd % 64;
	else
		bits[fd / 64] &= ~(1ull << fd % 64);
}

/*
 * Makes room for descriptor fd, below FILES_MAX. The new arrays are one allocation, which begins
 * with the files. 0 or -ENOMEM.
 */
static int
filetable_grow(struct filetable *ft, unsigned fd)
{
	struct file **files, **old;
	unsigned size = FILES_FIRST;
	uint64_t *bits;

	while (size <= fd)
		size *= 2;
	files = uidinfo_alloc(ft->ui, size * sizeof(*files) + 2 * (size / 8));
	if (files == NULL)
		return -ENOMEM;
	bits = (uint64_t *)(files + size);
	spin_lock(&ft->lock);
	old = files;
	if (size > ft->size) {
		memcpy(files, ft->files, ft->size * sizeof(*files));
		memcpy(bits, ft->used, ft->size / 8);
		memcpy(bits + size / 64, ft->close_on_exec, ft->size / 8);
		old = ft->files;
		ft->files = files;
		ft->used = bits;
		ft->close_on_exec = bits + size / 64;
		ft->size = size;
	}
	spin_unlock(&ft->lock);
	if (old != ft->first_files)
		uidinfo_free(ft->ui, old);
	return 0;
}

unsigned
filetable_next(const struct filetable *ft, unsigned from)
{
	for (unsigned fd = from; fd < ft->size; fd++) {
		if (ft->used[fd / 64] == 0)
			fd |= 63;
		else if (ft->files[fd] != NULL)
			return fd;
	}
	return FILES_MAX;
}

struct filetable *
filetable_clone(struct filetable *ft, struct uidinfo *ui)
{
	struct filetable *copy = filetable_create(ui);
	unsigned size;

	if (copy == NULL)
		return NULL;
	spin_lock(&ft->lock);
	while ((size = ft->size) > copy->size) {
		spin_unlock(&ft->lock);
		if (filetable_grow(copy, size - 1) != 0) {
			filetable_destroy(copy);
			return NULL;
		}
		spin_lock(&ft->lock);
	}
	for (unsigned fd = 0; (fd = filetable_next(ft, fd)) < FILES_MAX; fd++) {
		copy->files[fd] = file_ref(ft->files[fd]);
		filetable_set_bit(copy->used, fd, true);
	}
	memcpy(copy->close_on_exec, ft->close_on_exec, size / 8);
	spin_unlock(&ft->lock);
	return copy;
}

void
filetable_destroy(struct filetable *ft)
{
	if (__atomic_sub_fetch(&ft->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	for (unsigned fd = 0; (fd = filetable_next(ft, fd)) < FILES_MAX; fd++)
		close_fd(fd, ft);
	if (ft->files != ft->first_files)
		uidinfo_free(ft->ui, ft->files);
	uidinfo_free(ft->ui, ft);
}

void
filetable_close_on_exec(struct filetable *ft)
{
	for (unsigned fd = 0; (fd = filetable_next(ft, fd)) < FILES_MAX; fd++)
		if (is_set(ft->close_on_exec, fd))
			close_fd(fd, ft);
}

/* The current thread keeps a reference until its system call has ended. False: it has too many. */
static bool
filetable_hold(struct file *f)
{
	struct held *h = proc_held();

	for (unsigned i = 0; i < h->nfiles; i++)
		if (h->files[i] == f)
			return true;
	if (h->nfiles == FILES_HELD)
		return false;
	h->files[h->nfiles++] = file_ref(f);
	curthread()->holds = true;
	return true;
}

void
file_release_held(void)
{
	struct held *h = proc_held();

	while (h->nfiles > 0)
		file_unref(h->files[--h->nfiles]);
	vnode_unref(h->cwd);
	h->cwd = NULL;
	curthread()->holds = false;
}

/* Twice in the text, so that the most frequent calls pay for no other. */
static inline __attribute__((always_inline)) struct file *
get_file(struct filetable *ft, uint64_t fd)
{
	struct file *f;

	if (!proc_is_threaded())
		return fd < ft->size ? ft->files[fd] : NULL;
	spin_lock(&ft->lock);
	f = fd < ft->size ? ft->files[fd] : NULL;
	if (f != NULL && !filetable_hold(f))
		f = NULL;
	spin_unlock(&ft->lock);
	return f;
}

struct file *
filetable_get_any(struct filetable *ft, uint64_t fd)
{
	return get_file(ft, fd);
}

struct file *
filetable_get(struct filetable *ft, uint64_t fd)
{
	struct file *f = get_file(ft, fd);

	return f != NULL && !(f->flags & O_PATH) ? f : NULL;
}

struct file *
filetable_ref(uint64_t fd)
{
	struct filetable *ft = proc_files();
	struct file *f;

	spin_lock(&ft->lock);
	f = fd < ft->size && ft->files[fd] != NULL ? file_ref(ft->files[fd]) : NULL;
	spin_unlock(&ft->lock);
	return f;
}

struct file *
filetable_get_kind(uint64_t fd, const struct vnode_ops *ops, int *err)
{
	struct file *f = filetable_get(proc_files(), (uint32_t)fd);

	*err = f == NULL ? -EBADF : f->vn->ops != ops ? -EINVAL : 0;
	return *err == 0 ? f : NULL;
}

/* lock held */
static inline void
set_file(struct filetable *ft, unsigned fd, struct file *f, int flags)
{
	ft->files[fd] = f;
	filetable_set_bit(ft->used, fd, f != NULL);
	filetable_set_bit(ft->close_on_exec, fd, f != NULL && (flags & O_CLOEXEC));
}

void
filetable_set_cloexec(struct filetable *ft, unsigned fd, bool on)
{
	spin_lock(&ft->lock);
	if (fd < ft->size)
		filetable_set_bit(ft->close_on_exec, fd, on && ft->files[fd] != NULL);
	spin_unlock(&ft->lock);
}

bool
filetable_is_cloexec_locked(const struct filetable *ft, unsigned fd)
{
	return fd < ft->size && is_set(ft->close_on_exec, fd);
}

bool
filetable_is_cloexec(struct filetable *ft, unsigned fd)
{
	bool is;

	spin_lock(&ft->lock);
	is = filetable_is_cloexec_locked(ft, fd);
	spin_unlock(&ft->lock);
	return is;
}

/* The lowest free descriptor from min on: ft->size at most. lock held */
static inline unsigned
lowest_free(const struct filetable *ft, unsigned min)
{
	unsigned fd = min;

	while (fd < ft->size && is_set(ft->used, fd))
		fd = ft->used[fd / 64] == UINT64_MAX ? (fd | 63) + 1 : fd + 1;
	return fd;
}

/* As filetable_add(). */
static inline __attribute__((always_inline)) int
take_lowest(struct filetable *ft, struct file *f, unsigned min, int flags)
{
	unsigned fd, limit = filetable_limit();

	for (;;) {
		spin_lock(&ft->lock);
		fd = lowest_free(ft, min);
		if (fd >= limit || fd < ft->size)
			break;
		spin_unlock(&ft->lock);
		if (filetable_grow(ft, fd) != 0)
			return -ENOMEM;
	}
	if (fd < limit) {
		set_file(ft, fd, f, flags);
		filetable_set_bit(ft->used, fd, true);
	}
	spin_unlock(&ft->lock);
	return fd < limit ? (int)fd : -EMFILE;
}

int
filetable_add(struct filetable *ft, struct file *f, unsigned min, int flags)
{
	return take_lowest(ft, f, min, flags);
}

int
filetable_reserve(void)
{
	return take_lowest(proc_files(), NULL, 0, 0);
}

void
filetable_fill(unsigned fd, struct file *f, int flags)
{
	struct filetable *ft = proc_files();

	spin_lock(&ft->lock);
	set_file(ft, fd, f, flags);
	spin_unlock(&ft->lock);
}

int
filetable_install(struct file *f, int flags)
{
	int fd = filetable_add(proc_files(), f, 0, flags);

	if (fd < 0)
		file_unref(f);
	return fd;
}

int
filetable_give_pair(struct file *f[2], int fd[2], uint64_t ufds, int flags)
{
	int error;

	fd[0] = filetable_reserve();
	fd[1] = fd[0] < 0 ? fd[0] : filetable_reserve();
	error = fd[1] < 0 ? fd[1] : copy_out(ufds, fd, 2 * sizeof(fd[0]));
	for (unsigned i = 0; i < 2; i++) {
		if (error != 0)
			file_unref(f[i]);
		if (fd[i] >= 0)
			filetable_fill((unsigned)fd[i], error == 0 ? f[i] : NULL, flags);
	}
	return error;
}

/* Closes the file of a descriptor that the table had. NULL is allowed. */
static __attribute__((noinline)) void
filp_close(struct file *f, struct filetable *ft)
{
	if (f != NULL && f->vn->locks != NULL && !(f->flags & O_PATH))
		record_locks_end(f->vn, ft);
	if (f != NULL && S_ISDIR(f->vn->mode) &&
	    __atomic_load_n(&f->vn->marks, __ATOMIC_ACQUIRE) != NULL)
		dnotify_end(f, ft);
	file_unref(f);
}

int
filetable_put(struct filetable *ft, struct file *f, unsigned fd, int flags)
{
	struct file *old;
	bool reserved;

	if (fd >= ft->size && filetable_grow(ft, fd) != 0)
		return -ENOMEM;
	spin_lock(&ft->lock);
	old = ft->files[fd];
	reserved = old == NULL && is_set(ft->used, fd);
	if (!reserved)
		set_file(ft, fd, f, flags);
	spin_unlock(&ft->lock);
	if (reserved)
		return -EBUSY;
	filp_close(old, ft);
	return 0;
}

int
close_fd(uint64_t fd, struct filetable *ft)
{
	struct file *f;

	spin_lock(&ft->lock);
	f = fd < ft->size ? ft->files[fd] : NULL;
	if (f != NULL)
		set_file(ft, (unsigned)fd, NULL, 0);
	spin_unlock(&ft->lock);
	if (f == NULL)
		return -EBADF;
	CTR2(KTR_VFS, "close: fd %lu flags %#x", fd, f->flags);
	filp_close(f, ft);
	return 0;
}
