/* procfs.c - the names of /proc, and its vnodes (procfs.h). */
#include "kernel/procfs/procfs.h"
#include "kernel/lib/decimal.h"

#include <stdarg.h>

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/statfs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/textfile.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc.h"
#include "kernel/sync/spinlock.h"
#include "kernel/vm/vm.h"

bool
procfs_number(const char *name, uint32_t max, uint32_t *value)
{
	uint64_t n;

	if ((*name == '0' && name[1] != '\0') || !take_decimal(&name, max, &n))
		return false;
	*value = (uint32_t)n;
	return *name == '\0';
}

char *
procfs_text(const struct procfs_node *n, const char *fmt, ...)
{
	struct sbuf out;
	va_list ap;
	char *text;

	sbuf_init(&out, NULL, 0);
	va_start(ap, fmt);
	sbuf_vprintf(&out, fmt, ap);
	va_end(ap);
	text = uidinfo_alloc(n->ui, out.len + 1);
	if (text == NULL)
		return NULL;
	sbuf_init(&out, text, out.len + 1);
	va_start(ap, fmt);
	sbuf_vprintf(&out, fmt, ap);
	va_end(ap);
	return text;
}

bool
procfs_looks_into(const struct proc *p, uint32_t pid)
{
	return capable(CAP_SYS_PTRACE) || curproc()->pid == pid || (p != NULL && proc_may_trace(p));
}

int
procfs_may_look(uint32_t pid, struct vmspace **vm)
{
	const struct proc *p;
	int error = -EACCES;
	uint32_t uid;

	if (!procfs_user(pid, &uid))
		return -ESRCH;
	spin_lock(&proc_lock);
	p = proc_find(pid);
	if (procfs_looks_into(p, pid))
		error = 0;
	if (vm != NULL)
		*vm = error == 0 && p != NULL && p->vm != NULL ? vm_ref(p->vm) : NULL;
	spin_unlock(&proc_lock);
	return error;
}

static int
may_see(const struct procfs_node *n)
{
	return n->file->private ? procfs_may_look(n->pid, NULL) : 0;
}

/* ---- files of text ---- */

static int
procfs_show_text(struct vnode *vn, struct sbuf *out)
{
	const struct procfs_node *n = vn->data;
	int error = may_see(n);

	return error == 0 ? n->file->show(n, out) : error;
}

static int
procfs_store_text(struct vnode *vn, char *text)
{
	const struct procfs_node *n = vn->data;

	return n->file->store(n, text);
}

static int
procfs_text_open(struct file *f)
{
	const struct procfs_node *n = f->vn->data;
	int mode = f->flags & O_ACCMODE, error = may_see(n);

	if (error != 0)
		return error;
	if (mode != O_RDONLY && n->file->store == NULL)
		return -EACCES;
	return textfile_open(f);
}

void
procfs_node_destroy(struct vnode *vn)
{
	struct procfs_node *n = vn->data;

	vnode_unref(n->to);
	uidinfo_free(n->ui, n->text);
}

static const struct vnode_ops text_ops = {
    .open = procfs_text_open,
    .release = textfile_release,
    .read = textfile_read,
    .write = textfile_write,
    .show = procfs_show_text,
    .store = procfs_store_text,
    .destroy = procfs_node_destroy,
};

/* ---- symbolic links ---- */

static int
link_text(const struct vnode *vn, const char **text, struct vnode **to)
{
	const struct procfs_node *n = vn->data;

	if (n->error != 0 || n->text == NULL)
		return n->error != 0 ? n->error : -ENOMEM;
	*text = n->text;
	if (n->to != NULL)
		*to = vnode_ref(n->to);
	return 0;
}

static const struct vnode_ops link_ops = {.link = link_text, .destroy = procfs_node_destroy};

/* ---- directories ---- */

static struct vnode *dir_lookup(struct vnode *dir, const char *name, int *err);
static void dir_list(struct vnode *dir, uint64_t from, vnode_list_fn *add, void *arg);

static const struct vnode_ops dir_ops = {
    .lookup = dir_lookup,
    .list = dir_list,
    .destroy = procfs_node_destroy,
};

