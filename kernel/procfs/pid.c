/*
 * pid.c - /proc/PID: which processes there are, and what each has: open files, memory, names.
 * Locking: procfs.h.
 */
#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/kmap.h"
#include "kernel/proc/proc.h"
#include "kernel/procfs/procfs.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "kernel/vm/vm.h"

#define PID_MAX 0x3fffffff

/* ---- who is there ---- */

/* Is it a thread of the kernel, but not one that idles? */
static bool
is_kernel_thread(const struct thread *t)
{
	return t->proc == NULL && t->state != THREAD_DEAD && t->prio != PRIO_IDLE;
}

static int
is_that(struct thread *t, void *tid)
{
	return t->tid == *(uint32_t *)tid && is_kernel_thread(t);
}

bool
procfs_user(uint32_t pid, uint32_t *uid)
{
	const struct proc *p;

	spin_lock(&proc_lock);
	p = proc_find(pid);
	*uid =
	    p != NULL && !p->changed_uid ? p->uid : 0; /* as ktrace: until it executes a program */
	spin_unlock(&proc_lock);
	return p != NULL || thread_each(is_that, &pid) != 0;
}

/* The lowest numbers of processes above `from`, in order. */
struct batch {
	uint32_t from;
	unsigned n;
	uint32_t pid[64];
};

#define BATCH (sizeof(((struct batch *)0)->pid) / sizeof(uint32_t))

static void
pid_batch_add(struct batch *b, uint32_t pid)
{
	unsigned i = b->n;

	if (pid <= b->from || (b->n == BATCH && pid > b->pid[BATCH - 1]))
		return;
	if (b->n < BATCH)
		b->n++;
	else
		i--;
	for (; i > 0 && b->pid[i - 1] > pid; i--)
		b->pid[i] = b->pid[i - 1];
	b->pid[i] = pid;
}

static int
batch_add_thread(struct thread *t, void *b)
{
	if (is_kernel_thread(t))
		pid_batch_add(b, t->tid);
	return 0;
}

bool
procfs_pid_find(const struct procfs_node *dir, const char *name, struct procfs_node *child)
{
	(void)dir;
	child->file = &procfs_pid;
	return procfs_number(name, PID_MAX, &child->pid) && child->pid != 0;
}

void
procfs_pid_list(const struct procfs_node *dir, uint64_t from, procfs_add_fn *add, void *arg)
{
	struct batch b = {.from = (uint32_t)from};
	char name[16];

	(void)dir;
	do {
		b.n = 0;
		thread_each(batch_add_thread, &b);
		spin_lock(&proc_lock);
		for_each_proc (p)
			pid_batch_add(&b, p->pid);
		spin_unlock(&proc_lock);
		for (unsigned i = 0; i < b.n; i++) {
			b.from = b.pid[i];
			snprintf(name, sizeof(name), "%u", b.from);
			if (!add(arg, name, procfs_pid.mode, b.from))
				return;
		}
	} while (b.n == BATCH);
}

/* ---- task: the threads of a process ---- */

static const struct procfs_file procfs_task;

/* The next thread of a process after `from`, by number. 0: none. */
static uint32_t
next_tid(uint32_t pid, uint32_t from)
{
	uint32_t best = 0;
	struct proc *p;

	spin_lock(&proc_lock);
	p = proc_find(pid);
	if (p != NULL)
		for_each_lwp(l, p) if (l->thread->tid > from &&
				       (best == 0 || l->thread->tid < best)) best = l->thread->tid;
	spin_unlock(&proc_lock);
	/* Of what has no threads, zombies and threads of the kernel, there is one. */
	return best == 0 && (p == NULL || p->thread == NULL) && from < pid ? pid : best;
}

static bool
find_task(const struct procfs_node *dir, const char *name, struct procfs_node *child)
{
	child->file = &procfs_task;
	return procfs_number(name, PID_MAX, &child->tid) && child->tid != 0 &&
	       next_tid(dir->pid, child->tid - 1) == child->tid;
}

