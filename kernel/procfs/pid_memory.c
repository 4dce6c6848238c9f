/*
 * pid_memory.c - /proc/PID/cmdline, environ, maps, mem: the memory of a process. Locking: procfs.h.
 */
#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/stat.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/vdso.h"
#include "kernel/procfs/procfs.h"
#include "kernel/sync/spinlock.h"
#include "kernel/vm/vm.h"

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

/* Copies the arguments of a process, or its environment, from where exec() has put them. */
int
procfs_strings(const struct procfs_node *n, struct sbuf *out)
{
	struct vmspace *vm = NULL;
	struct vm_info info;
	uint64_t from, to;
	char piece[256];
	bool environ = n->file->private;
	size_t size;
	uint32_t uid;
	int error = 0;

	if (environ)
		error = procfs_may_look(n->pid, &vm);
	else
		vm = pid_space_of(n->pid);
	if (vm == NULL)
		return error == 0 && !procfs_user(n->pid, &uid) ? -ESRCH : error;
	vm_info_get(vm, &info);
	from = environ ? info.args_end : info.args;
	to = environ ? info.env_end : info.args_end;
	for (; from < to; from += size) {
		size = to - from < sizeof(piece) ? to - from : sizeof(piece);
		size = vm_read(vm, from, piece, size);
		if (size == 0)
			break;
		sbuf_write(out, piece, size);
	}
	vm_destroy(vm);
	return 0;
}

/* What exec() has told the program, where it has put that: the program may have changed it. */
int
procfs_auxv(const struct procfs_node *n, struct sbuf *out)
{
	struct vmspace *vm = NULL;
	int error = procfs_may_look(n->pid, &vm);
	uint64_t pair[2] = {1};
	struct vm_info info;

	if (vm == NULL)
		return error;
	vm_info_get(vm, &info);
	for (uint64_t at = info.auxv; pair[0] != 0 && at < info.args; at += sizeof(pair)) {
		if (vm_peek(vm, at, pair, sizeof(pair), 0) != sizeof(pair))
			break;
		sbuf_write(out, pair, sizeof(pair));
	}
	vm_destroy(vm);
	return 0;
}

static void
show_area(const struct vm_range *r, const struct vm_info *info, struct sbuf *out, char *path)
{
	static const char blanks[73] = {[0 ... 72] = ' '};
	size_t start = out->len;
	const char *name = "";
	const char rights[] = {r->prot & MMU_READ ? 'r' : '-', r->prot & MMU_WRITE ? 'w' : '-',
			       r->prot & MMU_EXEC ? 'x' : '-', r->shared ? 's' : 'p', ' '};
	bool is_vdso = vdso_is(r->object);
	struct vnode *vn = is_vdso ? NULL : r->object;
	uint32_t dev = vn != NULL ? vn->dev : 0;

	/* Without sbuf_printf(): programs read this often. */
	sbuf_hex(out, r->start, 8, '-');
	sbuf_hex(out, r->end, 8, ' ');
	sbuf_write(out, rights, sizeof(rights));
	sbuf_hex(out, vn != NULL ? r->offset : 0, 8, ' ');
	sbuf_hex(out, STAT_MAJOR(dev), 2, ':');
	sbuf_hex(out, STAT_MINOR(dev), 2, ' ');
	sbuf_decimal(out, vn != NULL ? vn->ino : 0, ' ');
	if (vn != NULL)
		name = vnode_path(vn, path, PATH_MAX, NULL) > 0 ? path : "(deleted)";
	else if (is_vdso)
		name = "[vdso]";
	else if (r->end > info->brk_start && r->start < info->brk_end)
		name = "[heap]";
	else if (r->start <= info->stack && info->stack < r->end)
		name = "[stack]";
	if (*name != '\0' && out->len - start < sizeof(blanks))
		sbuf_write(out, blanks, sizeof(blanks) - (out->len - start));
	sbuf_puts(out, name);
	sbuf_putc(out, '\n');
}

/* What smaps says of an area besides. What was written is not known: only pages that private
 * mappings share are clean for certain. */
