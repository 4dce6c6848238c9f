/* mount.c - ext2 on a device: blocks in its cache, mounting, the end (node.h). */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/statfs.h"
#include "kernel/block/bio.h"
#include "kernel/fs/bdev.h"
#include "kernel/fs/ext2/node.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"
#include "kernel/proc/task.h"
#include "ktr/ktr.h"

#define END_TRIES 8 /* passes that end writing, while programs leave pages to be written */

static struct ext2_mount *
mount_of_fs(struct ext2_fs *fs)
{
	return container_of(fs, struct ext2_mount, fs);
}

/* ---- what ext2.h wants of the kernel ---- */

/* The page of a block's device, and its sectors there. */
static struct vnode *
find_block(struct ext2_fs *fs, uint32_t block, uint64_t *at, uint8_t *sectors)
{
	*at = (uint64_t)block << fs->block_shift;
	*sectors = pagecache_sectors(*at % PAGE_SIZE, fs->block_size);
	return mount_of_fs(fs)->bdev->vn;
}

static void *
get_block(struct ext2_fs *fs, uint32_t block, int *err,
	  int (*get)(struct vnode *vn, uint64_t index, uint8_t sectors, void **page))
{
	uint64_t at;
	uint8_t sectors;
	struct vnode *vn = find_block(fs, block, &at, &sectors);
	void *page;

	*err = block < fs->blocks ? get(vn, at / PAGE_SIZE, sectors, &page)
				  : ext2_error(fs, "the number of a block", block);
	return *err == 0 ? (char *)page + at % PAGE_SIZE : NULL;
}

void *
ext2_bread(struct ext2_fs *fs, uint32_t block, int *err)
{
	return get_block(fs, block, err, pagecache_get);
}

void *
ext2_getblk(struct ext2_fs *fs, uint32_t block, int *err)
{
	return get_block(fs, block, err, pagecache_get_zero);
}

void
ext2_brelse(void *block)
{
	if (block != NULL)
		page_unref((void *)page_round_down((uintptr_t)block));
}

void
ext2_bdirty(struct ext2_fs *fs, void *at, size_t size)
{
	uint64_t page = page_round_down((uintptr_t)at);

	pagecache_dirty((void *)page, pagecache_sectors((uintptr_t)at - page, size));
}

void
ext2_bforget(struct ext2_fs *fs, uint32_t block)
{
	uint64_t at;
	uint8_t sectors;
	struct vnode *vn = find_block(fs, block, &at, &sectors);

	pagecache_forget(vn, at / PAGE_SIZE, sectors);
}

bool
ext2_may_use_reserve(void)
{
	return proc_user() == 0;
}

uint32_t
ext2_seconds(void)
{
	return ext2_time(clock_real_now_ns() / 1000000000);
}

void
ext2_warn(struct ext2_fs *fs, const char *what, uint64_t number)
{
	pr_warn("ext2: %s: %s is wrong: %lu; it is read-only now\n", mount_of_fs(fs)->bdev->name,
		what, number);
}

/* ---- mounting ---- */

/* What could not be written to the device may be anything. */
static void
check_device(struct ext2_mount *m)
{
	if (writeback_error(m->bdev->vn, &m->io_heard) != 0 && ext2_set_broken(&m->fs))
		pr_warn("ext2: %s: a write failed; it is read-only now\n", m->bdev->name);
}

int
ext2_mount_error(struct ext2_mount *m)
{
	int error;

	mutex_lock(&m->lock);
	check_device(m);
	error = m->fs.lost ? -EIO : m->error;
	mutex_unlock(&m->lock);
	return error;
}

/* For vfs_stop_writing(): is a file open for writing, or without a name? Or is a page dirty? It may
 * need blocks; nobody makes more of them dirty while the file system is read-only. */
static bool
is_used(void *arg)
{
	struct ext2_mount *m = arg;

	for (unsigned i = 0; i < EXT2_BUCKETS; i++)
		for (const struct ext2_node *n = m->bucket[i]; n != NULL; n = n->next)
			if (n->i.links == 0 ||
			    __atomic_load_n(&n->vn->writers, __ATOMIC_RELAXED) > 0)
				return true;
	if (!pagecache_is_dirty(&m->fs.read_only))
		return false;
	m->unwritten = true;
	return true;
}

/* As vfs_type.in_use. */
static bool
ext2_in_use(const struct vnode *root)
{
	struct ext2_mount *m = ext2_node(root)->m;
	bool found = false;

	mutex_lock(&m->lock);
	for (unsigned i = 0; i < EXT2_BUCKETS && !found; i++)
		for (const struct ext2_node *n = m->bucket[i]; n != NULL; n = n->next)
			found |= n->vn->links == 0 && n->vn != root;
	mutex_unlock(&m->lock);
	return found;
}

