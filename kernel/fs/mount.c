/*
 * mount.c - file systems in the tree: those that the kernel mounts at boot, and those of mount().
 *
 * The root of a file system that is mounted has the name and the parent of the directory that it
 * covers, so paths and ".." need no special case; a walk goes on at the root (vfs_walk.c).
 * Locking: the list of mounts is changed under mounts_lock and vfs_lock, and read under either.
 * mounts_lock comes first. What a file system does under it may wait for a disk: paths are walked
 * meanwhile.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/stat.h"
#include "kernel/abi/statfs.h"
#include "kernel/fs/fsnotify.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "ktr/ktr.h"

#define SOURCE_MAX 64

struct mount {
	struct list link;
	const struct vfs_type *type;
	uint32_t dev;          /* of all its vnodes */
	struct vnode *root;    /* a reference */
	struct vnode *covered; /* a reference; NULL: mounted at boot, and never unmounted */
	unsigned flags;        /* atomic: those of vfs_mount_flags(), and MS_ATIMES */
	char source[SOURCE_MAX];
};

static struct mutex mounts_lock = MUTEX_INIT("mounts");
static struct list mounts = LIST_INIT(mounts);
static uint32_t last_dev;   /* vfs_lock */
static unsigned flags_seen; /* atomic: flags that a mount has, or had */
#define TYPES_MAX 8
static const struct vfs_type *types[TYPES_MAX]; /* mounted or not; constant after boot */

static struct mount *
mount_alloc(struct vnode *root, const struct vfs_type *type, const char *source)
{
	struct mount *m = kzalloc(sizeof(*m));

	if (m == NULL)
		return NULL;
	m->type = type;
	m->root = root;
	strlcpy(m->source, source, sizeof(m->source));
	return m;
}

static void
mounts_begin(void)
{
	mutex_lock(&mounts_lock);
	mutex_lock(&vfs_lock);
}

static void
mounts_end(void)
{
	mutex_unlock(&vfs_lock);
	mutex_unlock(&mounts_lock);
}

/* mounts_lock is held, and not vfs_lock: so unmounting does not take what is freed for in use. */
static void
free_and_end(struct list *gone)
{
	mutex_unlock(&vfs_lock);
	names_free(gone);
	mutex_unlock(&mounts_lock);
}

/* Both locks held. */
static void
mount_join(struct mount *m)
{
	m->dev = m->root->dev = ++last_dev;
	list_append(&mounts, &m->link);
}

void
vfs_mount_at_boot(struct vnode *root, const struct vfs_type *type)
{
	struct mount *m = mount_alloc(vnode_ref(root), type, type->name);

	tmpfs_leave(root); /* that of the directory which it was */
	if (m == NULL || (type == &tmpfs_type && tmpfs_begin(root) != 0))
		panic("no memory to mount %s", type->name);
	mounts_begin();
	mount_join(m);
	mounts_end();
}

/* One of the locks held. */
static struct mount *
mount_of(const struct vnode *vn)
{
	list_for_each_entry (struct mount, m, &mounts, link)
		if (m->dev == vn->dev)
			return m;
	return NULL;
}

void
vfs_register_type(const struct vfs_type *type)
{
	unsigned i = 0;

	while (i < TYPES_MAX - 1 && types[i] != NULL)
		i++;
	types[i] = type;
}

const struct vfs_type *
vfs_find_type(const char *name)
{
	const struct vfs_type *type = NULL;

	for (unsigned i = 0; i < TYPES_MAX && types[i] != NULL; i++)
		if (strcmp(types[i]->name, name) == 0)
			return types[i];
	mutex_lock(&vfs_lock);
	list_for_each_entry (const struct mount, m, &mounts, link)
		if (strcmp(m->type->name, name) == 0)
			type = m->type;
	mutex_unlock(&vfs_lock);
	return type;
}