static void
show_pages(struct vmspace *vm, const struct vm_range *r, struct sbuf *out)
{
	struct vm_pages n;
	uint64_t size = r->end - r->start;

	vm_range_pages(vm, r, &n);
	sbuf_printf(out,
		    "Size:           %8lu kB\nKernelPageSize: %8lu kB\nMMUPageSize:    %8lu kB\n",
		    size / 1024, PAGE_SIZE / 1024, PAGE_SIZE / 1024);
	sbuf_printf(out, "Rss:            %8lu kB\nPss:            %8lu kB\n",
		    n.resident * PAGE_SIZE / 1024, n.share / 1024);
	sbuf_printf(out,
		    "Shared_Clean:   %8lu kB\nShared_Dirty:   %8lu kB\nPrivate_Clean:  %8lu kB\n",
		    r->shared ? 0 : n.shared * PAGE_SIZE / 1024,
		    r->shared ? n.shared * PAGE_SIZE / 1024 : 0, 0ul);
	sbuf_printf(out, "Private_Dirty:  %8lu kB\nLocked:         %8lu kB\nVmFlags:%s%s%s%s%s\n",
		    (n.resident - n.shared) * PAGE_SIZE / 1024, r->locked ? n.share / 1024 : 0,
		    r->prot & MMU_READ ? " rd" : "", r->prot & MMU_WRITE ? " wr" : "",
		    r->prot & MMU_EXEC ? " ex" : "", r->shared ? " sh" : "",
		    r->locked ? " lo" : "");
}

/* The file maps; and smaps, which is the other one. */
int
procfs_maps(const struct procfs_node *n, struct sbuf *out)
{
	bool pages = strcmp(n->file->name, "smaps") == 0;
	struct vmspace *vm = NULL;
	int error = procfs_may_look(n->pid, &vm);
	char *path = kmalloc(PATH_MAX);
	struct vm_range r = {0};
	struct vm_info info;

	if (vm != NULL && path != NULL) {
		vm_info_get(vm, &info);
		while (vm_range_next(vm, &r)) {
			show_area(&r, &info, out, path);
			if (pages)
				show_pages(vm, &r, out);
			if (r.object != NULL)
				vnode_pager.unref(r.object, false);
		}
	}
	kfree(path);
	if (vm != NULL)
		vm_destroy(vm);
	return path != NULL ? error : -ENOMEM;
}

/* The file mem: the space that the process had when it was opened, as long as a process has it. */
static int
mem_open(struct file *f)
{
	const struct procfs_node *n = f->vn->data;
	struct vmspace *vm = NULL;
	int error = procfs_may_look(n->pid, &vm);

	f->priv = vm != NULL ? vm_hold(vm) : NULL;
	if (vm != NULL)
		vm_destroy(vm);
	return error;
}

static void
mem_release(struct file *f)
{
	if (f->priv != NULL)
		vm_unhold(f->priv);
}

/* Reads or writes a piece. Returns bytes; 0: all is done; -EIO: nothing is there. */
static int64_t
mem_piece(struct vmspace *vm, struct uio *u, uint64_t off, bool write)
{
	char piece[256];
	size_t n = u->resid < sizeof(piece) ? u->resid : sizeof(piece), moved;
	int error = write && n > 0 ? uio_take(u, piece, n) : 0;

	if (error < 0 || n == 0)
		return error;
	moved = write ? vm_poke(vm, off, piece, n, 0) : vm_peek(vm, off, piece, n, 0);
	if (!write && moved > 0)
		error = uio_put(u, piece, moved);
	return error < 0 ? error : moved > 0 ? (int64_t)moved : -EIO;
}

static int64_t
mem_move(struct file *f, struct uio *u, uint64_t *off, bool write)
{
	struct vmspace *vm = f->priv;
	int64_t done = 0, n = 0;

	if (vm == NULL || !vm_enter(vm))
		return 0;
	do {
		n = mem_piece(vm, u, *off, write);
		*off += n > 0 ? (uint64_t)n : 0;
		done += n > 0 ? n : 0;
	} while (n > 0 && !proc_signal_pending());
	vm_destroy(vm);
	return done > 0 ? done : n;
}

static int64_t
mem_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	return mem_move(f, u, off, false);
}

static int64_t
mem_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	return mem_move(f, u, off, true);
}

const struct vnode_ops procfs_mem_ops = {
    .open = mem_open,
    .release = mem_release,
    .read = mem_read,
    .write = mem_write,
    .destroy = procfs_node_destroy,
};