static void
list_tasks(const struct procfs_node *dir, uint64_t from, procfs_add_fn *add, void *arg)
{
	uint32_t tid = (uint32_t)from;
	char name[16];

	while ((tid = next_tid(dir->pid, tid)) != 0) {
		snprintf(name, sizeof(name), "%u", tid);
		if (!add(arg, name, procfs_task.mode, tid))
			return;
	}
}

/* ---- open files ---- */

/* An open file, as it was a moment ago. */
struct open_file {
	struct vnode *vn; /* a reference */
	uint64_t off;
	int flags;
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
			*o =
			    (struct open_file){vnode_ref(f->vn), f->off,
					       f->flags |
						   (filetable_is_cloexec(ft, *fd) ? O_CLOEXEC : 0)};
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
	n->text = length > 0           ? procfs_text("%s", path)
		  : S_ISFIFO(vn->mode) ? procfs_text("pipe:[%lu]", vn->ino)
		  : S_ISREG(vn->mode) || S_ISDIR(vn->mode)
		      ? procfs_text("/inode:[%lu] (deleted)", vn->ino)
		      : procfs_text("anon_inode:[%lu]", vn->ino);
	kfree(path);
	return n->text != NULL ? 0 : -ENOMEM;
}

static int
fd_link(struct procfs_node *n)
{
	struct open_file o;

	return look_at_file(n->pid, n->fd, &o) ? link_to(n, o.vn) : -ENOENT;
}

/* By how a file is open: r-x, -wx, rwx. */
static const struct procfs_file fd_links[] = {
    {.mode = S_IFLNK | 0500, .private = true, .link = fd_link},
    {.mode = S_IFLNK | 0300, .private = true, .link = fd_link},
    {.mode = S_IFLNK | 0700, .private = true, .link = fd_link},
};

