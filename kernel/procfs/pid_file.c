/*
 * pid_file.c - /proc/PID/fd, fdinfo, cwd, root, exe: the files that a process has. Locking:
 * procfs.h.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/file.h"
#include "kernel/fs/fsnotify.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/proc/proc.h"
#include "kernel/procfs/procfs.h"
#include "kernel/sync/spinlock.h"

/* A file that a process has open, as it was a moment ago. */
struct open_file {
	struct vnode *vn; /* a reference */
	uint64_t off;
	int flags;
	bool private; /* the current process may not look into the process that has it */
};

/* The open file with the lowest number from *fd on. False: the process has none, or has ended. */
static bool
next_file(uint32_t pid, unsigned *fd, struct open_file *o)
{
	struct filetable *ft;
	const struct file *f = NULL;
	const struct proc *p;

	spin_lock(&proc_lock);
	p = proc_find(pid);
	ft = p != NULL ? p->files : NULL;
	if (ft != NULL) {
		spin_lock(&ft->lock);
		*fd = filetable_next(ft, *fd);
		f = *fd < FILES_MAX ? ft->files[*fd] : NULL;
		if (f != NULL)
			*o = (struct open_file){vnode_ref(f->vn), f->off,
						f->flags | (filetable_is_cloexec_locked(ft, *fd)
								? O_CLOEXEC
								: 0),
						!procfs_looks_into(p, pid)};
		spin_unlock(&ft->lock);
	}
	spin_unlock(&proc_lock);
	return f != NULL;
}

static bool
look_at_file(uint32_t pid, unsigned fd, struct open_file *o)
{
	unsigned found = fd;

	if (!next_file(pid, &found, o))
		return false;
	if (found != fd)
		vnode_unref(o->vn);
	return found == fd;
}

/* The path of a vnode, as Linux has it for those without a name. Takes over the reference. */
static int
link_to(struct procfs_node *n, struct vnode *vn)
{
	char *path = kmalloc(PATH_MAX);
	int length = path != NULL ? vnode_path_locked(vn, path, PATH_MAX, NULL) : -ENOMEM;

	n->to = vn;
	if (length < 0 && length != -ENOENT) {
		kfree(path);
		return length == -ERANGE ? -ENAMETOOLONG : length;
	}
	n->text = length > 0           ? procfs_text(n, "%s", path)
		  : S_ISFIFO(vn->mode) ? procfs_text(n, "pipe:[%lu]", vn->ino)
		  : S_ISSOCK(vn->mode) ? procfs_text(n, "socket:[%lu]", vn->ino)
		  : S_ISREG(vn->mode) || S_ISDIR(vn->mode)
		      ? procfs_text(n, "/inode:[%lu] (deleted)", vn->ino)
		      : procfs_text(n, "anon_inode:[%lu]", vn->ino);
	kfree(path);
	return n->text != NULL ? 0 : -ENOMEM;
}

/* The node's file, for who may look. 0 or -errno. */
static int
open_file_of(const struct procfs_node *n, struct open_file *o)
{
	if (!look_at_file(n->pid, n->fd, o))
		return -ENOENT;
	if (!o->private)
		return 0;
	vnode_unref(o->vn);
	return -EACCES;
}

static int
fd_link(struct procfs_node *n)
{
	struct open_file o;
	int error = open_file_of(n, &o);

	return error == 0 ? link_to(n, o.vn) : error;
}

/* Links of open files, by how the file is open: r-x, -wx, rwx. */
static const struct procfs_file fd_links[] = {
    {.mode = S_IFLNK | 0500, .link = fd_link},
    {.mode = S_IFLNK | 0300, .link = fd_link},
    {.mode = S_IFLNK | 0700, .link = fd_link},
};

static int
fdinfo_show(const struct procfs_node *n, struct sbuf *out)
{
	struct open_file o;
	int error = open_file_of(n, &o);

	if (error != 0)
		return error;
	sbuf_printf(out, "pos:\t%lu\nflags:\t0%o\nmnt_id:\t%u\nino:\t%lu\n", o.off,
		    (unsigned)o.flags, o.vn->dev, o.vn->ino);
	inotify_show_fdinfo(o.vn, out);
	vnode_unref(o.vn);
	return 0;
}

static const struct procfs_file fdinfo = {.mode = S_IFREG | 0400,
					  .private = true,
					  .show = fdinfo_show};

/* What a directory, fd or fdinfo, shows of an open file. */
static const struct procfs_file *
fd_file(const struct procfs_node *dir, const struct open_file *o)
{
	return strcmp(dir->file->name, "fd") == 0 ? &fd_links[o->flags & O_ACCMODE] : &fdinfo;
}

bool
procfs_fd_find(const struct procfs_node *dir, const char *name, struct procfs_node *child)
{
	struct open_file o;

	if (!procfs_number(name, FILES_MAX - 1, &child->fd) ||
	    !look_at_file(dir->pid, child->fd, &o))
		return false;
	vnode_unref(o.vn);
	child->file = fd_file(dir, &o);
	return true;
}

void
procfs_fd_list(const struct procfs_node *dir, uint64_t from, procfs_add_fn *add, void *arg)
{
	struct open_file o;
	char name[16];

	for (unsigned fd = (unsigned)from; next_file(dir->pid, &fd, &o); fd++) {
		vnode_unref(o.vn);
		snprintf(name, sizeof(name), "%u", fd);
		if (!add(arg, name, fd_file(dir, &o)->mode, fd + 1))
			return;
	}
}

/* Where "cwd", "exe" or "root" leads. NULL: nowhere, or the process has ended, or ends. */
static struct vnode *
procfs_place(const struct proc *p, const char *name)
{
	if (strcmp(name, "root") != 0)
		return p == NULL ? NULL : strcmp(name, "cwd") == 0 ? p->cwd : p->exe;
	if (p != NULL && p->cwd == NULL)
		return NULL;
	return p != NULL && p->root != NULL ? p->root : vfs_root;
}

int
procfs_place_link(struct procfs_node *n)
{
	struct vnode *vn = NULL;
	const struct proc *p;
	bool looks;

	spin_lock(&proc_lock);
	p = proc_find(n->pid);
	looks = procfs_looks_into(p, n->pid);
	if (looks)
		vn = procfs_place(p, n->file->name);
	if (vn != NULL)
		vnode_ref(vn);
	spin_unlock(&proc_lock);
	return !looks ? -EACCES : vn != NULL ? link_to(n, vn) : -ENOENT;
}
