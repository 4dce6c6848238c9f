/*
 * filetable.c - a process's descriptors.
 * Invariant: each slot that is not NULL holds one reference. Locking: file.h.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc.h"
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
	}
	return ft;
}

struct filetable *
filetable_clone(struct filetable *ft, struct uidinfo *ui)
{
	struct filetable *copy = filetable_create(ui);

	if (copy == NULL)
		return NULL;
	spin_lock(&ft->lock);
	copy->close_on_exec = ft->close_on_exec;
	for (unsigned fd = 0; fd < FILES_MAX; fd++) {
		if (ft->files[fd] != NULL)
			copy->files[fd] = file_ref(ft->files[fd]);
	}
	spin_unlock(&ft->lock);
	return copy;
}

void
filetable_destroy(struct filetable *ft)
{
	for (unsigned fd = 0; fd < FILES_MAX; fd++)
		filetable_close(ft, fd);
	uidinfo_free(ft->ui, ft);
}

void
filetable_close_on_exec(struct filetable *ft)
{
	for (unsigned fd = 0; fd < FILES_MAX; fd++) {
		if (ft->close_on_exec >> fd & 1)
			filetable_close(ft, fd);
	}
}

/* The current thread keeps a reference until its system call has ended. False: it has too many. */
static bool
hold(struct file *f)
{
	struct lwp *l = curlwp();

	for (unsigned i = 0; i < l->nheld; i++)
		if (l->held[i] == f)
			return true;
	if (l->nheld == FILES_HELD)
		return false;
	l->held[l->nheld++] = file_ref(f);
	curthread()->holds = true;
	return true;
}

void
file_release_held(void)
{
	struct lwp *l = curlwp();

	while (l->nheld > 0)
		file_unref(l->held[--l->nheld]);
	vnode_unref(l->cwd);
	l->cwd = NULL;
	curthread()->holds = false;
}

struct file *
filetable_get(struct filetable *ft, uint64_t fd)
{
	const struct proc *p = curproc();
	struct file *f;

	if (fd >= FILES_MAX)
		return NULL;
	if (p == NULL || p->nthreads == 1)
		return ft->files[fd];
	spin_lock(&ft->lock);
	f = ft->files[fd];
	if (f != NULL && !hold(f))
		f = NULL;
	spin_unlock(&ft->lock);
	return f;
}

struct file *
filetable_get_kind(uint64_t fd, const struct vnode_ops *ops, int *err)
{
	struct file *f = filetable_get(curproc()->files, (uint32_t)fd);

	*err = f == NULL ? -EBADF : f->vn->ops != ops ? -EINVAL : 0;
	return *err == 0 ? f : NULL;
}

/* lock held */
static void
set_flag(struct filetable *ft, unsigned fd, int flags)
{
	if (flags & O_CLOEXEC)
		ft->close_on_exec |= 1ull << fd;
	else
		ft->close_on_exec &= ~(1ull << fd);
}

void
filetable_set_cloexec(struct filetable *ft, unsigned fd, bool on)
{
	spin_lock(&ft->lock);
	set_flag(ft, fd, on && ft->files[fd] != NULL ? O_CLOEXEC : 0);
	spin_unlock(&ft->lock);
}

/* The lowest free descriptor from min on, or -EMFILE. lock held */
static int
lowest_free(const struct filetable *ft, unsigned min)
{
	unsigned limit = filetable_limit();

	for (unsigned fd = min; fd < limit; fd++)
		if (ft->files[fd] == NULL && !(ft->reserved >> fd & 1))
			return (int)fd;
	return -EMFILE;
}

int
filetable_add(struct filetable *ft, struct file *f, unsigned min, int flags)
{
	int fd;

	spin_lock(&ft->lock);
	fd = lowest_free(ft, min);
	if (fd >= 0) {
		ft->files[fd] = f;
		set_flag(ft, (unsigned)fd, flags);
	}
	spin_unlock(&ft->lock);
	return fd;
}

int
filetable_reserve(void)
{
	struct filetable *ft = curproc()->files;
	int fd;

	spin_lock(&ft->lock);
	fd = lowest_free(ft, 0);
	if (fd >= 0)
		ft->reserved |= 1ull << fd;
	spin_unlock(&ft->lock);
	return fd;
}

void
filetable_fill(unsigned fd, struct file *f, int flags)
{
	struct filetable *ft = curproc()->files;

	spin_lock(&ft->lock);
	ft->reserved &= ~(1ull << fd);
	ft->files[fd] = f;
	set_flag(ft, fd, f != NULL ? flags : 0);
	spin_unlock(&ft->lock);
}

int
filetable_install(struct file *f, int flags)
{
	int fd = filetable_add(curproc()->files, f, 0, flags);

	if (fd < 0)
		file_unref(f);
	return fd;
}

int
filetable_put(struct filetable *ft, struct file *f, unsigned fd, int flags)
{
	struct file *old;
	bool reserved;

	spin_lock(&ft->lock);
	old = ft->files[fd];
	reserved = ft->reserved >> fd & 1;
	if (!reserved) {
		ft->files[fd] = f;
		set_flag(ft, fd, flags);
	}
	spin_unlock(&ft->lock);
	if (reserved)
		return -EBUSY;
	file_unref(old);
	return 0;
}

int
filetable_close(struct filetable *ft, uint64_t fd)
{
	struct file *f = NULL;

	if (fd >= FILES_MAX)
		return -EBADF;
	spin_lock(&ft->lock);
	f = ft->files[fd];
	ft->files[fd] = NULL;
	ft->close_on_exec &= ~(1ull << fd);
	spin_unlock(&ft->lock);
	if (f == NULL)
		return -EBADF;
	CTR2(KTR_VFS, "close: fd %lu flags %#x", fd, f->flags);
	file_unref(f);
	return 0;
}
