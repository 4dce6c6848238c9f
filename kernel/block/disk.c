/*
 * disk.c - the disks that there are, and their partitions (bio.h). Locking: none. Disks come at
 * boot, on one CPU, and stay.
 */
#include "kernel/abi/errno.h"
#include "kernel/block/bio.h"
#include "kernel/block/probe.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"
#include "ktr/intern.h"

static struct list disks = LIST_INIT(disks);
static void (*make_file)(struct block_device *bdev);
size_t (*bio_file_path)(const struct bio *bio, char *buf, size_t size);

static void
make_files(struct gendisk *disk)
{
	make_file(&disk->whole);
	for (unsigned i = 0; i < disk->parts; i++)
		if (disk->part[i].sectors > 0)
			make_file(&disk->part[i]);
}

void
block_register_files(void (*make)(struct block_device *bdev),
		     size_t (*path)(const struct bio *bio, char *buf, size_t size))
{
	make_file = make;
	bio_file_path = path;
	list_for_each_entry (struct gendisk, d, &disks, link)
		make_files(d);
}

struct gendisk *
block_next_disk(const struct gendisk *d)
{
	const struct list *l = d != NULL ? d->link.next : disks.next;

	return l != &disks ? list_entry(l, struct gendisk, link) : NULL;
}

struct scan {
	struct block_device *bdev;
	char *page;
};

static bool
read_sector(void *arg, uint64_t sector, uint8_t to[512])
{
	struct scan *s = arg;
	struct bio bio;
	struct bio_batch b = {.bio = &bio, .max = 1};

	bio_batch_add(&b, s->bdev, BIO_READ | BIO_META, sector, s->page, SECTOR_SIZE);
	if (bio_batch_wait(&b) != 0)
		return false;
	memcpy(to, s->page, SECTOR_SIZE);
	return true;
}

static void
scan_partitions(struct gendisk *disk)
{
	struct partition part[DISK_PARTS_MAX];
	struct scan s = {&disk->whole, page_alloc(0, PAGE_OTHER)};

	if (s.page == NULL)
		return;
	disk->parts = partition_parse(disk->whole.sectors, read_sector, &s, part);
	page_unref(s.page); /* the page stays if the disk may still write to it */
	for (unsigned i = 0; i < disk->parts; i++) {
		struct block_device *p = &disk->part[i];

		*p = (struct block_device){.disk = disk,
					   .start = part[i].start,
					   .sectors = part[i].sectors,
					   .number = disk->whole.number + i + 1};
		snprintf(p->name, sizeof(p->name), "%s%u", disk->whole.name, i + 1);
		p->ident = ktr_intern_keep(p->name);
	}
}

void
add_disk(struct gendisk *disk)
{
	disk->whole.disk = disk;
	disk->whole.ident = ktr_intern_keep(disk->whole.name);
	list_append(&disks, &disk->link);
	scan_partitions(disk);
	if (make_file != NULL)
		make_files(disk);
}

/* Has the disk keep what was written. -EIO: the disk does not confirm that. */
static int
flush_disk(struct gendisk *disk)
{
	struct bio bio;
	struct bio_batch b = {.bio = &bio, .max = 1};
	int error;

	/* acquire and release: what is written from here on is for the next flush */
	if (!__atomic_exchange_n(&disk->written, false, __ATOMIC_ACQ_REL) || !disk->has_flush)
		return 0;
	bio_batch_add(&b, &disk->whole, BIO_FLUSH, 0, NULL, 0);
	error = bio_batch_wait(&b);
	if (error != 0) /* release: pairs with the exchange above */
		__atomic_store_n(&disk->written, true, __ATOMIC_RELEASE);
	return error;
}

int
blkdev_issue_flush(void (*failed)(struct gendisk *disk))
{
	int error = 0;

	list_for_each_entry (struct gendisk, d, &disks, link) {
		int e = flush_disk(d);

		if (e != 0)
			failed(d);
		error = e != 0 ? e : error;
	}
	return error;
}