/* Both locks held. */
static int
mount_cover(struct vnode *dir, struct mount *m)
{
	if (!S_ISDIR(dir->mode))
		return -ENOTDIR;
	while (dir->cover != NULL) /* a walk to "." has not gone on to what covers the directory */
		dir = dir->cover;
	if (dir->parent == NULL)
		return -ENOENT;
	/* What the kernel has filled stays to be seen. */
	if ((dir->fixed && !dir->mount_point) || dir->parent == dir)
		return -EBUSY;
	m->covered = vnode_ref(dir);
	m->root->name = dir->name;
	m->root->parent = dir->parent;
	dir->cover = m->root;
	mount_join(m);
	return 0;
}

/* Both locks held. */
static int
replace_root(struct mount *m)
{
	m->root->parent = m->root;
	mount_join(m);
	vfs_root = m->root;
	return 0;
}

static void
mount_set_flags(struct mount *m, unsigned flags)
{
	unsigned kept = flags & (MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOSYMFOLLOW);

	__atomic_fetch_or(&flags_seen, kept, __ATOMIC_RELAXED);
	if (flags & (MS_ATIMES | MS_STRICTATIME))
		kept |= flags & MS_STRICTATIME ? flags & MS_NODIRATIME : flags & MS_ATIMES;
	else /* a remount that says nothing of it */
		kept |= m->flags & MS_ATIMES;
	__atomic_store_n(&m->flags, kept, __ATOMIC_RELAXED);
}

unsigned
mount_flags_of(const struct vnode *vn)
{
	unsigned seen = __atomic_load_n(&flags_seen, __ATOMIC_RELAXED);
	const struct mount *m = seen != 0 ? mount_of(vn) : NULL;

	/* What is open still of a mount that was detached: what any mount forbids, but not to
	 * follow links. Pipes have no `dev`. */
	return m != NULL ? m->flags : vn->dev != 0 ? seen & ~(unsigned)MS_NOSYMFOLLOW : 0;
}

unsigned
vfs_mount_flags(const struct vnode *vn)
{
	unsigned flags;

	if (__atomic_load_n(&flags_seen, __ATOMIC_RELAXED) == 0)
		return 0;
	mutex_lock(&vfs_lock);
	flags = mount_flags_of(vn);
	mutex_unlock(&vfs_lock);
	return flags;
}

/* Whose the files are that are there, and the root's mode, as far as mount() was told. */
static void
mount_own(struct vnode *root, const struct mount_options *o)
{
	struct vnode *vn = root;
	struct vname *n = NULL;

	mutex_lock(&vfs_lock);
	if (o->has_mode)
		__atomic_store_n(&root->mode, (root->mode & S_IFMT) | o->mode, __ATOMIC_RELAXED);
	while (vn != NULL) {
		if (o->has_uid)
			__atomic_store_n(&vn->uid, o->uid, __ATOMIC_RELAXED);
		if (o->has_gid)
			__atomic_store_n(&vn->gid, o->gid, __ATOMIC_RELAXED);
		n = dir_next_below(root, n);
		vn = n != NULL ? n->vn : NULL;
	}
	mutex_unlock(&vfs_lock);
}

int
vfs_mount(struct vnode *dir, const char *type_name, const char *source,
	  const struct mount_options *options, unsigned flags)
{
	const struct vfs_type *type = vfs_find_type(type_name);
	bool read_only = flags & MS_RDONLY;
	struct vnode *root;
	struct mount *m;
	int error = 0;

	if (type == NULL)
		return -ENODEV;
	if (type->make == NULL && type->mount == NULL)
		return -EBUSY; /* there is one, and it is mounted */
	if ((read_only && type->remount == NULL) ||
	    (type->mount != NULL && (source == NULL || *source == '\0')))
		return -EINVAL;
	root = type->mount != NULL ? type->mount(source, read_only, &error)
				   : type->make(options, &error);
	if (root == NULL)
		return error;
	if (type->mount == NULL && read_only)
		type->remount(root, true);
	if (type->owned)
		mount_own(root, options);
	m = mount_alloc(root, type, source != NULL ? source : "none");
	if (m != NULL) {
		mount_set_flags(m, flags);
		mounts_begin();
		error = dir != NULL ? mount_cover(dir, m) : replace_root(m);
		mounts_end();
	}
	CTR2(KTR_VFS, "mount: type %s error %d", type->name, m != NULL ? -error : ENOMEM);
	if (m != NULL && error == 0)
		return 0;
	kfree(m);
	vnode_unref(root);
	return error != 0 ? error : -ENOMEM;
}

