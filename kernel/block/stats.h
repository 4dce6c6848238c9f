/* stats.h - what disks and partitions have done, for /proc/diskstats, /proc/vmstat and
 * /sys/block/DISK/stat. */
#pragma once

#include <stdint.h>

struct bio;
struct block_device;
struct sbuf;

/* All since boot. A partition's are the disk's, too. */
struct disk_stats {
	struct disk_op_stats {
		uint64_t requests; /* that have ended, also with an error */
		uint64_t merges;   /* bios that joined a request */
		uint64_t sectors;  /* of requests that have ended */
		uint64_t ns; /* from a request's way into the queue to its end, all together */
	} of[3];             /* by enum bio_op */
	unsigned in_flight;  /* requests in the queue or the driver, but for flushes */
	uint64_t busy_ns;    /* time in which there were such requests, when they last ended */
	uint64_t since_ns;   /* if there are: since when, by clock_ns() */
};

/* Count: a bio goes into its disk's queue; a request that begins with the bio `first` has ended.
 * The queue's lock is held. */
void disk_stats_insert(struct bio *bio);
void disk_stats_end(const struct bio *first, uint32_t bytes);

/* The counts of a disk or a partition, up to now. Thread context; takes the queue's lock. */
struct disk_stats disk_stats_read(const struct block_device *bdev);
/* Prints them in the order of Linux: of reads, of writes, of what is discarded, which nothing is
 * here, and of flushes; and ends the line. Context as above. */
void disk_stats_print(const struct block_device *bdev, struct sbuf *out);