static int
fdinfo_show(const struct procfs_node *n, struct sbuf *out)
{
	struct open_file o;

	if (!look_at_file(n->pid, n->fd, &o))
		return -ENOENT;
	sbuf_printf(out, "pos:\t%lu\nflags:\t0%o\nmnt_id:\t1\nino:\t%lu\n", o.off,
		    (unsigned)o.flags, o.vn->ino);
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

static bool
find_fd(const struct procfs_node *dir, const char *name, struct procfs_node *child)
{
	struct open_file o;

	if (!procfs_number(name, FILES_MAX - 1, &child->fd) ||
	    !look_at_file(dir->pid, child->fd, &o))
		return false;
	vnode_unref(o.vn);
	child->file = fd_file(dir, &o);
	return true;
}

static void
list_fds(const struct procfs_node *dir, uint64_t from, procfs_add_fn *add, void *arg)
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

/* ---- cwd, root, exe ---- */

static int
cwd_link(struct procfs_node *n)
{
	struct vnode *vn = NULL;
	const struct proc *p;

	spin_lock(&proc_lock);
	p = proc_find(n->pid);
	if (p != NULL && p->cwd != NULL)
		vn = vnode_ref(p->cwd);
	spin_unlock(&proc_lock);
	return vn != NULL ? link_to(n, vn) : -ENOENT;
}

static int
exe_link(struct procfs_node *n)
{
	struct vnode *vn = NULL;
	const struct proc *p;

	spin_lock(&proc_lock);
	p = proc_find(n->pid);
	if (p != NULL && p->exe != NULL)
		vn = vnode_ref(p->exe);
	spin_unlock(&proc_lock);
	return vn != NULL ? link_to(n, vn) : -ENOENT;
}

static int
root_link(struct procfs_node *n)
{
	struct vnode *vn = NULL;
	const struct proc *p;

	spin_lock(&proc_lock);
	p = proc_find(n->pid);
	if (p == NULL || p->cwd != NULL) /* not when it ends */
		vn = vnode_ref(p != NULL && p->root != NULL ? p->root : vfs_root);
	spin_unlock(&proc_lock);
	return vn != NULL ? link_to(n, vn) : -ENOENT;
}

/* ---- memory ---- */

/* The address space of a process, with a reference. NULL: it has none, or has ended. */
static struct vmspace *
pid_space_of(uint32_t pid)
{
	struct vmspace *vm = NULL;
	const struct proc *p;

	spin_lock(&proc_lock);
	p = proc_find(pid);
	if (p != NULL && p->vm != NULL)
		vm = vm_ref(p->vm);
	spin_unlock(&proc_lock);
	return vm;
}

/* Copies [from, to) of the space, which it drops. */
static void
copy_memory(struct vmspace *vm, uint64_t from, uint64_t to, struct sbuf *out)
{
	char piece[256];
	size_t n = 0;

	for (; from < to; from += n) {
		n = to - from < sizeof(piece) ? to - from : sizeof(piece);
		n = vm_read(vm, from, piece, n);
		if (n == 0)
			break;
		sbuf_write(out, piece, n);
	}
	vm_destroy(vm);
}

static int
pid_cmdline_show(const struct procfs_node *n, struct sbuf *out)
{
	struct vmspace *vm = pid_space_of(n->pid);
	struct vm_info info;

	if (vm == NULL)
		return 0;
	vm_info_get(vm, &info);
	copy_memory(vm, info.args, info.args_end, out);
	return 0;
}

static int
environ_show(const struct procfs_node *n, struct sbuf *out)
{
	struct vmspace *vm = pid_space_of(n->pid);
	struct vm_info info;

	if (vm == NULL)
		return 0;
	vm_info_get(vm, &info);
	copy_memory(vm, info.args_end, info.env_end, out);
	return 0;
}

static void
show_area(const struct vm_range *r, const struct vm_info *info, struct sbuf *out, char *path)
{
	size_t start = out->len;
	const char *name = "";
	struct vnode *vn = r->object;

	sbuf_printf(out, "%08lx-%08lx %c%c%c%c %08lx 00:%02x %lu ", r->start, r->end,
		    r->prot & MMU_READ ? 'r' : '-', r->prot & MMU_WRITE ? 'w' : '-',
		    r->prot & MMU_EXEC ? 'x' : '-', r->shared ? 's' : 'p',
		    vn != NULL ? r->offset : 0, vn != NULL ? vn->dev : 0, vn != NULL ? vn->ino : 0);
	if (vn != NULL)
		name = vnode_path(vn, path, PATH_MAX, NULL) > 0 ? path : "(deleted)";
	else if (r->end > info->brk_start && r->start < info->brk_end)
		name = "[heap]";
	else if (r->end == VM_STACK_TOP)
		name = "[stack]";
	while (*name != '\0' && out->len - start < 73)
		sbuf_putc(out, ' ');
	sbuf_printf(out, "%s\n", name);
}

static int
maps_show(const struct procfs_node *n, struct sbuf *out)
{
	struct vmspace *vm = pid_space_of(n->pid);
	char *path = kmalloc(PATH_MAX);
	struct vm_range r = {0};
	struct vm_info info;

	if (vm != NULL && path != NULL) {
		vm_info_get(vm, &info);
		while (vm_range_next(vm, &r)) {
			show_area(&r, &info, out, path);
			vnode_unref(r.object);
		}
	}
	kfree(path);
	if (vm != NULL)
		vm_destroy(vm);
	return path != NULL ? 0 : -ENOMEM;
}

/* mem: the space that the process had when it was opened. */
static int
mem_open(struct file *f)
{
	const struct procfs_node *n = f->vn->data;
	int error = procfs_may_look(n->pid);

	f->priv = error == 0 ? pid_space_of(n->pid) : NULL;
	return error;
}

static void
mem_release(struct file *f)
{
	if (f->priv != NULL)
		vm_destroy(f->priv);
}

/* Reads or writes a piece. Bytes, 0: all is done; -EIO: nothing is there. */
static int64_t
mem_piece(struct vmspace *vm, struct uio *u, uint64_t off, bool write)
{
	char piece[256];
	size_t n = u->resid < sizeof(piece) ? u->resid : sizeof(piece), moved;
	int error = write && n > 0 ? uio_take(u, piece, n) : 0;

	if (error < 0 || n == 0)
		return error;
	moved = write ? vm_poke(vm, off, piece, n) : vm_peek(vm, off, piece, n);
	if (!write && moved > 0)
		error = uio_put(u, piece, moved);
	return error < 0 ? error : moved > 0 ? (int64_t)moved : -EIO;
}

static int64_t
mem_move(struct file *f, struct uio *u, uint64_t *off, bool write)
{
	int64_t done = 0, n = 0;

	while (f->priv != NULL && !proc_signal_pending() &&
	       (n = mem_piece(f->priv, u, *off, write)) > 0) {
		*off += (uint64_t)n;
		done += n;
	}
	return done > 0 ? done : n;
}

static int64_t
mem_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	(void)vn;
	return mem_move(f, u, off, false);
}

