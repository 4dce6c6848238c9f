/*
 * filetable.c - a process's descriptors.
 * Invariant: each slot that is not NULL holds one reference. Locking: none, one thread (file.h).
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/file.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc.h"
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

	if (ft != NULL)
		ft->ui = ui;
	return ft;
}

struct filetable *
filetable_clone(struct filetable *ft, struct uidinfo *ui)
{
	struct filetable *copy = filetable_create(ui);

	if (copy == NULL)
		return NULL;
	*copy = *ft;
	copy->ui = ui;
	for (unsigned fd = 0; fd < FILES_MAX; fd++) {
		if (copy->files[fd] != NULL)
			file_ref(copy->files[fd]);
	}
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

struct file *
filetable_get(const struct filetable *ft, uint64_t fd)
{
	return fd < FILES_MAX ? ft->files[fd] : NULL;
}

static void
set_flag(struct filetable *ft, unsigned fd, int flags)
{
	if (flags & O_CLOEXEC)
		ft->close_on_exec |= 1ull << fd;
	else
		ft->close_on_exec &= ~(1ull << fd);
}

int
filetable_add(struct filetable *ft, struct file *f, unsigned min, int flags)
{
	for (unsigned fd = min; fd < filetable_limit(); fd++) {
		if (ft->files[fd] == NULL) {
			ft->files[fd] = f;
			set_flag(ft, fd, flags);
			return (int)fd;
		}
	}
	return -EMFILE;
}

void
filetable_put(struct filetable *ft, struct file *f, unsigned fd, int flags)
{
	struct file *old = ft->files[fd];

	ft->files[fd] = f;
	set_flag(ft, fd, flags);
	file_unref(old);
}

int
filetable_close(struct filetable *ft, uint64_t fd)
{
	struct file *f = filetable_get(ft, fd);

	if (f == NULL)
		return -EBADF;
	CTR2(KTR_VFS, "close: fd %lu flags %#x", fd, f->flags);
	ft->files[fd] = NULL;
	ft->close_on_exec &= ~(1ull << fd);
	file_unref(f);
	return 0;
}