uint32_t
proc_of_dir(const struct vnode *vn, uint64_t *start_ns)
{
	const struct procfs_node *n = vn->data;

	if (vn->ops != &dir_ops || n->file != &procfs_pid)
		return 0;
	if (start_ns != NULL)
		*start_ns = n->start_ns;
	return n->pid;
}

/* Describes a name of dir. */
static bool
procfs_find(const struct procfs_node *dir, const char *name, struct procfs_node *child)
{
	const struct procfs_file *file = dir->file;

	*child = (struct procfs_node){.pid = dir->pid, .tid = dir->tid, .ui = proc_uidinfo()};
	for (size_t i = 0; i < file->count; i++) {
		child->file = &file->files[i];
		if (*child->file->name == *name && strcmp(child->file->name, name) == 0)
			return true;
	}
	child->file = NULL;
	return file->find != NULL && file->find(dir, name, child);
}

static struct vnode *
dir_lookup(struct vnode *dir, const char *name, int *err)
{
	struct procfs_node n;
	uint32_t uid = 0;
	struct vnode *vn;

	if (!procfs_find(dir->data, name, &n) || (n.pid != 0 && !procfs_user(n.pid, &uid))) {
		*err = -ENOENT;
		uidinfo_free(n.ui, n.text);
		return NULL;
	}
	n.syslog = capable(CAP_SYSLOG);
	if (n.file->link != NULL)
		n.error = n.file->link(&n);
	vn = vnode_make_nameless(dir, name, n.file->mode,
				 S_ISDIR(n.file->mode)   ? &dir_ops
				 : S_ISLNK(n.file->mode) ? &link_ops
				 : n.file->ops != NULL   ? n.file->ops
							 : &text_ops,
				 &n, sizeof(n));
	if (vn == NULL) {
		*err = -ENOMEM;
		vnode_unref(n.to);
		uidinfo_free(n.ui, n.text);
		return NULL;
	}
	vn->uid = uid;
	return vn;
}

struct listing {
	struct vnode *dir;
	vnode_list_fn *add;
	void *arg;
	uint64_t base; /* cookies of the other names come after this one */
};

static bool
list_one(void *arg, const char *name, uint32_t mode, uint64_t cookie)
{
	const struct listing *l = arg;

	return l->add(l->arg, name, mode, vnode_nameless_ino(l->dir, name), l->base + cookie);
}

static void
dir_list(struct vnode *dir, uint64_t from, vnode_list_fn *add, void *arg)
{
	const struct procfs_node *n = dir->data;
	struct listing l = {dir, add, arg, 0};

	for (; from < n->file->count; from++)
		if (!list_one(&l, n->file->files[from].name, n->file->files[from].mode, from + 1))
			return;
	l.base = n->file->count;
	if (n->file->list != NULL)
		n->file->list(n, from - l.base, list_one, &l);
}

/* ---- the top ---- */

static struct vnode *procfs_make(const struct mount_options *options, int *err);

static const struct vfs_type proc_type = {.name = "proc", .magic = PROC_MAGIC, .make = procfs_make};

static const struct procfs_file top_file = {.files = procfs_system_files,
					    .count = PROCFS_SYSTEM_FILES,
					    .find = procfs_pid_find,
					    .list = procfs_pid_list};
static struct procfs_node top = {.file = &top_file}; /* constant; of each procfs */

/* For mount(): one more procfs, wherever somebody wants it. */
static struct vnode *
procfs_make(const struct mount_options *options, int *err)
{
	struct vnode *vn = vnode_alloc(S_IFDIR | 0555, &dir_ops, &top);

	*err = -ENOMEM;
	if (vn != NULL)
		vn->fixed = true;
	return vn;
}

static void
procfs_init(void)
{
	struct vnode *root, *dir = NULL;
	int error;

	vnode_remove(NULL, "/proc", true); /* an archive may have brought a /proc to mount on */
	root = vnode_lookup(NULL, "/", &error);
	if (root != NULL)
		dir = vnode_add(root, "proc", S_IFDIR | 0555, &dir_ops, &top, &error);
	if (dir == NULL)
		panic("cannot make /proc: error %d", -error);
	dir->fixed = true;
	vfs_mount_at_boot(dir, &proc_type);
	vnode_unref(dir);
	vnode_unref(root);
}
HOOK(unpacked, procfs_init);
