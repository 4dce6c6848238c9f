/*
 * tracefs.c - files of text and directories of /sys/kernel/tracing (tracefs.h).
 *
 * A file's text is made at the first read of an open file, and at each later one from offset 0, as
 * Linux's seq_file does. Locking: ftrace_lock, around show and store.
 */
#include "kernel/ftrace/tracefs.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/file.h"
#include "kernel/fs/uio.h"
#include "kernel/ftrace/ftrace_private.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/page.h"
#include "ktr/word.h"

#define WRITE_MAX \
	(4 * PAGE_SIZE) /* of one write; longer ones are cut, and say how much they took */

#define WRITE_BLOCK 512u /* a write so long may be a part of a list */

struct mutex ftrace_lock = MUTEX_INIT("ftrace");

/* An open file, and its text if that was read. The lock guards both. */
struct reader {
	struct mutex lock;
	size_t len;
	char *text; /* of kmap_alloc(); NULL: none yet */
};

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

int
tracefs_begin(const struct vnode *vn)
{
	mutex_lock(&ftrace_lock);
	if (instance_is_there(tracefs_instance(vn))) {
		instance_now = tracefs_instance(vn);
		return 0;
	}
	mutex_unlock(&ftrace_lock);
	return -ENODEV;
}

void
tracefs_end(void)
{
	instance_now = &instance_top;
	mutex_unlock(&ftrace_lock);
}

int
tracefs_hold(const struct vnode *vn)
{
	int error = tracefs_begin(vn);

	if (error == 0) {
		instance_now->users++;
		tracefs_end();
	}
	return error;
}

void
tracefs_release(const struct vnode *vn)
{
	if (tracefs_begin(vn) == 0) {
		instance_now->users--;
		tracefs_end();
	}
}

/* ---- files of text ---- */

/* Makes the text, in memory that fits it. 0 or -ENOMEM. */
static int
make_text(struct reader *r, const struct vnode *vn)
{
	size_t room = PAGE_SIZE;
	struct sbuf out;

	do {
		kmap_free(r->text);
		r->text = kmap_alloc(room);
		if (r->text == NULL)
			return -ENOMEM;
		sbuf_init(&out, r->text, room);
		tracefs_begin(vn);
		node_of(vn)->file->show(tracefs_arg(vn), &out);
		tracefs_end();
		room = out.len + PAGE_SIZE; /* it may have grown when it is made again */
	} while (sbuf_is_cut(&out));
	r->len = out.len;
	return 0;
}

static int
text_open(struct file *f)
{
	const struct tracefs_file *file = node_of(f->vn)->file;
	int mode = f->flags & O_ACCMODE;
	struct reader *r;
	int error;

	if ((mode != O_WRONLY && file->show == NULL) || (mode != O_RDONLY && file->store == NULL))
		return -EINVAL;
	r = kzalloc(sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	mutex_init(&r->lock, "tracefs reader");
	f->priv = r;
	error = tracefs_hold(f->vn);
	if (error != 0)
		kfree(r);
	return error;
}

static void
text_release(struct file *f)
{
	struct reader *r = f->priv;

	tracefs_release(f->vn);
	kmap_free(r->text);
	kfree(r);
}

static int64_t
text_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	struct reader *r = f != NULL ? f->priv : NULL;
	size_t start = u->resid;
	int error = 0;

	if (r == NULL)
		return -EINVAL;
	mutex_lock(&r->lock);
	if (*off == 0 || r->text == NULL)
		error = make_text(r, vn);
	if (error == 0 && *off < r->len)
		error = uio_put(u, r->text + *off, start < r->len - *off ? start : r->len - *off);
	*off += start - u->resid;
	mutex_unlock(&r->lock);
	return start != u->resid ? (int64_t)(start - u->resid) : error;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/*
 * A program that copies a list writes it in blocks, which end anywhere. Of such a block only the
 * lines, or words, that are whole are taken: the program writes the rest again.
 */
static size_t
whole_words(const char *text, size_t n)
{
	size_t whole = n;

	while (n >= WRITE_BLOCK && whole > 0 && !is_blank(text[whole - 1]))
		whole--;
	return whole > 0 ? whole : n;
}

static int64_t
text_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	const struct tracefs_node *node = node_of(vn);
	size_t n = u->resid < WRITE_MAX ? u->resid : WRITE_MAX;
	char *text = kmalloc(n + 1);
	int error;

	(void)f;
	if (text == NULL)
		return -ENOMEM;
	error = uio_take(u, text, n);
	n = whole_words(text, n);
	text[n] = '\0';
	if (n > 0 && text[n - 1] == '\n')
		text[n - 1] = '\0';
	if (error == 0)
		error = tracefs_begin(vn);
	if (error == 0) {
		error = node->file->store(node->arg, text);
		tracefs_end();
	}
	kfree(text);
	if (error < 0)
		return error;
	*off += n;
	return (int64_t)n;
}

