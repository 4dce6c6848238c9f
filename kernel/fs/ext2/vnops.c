/* vnops.c - nodes, and what files of ext2 are read and written by (node.h). */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/stat.h"
#include "kernel/block/bio.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/ext2/node.h"
#include "kernel/fs/pipe/pipe.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uidinfo.h"
#include "ktr/ktr.h"

#define WRITE_TRIES 4 /* tries to find memory for what a file that goes has to write */
#define NODES_PART  2 /* nodes are fewer than pages of memory, by this factor */
#define PAGE_BLOCKS (PAGE_SIZE / EXT2_BLOCK_MIN)

static struct ext2_node **
node_bucket(struct ext2_mount *m, uint32_t ino)
{
	return &m->bucket[ino % EXT2_BUCKETS];
}

void
ext2_note_dirty(struct ext2_node *node)
{
	if (node->i.dirty && list_empty(&node->dirty)) {
		list_append(&node->m->dirty, &node->dirty);
		writeback_want();
	}
}

/* The time of a vnode that has an inode's. Vnodes have none before 1970. */
static uint64_t
ext2_time_ns(uint32_t time)
{
	return time <= EXT2_TIME_MAX ? time * 1000000000ul : 0;
}

/* An inode's new time, which the vnode has. One before 1970 stays until it is changed. */
static uint32_t
ext2_new_time(uint32_t old, const uint64_t *ns)
{
	uint64_t now = __atomic_load_n(ns, __ATOMIC_RELAXED) / 1000000000;

	return now == ext2_time_ns(old) / 1000000000 ? old : ext2_time(now);
}

/* The inode gets what the vnode has. */
static void
take_attributes(struct ext2_node *node)
{
	const struct vnode *vn = node->vn;
	struct ext2_inode *i = &node->i;

	i->mode = (uint16_t)__atomic_load_n(&vn->mode, __ATOMIC_RELAXED);
	i->uid = __atomic_load_n(&vn->uid, __ATOMIC_RELAXED);
	i->gid = __atomic_load_n(&vn->gid, __ATOMIC_RELAXED);
	i->mtime = ext2_new_time(i->mtime, &vn->mtime_ns);
	i->atime = ext2_new_time(i->atime, &vn->atime_ns);
}

/* A file's inode has the size that its blocks need. It becomes smaller only when those after the
 * new size are free: a reset before that leaves the old size, and not blocks after the end. */
static void
ext2_keep_size(struct ext2_inode *i, uint64_t size)
{
	if (i->size < size)
		i->size = size;
}

int
ext2_write_node(struct ext2_node *node)
{
	const struct vnode *vn = node->vn;
	struct ext2_inode *i = &node->i;
	int error;

	if (node->m->fs.read_only) {
		list_remove(&node->dirty);
		i->dirty = false;
		return node->m->fs.lost ? -EIO : 0;
	}
	take_attributes(node);
	if (S_ISREG(i->mode))
		ext2_keep_size(i, __atomic_load_n(&vn->size, __ATOMIC_RELAXED));
	error = ext2_write_inode(&node->m->fs, i);
	if (error == 0)
		list_remove(&node->dirty);
	return error;
}

/* The text of a symbolic link. NULL and *err. */
static char *
read_text(struct ext2_fs *fs, struct ext2_inode *i, int *err)
{
	char *text = kzalloc(i->size + 1);
	const void *from = i->block;
	uint32_t block;

	*err = text == NULL ? -ENOMEM : 0;
	if (*err == 0 && !ext2_is_inline(fs, i)) {
		*err = ext2_bmap(fs, i, 0, false, &block);
		if (*err == 0 && block == 0)
			*err = ext2_error(fs, "a link without a block", i->ino);
		from = *err == 0 ? ext2_bread(fs, block, err) : NULL;
	}
	if (*err == 0)
		memcpy(text, from, i->size);
	if (*err == 0 && from != i->block)
		ext2_brelse((void *)(uintptr_t)from);
	if (*err == 0 && strlen(text) == i->size)
		return text;
	kfree(text);
	if (*err == 0)
		*err = ext2_error(fs, "the text of a link", i->ino);
	return NULL;
}

static void ext2_destroy(struct vnode *vn);
static int ext2_changed(struct vnode *vn, unsigned what);
static void ext2_stat(struct vnode *vn, struct stat *st);
static bool ext2_linked(const struct vnode *vn);
static int ext2_failed(struct vnode *vn, const struct file *f);