int
vfs_mount_path(const char *path, const char *type, const char *source, unsigned flags)
{
	char at[PATH_MAX];
	struct vnode *dir;
	int made = 0, error;

	for (const char *p = path; p != NULL;) {
		p = strchr(p + 1, '/');
		strlcpy(at, path,
			p == NULL || (size_t)(p - path) >= sizeof(at) ? sizeof(at)
								      : (size_t)(p - path) + 1);
		error = 0;
		vnode_unref(vnode_create(NULL, at, S_IFDIR | 0755, &error));
		made = error != 0 && error != -EEXIST ? error : made;
	}
	dir = vnode_lookup(NULL, path, &error);
	if (dir == NULL)
		return made != 0 ? made : error;
	error = vfs_mount(dir, type, source, &(struct mount_options){0}, flags);
	vnode_unref(dir);
	return error;
}

/* Is something mounted on a directory of m? */
static bool
has_mount(const struct mount *m)
{
	list_for_each_entry (const struct mount, other, &mounts, link)
		if (other->covered != NULL && mount_of(other->covered) == m)
			return true;
	return false;
}

/* Does somebody use the root, of which we have `own` references, or another vnode? */
static bool
is_busy(const struct mount *m, uint32_t own)
{
	const struct vnode *root = m->root;

	if (__atomic_load_n(&root->refs, __ATOMIC_RELAXED) != own ||
	    (m->type->in_use != NULL && m->type->in_use(root)))
		return true;
	for (const struct vname *n = NULL; (n = dir_next_below(root, n)) != NULL;)
		if (__atomic_load_n(&n->vn->refs, __ATOMIC_RELAXED) != n->vn->links)
			return true;
	return false;
}

/* Ends all watches in what is unmounted. vfs_lock held. */
static void
unmount_notify(struct vnode *root)
{
	if (!fsnotify_active())
		return;
	fsnotify_end(root, IN_UNMOUNT | IN_ISDIR);
	for (const struct vname *n = NULL; (n = dir_next_below(root, n)) != NULL;)
		fsnotify_end(n->vn, IN_UNMOUNT | (S_ISDIR(n->vn->mode) ? IN_ISDIR : 0));
}

/* Somebody who is in a directory of it may still list that. vfs_lock held. */
static void
unmount_mark(struct vnode *root)
{
	root->detached = true;
	for (const struct vname *n = NULL; (n = dir_next_below(root, n)) != NULL;)
		n->vn->detached = true;
}

/* Moves the names of m that are leaving to `gone`; their vnodes are in use until they are freed.
 * False if there are none. Both locks held. */
static bool
take_leaving(const struct mount *m, struct list *gone)
{
	list_for_each_entry_safe (struct vname, n, &names_leaving, sibling)
		if (n->vn->dev == m->dev) {
			list_remove(&n->sibling);
			list_append(gone, &n->sibling);
		}
	return !list_empty(gone);
}

