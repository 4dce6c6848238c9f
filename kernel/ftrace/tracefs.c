/*
 * tracefs.c - files of text and directories of /sys/kernel/tracing (tracefs.h).
 *
 * Locking: ftrace_lock, around show (unless the file says otherwise), store and clear. It is taken
 * before vfs_lock, for uprobes that go, and so before all locks of vnodes.
 */
#include "kernel/ftrace/tracefs.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/statfs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/textfile.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/instance.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "ktr/word.h"

struct mutex ftrace_lock = MUTEX_INIT("ftrace");

static const struct tracefs_node *
node_of(const struct vnode *vn)
{
	return vn->data;
}

uintptr_t
tracefs_arg(const struct vnode *vn)
{
	return node_of(vn)->arg;
}

struct instance *
tracefs_instance(const struct vnode *vn)
{
	return node_of(vn)->instance;
}

static bool
tracefs_is_unlocked(const struct vnode *vn)
{
	return node_of(vn)->file->unlocked;
}

int
tracefs_begin(const struct vnode *vn)
{
	mutex_lock(&ftrace_lock);
	if (instance_is_there(tracefs_instance(vn)))
		return 0;
	mutex_unlock(&ftrace_lock);
	return -ENODEV;
}

void
tracefs_end(void)
{
	mutex_unlock(&ftrace_lock);
}

int
tracefs_hold(const struct vnode *vn)
{
	int error;

	if (tracefs_is_unlocked(vn))
		return 0;
	error = tracefs_begin(vn);
	if (error == 0) {
		tracefs_instance(vn)->users++;
		tracefs_end();
	}
	return error;
}

void
tracefs_release(const struct vnode *vn)
{
	if (!tracefs_is_unlocked(vn) && tracefs_begin(vn) == 0) {
		tracefs_instance(vn)->users--;
		tracefs_end();
	}
}

/* ---- files of text ---- */

static int
tracefs_show_text(struct vnode *vn, struct sbuf *out)
{
	int error = tracefs_is_unlocked(vn) ? 0 : tracefs_begin(vn);

	if (error != 0)
		return error;
	node_of(vn)->file->show(tracefs_instance(vn), tracefs_arg(vn), out);
	if (!tracefs_is_unlocked(vn))
		tracefs_end();
	return 0;
}

static char appeared[192]; /* the path of an event's directory that is not there yet */

void
tracefs_appears(const char *system, const char *event)
{
	snprintf(appeared, sizeof(appeared), "events/%s/%s", system, event);
}

/* Who looks for a name fills the directories on the way, which takes vfs_lock. */
static int
tracefs_store_text(struct vnode *vn, char *text)
{
	char path[sizeof(appeared)];
	int error = tracefs_begin(vn), missing;
	struct vnode *dir;

	if (error != 0)
		return error;
	error = node_of(vn)->file->store(tracefs_instance(vn), tracefs_arg(vn), text);
	strlcpy(path, appeared, sizeof(path));
	appeared[0] = '\0';
	tracefs_end();
	dir = path[0] != '\0' ? vnode_dir(vn) : NULL;
	if (dir != NULL) {
		vnode_unref(vnode_lookup(dir, path, &missing));
		vnode_unref(dir);
	}
	return error;
}

static int
text_clear(const struct vnode *vn)
{
	const struct tracefs_node *node = node_of(vn);
	int error;

	if (node->file->clear == NULL)
		return 0;
	error = tracefs_begin(vn);
	if (error == 0) {
		error = node->file->clear(node->instance, node->arg);
		tracefs_end();
	}
	return error;
}

static int
tracefs_text_open(struct file *f)
{
	const struct tracefs_file *file = node_of(f->vn)->file;
	int mode = f->flags & O_ACCMODE;
	int error;

	if ((mode != O_WRONLY && file->show == NULL) || (mode != O_RDONLY && file->store == NULL))
		return -EINVAL;
	error = tracefs_hold(f->vn);
	if (error != 0)
		return error;
	error = textfile_open(f);
	if (error == 0 && tracefs_opens_anew(f)) {
		error = text_clear(f->vn);
		if (error != 0)
			textfile_release(f);
	}
	if (error != 0)
		tracefs_release(f->vn);
	return error;
}

static void
text_release(struct file *f)
{
	const struct tracefs_node *node = node_of(f->vn);

	if (node->file->close != NULL && (f->flags & O_ACCMODE) != O_RDONLY &&
	    tracefs_begin(f->vn) == 0) {
		node->file->close(node->instance, node->arg);
		tracefs_end();
	}
	tracefs_release(f->vn);
	textfile_release(f);
}