/* What the vnode has of the inode. */
static void
fill_vnode(struct vnode *vn, struct ext2_mount *m, const struct ext2_inode *i)
{
	static const struct vnode_disk_ops disk_ops = {"ext2",      ext2_changed, ext2_stat,
						       ext2_linked, ext2_failed,  ext2_destroy,
						       false};

	vn->ino = i->ino;
	vn->uid = i->uid;
	vn->gid = i->gid;
	vn->size = i->size;
	vn->size_max = ext2_size_max(&m->fs);
	vn->mtime_ns = ext2_time_ns(i->mtime);
	vn->atime_ns = ext2_time_ns(i->atime);
	vn->rdev = i->rdev;
	vn->read_only = &m->fs.read_only;
	vn->missing = S_ISDIR(i->mode);
	vn->disk = &disk_ops;
	if (S_ISREG(i->mode))
		vn->ops = &ext2_file_ops;
	else if (S_ISLNK(i->mode))
		vn->ops = &ext2_link_ops;
	else if (S_ISFIFO(i->mode))
		vn->ops = &fifo_ops;
	else if (!S_ISDIR(i->mode))
		devfs_make_node(vn);
}

bool
ext2_is_crowded(const struct ext2_mount *m)
{
	return __atomic_load_n(&m->nodes, __ATOMIC_RELAXED) > page_count_total() / NODES_PART / 2 ||
	       uidinfo_memory_short();
}

struct ext2_node *
ext2_make_node(struct ext2_mount *m, const struct ext2_inode *i, int *err)
{
	struct ext2_node *node = NULL, **bucket = node_bucket(m, i->ino);

	*err = -ENOMEM;
	if (ext2_is_crowded(m))
		writeback_hurry();
	if (m->nodes < page_count_total() / NODES_PART && !uidinfo_memory_short())
		node = kzalloc(sizeof(*node));
	if (node == NULL)
		return NULL;
	node->i = *i;
	node->m = m;
	node->cut_at = UINT64_MAX;
	list_init(&node->dirty);
	*err = 0;
	if (S_ISLNK(i->mode))
		node->text = read_text(&m->fs, &node->i, err);
	if (*err == 0) {
		node->vn = vnode_alloc_for(&uidinfo_root, i->mode, &ext2_dir_ops, NULL);
		*err = node->vn != NULL ? 0 : -ENOMEM;
	}
	if (*err != 0) {
		kfree(node->text);
		kfree(node);
		return NULL;
	}
	fill_vnode(node->vn, m, i);
	node->vn->node = node;
	node->next = *bucket;
	*bucket = node;
	m->nodes++;
	return node;
}

struct ext2_node *
ext2_find_node(const struct ext2_mount *m, uint32_t ino)
{
	struct ext2_node *node = m->bucket[ino % EXT2_BUCKETS];

	while (node != NULL && node->i.ino != ino)
		node = node->next;
	return node;
}

struct vnode *
ext2_iget(struct ext2_mount *m, uint32_t ino, int *err)
{
	struct ext2_inode i;
	struct ext2_node *node = ext2_find_node(m, ino);

	if (node != NULL) {
		*err = vnode_ref_live(node->vn) ? 0 : -EAGAIN;
		return *err == 0 ? node->vn : NULL;
	}
	*err = ext2_read_inode(&m->fs, ino, &i);
	node = *err == 0 ? ext2_make_node(m, &i, err) : NULL;
	return node != NULL ? node->vn : NULL;
}

/* Takes a node out of the table. True: it was the last one. */
static bool
forget_node(struct ext2_node *node)
{
	struct ext2_node **at = node_bucket(node->m, node->i.ino);

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	list_remove(&node->dirty);
	return --node->m->nodes == 0;
}

/* Gives the lock of a mount to those who wait for it. */
static void
ext2_lend_lock(struct ext2_mount *m)
{
	mutex_unlock(&m->lock);
	mutex_lock(&m->lock);
}

/* Writes a node that is being forgotten; or frees its file, and meanwhile gives up the lock now
 * and then. Wherever that fails, the disk has an error. */
static void
finish_node(struct ext2_node *node)
{
	struct ext2_fs *fs = &node->m->fs;
	int error = 0;

	while (!fs->read_only && node->i.links == 0 &&
	       (error = ext2_delete_inode(fs, &node->i)) == -EAGAIN)
		ext2_lend_lock(node->m);
	if (fs->read_only)
		return;
	if (node->i.links != 0 && node->i.dirty)
		error = ext2_write_node(node);
	if (error != 0)
		ext2_error(fs, "an inode that could not be written", node->i.ino);
}

/* Writes what is in memory of a file that goes. What cannot be written is lost, and a message
 * says so, unless there was one that the file system is broken. */