/* Frees the files without names, which are open, and what is being cut off of others. */
static int
finish_files(struct ext2_mount *m)
{
	int error = 0;

	for (unsigned i = 0; i < EXT2_BUCKETS; i++)
		for (struct ext2_node *n = m->bucket[i]; n != NULL && error == 0; n = n->next) {
			do
				error = n->i.links == 0 ? ext2_delete_inode(&m->fs, &n->i) : 0;
			while (error == -EAGAIN);
			if (error == 0 && n->i.links != 0 && n->cut_at != UINT64_MAX) {
				error = ext2_free_from(&m->fs, &n->i, n->cut_at, UINT32_MAX);
				n->i.size = error == 0 ? n->vn->size : n->i.size;
				error = error == 0 ? ext2_write_node(n) : error;
			}
		}
	return error;
}

/* Makes the file system read-only, unless it is used; if `last`, even then. 0 or -errno. */
static int
ext2_freeze(struct ext2_mount *m, bool last)
{
	int error = 0;

	if (last) {
		error = finish_files(m);
		__atomic_store_n(&m->fs.read_only, true, __ATOMIC_RELAXED);
	} else if (!vfs_stop_writing(&m->fs.read_only, is_used, m)) {
		return 0;
	}
	m->frozen = error == 0;
	return error;
}

static int
write_nodes(struct ext2_mount *m)
{
	int error = 0;

	list_for_each_entry_safe (struct ext2_node, n, &m->dirty, dirty) {
		int e = ext2_write_node(n);

		error = e != 0 ? e : error;
	}
	return error;
}

/* As writeback_client.sync. */
static int
ext2_sync(struct writeback_client *c, bool last)
{
	struct ext2_mount *m = container_of(c, struct ext2_mount, client);
	int error;

	mutex_lock(&m->lock);
	check_device(m);
	error = write_nodes(m);
	if (m->frozen && error == 0 && !m->fs.broken) {
		error = ext2_write_super(&m->fs, false);
		m->frozen = false;
	} else if (error == 0 && (last || m->ending) && !m->fs.read_only) {
		error = ext2_freeze(m, last);
	}
	if (error == 0 && m->fs.super_dirty)
		error = ext2_write_super(&m->fs, true);
	m->error = error;
	mutex_unlock(&m->lock);
	return m->fs.lost ? -EIO : error;
}

/* Reads the superblock. 0; or -errno after a message. */
static int
read_super(struct ext2_mount *m)
{
	const char *why = "it cannot be read";
	struct ext2_super *sb = kmalloc(sizeof(*sb));
	void *page;
	int error = sb == NULL
			? -ENOMEM
			: pagecache_get(m->bdev->vn, 0,
					pagecache_sectors(EXT2_SUPER_OFFSET, sizeof(*sb)), &page);

	if (error == 0) {
		memcpy(sb, (char *)page + EXT2_SUPER_OFFSET, sizeof(*sb));
		page_unref(page);
		error = ext2_parse_super(&m->fs, sb, m->bdev->sectors * SECTOR_SIZE, &why);
	}
	kfree(sb);
	if (error != 0)
		pr_warn("ext2: %s: %s\n", m->bdev->name, why);
	return error;
}

/* Writes all, as fsync does. Lock not held. */
static int
sync_mount(struct ext2_mount *m)
{
	int error = vfs_sync(), e = ext2_mount_error(m);

	return e != 0 ? e : error;
}

/* A pass that makes the file system read-only if it is unused. -EAGAIN: it was, but a file had
 * pages that were not written. */
static int
end_writing(struct ext2_mount *m)
{
	int error;

	mutex_lock(&m->lock);
	m->ending = true;
	m->unwritten = false;
	mutex_unlock(&m->lock);
	error = sync_mount(m);
	mutex_lock(&m->lock);
	m->ending = false;
	if (error == 0 && !m->fs.read_only)
		error = m->unwritten ? -EAGAIN : -EBUSY;
	mutex_unlock(&m->lock);
	return error;
}

/* Ends writing to the file system, and marks it clean. -EBUSY: it is used. Lock not held. */
static int
make_clean(struct ext2_mount *m)
{
	int error = -EAGAIN;

	for (unsigned i = 0; i < END_TRIES && error == -EAGAIN; i++)
		error = end_writing(m);
	error = error == 0 ? sync_mount(m) : error == -EAGAIN ? -EBUSY : error;
	mutex_lock(&m->lock);
	m->frozen = false;
	mutex_unlock(&m->lock);
	return error;
}

/* Begins writing to the file system. Lock not held. */
static int
make_writable(struct ext2_mount *m)
{
	int error;

	if (m->fs.must_be_read_only || m->bdev->disk->readonly)
		return -EROFS;
	mutex_lock(&m->lock);
	error = m->fs.broken ? -EROFS : ext2_write_super(&m->fs, true);
	mutex_unlock(&m->lock);
	if (error == 0)
		error = sync_mount(m);
	mutex_lock(&m->lock);
	if (error == 0 && m->fs.broken) /* it was found to be meanwhile */
		error = -EROFS;
	if (error == 0)
		__atomic_store_n(&m->fs.read_only, false, __ATOMIC_RELAXED);
	mutex_unlock(&m->lock);
	return error;
}