static int64_t
mem_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	(void)vn;
	return mem_move(f, u, off, true);
}

static const struct vnode_ops mem_ops = {
    .open = mem_open,
    .release = mem_release,
    .read = mem_read,
    .write = mem_write,
    .destroy = procfs_node_destroy,
};

/* ---- other words ---- */

/* A thread's name, and where it sleeps. */
struct words {
	uint32_t tid;
	char name[KTR_THREAD_NAME];
	const char *wmesg;
};

static int
take_words(struct thread *t, void *arg)
{
	struct words *w = arg;

	if (t->tid != w->tid)
		return 0;
	strlcpy(w->name, t->name, sizeof(w->name));
	w->wmesg = t->state == THREAD_SLEEPING ? t->wmesg : NULL;
	return 1;
}

/* Of the thread, or of the process's first one. False: it has ended. */
static bool
words_of(const struct procfs_node *n, struct words *w)
{
	const struct proc *p;

	*w = (struct words){.tid = n->tid != 0 ? n->tid : n->pid};
	if (thread_each(take_words, w) != 0)
		return true;
	spin_lock(&proc_lock);
	p = proc_find(n->pid);
	if (p != NULL)
		strlcpy(w->name, p->name, sizeof(w->name));
	spin_unlock(&proc_lock);
	return p != NULL;
}

static int
comm_show(const struct procfs_node *n, struct sbuf *out)
{
	struct words w;

	if (!words_of(n, &w))
		return -ESRCH;
	sbuf_printf(out, "%s\n", w.name);
	return 0;
}

/* As Linux: a process names its own threads. */
static int
comm_store(const struct procfs_node *n, char *text)
{
	struct proc *p = curproc();
	uint32_t tid = n->tid != 0 ? n->tid : n->pid;
	int error = p != NULL && p->pid == n->pid ? -ESRCH : -EINVAL;

	if (error == -EINVAL)
		return error;
	text[strlen(text) < 15 ? strlen(text) : 15] = '\0';
	spin_lock(&proc_lock);
	for_each_lwp(l, p)
	{
		if (l->thread->tid != tid)
			continue;
		thread_rename(l->thread, text);
		if (l == &p->first)
			strlcpy(p->name, l->thread->name, sizeof(p->name));
		error = 0;
	}
	spin_unlock(&proc_lock);
	return error;
}

static int
wchan_show(const struct procfs_node *n, struct sbuf *out)
{
	struct words w;

	if (!words_of(n, &w))
		return -ESRCH;
	sbuf_puts(out, w.wmesg != NULL && procfs_may_look(n->pid) == 0 ? w.wmesg : "0");
	return 0;
}