static void
write_last_pages(struct vnode *vn)
{
	const struct ext2_mount *m = ext2_node(vn)->m;
	uint32_t since = writeback_sample(vn);
	int error = 0;

	for (unsigned i = 0; i == 0 || (error == -ENOMEM && i < WRITE_TRIES); i++) {
		vfs_sync();
		error = writeback_error(vn, &since);
	}
	if (error != 0 && !m->fs.broken)
		pr_warn("ext2: %s: error %d, what was written to a file is lost: %lu\n",
			m->bdev->name, -error, vn->ino);
}

static void
ext2_destroy(struct vnode *vn)
{
	struct ext2_node *node = ext2_node(vn);
	struct ext2_mount *m = node->m;
	bool last;

	if (m->bdev->root == vn)
		__atomic_store_n(&m->bdev->root, NULL, __ATOMIC_RELAXED);
	if (node->i.links != 0 && (node->i.dirty || vn->pages.root != NULL))
		write_last_pages(vn);
	pagecache_drop(vn, 0);
	mutex_lock(&m->lock);
	finish_node(node);
	last = forget_node(node);
	mutex_unlock(&m->lock);
	kfree(node->text);
	kfree(node);
	if (last)
		ext2_end_mount(m);
}

/* A time that is too late for the disk becomes the last that it can have. */
static void
ext2_limit_time(uint64_t *ns)
{
	if (*ns / 1000000000 > EXT2_TIME_MAX)
		*ns = EXT2_TIME_MAX * 1000000000ul;
}

static int
ext2_changed(struct vnode *vn, unsigned what)
{
	struct ext2_node *node = ext2_node(vn);
	struct ext2_inode *i = &node->i;
	bool refused;

	mutex_lock(&node->m->lock);
	/* The file system has become read-only since the VFS asked: nobody writes what is dirty. */
	refused = node->m->fs.read_only && what != VNODE_DATA;
	if (refused) {
		__atomic_store_n(&vn->mode, i->mode, __ATOMIC_RELAXED);
		__atomic_store_n(&vn->uid, i->uid, __ATOMIC_RELAXED);
		__atomic_store_n(&vn->gid, i->gid, __ATOMIC_RELAXED);
		if (what & (VNODE_TIME | VNODE_TIME_NOW))
			vn->mtime_ns = ext2_time_ns(i->mtime);
		if (what & (VNODE_ATIME | VNODE_TIME_NOW))
			vn->atime_ns = ext2_time_ns(i->atime);
	} else {
		ext2_limit_time(&vn->mtime_ns);
		ext2_limit_time(&vn->atime_ns);
		take_attributes(node);
		i->ctime = ext2_seconds();
		i->dirty = true;
		ext2_note_dirty(node);
	}
	mutex_unlock(&node->m->lock);
	return refused ? -EROFS : 0;
}

static bool
ext2_linked(const struct vnode *vn)
{
	return ext2_node(vn)->i.links != 0;
}

static int
ext2_failed(struct vnode *vn, const struct file *f)
{
	return ext2_mount_error(ext2_node(vn)->m);
}

static void
ext2_stat(struct vnode *vn, struct stat *st)
{
	const struct ext2_node *node = ext2_node(vn);

	st->st_nlink = node->i.links;
	if (S_ISDIR(vn->mode))
		st->st_size = (int64_t)node->i.size;
	st->st_blocks = node->i.sectors;
	st->st_blksize = (int)node->m->fs.block_size;
	st->st_ctime = (int32_t)node->i.ctime;
	st->st_ctime_nsec = 0;
}

/* Makes the bytes of a page that are after the end of the file zeroes. */
static void
clear_after_end(const struct vnode *vn, uint64_t index, char *page)
{
	uint64_t size = __atomic_load_n(&vn->size, __ATOMIC_RELAXED), at = index * PAGE_SIZE;
	uint64_t keep = size > at ? size - at : 0;

	if (keep < PAGE_SIZE)
		memset(page + keep, 0, PAGE_SIZE - keep);
}

/* The blocks of a page. */
static int
map_page(struct ext2_node *node, uint64_t index, uint32_t block[PAGE_BLOCKS])
{
	struct ext2_fs *fs = &node->m->fs;
	unsigned n = PAGE_SIZE >> fs->block_shift;
	int error = 0;

	mutex_lock(&node->m->lock);
	for (unsigned i = 0; i < n && error == 0; i++)
		error = ext2_bmap(fs, &node->i, index * n + i, false, &block[i]);
	mutex_unlock(&node->m->lock);
	return error;
}