/* Reads what is needed of a device. The root's vnode; NULL and *err. */
static struct vnode *
open_mount(struct ext2_mount *m, bool read_only, int *err)
{
	struct vnode *root = NULL;

	*err = read_super(m);
	if (*err != 0)
		return NULL;
	m->fs.read_only = true;
	if (m->fs.unchecked)
		pr_warn("ext2: %s: it was not clean: e2fsck should check it\n", m->bdev->name);
	if (!read_only && (m->fs.must_be_read_only || m->bdev->disk->readonly)) {
		*err = -EROFS;
		return NULL;
	}
	mutex_lock(&m->lock);
	*err = ext2_count_free(&m->fs);
	if (*err == 0)
		root = ext2_iget(m, EXT2_ROOT_INO, err);
	mutex_unlock(&m->lock);
	if (root != NULL && !S_ISDIR(root->mode)) {
		ext2_error(&m->fs, "the root directory", root->mode);
		*err = -EUCLEAN;
	}
	return root;
}

static void
free_mount(struct ext2_mount *m)
{
	bdev_release(m->bdev);
	kfree(m);
}

void
ext2_end_mount(struct ext2_mount *m)
{
	if (!m->fs.read_only && make_clean(m) != 0)
		pr_warn("ext2: %s: not all of it could be written\n", m->bdev->name);
	writeback_leave(&m->client);
	free_mount(m);
}

static struct vnode *
mount_device(struct block_device *bdev, bool read_only, int *err)
{
	struct ext2_mount *m = kzalloc(sizeof(*m));
	struct vnode *root;

	*err = m == NULL ? -ENOMEM : bdev_hold(bdev, m);
	if (*err != 0) {
		kfree(m);
		return NULL;
	}
	mutex_init(&m->lock, "ext2");
	m->lock.below = true;
	m->bdev = bdev;
	m->io_heard = writeback_sample(bdev->vn);
	m->client.sync = ext2_sync;
	list_init(&m->dirty);
	root = open_mount(m, read_only, err);
	if (root == NULL) {
		free_mount(m);
		return NULL;
	}
	writeback_join(&m->client);
	if (*err == 0 && !read_only)
		*err = make_writable(m);
	if (*err != 0) {
		vnode_unref(root); /* the last one: ends the mount */
		return NULL;
	}
	__atomic_store_n(&bdev->root, root, __ATOMIC_RELAXED);
	CTR3(KTR_VFS, "ext2 mount: device %s blocks %u read-only %d", bdev->name, m->fs.blocks,
	     read_only);
	return root;
}

/* As vfs_type.mount. */
static struct vnode *
ext2_mount(const char *source, bool read_only, int *err)
{
	struct vnode *vn = vnode_lookup(proc_cwd(), source, err), *root = NULL;
	struct block_device *bdev;

	if (vn == NULL)
		return NULL;
	bdev = bdev_of(vn);
	if (bdev == NULL)
		*err = -ENOTBLK;
	else
		root = mount_device(bdev, read_only, err);
	vnode_unref(vn);
	return root;
}

/* As vfs_type.remount. */
static int
ext2_remount(struct vnode *root, bool read_only)
{
	struct ext2_mount *m = ext2_node(root)->m;
	int error;

	if (vnode_read_only(root) == read_only)
		return 0;
	if (!read_only)
		return make_writable(m);
	error = make_clean(m);
	if (error != 0 && vnode_read_only(root)) /* nothing could be written, or not all */
		make_writable(m);
	return error;
}

/* As vfs_type.statfs. */
static void
ext2_statfs(struct vnode *root, struct statfs *s)
{
	struct ext2_mount *m = ext2_node(root)->m;
	const struct ext2_fs *fs = &m->fs;

	mutex_lock(&m->lock);
	s->f_bsize = s->f_frsize = fs->block_size;
	s->f_blocks =
	    fs->blocks - fs->first_data_block - (uint64_t)fs->groups * (fs->table_blocks + 2);
	s->f_bfree = fs->free_blocks;
	s->f_bavail =
	    fs->free_blocks > fs->reserved_blocks ? fs->free_blocks - fs->reserved_blocks : 0;
	s->f_files = fs->inodes;
	s->f_ffree = fs->free_inodes;
	mutex_unlock(&m->lock);
}

/* As vfs_type.crowded. */
static bool
ext2_crowded(const struct vnode *root)
{
	return ext2_is_crowded(ext2_node(root)->m);
}

static void
ext2_boot(void)
{
	static const struct vfs_type type = {.name = "ext2",
					     .magic = EXT2_MAGIC,
					     .mount = ext2_mount,
					     .remount = ext2_remount,
					     .statfs = ext2_statfs,
					     .in_use = ext2_in_use,
					     .crowded = ext2_crowded};

	vfs_register_type(&type);
}

HOOK(booted, ext2_boot);
