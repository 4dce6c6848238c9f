/*
 * bio.h - requests to disks: what is wanted, the queue of a disk, and partitions.
 *
 * A bio is one piece of memory and the sectors that it is read from or written to. Bios are
 * submitted a batch at a time: neighbours in a batch become requests, which go into the queues of
 * their disks, and to the drivers. A bio is its owner's again when its done() is called.
 *
 *	bio_batch_add() ──► bio_batch_wait() ──► waiting ──► struct request ──► ops->queue_rq()
 *	  a file system                          bios             ▲                  the driver
 *	done() ◄── blk_mq_end_request() ◄─────────────────────────┼───────────── its interrupt
 *	                                     ops->timeout() ◄── a callout: too late
 *
 * Locking: one spin lock a queue, inside. Submitting: thread context. done(): interrupt or thread
 * context, no lock held.
 *
 * Files, in reading order: blk.c (queues, what becomes of a request), disk.c (the disks),
 * partition.c (their tables), stats.c with stats.h (what is counted), probe.c with probe.h (what is
 * told of requests).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/block/stats.h"
#include "kernel/lib/list.h"
#include "kernel/sched/callout.h"
#include "kernel/sync/spinlock.h"

#define SECTOR_SHIFT     9
#define SECTOR_SIZE      512u
#define REQUEST_BIOS     64 /* bios of a request at most */
#define REQUESTS_MAX     32 /* requests that a driver has at a time, at most */
#define DISK_PARTS_MAX   15 /* partitions of a disk that are used */
#define DISK_NAME_MAX    12
#define DISK_SECTORS_MAX (1ul << 35) /* of a disk: 16 TiB, 2^32 pages */

struct block_device;
struct gendisk;
struct page;
struct request_queue;
struct vnode;

enum bio_op { BIO_READ, BIO_WRITE, BIO_FLUSH };

#define BIO_OPS        3u  /* bits of enum bio_op; the other bits say what it is for: */
#define BIO_META       4u  /* not data of a file: what a file system keeps of itself */
#define BIO_BACKGROUND 8u  /* the thread that writes after some seconds submits it, for others */
#define BIO_GETRQ      16u /* blk.c: a request begins with it; neighbours after it join that */

struct bio {
	struct list link; /* in the queue, then in its request */
	struct block_device *bdev;
	uint64_t sector; /* sector of the device; once submitted, of the disk */
	enum bio_op op;
	uint32_t flags;          /* BIO_META, BIO_BACKGROUND, BIO_GETRQ */
	void *data;              /* in one page; a flush has none */
	const struct page *page; /* which knows the file; NULL: it has no descriptor */
	uint32_t size;           /* bytes, a multiple of SECTOR_SIZE */
	int error;               /* 0 or -EIO, when it is done */
	bool ended;
	uint64_t start_ns; /* when it came into the queue, by clock_ns() */
	void (*done)(struct bio *bio);
	void *owner; /* the submitter's */
};

/* Bios of the same operation for sectors that follow one another. */
struct request {
	struct list bios;
	enum bio_op op;
	uint32_t flags; /* of its first bio */
	uint64_t sector;
	uint32_t size; /* bytes */
	unsigned tag;
	uint64_t deadline_ns; /* until then it must be done, by clock_ns() */
	bool used;
};

/* What a driver gives. */
struct blk_mq_ops {
	/* Starts a request: calls blk_mq_start_request(); some time later the driver calls
	 * blk_mq_end_request(). The queue's lock is held. */
	void (*queue_rq)(struct gendisk *disk, struct request *rq);
	/* Ends the requests that the device has done, as its interrupt does. No lock held. */
	void (*poll)(struct gendisk *disk);
	/* A request was not done in time. Stops the device, says so, and calls
	 * blk_mark_disk_dead(). Interrupt context, no lock held. */
	void (*timeout)(struct gendisk *disk);
};

struct request_queue {
	struct spinlock lock;
	struct list waiting; /* bios that are in no request */
	unsigned depth;      /* constant: requests that the driver takes at a time */
	unsigned busy;       /* requests that it has */
	unsigned max_bios;   /* constant: of a request */
	bool dead;           /* the device is broken: all fail */
	bool grace;          /* a request is late, and the device has a moment more */
	uint64_t timer_ns;   /* when the callout runs; DEADLINE_NEVER: it is not set */
	struct callout timer;
	struct request requests[REQUESTS_MAX];
};

