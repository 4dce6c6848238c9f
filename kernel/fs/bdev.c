/*
 * bdev.c - the files of disks and partitions in /dev: read and written through the cache, where a
 * file system has what it keeps on its device, too. Locking: pagecache.h.
 */
#include "kernel/fs/bdev.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/ioctl.h"
#include "kernel/block/bio.h"
#include "kernel/fs/cache/pagecache.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/printf.h"
#include "kernel/mm/page.h"
#include "kernel/mm/page_descriptor.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/task.h"

static struct vnode *dev_dir;
static struct mutex holding = MUTEX_INIT("bdev"); /* guards what `holder` becomes */

/* Reads or writes these sectors of a page, with one bio for those next to each other. Sectors after
 * the end of the device are zeroes in memory, and stay there. */
static void
move_sectors(struct block_device *bdev, unsigned op, uint64_t index, char *page, uint8_t sectors,
	     struct bio_batch *b)
{
	uint64_t first = index * PAGE_SECTORS;

	for (unsigned i = 0, n; i < PAGE_SECTORS; i += n) {
		n = 1;
		if (!(sectors & 1u << i))
			continue;
		if (first + i >= bdev->sectors) {
			memset(page + i * SECTOR_SIZE, 0, SECTOR_SIZE);
			continue;
		}
		while (i + n < PAGE_SECTORS && (sectors & 1u << (i + n)) &&
		       first + i + n < bdev->sectors)
			n++;
		bio_batch_add(b, bdev, op, first + i, page + i * SECTOR_SIZE, n * SECTOR_SIZE);
	}
}

/* The pages of a device that is mounted are what a file system keeps there. */
static unsigned
meta_of(const struct block_device *bdev)
{
	return __atomic_load_n(&bdev->holder, __ATOMIC_RELAXED) != NULL ? BIO_META : 0;
}

/* As bio_file_path. The file of a page that is being read or written stays. */
static size_t
bdev_path(const struct bio *bio, char *buf, size_t size)
{
	const struct page *p = bio->page;

	return p != NULL && p->vnode != NULL ? vnode_path_peek(p->vnode, buf, size) : 0;
}

static int
bdev_readpage(struct vnode *vn, uint64_t index, void *page, uint8_t sectors)
{
	struct bio bio[PAGE_SECTORS];
	struct bio_batch b = {.bio = bio, .max = PAGE_SECTORS};

	move_sectors(vn->data, BIO_READ | meta_of(vn->data), index, page, sectors, &b);
	return bio_batch_wait(&b);
}

static int
bdev_writepage(struct vnode *vn, uint64_t index, void *page, uint8_t sectors, struct bio_batch *b)
{
	move_sectors(vn->data, BIO_WRITE | meta_of(vn->data), index, page, sectors, b);
	return 0;
}

static int
bdev_open(struct file *f)
{
	const struct block_device *bdev = f->vn->data;

	return bdev->disk->readonly && (f->flags & O_ACCMODE) != O_RDONLY ? -EROFS : 0;
}

/* The next device of the disk, from number *i on, that has sectors of bdev. NULL: none. */
static struct block_device *
next_overlapping(const struct block_device *bdev, unsigned *i)
{
	struct gendisk *disk = bdev->disk;

	while (*i <= disk->parts) {
		struct block_device *b = *i == 0 ? &disk->whole : &disk->part[*i - 1];

		(*i)++;
		if (b->start < bdev->start + bdev->sectors && bdev->start < b->start + b->sectors)
			return b;
	}
	return NULL;
}

/* Is something mounted from sectors of it? */
static bool
is_held(const struct block_device *bdev)
{
	const struct block_device *b;

	for (unsigned i = 0; (b = next_overlapping(bdev, &i)) != NULL;)
		if (__atomic_load_n(&b->holder, __ATOMIC_ACQUIRE) != NULL)
			return true;
	return false;
}