int
vfs_unmount(struct vnode *root, bool detach)
{
	struct list gone = LIST_INIT(gone);
	struct vnode *covered = NULL;
	struct mount *m;
	int lost = vnode_sync(root), error = 0;

	mounts_begin();
	while ((m = mount_of(root)) != NULL && take_leaving(m, &gone)) {
		free_and_end(&gone);
		mounts_begin(); /* more may be leaving now */
	}
	if (m == NULL || m->root != root) {
		error = -EINVAL;
	} else if (m->covered == NULL || has_mount(m) ||
		   (!detach && is_busy(m, 2))) { /* ours, the caller's */
		error = -EBUSY;
	} else {
		covered = m->covered;
		covered->cover = NULL;
		root->name = NULL;
		root->parent = NULL;
		unmount_notify(root);
		unmount_mark(root);
		dir_empty(root, &gone);
		list_remove(&m->link);
	}
	mounts_end();
	CTR1(KTR_VFS, "unmount: error %d", -error);
	if (error != 0)
		return error;
	names_free(&gone);
	kfree(m);
	vnode_unref(root);
	vnode_unref(covered);
	return lost;
}

void
vfs_drop_first_root(struct vnode *root)
{
	struct list gone = LIST_INIT(gone);
	struct mount *m;

	mounts_begin();
	m = mount_of(root);
	root->parent = NULL;
	dir_empty(root, &gone);
	list_remove(&m->link);
	mounts_end();
	names_free(&gone);
	kfree(m);
	vnode_unref(root); /* the mount's reference */
	vnode_unref(root); /* vfs_init()'s */
}

bool
vfs_stop_writing(bool *read_only, bool (*is_used)(void *arg), void *arg)
{
	if (__atomic_load_n(read_only, __ATOMIC_RELAXED))
		return true;
	/* Most users are seen here, so that nobody whose write goes on is refused in vain. */
	if (is_used(arg))
		return false;
	__atomic_store_n(read_only, true, __ATOMIC_SEQ_CST);
	/* pairs with the fence in vnode_write_begin() */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!is_used(arg))
		return true;
	__atomic_store_n(read_only, false, __ATOMIC_RELAXED);
	return false;
}

int
vfs_remount(struct vnode *root, const struct mount_options *options, unsigned flags)
{
	bool read_only = flags & MS_RDONLY;
	struct mount *m;
	int error = -EINVAL;

	mutex_lock(&mounts_lock);
	m = mount_of(root);
	if (m != NULL && m->root == root)
		error = m->type->remount != NULL ? m->type->remount(root, read_only)
			: read_only              ? -EINVAL
						 : 0;
	if (error == 0)
		mount_set_flags(m, flags);
	if (error == 0 && m->type->owned)
		mount_own(root, options);
	mutex_unlock(&mounts_lock);
	return error;
}

void
vfs_statfs(struct vnode *vn, struct statfs *s)
{
	const struct mount *m;

	mutex_lock(&mounts_lock);
	m = mount_of(vn);
	if (m != NULL && m->type->statfs != NULL)
		m->type->statfs(m->root, s);
	if (m != NULL)
		s->f_flags = ST_VALID | (m->flags & ~(unsigned)(MS_RELATIME | MS_NOSYMFOLLOW)) |
			     (m->flags & MS_RELATIME ? ST_RELATIME : 0) |
			     (m->flags & MS_NOSYMFOLLOW ? ST_NOSYMFOLLOW : 0) |
			     (vnode_read_only(m->root) ? MS_RDONLY : 0);
	mutex_unlock(&mounts_lock);
}

/* Is only the tree interested in what the name leads to? vfs_lock held. */
static bool
name_is_idle(const struct vname *n)
{
	const struct vnode *vn = n->vn;

	/* acquire: whoever adds a watch keeps a reference until the watch is there */
	return list_empty(&vn->children) && vn->cover == NULL &&
	       __atomic_load_n(&vn->refs, __ATOMIC_ACQUIRE) == vn->links &&
	       __atomic_load_n(&vn->marks, __ATOMIC_RELAXED) == NULL;
}

unsigned
dir_forget(struct vnode *dir, struct list *gone, unsigned most)
{
	unsigned some = 0;

	list_for_each_entry_safe (struct vname, n, &dir->children, sibling) {
		if (some == most)
			break;
		if (!name_is_idle(n))
			continue;
		dir_take(n);
		list_append(gone, &n->sibling);
		dir->missing = true;
		some++;
	}
	return some;
}