static int
ext2_readpage(struct vnode *vn, uint64_t index, void *page, uint8_t sectors)
{
	struct ext2_node *node = ext2_node(vn);
	const struct ext2_fs *fs = &node->m->fs;
	unsigned n = PAGE_SIZE >> fs->block_shift;
	uint32_t block[PAGE_BLOCKS];
	struct bio bio[PAGE_BLOCKS];
	struct bio_batch b = {.bio = bio, .max = PAGE_BLOCKS};
	int error = map_page(node, index, block);

	if (error != 0)
		return error;
	for (unsigned i = 0; i < n; i++) {
		char *at = (char *)page + ((size_t)i << fs->block_shift);

		if (block[i] == 0)
			memset(at, 0, fs->block_size);
		else
			bio_batch_add(&b, node->m->bdev, BIO_READ,
				      (uint64_t)block[i] << (fs->block_shift - SECTOR_SHIFT), at,
				      fs->block_size);
	}
	error = bio_batch_wait(&b);
	clear_after_end(vn, index, page);
	return error;
}

/* The block at an offset, which is made if it is missing, of a file of that size. */
static int
ext2_make_block(struct ext2_node *node, uint64_t off, uint64_t size, uint32_t *block)
{
	struct ext2_fs *fs = &node->m->fs;
	int error;

	mutex_lock(&node->m->lock);
	error = ext2_bmap(fs, &node->i, off >> fs->block_shift, true, block);
	ext2_keep_size(&node->i, size);
	ext2_note_dirty(node);
	mutex_unlock(&node->m->lock);
	return error;
}

static int
ext2_writepage(struct vnode *vn, uint64_t index, void *page, uint8_t sectors, struct bio_batch *b)
{
	struct ext2_node *node = ext2_node(vn);
	const struct ext2_fs *fs = &node->m->fs;
	uint64_t size = __atomic_load_n(&vn->size, __ATOMIC_RELAXED);
	int error = fs->broken ? -EROFS : 0;

	/* The file has lost its last name, and nothing is changed any more: nobody will read its
	 * bytes. */
	if (fs->read_only && node->i.links == 0)
		return error;
	for (size_t at = 0; at < PAGE_SIZE && error == 0; at += fs->block_size) {
		uint32_t block;

		if (!(sectors & pagecache_sectors(at, fs->block_size)) ||
		    index * PAGE_SIZE + at >= size)
			continue;
		error = ext2_make_block(node, index * PAGE_SIZE + at, size, &block);
		if (error == 0)
			bio_batch_add(b, node->m->bdev, BIO_WRITE,
				      (uint64_t)block << (fs->block_shift - SECTOR_SHIFT),
				      (char *)page + at, fs->block_size);
	}
	return error;
}

static int
ext2_write_begin(struct vnode *vn, void *page, uint64_t off, uint64_t len)
{
	struct ext2_node *node = ext2_node(vn);
	uint64_t size = node->m->fs.block_size, end = off + len;
	uint32_t block;
	int error = 0;

	for (off -= off % size; off < end && error == 0; off += size) {
		error = ext2_make_block(node, off, vn->size, &block);
		if (error == 0)
			pagecache_dirty(page, pagecache_sectors(off % PAGE_SIZE, size));
	}
	return error;
}

/* Frees the blocks after a size, and meanwhile gives up the mount's lock now and then. */
static int
ext2_cut(struct vnode *vn, uint64_t size)
{
	struct ext2_node *node = ext2_node(vn);
	struct ext2_fs *fs = &node->m->fs;
	int error = -EROFS;

	mutex_lock(&node->m->lock);
	node->cut_at = (size + fs->block_size - 1) >> fs->block_shift;
	while (!fs->read_only &&
	       (error = ext2_free_from(fs, &node->i, node->cut_at, EXT2_FREE_MOST)) == -EAGAIN) {
		ext2_note_dirty(node);
		ext2_lend_lock(node->m);
	}
	if (error == -EAGAIN) /* it has become read-only meanwhile */
		error = -EROFS;
	if (error == 0)
		node->i.size = size;
	node->cut_at = UINT64_MAX;
	ext2_note_dirty(node);
	mutex_unlock(&node->m->lock);
	return error;
}

const struct vnode_ops ext2_file_ops = {
    .read = filemap_read,
    .write = filemap_write,
    .truncate = filemap_truncate,
    .allocate = filemap_allocate,
    .page = filemap_fault,
    .readpage = ext2_readpage,
    .writepage = ext2_writepage,
    .write_begin = ext2_write_begin,
    .cut = ext2_cut,
};
