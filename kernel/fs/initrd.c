/*
 * initrd.c - unpacks the loader's archives into the tree.
 *
 * Damaged parts are reported and left out; the rest is unpacked: some files are better than none.
 * Locking: none; boot, one thread.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/cpio.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/boot_info.h"
#include "ktr/ktr.h"

#define LINKS_MAX      32 /* files with several names of which some are still to come, at most */
#define COMPLAINTS_MAX 10

/* A file with several names. The archive has the data only with the last of them. */
struct link {
	struct vnode *vn; /* a reference; NULL: free */
	uint32_t ino;
	unsigned archive;
	uint32_t missing; /* names that are still to come */
};

struct unpack {
	const char *module;
	unsigned complaints, files;
	struct link links[LINKS_MAX];
};

static void PRINTF_LIKE(2, 3) initrd_complain(struct unpack *u, const char *fmt, ...)
{
	char text[192];
	va_list ap;

	if (u->complaints++ >= COMPLAINTS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pr_warn("%s: %s\n", u->module, text);
}

/* Makes the directories that path needs. */
static void
make_parents(const char *path)
{
	char part[PATH_MAX];
	int ignored; /* errors here are ignored: they show up when the file itself is made */

	for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		if ((size_t)(slash - path) >= sizeof(part))
			return;
		memcpy(part, path, (size_t)(slash - path));
		part[slash - path] = '\0';
		vnode_unref(vnode_create(NULL, part, S_IFDIR | 0755, &ignored));
	}
}

/* The file of which an earlier entry was a name, or NULL. */
static struct link *
link_find(struct unpack *u, const struct cpio_entry *e)
{
	for (unsigned i = 0; i < LINKS_MAX; i++) {
		struct link *l = &u->links[i];

		if (l->vn != NULL && l->ino == e->ino && l->archive == e->archive)
			return l;
	}
	return NULL;
}

/* Makes a vnode for an entry, or one more name of a file. Replaces what had the name before. */
static struct vnode *
make_node(const struct cpio_entry *e, const struct link *l, int *err)
{
	uint32_t mode = e->mode & (S_IFMT | 07777);
	struct vnode *vn = vnode_lookup_link(NULL, e->name, err);

	if (vn != NULL && S_ISDIR(vn->mode) && S_ISDIR(mode))
		return vn;
	if (vn != NULL) {
		*err = vnode_remove(NULL, e->name, S_ISDIR(vn->mode));
		vnode_unref(vn);
		if (*err < 0)
			return NULL;
	}
	make_parents(e->name);
	if (l != NULL) {
		*err = vnode_link(l->vn, NULL, e->name);
		return *err == 0 ? vnode_ref(l->vn) : NULL;
	}
	if (S_ISLNK(mode)) {
		char to[PATH_MAX];

		memcpy(to, e->data, e->size);
		to[e->size] = '\0';
		vn = vfs_symlink(NULL, e->name, to, err);
	} else {
		vn = vnode_create(NULL, e->name, mode, err);
	}
	if (vn != NULL) {
		vn->uid = e->uid;
		vn->gid = e->gid;
	}
	return vn;
}

static void
initrd_fill(struct unpack *u, struct vnode *vn, const struct cpio_entry *e)
{
	struct uio_vec v;
	struct uio io;
	uint64_t off = 0;
	int64_t n;

	uio_init(&io, &v, UIO_KERNEL, e->data, e->size);
	n = vn->ops->write(vn, NULL, &io, &off);
	if (n != (int64_t)e->size)
		initrd_complain(u, "%s: %lu of %lu bytes kept, error %d", e->name, off, e->size,
				n < 0 ? (int)-n : ENOSPC);
	CTR2(KTR_VFS, "cpio file: name %s size %lu", vfs_trace_name(e->name), e->size);
}

/* Remembers a file until its other names have come. Takes over the reference. */
static void
link_add(struct unpack *u, struct vnode *vn, const struct cpio_entry *e)
{
	for (unsigned i = 0; i < LINKS_MAX; i++)
		if (u->links[i].vn == NULL) {
			u->links[i] = (struct link){vn, e->ino, e->archive, e->nlink - 1};
			return;
		}
	initrd_complain(u, "%s: more than %d files with hard links wait for their other names",
			e->name, LINKS_MAX);
	vnode_unref(vn);
}

static void
unpack_entry(struct unpack *u, const struct cpio_entry *e)
{
	struct vnode *vn;
	struct link *l;
	int error;

	if (e->name[0] == '\0')
		return; /* the root exists already */
	if (!S_ISREG(e->mode) && !S_ISDIR(e->mode) && !S_ISLNK(e->mode)) {
		initrd_complain(u, "%s: mode %#o, expected a file, a directory or a symbolic link",
				e->name, e->mode);
		return;
	}
	if (S_ISLNK(e->mode) && (e->size == 0 || e->size >= PATH_MAX)) {
		initrd_complain(u, "%s: a symbolic link of %lu bytes, expected 1 to %d", e->name,
				e->size, PATH_MAX - 1);
		return;
	}
	l = S_ISREG(e->mode) && e->nlink > 1 ? link_find(u, e) : NULL;
	vn = make_node(e, l, &error);
	if (vn == NULL) {
		initrd_complain(u, "%s: error %d", e->name, -error);
		return;
	}
	u->files++;
	if (S_ISREG(e->mode) && e->size > 0)
		initrd_fill(u, vn, e);
	if (l != NULL && --l->missing == 0) {
		vnode_unref(l->vn);
		l->vn = NULL;
	}
	if (l == NULL && S_ISREG(e->mode) && e->nlink > 1)
		link_add(u, vnode_ref(vn), e);
	vnode_unref(vn);
}

void
vfs_unpack(const struct boot_module *m)
{
	struct unpack u = {.module = m->name[0] != '\0' ? m->name : "initrd"};
	struct cpio_entry e;
	struct cpio c;
	int got;

	cpio_init(&c, m->data, m->size);
	while ((got = cpio_next(&c, &e)) != 0) {
		if (got > 0)
			unpack_entry(&u, &e);
		else
			initrd_complain(&u, "offset %lu: expected %s", c.error_at, c.expected);
	}
	/* The archive lacks names of what is left. */
	for (unsigned i = 0; i < LINKS_MAX; i++)
		vnode_unref(u.links[i].vn);
	if (u.complaints > COMPLAINTS_MAX)
		pr_warn("%s: %u more complaints\n", u.module, u.complaints - COMPLAINTS_MAX);
	printk("%s: %u files and directories\n", u.module, u.files);
	CTR2(KTR_INIT, "unpack: bytes %lu files %u", m->size, u.files);
}