static int
text_truncate(struct vnode *vn, uint64_t size)
{
	const struct tracefs_node *node = node_of(vn);
	int error;

	if (size != 0 || node->file->clear == NULL)
		return 0;
	error = tracefs_begin(vn);
	if (error == 0) {
		error = node->file->clear(node->arg);
		tracefs_end();
	}
	return error;
}

void
tracefs_destroy(struct vnode *vn)
{
	kfree(vn->data);
}

static const struct vnode_ops text_ops = {
    .open = text_open,
    .release = text_release,
    .read = text_read,
    .write = text_write,
    .truncate = text_truncate,
    .destroy = tracefs_destroy,
};

/* ---- names ---- */

struct vnode *
tracefs_add(struct vnode *dir, const struct tracefs_file *file, const char *name, uintptr_t arg)
{
	const struct tracefs_node *parent = dir->data;
	struct tracefs_node *node = kmalloc(sizeof(*node));
	bool is_dir = file->fill != NULL;
	struct vnode *vn;

	if (node == NULL) {
		dir->missing = true;
		return NULL;
	}
	*node = (struct tracefs_node){file, arg, parent != NULL ? parent->instance : &instance_top};
	vn = vnode_fill(dir, name, (is_dir ? S_IFDIR : S_IFREG) | file->mode,
			file->ops != NULL ? file->ops
			: is_dir          ? NULL
					  : &text_ops,
			node);
	if (vn == NULL) {
		kfree(node);
		return NULL;
	}
	vn->fill = file->fill;
	vn->stream = file->stream;
	vn->uid = dir->uid;
	vn->fixed = vn->missing = is_dir;
	return vn;
}

void
tracefs_add_all(struct vnode *dir, const struct tracefs_file *files, size_t n, uintptr_t arg)
{
	for (size_t i = 0; i < n; i++)
		tracefs_add(dir, &files[i], files[i].name, arg);
}

/* ---- words ---- */

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
		while (*text == ' ' || *text == '\t')
			text++;
		for (size_t n = strlen(text); n > 0 && is_blank(text[n - 1]);)
			text[--n] = '\0';
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

	while (is_blank(*p))
		p++;
	word = p;
	while (*p != '\0' && !is_blank(*p))
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

	while (is_blank(*text))
		text++;
	for (n = strlen(text); n > 0 && is_blank(text[n - 1]); n--)
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

/* Makes a directory, or finds it. Returns it with a reference, or NULL. */
static struct vnode *
make_dir(struct vnode *parent, const char *name, uint32_t mode)
{
	int error;
	struct vnode *dir = vnode_add(parent, name, S_IFDIR | mode, NULL, NULL, &error);

	if (dir != NULL)
		dir->fixed = true;
	return dir != NULL ? dir : vnode_lookup(parent, name, &error);
}

static void
make_tracing(struct vnode *parent)
{
	struct vnode *dir = make_dir(parent, "tracing", 0700);

	if (dir != NULL) {
		dir->fill = tracefs_fill_root;
		dir->missing = true;
	}
	vnode_unref(dir);
}

static void
tracefs_init(void)
{
	int error;
	struct vnode *root = vnode_lookup(NULL, "/", &error);
	struct vnode *sys = root != NULL ? make_dir(root, "sys", 0755) : NULL;
	struct vnode *kernel = sys != NULL ? make_dir(sys, "kernel", 0755) : NULL;
	struct vnode *debug = kernel != NULL ? make_dir(kernel, "debug", 0700) : NULL;

	if (debug != NULL) {
		make_tracing(kernel);
		make_tracing(debug);
	} else {
		warnk("cannot make /sys/kernel/tracing\n");
	}
	vnode_unref(debug);
	vnode_unref(kernel);
	vnode_unref(sys);
	vnode_unref(root);
}
HOOK(booted, tracefs_init);