/* Forgets some names. False: there are no more. */
static bool
trim_some(void)
{
	struct list gone;
	unsigned some = 0;

	mounts_begin();
	list_move_all(&names_leaving, &gone);
	list_for_each_entry (const struct mount, m, &mounts, link) {
		if (m->type->crowded == NULL || !m->type->crowded(m->root))
			continue;
		for (const struct vname *n = NULL;
		     some < NAMES_AT_ONCE && (n = dir_next_below(m->root, n)) != NULL;)
			if (S_ISDIR(n->vn->mode) && vnode_is_cache(n->vn) &&
			    __atomic_load_n(&n->vn->refs, __ATOMIC_RELAXED) == n->vn->links)
				some += dir_forget(n->vn, &gone, NAMES_AT_ONCE - some);
	}
	free_and_end(&gone);
	return some == NAMES_AT_ONCE;
}

void
vfs_trim(void)
{
	while (trim_some()) /* others may mount meanwhile, and ask how full a file system is */
		;
}

const struct vfs_type *
vfs_type_of(const struct vnode *vn)
{
	const struct mount *m;
	const struct vfs_type *type;

	mutex_lock(&vfs_lock);
	m = mount_of(vn);
	type = m != NULL ? m->type : NULL;
	mutex_unlock(&vfs_lock);
	return type;
}

/* Prints a path as /proc/mounts does: blanks in names are octal. */
static void
print_name(struct sbuf *out, const char *name)
{
	for (; *name != '\0'; name++) {
		if (*name == ' ' || *name == '\t' || *name == '\n' || *name == '\\')
			sbuf_printf(out, "\\%03o", (unsigned)(uint8_t)*name);
		else
			sbuf_putc(out, *name);
	}
}

static void
mount_print_flags(struct sbuf *out, const struct mount *m)
{
	static const struct {
		unsigned flag;
		const char *text;
	} flags[] = {{MS_NOSUID, ",nosuid"},          {MS_NODEV, ",nodev"},
		     {MS_NOEXEC, ",noexec"},          {MS_NOATIME, ",noatime"},
		     {MS_NODIRATIME, ",nodiratime"},  {MS_RELATIME, ",relatime"},
		     {MS_NOSYMFOLLOW, ",nosymfollow"}};

	sbuf_puts(out, vnode_read_only(m->root) ? "ro" : "rw");
	for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (m->flags & flags[i].flag)
			sbuf_puts(out, flags[i].text);
}

/* A line of mountinfo. vfs_lock held. */
static void
mount_print_info(struct sbuf *out, const struct mount *m, const char *path)
{
	sbuf_printf(out, "%u %u %u:%u / ", m->dev, m->covered != NULL ? m->covered->dev : 0,
		    STAT_MAJOR(m->dev), STAT_MINOR(m->dev));
	print_name(out, path);
	sbuf_putc(out, ' ');
	mount_print_flags(out, m);
	sbuf_printf(out, " - %s ", m->type->name);
	print_name(out, m->source);
	sbuf_printf(out, " %s\n", vnode_read_only(m->root) ? "ro" : "rw");
}

int
vfs_print_mounts(struct sbuf *out, bool info)
{
	char *path = kmalloc(PATH_MAX);

	if (path == NULL)
		return -ENOMEM;
	mutex_lock(&vfs_lock);
	list_for_each_entry (const struct mount, m, &mounts, link) {
		bool outside;

		if (vnode_path_locked(m->root, path, PATH_MAX, &outside) < 0 || outside)
			continue;
		if (info) {
			mount_print_info(out, m, path);
			continue;
		}
		print_name(out, m->source);
		sbuf_putc(out, ' ');
		print_name(out, path);
		sbuf_printf(out, " %s ", m->type->name);
		mount_print_flags(out, m);
		sbuf_puts(out, " 0 0\n");
	}
	mutex_unlock(&vfs_lock);
	kfree(path);
	return 0;
}
