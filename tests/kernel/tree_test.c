/*
 * tree_test.c - the tree of names while memory is short, and over a file system that is made for
 * that: what is on a disk is what the tree has.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/cache/pagecache.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uidinfo.h"
#include "tests/kernel/ktest.h"

/* Takes pages until memory is short, but for some. The first; each has the next one's address. */
static void *
take_memory(unsigned left)
{
	void **page, *taken = NULL;

	while (!uidinfo_memory_short() && (page = page_alloc(0, PAGE_OTHER)) != NULL) {
		*page = taken;
		taken = page;
	}
	for (; left > 0 && taken != NULL; left--) {
		page = taken;
		taken = *page;
		page_free(page, 0);
	}
	return taken;
}

static void
give_memory(void *taken)
{
	while (taken != NULL) {
		void **page = taken;

		taken = *page;
		page_free(page, 0);
	}
}

static int
make_error(const char *path, uint32_t mode)
{
	int err;

	vnode_unref(vnode_create(NULL, path, mode, &err));
	return err;
}

static struct vnode *
found(const char *path)
{
	int err;
	struct vnode *vn = vnode_lookup(NULL, path, &err);

	KT_EQ(err, 0);
	return vn;
}

/* ---- a file system that only counts what it is asked for ---- */

#define DISK_TIME 5 /* of its directories, ns */

static const struct vnode_ops disk_dir;
static unsigned changes;

static int
disk_load(struct vnode *dir)
{
	return 0;
}

static struct vnode *
disk_create(struct vnode *dir, const char *name, const struct vnode_kind *kind, int *err)
{
	changes++;
	dir->mtime_ns = DISK_TIME;
	*err = 0;
	return vnode_alloc(kind->mode, S_ISDIR(kind->mode) ? &disk_dir : &ramfs_file_ops, NULL);
}

static int
disk_change(struct vnode *dir, const char *name, struct vnode *vn)
{
	changes++;
	dir->mtime_ns = DISK_TIME;
	return 0;
}

static int
disk_rename(struct vnode *from, const char *name, struct vnode *vn, struct vnode *to,
	    const char *new, struct vnode *old, bool exchange)
{
	changes++;
	from->mtime_ns = to->mtime_ns = DISK_TIME;
	return 0;
}

static const struct vnode_ops disk_dir = {.load = disk_load,
					  .create = disk_create,
					  .enter = disk_change,
					  .leave = disk_change,
					  .rename = disk_rename};

KTEST(vfs_has_memory_for_a_name_before_a_disk_is_changed)
{
	struct vnode *tmp = found("/tmp"), *disk, *file;
	int err, made, linked, renamed;
	void *taken;

	disk = vnode_add(tmp, "disk", S_IFDIR | 0755, &disk_dir, NULL, &err);
	KT_EQ(err, 0);
	KT_EQ(make_error("/tmp/disk/d", S_IFDIR | 0755), 0);
	KT_EQ(make_error("/tmp/disk/d/in", S_IFDIR | 0755), 0);
	KT_EQ(make_error("/tmp/disk/f", S_IFREG | 0644), 0);
	file = found("/tmp/disk/f");
	changes = 0;
	taken = take_memory(0);
	made = make_error("/tmp/disk/new", S_IFREG | 0644);
	linked = vnode_link(file, NULL, "/tmp/disk/g");
	renamed = vnode_rename(NULL, "/tmp/disk/d", NULL, "/tmp/disk/e", 0);
	give_memory(taken);
	KT_EQ(made, -ENOSPC);
	KT_EQ(linked, -ENOSPC);
	KT_EQ(renamed, -ENOSPC);
	KT_EQ(changes, 0);
	vnode_unref(found("/tmp/disk/d/in"));
	KT_EQ(vnode_link(file, NULL, "/tmp/disk/g"), 0);
	KT_EQ(vnode_rename(NULL, "/tmp/disk/d", NULL, "/tmp/disk/e", 0), 0);
	KT_EQ(vnode_rename(NULL, "/tmp/disk/e", NULL, "/tmp/disk/g", RENAME_EXCHANGE), 0);
	KT_EQ(changes, 3);
	KT_EQ(vnode_remove(NULL, "/tmp/disk/g/in", true), 0);
	KT_EQ(vnode_remove(NULL, "/tmp/disk/g", true), 0);
	KT_EQ(vnode_remove(NULL, "/tmp/disk/e", false), 0);
	KT_EQ(vnode_remove(NULL, "/tmp/disk/f", false), 0);
	/* Its time is what the file system has set, and may have written already. */
	KT_EQ(disk->mtime_ns, DISK_TIME);
	vnode_unref(file);
	vnode_remove_name(disk);
	vnode_unref(disk);
	vnode_unref(tmp);
}

