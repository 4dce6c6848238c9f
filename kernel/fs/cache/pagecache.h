/*
 * pagecache.h - the pages of files: of those in memory, which have no other place, and of those on
 * disks, and of disks themselves, for which they are a cache.
 *
 * A vnode whose ops have `readpage` is on a disk. Its pages are read when somebody wants them, and
 * given up when memory is short; those that are newer than the disk are written by a thread, and by
 * sync. For each sector of a page it is known whether it is valid, and whether it is dirty.
 *
 * Locking: pages_lock, a spin lock, guards all trees and all that a page's descriptor says of it as
 * a page of a file. Whoever reads or writes a page of a disk sets `busy` meanwhile: then it is not
 * taken out of its file. A reference keeps a page from being given up, too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/lib/list.h"
#include "kernel/sync/spinlock.h"

struct bio_batch;
struct file;
struct page;
struct uio;
struct vmspace;
struct vnode;

#define PAGE_SECTORS 8
#define ALL_SECTORS  0xff

extern struct spinlock pages_lock;

/* Finds a page of a file. NULL: it is not there. ref: adds a reference. Takes spin locks only. */
void *pagecache_find(const struct vnode *vn, uint64_t index, bool ref);
/*
 * Makes `new` a page of the file. If the file has that page already, *page becomes that one
 * instead. ref: adds a reference to *page. -ENOSPC if there is no memory; -EFBIG if the index is
 * too large. Takes spin locks only.
 */
int pagecache_insert(struct vnode *vn, uint64_t index, void *new, bool ref, void **page);
/* Is there a page from *index on? Then *index becomes the number of the first. */
bool pagecache_next(const struct vnode *vn, uint64_t *index);
/*
 * Takes the first page from *index on out of the file, gives it to the caller, and moves *index
 * after it. NULL if there is none. Waits if the page is a disk's and busy.
 */
void *pagecache_take(struct vnode *vn, uint64_t *index);

/* ---- of disks. Thread context, no spin lock held ---- */

/*
 * Finds or reads a page, of which the sectors in `want` will be valid; *page has a reference. -EIO,
 * -ENOMEM, -EFBIG, or what `readpage` returns.
 */
int pagecache_get(struct vnode *vn, uint64_t index, uint8_t want, void **page);
/* As pagecache_get(), but reads nothing: the sectors become zeroes, valid and dirty. */
int pagecache_get_zero(struct vnode *vn, uint64_t index, uint8_t sectors, void **page);
/* The sectors of the bytes from..from+size of a page. */
uint8_t pagecache_sectors(size_t from, size_t size);
/* These sectors of a page are valid, and newer than the disk. */
void pagecache_dirty(void *page, uint8_t sectors);
/* A program is about to write to a page through a map, and may do so until the map is clean. */
void pagecache_dirty_map(void *page);
/* What these sectors hold is of no use: they are not written. */
void pagecache_forget(struct vnode *vn, uint64_t index, uint8_t sectors);
/* Takes all pages from a size on, which waits for those that are being read or written. */
void pagecache_drop(struct vnode *vn, uint64_t from_index);

/* Waits until a page, if it is there, is neither read nor written. */
void pagecache_settle(const struct vnode *vn, uint64_t index);

/* For writeback.c: the first dirty page of a file, or of a device, or NULL. pages_lock held. */
struct page *pagecache_first_dirty(bool device);
/* The page is not dirty any more; it stays. */
void pagecache_clean(struct page *p);
unsigned long pagecache_count_dirty(bool device);
/* Is a page of a file dirty whose vnode.read_only this is? */
bool pagecache_is_dirty(const bool *read_only);
/* Pages of disks that are not dirty, and are given up when memory is short. Any context. */
unsigned long pagecache_count_kept(void);

/* ---- writeback.c: what is dirty is written ---- */

/* Has the thread write in a while. Any context, a spin lock may be held. */
void writeback_want(void);
/* Has the thread write soon, and file systems that have too many names forget unused ones. */
void writeback_hurry(void);
/* Has the thread free names that are gone, or too many. False: there is no thread. */
bool writeback_trim(void);
/*
 * Waits if too much is dirty; whoever writes a lot calls this. vfs_lock and locks of vnodes may be
 * held, since the thread that writes never takes them, but no lock of a file system.
 */
void writeback_throttle(void);
/* As writeback_throttle(), for whoever has written to va, if a page of a disk's file is there. */
void writeback_throttle_map(struct vmspace *vm, uintptr_t va);
/* Is too much dirty? Any context. */
bool writeback_is_late(void);
/*
 * Call this when memory is out: it writes what is dirty, takes pages out of the maps that share
 * them, and gives up some. False if there are none, or the disk has written nothing for long. It
 * waits for page faults in spaces that share pages, and so for a disk from which one of them reads.
 * Locks as for writeback_throttle().
 */
bool writeback_reclaim(void);
/* What a file system writes of itself into pages of its device, between files and devices. */
struct writeback_client {
	struct list link;
	/*
	 * Writes what the file system keeps of itself. 0 or -errno. last: the machine is about to
	 * end. Then nothing new is taken, and if all was written, the next pass makes the file
	 * system clean.
	 */
	int (*sync)(struct writeback_client *c, bool last);
};
/* Starts the thread, if that was not done. Boot. */
void writeback_start(void);
void writeback_join(struct writeback_client *c);
void writeback_leave(struct writeback_client *c);
/*
 * Each user of a file hears once, by writeback_error(), that something written to it was lost: 0 or
 * -errno. *since says what the user has heard so far. It begins with writeback_sample(), by which a
 * newcomer also hears what nobody has heard yet. Any context.
 */
uint32_t writeback_sample(const struct vnode *vn);
int writeback_error(struct vnode *vn, uint32_t *since);

/* ---- filemap.c: read, write, map, for the ops of vnodes on disks ---- */

int64_t filemap_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off);
int64_t filemap_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off);
int filemap_truncate(struct vnode *vn, uint64_t size);
int filemap_allocate(struct vnode *vn, uint64_t off, uint64_t len, bool keeps_size);
void *filemap_fault(struct vnode *vn, uint64_t index, bool make, int *err);
/*
 * May these bytes, at least one, be written? If so, the file gets its new time and loses its set-id
 * bits, even if no byte moves afterwards. The user's limit, or `max`, the most bytes that the file
 * may have, may shorten the write. 0; -EROFS; -EFBIG, perhaps with a signal. vn->lock held.
 */
int vnode_check_write(struct vnode *vn, struct uio *u, uint64_t off, uint64_t max);
