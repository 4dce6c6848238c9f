/*
 * vname.c - names of the tree: the table by which they are found, and the lists of a directory's
 * names and of a vnode's. Locking: vfs_lock.
 *
 * The table is keyed by directory and name. The hash key is random, so that nobody can choose names
 * that all fall into one bucket. It grows by one bucket at a time, into which some names of another
 * one move: number n splits n minus the power of two below it. It never shrinks. Each part of it is
 * as large as all before it.
 */
#include "kernel/abi/stat.h"
#include "kernel/fs/fsnotify.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/random.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"

#define NAME_BUCKETS 4096u /* of the first part, a power of two */
#define NAME_PARTS   20
#define NAME_CHAIN   2 /* names of a bucket, on average */

static struct vname *first_names[NAME_BUCKETS];
static struct vname **name_part[NAME_PARTS] = {first_names};           /* [v] */
static uint32_t name_buckets = NAME_BUCKETS, name_half = NAME_BUCKETS; /* [v] */
static uint64_t name_count;                                            /* [v] */
static uint64_t name_key; /* constant after the first name */

/* Where a bucket is, in a part that there is. */
static struct vname **
name_bucket_at(uint32_t i)
{
	unsigned part = i < NAME_BUCKETS ? 0 : 32 - (unsigned)__builtin_clz(i / NAME_BUCKETS);

	return &name_part[part][part == 0 ? i : i - (NAME_BUCKETS << (part - 1))];
}

static struct vname **
name_bucket(uint32_t hash)
{
	uint32_t i = hash & (2 * name_half - 1);

	return name_bucket_at(i < name_buckets ? i : i - name_half);
}

/* Adds one bucket, if there are many names, and memory. */
static void
name_table_grow(void)
{
	uint32_t i = name_buckets;
	unsigned part = 32 - (unsigned)__builtin_clz(i / NAME_BUCKETS);
	struct vname **from, **to, *n;

	if (name_count < (uint64_t)NAME_CHAIN * i || part == NAME_PARTS)
		return;
	if (name_part[part] == NULL)
		name_part[part] = kzalloc((NAME_BUCKETS << (part - 1)) * sizeof(n));
	if (name_part[part] == NULL)
		return;
	from = name_bucket_at(i - name_half);
	to = name_bucket_at(i);
	while ((n = *from) != NULL) {
		if (n->hash & name_half) {
			*from = n->next;
			n->next = *to;
			*to = n;
		} else {
			from = &n->next;
		}
	}
	if (++name_buckets == 2 * name_half)
		name_half = name_buckets;
}

static uint32_t
name_hash(const struct vnode *dir, const char *name)
{
	uint64_t h;

	if (name_key == 0) {
		random_bytes(&name_key, sizeof(name_key));
		name_key |= 1;
	}
	h = dir->ino * name_key;
	for (; *name != '\0'; name++)
		h = (h ^ h >> 29 ^ (uint8_t)*name) * name_key;
	return (uint32_t)(h >> 32);
}

struct vname *
dir_find(const struct vnode *dir, const char *name)
{
	uint32_t hash = name_hash(dir, name);
	struct vname *n = *name_bucket(hash);

	while (n != NULL && (n->hash != hash || n->dir != dir || strcmp(n->text, name) != 0))
		n = n->next;
	return n;
}

/* The names are about to change. */
static void
check_vfs_lock(const char *name)
{
	if (!mutex_held(&vfs_lock))
		panic("the name %s is made or removed without vfs_lock", name);
}

struct vname *
vname_alloc(struct vnode *dir, const char *name)
{
	bool on_disk = vnode_is_cache(dir);
	struct uidinfo *ui = on_disk || dir->fill != NULL ? dir->ui : proc_uidinfo();
	size_t len = strlen(name) + 1;
	struct vname *n = NULL;

	if (!on_disk || !uidinfo_memory_short()) /* those of a disk are a cache */
		n = uidinfo_alloc(ui, sizeof(*n) + len);
	if (n == NULL)
		return NULL;
	memcpy(n->text, name, len);
	n->dir = dir;
	n->ui = ui;
	return n;
}

void
vname_free(struct vname *n)
{
	if (n != NULL)
		uidinfo_free(n->ui, n);
}

void
dir_touch(struct vnode *dir)
{
	if (!vnode_is_cache(dir))
		dir->mtime_ns = dir->ctime_ns = clock_real_now_ns();
}

void
vname_join(struct vname *n, struct vnode *vn)
{
	n->vn = vn;
	vn->name = n;
	list_append(&vn->names, &n->same);
	n->dir->dirs += S_ISDIR(vn->mode);
	vn->ctime_ns = clock_real_now_ns();
}

void
vname_part(struct vname *n)
{
	list_remove(&n->same);
	n->dir->dirs -= S_ISDIR(n->vn->mode);
	n->vn->ctime_ns = clock_real_now_ns();
}

void
vname_enter(struct vname *n, struct vnode *vn)
{
	struct vnode *dir = n->dir;
	struct vname **bucket;

	check_vfs_lock(n->text);
	n->hash = name_hash(dir, n->text);
	name_count++;
	name_table_grow();
	bucket = name_bucket(n->hash);
	n->next = *bucket;
	*bucket = n;
	n->cookie = DIR_COOKIE_FIRST + dir->next_cookie++;
	list_append(&dir->children, &n->sibling);
	dir_touch(dir);
	vn->links++;
	vn->dev = dir->dev;
	vname_join(n, vn);
	if (S_ISDIR(vn->mode))
		vn->parent = dir;
	tmpfs_join(vn, dir);
}

void
dir_take(struct vname *n)
{
	struct vname **at = name_bucket(n->hash);
	struct vnode *vn = n->vn;

	check_vfs_lock(n->text);
	name_count--;
	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	dir_touch(n->dir);
	if (n->dir->listed == n)
		n->dir->listed = NULL;
	list_remove(&n->sibling);
	vname_part(n);
	if (--vn->links == 0)
		tmpfs_lose_name(vn);
	if (vn->name == n) /* a rename may have just given the vnode another name */
		vn->name =
		    list_empty(&vn->names) ? NULL : list_entry(vn->names.prev, struct vname, same);
	if (vn->name == NULL)
		vn->parent = NULL;
}

void
dir_unlink(struct vname *n)
{
	dir_take(n);
	if (!fsnotify_keep_name(n))
		vname_free(n);
}

struct vname *
dir_next_below(const struct vnode *root, const struct vname *n)
{
	const struct vnode *dir = n != NULL ? n->vn : root;
	const struct list *next = dir->children.next;

	/* Where a directory ends, its own next sibling follows. */
	while (next == &dir->children && dir != root) {
		next = n->sibling.next;
		dir = n->dir;
		n = dir->name;
	}
	return next != &dir->children ? list_entry(next, struct vname, sibling) : NULL;
}