/* ---- directories that the kernel fills ---- */

static struct vnode *room;
static unsigned freed, freed_under_lock;

static void
count_free(struct vnode *vn)
{
	freed++;
	freed_under_lock += mutex_held(&vfs_lock);
}

static bool
is_stale(const struct vnode *vn, const char *name)
{
	return strcmp(name, "stale") == 0;
}

static void
fill_room(struct vnode *dir)
{
	vnode_sweep(dir, is_stale);
}

/* Whoever looks into this one makes the other one be filled again. */
static void
fill_other(struct vnode *dir)
{
	room->missing = true;
}

KTEST(vfs_rename_keeps_the_directory_that_it_has_found)
{
	static const struct vnode_ops counted = {.destroy = count_free};
	struct vnode *tmp = found("/tmp"), *other;
	int err;

	KT_EQ(make_error("/tmp/room", S_IFDIR | 0755), 0);
	KT_EQ(make_error("/tmp/room/stays", S_IFDIR | 0755), 0);
	KT_EQ(make_error("/tmp/other", S_IFDIR | 0755), 0);
	KT_EQ(make_error("/tmp/other/in", S_IFDIR | 0755), 0);
	room = found("/tmp/room");
	other = found("/tmp/other");
	vnode_unref(vnode_add(room, "stale", S_IFDIR | 0755, &counted, NULL, &err));
	KT_EQ(err, 0);
	room->fill = fill_room;
	other->fill = fill_other;
	other->missing = true;
	freed = freed_under_lock = 0;
	KT_EQ(vnode_rename(NULL, "/tmp/room/stale/x", NULL, "/tmp/other/in/../../room/stays/y", 0),
	      -ENOENT);
	KT_EQ(freed, 1);
	KT_EQ(freed_under_lock, 0);
	room->fill = other->fill = NULL;
	KT_EQ(vnode_remove(NULL, "/tmp/room/stays", true), 0);
	KT_EQ(vnode_remove(NULL, "/tmp/room", true), 0);
	KT_EQ(vnode_remove(NULL, "/tmp/other/in", true), 0);
	KT_EQ(vnode_remove(NULL, "/tmp/other", true), 0);
	vnode_unref(room);
	vnode_unref(other);
	vnode_unref(tmp);
}

/* Pages within the size would stay. */
KTEST(ramfs_an_allocation_of_more_than_all_memory_makes_no_page)
{
	uint64_t size = (page_count_total() + 1) * PAGE_SIZE;
	struct file *f = NULL;

	KT_EQ(file_open("/tmp/room", O_RDWR | O_CREAT, 0644, &f), 0);
	KT_EQ(vnode_truncate(f->vn, size), 0);
	KT_EQ(vnode_allocate(f->vn, 0, size, 0), -ENOSPC);
	KT_EQ(f->vn->page_count, 0);
	KT_EQ(vnode_size(f->vn), size);
	file_unref(f);
	KT_EQ(vnode_remove(NULL, "/tmp/room", false), 0);
}

KTEST(ramfs_an_allocation_that_fails_leaves_no_pages)
{
	struct file *f = NULL;
	bool first, last;
	void *taken;
	int error;

	KT_EQ(file_open("/tmp/room", O_RDWR | O_CREAT, 0644, &f), 0);
	KT_EQ(file_write(f, "text", 4), 4);
	taken = take_memory(64);
	error = vnode_allocate(f->vn, 0, 4096 * PAGE_SIZE, 0);
	first = pagecache_find(f->vn, 0, false) != NULL;
	last = pagecache_find(f->vn, 1, false) != NULL;
	give_memory(taken);
	KT_EQ(error, -ENOSPC);
	KT_ASSERT(first && !last);
	KT_EQ(vnode_size(f->vn), 4);
	file_unref(f);
	KT_EQ(vnode_remove(NULL, "/tmp/room", false), 0);
}