static int
limits_show(const struct procfs_node *n, struct sbuf *out)
{
	static const struct {
		const char *name, *unit;
	} rows[RLIMIT_NLIMITS] = {
	    {"Max cpu time", "seconds"},     {"Max file size", "bytes"},
	    {"Max data size", "bytes"},      {"Max stack size", "bytes"},
	    {"Max core file size", "bytes"}, {"Max resident set", "bytes"},
	    {"Max processes", "processes"},  {"Max open files", "files"},
	    {"Max locked memory", "bytes"},  {"Max address space", "bytes"},
	    {"Max file locks", "locks"},     {"Max pending signals", "signals"},
	    {"Max msgqueue size", "bytes"},  {"Max nice priority", ""},
	    {"Max realtime priority", ""},   {"Max realtime timeout", "us"},
	};
	struct rlimit limits[RLIMIT_NLIMITS];
	const struct proc *p;

	spin_lock(&proc_lock);
	p = proc_find(n->pid);
	if (p != NULL)
		memcpy(limits, p->limits, sizeof(limits));
	spin_unlock(&proc_lock);
	if (p == NULL)
		return -ESRCH;
	sbuf_printf(out, "%-25s %-20s %-20s %-10s\n", "Limit", "Soft Limit", "Hard Limit", "Units");
	for (unsigned i = 0; i < RLIMIT_NLIMITS; i++) {
		const uint64_t value[] = {limits[i].rlim_cur, limits[i].rlim_max};

		sbuf_printf(out, "%-25s ", rows[i].name);
		for (unsigned k = 0; k < 2; k++) {
			if (value[k] == RLIM_INFINITY)
				sbuf_printf(out, "%-20s ", "unlimited");
			else
				sbuf_printf(out, "%-20lu ", value[k]);
		}
		sbuf_printf(out, "%-10s\n", rows[i].unit);
	}
	return 0;
}

static const struct procfs_file task_files[] = {
    {.name = "stat", .mode = S_IFREG | 0444, .show = procfs_stat},
    {.name = "status", .mode = S_IFREG | 0444, .show = procfs_status},
    {.name = "comm", .mode = S_IFREG | 0644, .show = comm_show, .store = comm_store},
    {.name = "mem", .mode = S_IFREG | 0600, .private = true, .ops = &mem_ops},
    {.name = "wchan", .mode = S_IFREG | 0444, .show = wchan_show},
};

static const struct procfs_file procfs_task = {.mode = S_IFDIR | 0555, PROCFS_DIR(task_files)};

static const struct procfs_file pid_files[] = {
    {.name = "stat", .mode = S_IFREG | 0444, .show = procfs_stat},
    {.name = "status", .mode = S_IFREG | 0444, .show = procfs_status},
    {.name = "statm", .mode = S_IFREG | 0444, .show = procfs_statm},
    {.name = "cmdline", .mode = S_IFREG | 0444, .show = pid_cmdline_show},
    {.name = "comm", .mode = S_IFREG | 0644, .show = comm_show, .store = comm_store},
    {.name = "environ", .mode = S_IFREG | 0400, .private = true, .show = environ_show},
    {.name = "mem", .mode = S_IFREG | 0600, .private = true, .ops = &mem_ops},
    {.name = "maps", .mode = S_IFREG | 0444, .private = true, .show = maps_show},
    {.name = "limits", .mode = S_IFREG | 0444, .show = limits_show},
    {.name = "wchan", .mode = S_IFREG | 0444, .show = wchan_show},
    {.name = "mounts", .mode = S_IFREG | 0444, .show = procfs_mounts},
    {.name = "cwd", .mode = S_IFLNK | 0777, .private = true, .link = cwd_link},
    {.name = "exe", .mode = S_IFLNK | 0777, .private = true, .link = exe_link},
    {.name = "root", .mode = S_IFLNK | 0777, .private = true, .link = root_link},
    {.name = "fd", .mode = S_IFDIR | 0500, .find = find_fd, .list = list_fds},
    {.name = "fdinfo", .mode = S_IFDIR | 0500, .find = find_fd, .list = list_fds},
    {.name = "task", .mode = S_IFDIR | 0555, .find = find_task, .list = list_tasks},
};

const struct procfs_file procfs_pid = {.mode = S_IFDIR | 0555, PROCFS_DIR(pid_files)};