bool
tracefs_opens_anew(const struct file *f)
{
	return (f->flags & O_TRUNC) && (f->flags & O_ACCMODE) != O_RDONLY;
}

int
tracefs_truncate(struct vnode *vn, uint64_t size)
{
	return 0;
}

void
tracefs_destroy(struct vnode *vn)
{
	kfree(vn->data);
}

#define TEXT_OPS(separator)                                                                       \
	{                                                                                         \
		.open = tracefs_text_open, .release = text_release, .read = textfile_read,        \
		.write = textfile_write, .truncate = tracefs_truncate, .show = tracefs_show_text, \
		.store = tracefs_store_text, .parts = (separator), .destroy = tracefs_destroy     \
	}

static const struct vnode_ops text_ops = TEXT_OPS(0), words_ops = TEXT_OPS(' '),
			      lines_ops = TEXT_OPS('\n');

static const struct vnode_ops *
tracefs_ops_of(const struct tracefs_file *file)
{
	if (file->ops != NULL)
		return file->ops;
	return file->parts == ' ' ? &words_ops : file->parts == '\n' ? &lines_ops : &text_ops;
}

/* ---- names ---- */

/* Makes a directory that fills itself. */
static __attribute__((noinline)) struct vnode *
tracefs_create_dir(const char *name, struct vnode *parent, const struct tracefs_file *file,
		   struct tracefs_node *node)
{
	struct vnode *vn = vnode_fill(parent, name, S_IFDIR | file->mode, file->ops, node);

	if (vn != NULL) {
		vn->fill = file->fill;
		vn->fixed = vn->missing = true;
	}
	return vn;
}

struct vnode *
tracefs_add(struct vnode *dir, const struct tracefs_file *file, const char *name, uintptr_t arg)
{
	const struct tracefs_node *parent = dir->data;
	struct tracefs_node *node;
	struct vnode *vn;

	if (vnode_has(dir, name))
		return NULL;
	node = kmalloc(sizeof(*node));
	if (node == NULL) {
		vnode_fill_failed(dir);
		return NULL;
	}
	*node = (struct tracefs_node){file, arg, parent != NULL ? parent->instance : &instance_top};
	vn = file->fill != NULL
		 ? tracefs_create_dir(name, dir, file, node)
		 : vnode_fill(dir, name, S_IFREG | file->mode, tracefs_ops_of(file), node);
	if (vn == NULL) {
		kfree(node);
		return NULL;
	}
	vn->stream = file->stream;
	vn->lock.innermost = true; /* ftrace_lock is taken before it */
	vn->uid = dir->uid;
	vn->gid = dir->gid;
	return vn;
}

void
tracefs_add_all(struct vnode *dir, const struct tracefs_file *files, size_t n, uintptr_t arg)
{
	for (size_t i = 0; i < n; i++)
		tracefs_add(dir, &files[i], files[i].name, arg);
}

/* ---- numbers ---- */

static void
number_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	const struct tracefs_number *n = (const struct tracefs_number *)arg;

	sbuf_printf(out, "%lu\n", __atomic_load_n(n->value, __ATOMIC_RELAXED) / n->unit);
}

static int
number_store(struct instance *i, uintptr_t arg, char *text)
{
	const struct tracefs_number *n = (const struct tracefs_number *)arg;
	uint64_t value;

	if (tracefs_number(text, &value) != 0 || value < n->min || value > n->max ||
	    (n->above != NULL && value < *n->above + n->apart) ||
	    (n->below != NULL && value + n->apart > *n->below))
		return -EINVAL;
	__atomic_store_n(n->value, value * n->unit, __ATOMIC_RELAXED);
	return 0;
}

void
tracefs_add_numbers(struct vnode *dir, const struct tracefs_number *numbers, size_t n)
{
	static const struct tracefs_file file =
	    TRACEFS_TEXT(NULL, 0640, number_show, number_store, NULL);

	for (size_t i = 0; i < n; i++)
		tracefs_add(dir, &file, numbers[i].name, (uintptr_t)&numbers[i]);
}

/* ---- words ---- */

char *
tracefs_trim(char *text)
{
	while (textfile_is_blank(*text))
		text++;
	for (size_t n = strlen(text); n > 0 && textfile_is_blank(text[n - 1]);)
		text[--n] = '\0';
	return text;
}

int
tracefs_lines(char *text, int (*command)(char *line))
{
	int error = 0;

	while (error == 0 && text != NULL && *text != '\0') {
		char *end = strchr(text, '\n'), *comment;

		if (end != NULL)
			*end++ = '\0';
		comment = strchr(text, '#');
		if (comment != NULL)
			*comment = '\0';
		text = tracefs_trim(text);
		if (*text != '\0')
			error = command(text);
		text = end;
	}
	return error;
}

