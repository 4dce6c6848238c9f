/*
 * pidfd.c - files that stand for a process: pidfd_open. Such a file has no reference to its
 * process. It finds the process by its number and the time of its start: a process that gets the
 * number later is another one. Locking: proc_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/poll.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/fs/wait/poll.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sync/spinlock.h"
#include "kernel/syscall.h"

struct poll_source proc_end_news;
uint32_t proc_end_files;

struct pidfd {
	uint32_t pid;
	uint64_t start_ns;
};

static int
pidfd_file_open(struct file *f)
{
	f->news = &proc_end_news;
	__atomic_fetch_add(&proc_end_files, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static void
pidfd_file_release(struct file *f)
{
	__atomic_fetch_sub(&proc_end_files, 1, __ATOMIC_SEQ_CST);
}

struct proc *
pidfd_proc(const struct file *f)
{
	struct pidfd d;
	struct proc *p;

	d.pid = proc_of_dir(f->vn, &d.start_ns);
	if (d.pid == 0)
		d = *(const struct pidfd *)f->vn->data;
	p = proc_find(d.pid);
	return p != NULL && p->start_ns == d.start_ns ? p : NULL;
}

static unsigned
pidfd_poll(struct file *f)
{
	const struct proc *p;
	bool ended;

	spin_lock(&proc_lock);
	p = pidfd_proc(f);
	ended = p == NULL || p->state == PROC_ZOMBIE;
	spin_unlock(&proc_lock);
	return ended ? POLLIN : 0;
}

static const struct vnode_ops pidfd_ops = {
    .open = pidfd_file_open,
    .release = pidfd_file_release,
    .poll = pidfd_poll,
    .destroy = file_unnamed_destroy,
};

struct file *
pidfd_get(uint64_t fd)
{
	int error;

	return filetable_get_kind(fd, &pidfd_ops, &error);
}

struct file *
pidfd_get_or_dir(uint64_t fd)
{
	struct file *f = filetable_get(proc_files(), (uint32_t)fd);

	return f != NULL && proc_of_dir(f->vn, NULL) != 0 ? f : pidfd_get(fd);
}

struct file *
pidfd_make(const struct proc *p, int *error)
{
	struct pidfd *d;
	struct file *f = file_open_unnamed(&pidfd_ops, sizeof(*d), 0, error);

	if (f == NULL)
		return NULL;
	d = f->vn->data;
	d->pid = p->pid;
	d->start_ns = p->start_ns;
	return f;
}

int64_t
sys_pidfd_open(const uint64_t a[6])
{
	int32_t pid = (int32_t)a[0];
	const struct proc *p;
	struct pidfd *d;
	struct file *f;
	int error;

	if (((uint32_t)a[1] & ~(uint32_t)O_NONBLOCK) || pid <= 0)
		return -EINVAL;
	f = file_open_unnamed(&pidfd_ops, sizeof(*d), (int)a[1], &error);
	if (f == NULL)
		return error;
	d = f->vn->data;
	d->pid = (uint32_t)pid;
	spin_lock(&proc_lock);
	p = proc_find(d->pid);
	if (p != NULL)
		d->start_ns = p->start_ns;
	else
		error = lwp_find(d->pid) != NULL ? -EINVAL : -ESRCH; /* not a first thread */
	spin_unlock(&proc_lock);
	if (p != NULL)
		return filetable_install(f, O_CLOEXEC);
	file_unref(f);
	return error;
}