/* Waits for those who were writing to its sectors when it became held: a write has the lock. */
static void
await_writers(const struct block_device *bdev)
{
	struct block_device *b;

	for (unsigned i = 0; (b = next_overlapping(bdev, &i)) != NULL;)
		if (b->vn != NULL) {
			mutex_lock(&b->vn->lock);
			mutex_unlock(&b->vn->lock);
		}
}

/* Nobody has pages of its sectors that are older or newer than the disk. */
static void
drop_pages(const struct block_device *bdev)
{
	struct block_device *b;

	vfs_sync();
	for (unsigned i = 0; (b = next_overlapping(bdev, &i)) != NULL;)
		if (b->vn != NULL)
			pagecache_drop(b->vn, 0);
}

/* A file system checks what it has read, once. */
static int
bdev_write_begin(struct vnode *vn, void *page, uint64_t off, uint64_t len)
{
	return is_held(vn->data) ? -EBUSY : 0;
}

static int64_t
bdev_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	uint64_t size = vn->size;

	if (u->resid > 0 && *off >= size)
		return -ENOSPC;
	if (*off < size && u->resid > size - *off)
		u->resid = size - *off;
	return filemap_write(vn, f, u, off);
}

static int64_t
put_number(uint64_t arg, uint64_t n, size_t size)
{
	return copy_out(arg, &n, size);
}

static int64_t
bdev_ioctl(struct file *f, unsigned request, uint64_t arg)
{
	const struct block_device *bdev = f->vn->data;

	switch (request) {
	case BLKROGET:
		return put_number(arg, bdev->disk->readonly, sizeof(int));
	case BLKGETSIZE:
		return put_number(arg, bdev->sectors, sizeof(long));
	case BLKGETSIZE64:
		return put_number(arg, bdev->sectors * SECTOR_SIZE, sizeof(uint64_t));
	case BLKSSZGET:
	case BLKPBSZGET:
		return put_number(arg, SECTOR_SIZE, sizeof(int));
	case BLKBSZGET:
		return put_number(arg, PAGE_SIZE, sizeof(int));
	case BLKFLSBUF:
		return capable(CAP_SYS_ADMIN) ? vfs_sync() : -EACCES;
	default:
		return -ENOTTY;
	}
}

static const struct vnode_ops bdev_ops = {
    .open = bdev_open,
    .read = filemap_read,
    .write = bdev_write,
    .ioctl = bdev_ioctl,
    .readpage = bdev_readpage,
    .writepage = bdev_writepage,
    .write_begin = bdev_write_begin,
};

static void
bdev_make_file(struct block_device *bdev)
{
	int error;
	struct vnode *vn = vnode_add(dev_dir, bdev->name, S_IFBLK | 0600, &bdev_ops, bdev, &error);

	if (vn == NULL) {
		pr_warn("no memory for /dev/%s\n", bdev->name);
		return;
	}
	vn->rdev = bdev->number;
	vn->size = vn->size_max = bdev->sectors * SECTOR_SIZE;
	bdev->vn = vn; /* with the reference: it stays */
	writeback_start();
}

struct block_device *
bdev_of(const struct vnode *vn)
{
	return vn->ops == &bdev_ops ? vn->data : NULL;
}

int
bdev_hold(struct block_device *bdev, const void *holder)
{
	int error;

	mutex_lock(&holding);
	error = is_held(bdev) ? -EBUSY : 0;
	if (error == 0)
		__atomic_store_n(&bdev->holder, holder, __ATOMIC_RELEASE);
	mutex_unlock(&holding);
	if (error == 0) {
		await_writers(bdev);
		drop_pages(bdev);
	}
	return error;
}

void
bdev_release(struct block_device *bdev)
{
	drop_pages(bdev);
	__atomic_store_n(&bdev->holder, NULL, __ATOMIC_RELEASE);
}

void
bdev_init(struct vnode *dir)
{
	dev_dir = dir;
	block_register_files(bdev_make_file, bdev_path);
}