char *
tracefs_word(char **text)
{
	char *p = *text, *word;

	while (textfile_is_blank(*p))
		p++;
	word = p;
	while (*p != '\0' && !textfile_is_blank(*p))
		p++;
	*text = p;
	if (p == word)
		return NULL;
	if (*p != '\0') {
		*p = '\0';
		*text = p + 1;
	}
	return word;
}

int
tracefs_number(const char *text, uint64_t *value)
{
	size_t n;

	while (textfile_is_blank(*text))
		text++;
	for (n = strlen(text); n > 0 && textfile_is_blank(text[n - 1]); n--)
		;
	return ktr_number(text, n, 0, value) == KTR_NUMBER_OK ? 0 : -EINVAL;
}

int
tracefs_bool(const char *text, bool *value)
{
	uint64_t number;
	int error = tracefs_number(text, &number);

	if (error == 0 && number > 1)
		error = -EINVAL;
	if (error == 0)
		*value = number == 1;
	return error;
}

/* ---- the tree ---- */

struct vnode *
tracefs_make_dir(struct vnode *parent, const char *name, uint32_t mode)
{
	int error;
	struct vnode *dir = vnode_add(parent, name, S_IFDIR | mode, NULL, NULL, &error);

	if (dir != NULL)
		dir->fixed = true;
	return dir != NULL ? dir : vnode_lookup(parent, name, &error);
}

/* Makes the root directory of a file system that fills itself. */
static struct vnode *
tracefs_make_root(void (*fill)(struct vnode *dir), int *err)
{
	struct vnode *dir = vnode_alloc_dir(0700);

	*err = dir != NULL ? 0 : -ENOMEM;
	if (dir != NULL) {
		dir->fill = fill;
		dir->uid = dir->gid = 0;
		dir->fixed = dir->missing = true;
	}
	return dir;
}

/* Each tracefs shows the same files, wherever it is mounted. */
static struct vnode *
tracefs_make(const struct mount_options *options, int *err)
{
	return tracefs_make_root(tracefs_fill_root, err);
}

static void
debugfs_fill(struct vnode *dir)
{
	static const struct tracefs_file dirs[] = {
	    {.name = "kprobes", .mode = 0755, .fill = kprobes_fill},
	    {.name = "tracing", .mode = 0700, .fill = tracefs_fill_root},
	};

	tracefs_add_all(dir, dirs, sizeof(dirs) / sizeof(dirs[0]), BUFFER_ALL);
}

static struct vnode *
debugfs_make(const struct mount_options *options, int *err)
{
	return tracefs_make_root(debugfs_fill, err);
}

/* Mounts a file system on a new directory of /sys/kernel. Programs may unmount and mount it. */
static void
tracefs_mount(struct vnode *kernel, const char *at, const struct vfs_type *type)
{
	struct vnode *dir = kernel != NULL ? tracefs_make_dir(kernel, at, 0700) : NULL;

	vfs_register_type(type);
	if (dir != NULL)
		dir->mount_point = true;
	if (dir == NULL ||
	    vfs_mount(dir, type->name, type->name, &(struct mount_options){0}, 0) != 0)
		pr_warn("cannot mount %s\n", type->name);
	vnode_unref(dir);
}

static void
tracefs_init(void)
{
	static const struct vfs_type sysfs = {.name = "sysfs", .magic = SYSFS_MAGIC};
	static const struct vfs_type debugfs = {.name = "debugfs",
						.magic = DEBUGFS_MAGIC,
						.make = debugfs_make,
						.owned = true};
	static const struct vfs_type tracefs = {.name = "tracefs",
						.magic = TRACEFS_MAGIC,
						.make = tracefs_make,
						.owned = true};
	int error;
	struct vnode *root = vnode_lookup(NULL, "/", &error);
	struct vnode *sys = root != NULL ? tracefs_make_dir(root, "sys", 0755) : NULL;
	struct vnode *kernel = NULL;

	if (sys != NULL) {
		vfs_mount_at_boot(sys, &sysfs);
		kernel = tracefs_make_dir(sys, "kernel", 0755);
		blk_make_files(sys);
		cpus_make_files(sys);
	}
	tracefs_mount(kernel, "debug", &debugfs);
	tracefs_mount(kernel, "tracing", &tracefs);
	vnode_unref(kernel);
	vnode_unref(sys);
	vnode_unref(root);
}
HOOK(booted, tracefs_init);