/* A disk, or a partition of it. All constant but for the last ones. */
struct block_device {
	char name[DISK_NAME_MAX];
	const char *ident; /* the same, as a handle of ktr_intern_keep() */
	struct gendisk *disk;
	uint64_t start, sectors;
	uint64_t number;         /* as of st_rdev */
	struct vnode *vn;        /* of /dev/NAME: its pages are the cache of the device */
	const void *holder;      /* atomic; what is mounted from it; NULL: nothing */
	struct vnode *root;      /* atomic; root of the mounted file system, for lookers; or NULL */
	struct disk_stats stats; /* the lock of the disk's queue */
};

struct gendisk {
	struct list link; /* constant after boot */
	const struct blk_mq_ops *ops;
	const char *driver; /* its name, read-only data */
	void *priv;
	bool readonly, has_flush;
	bool written; /* atomic: since the last flush */
	struct request_queue queue;
	struct block_device whole, part[DISK_PARTS_MAX];
	unsigned parts;
};

/* Makes the disk's queue empty, for requests 0 to depth - 1. Before the disk's interrupts. */
void blk_mq_init_queue(struct gendisk *disk, unsigned depth);
/*
 * A new disk: reads its table of partitions, if it has one, and makes its files in /dev. The caller
 * has set all constants of it and of `whole`, but for `vn`. Boot, thread context.
 */
void add_disk(struct gendisk *disk);
/*
 * Registers two functions. make() makes the file of each device. path() writes the path of the file
 * to which a bio's page belongs, and returns its length, or 0 if it is not known. Once, at boot.
 */
void block_register_files(void (*make)(struct block_device *bdev),
			  size_t (*path)(const struct bio *bio, char *buf, size_t size));

/* The disk after d; NULL begins, and ends. After boot. */
struct gendisk *block_next_disk(const struct gendisk *d);

/* For the driver, lock held: the request is on its way. */
void blk_mq_start_request(struct gendisk *disk, struct request *rq);
/* For the driver: a request is done. error: 0 or -EIO. If it was ended before, nothing happens.
 * No lock held, any context but NMI. */
void blk_mq_end_request(struct gendisk *disk, struct request *rq, int error);
/* For the driver: the device no longer works, and its requests fail. stopped: the device leaves
 * their memory alone; if not, nobody else ever gets that memory. No lock held. */
void blk_mark_disk_dead(struct gendisk *disk, bool stopped);

/*
 * Bios for which somebody waits. The caller has made `bio`, with room for `max`; all else is zero.
 * bio_batch_add() adds one more, which the caller counts, so that there are never more than max.
 */
struct bio_batch {
	struct bio *bio;
	unsigned n, max;
	uint32_t flags;   /* of all that are added */
	unsigned pending; /* atomic */
};
/* opf: enum bio_op, and BIO_META or not. */
void bio_batch_add(struct bio_batch *b, struct block_device *bdev, unsigned opf, uint64_t sector,
		   void *data, uint32_t size);
/*
 * Submits all bios, and waits until they are done. One that lies outside of its device fails, and
 * so does a write to a device that cannot be written to. 0, or the error of one of them.
 */
int bio_batch_wait(struct bio_batch *b);
/* Has the disks keep everything that was written. Calls failed() for those that do not confirm it.
 * 0 or -EIO. */
int blkdev_issue_flush(void (*failed)(struct gendisk *disk));

struct partition {
	uint64_t start, sectors;
};

/*
 * The partitions of a disk with so many sectors: those of a GPT (UEFI 2.10, 5.3), or else of an
 * MBR. read() fills `to` with a sector; false: it cannot. Entries that are not on the disk, or have
 * sectors of an earlier one, are left out. Returns how many, at most DISK_PARTS_MAX. Number n of
 * the table is part[n - 1]; of one that is not used `sectors` is 0.
 */
unsigned partition_parse(uint64_t sectors,
			 bool (*read)(void *arg, uint64_t sector, uint8_t to[512]), void *arg,
			 struct partition part[DISK_PARTS_MAX]);
