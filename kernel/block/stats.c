/*
 * stats.c - what each disk and each partition has done since boot, as iostat reads it. Locking: the
 * lock of the disk's queue guards its figures.
 */
#include "kernel/block/stats.h"
#include "kernel/block/bio.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/sbuf.h"

#define NS_PER_MS 1000000ul

static void
add_in_flight(struct disk_stats *s, int by, uint64_t now)
{
	if (s->in_flight == 0)
		s->since_ns = now;
	s->in_flight += (unsigned)by;
	if (s->in_flight == 0)
		s->busy_ns += now - s->since_ns;
}

static void
stats_insert(struct disk_stats *s, const struct bio *bio)
{
	if (bio->flags & BIO_GETRQ)
		add_in_flight(s, 1, bio->start_ns);
	else
		s->of[bio->op].merges++;
}

void
disk_stats_insert(struct bio *bio)
{
	struct gendisk *disk = bio->bdev->disk;

	if (bio->flags & BIO_GETRQ)
		bio->start_ns = clock_ns();
	if (bio->op == BIO_FLUSH)
		return;
	stats_insert(&disk->whole.stats, bio);
	if (bio->bdev != &disk->whole)
		stats_insert(&bio->bdev->stats, bio);
}

static void
stats_end(struct disk_stats *s, const struct bio *first, uint32_t bytes, uint64_t now)
{
	struct disk_op_stats *of = &s->of[first->op];

	of->sectors += bytes / SECTOR_SIZE;
	of->requests++;
	of->ns += now - first->start_ns;
	if (first->op != BIO_FLUSH)
		add_in_flight(s, -1, now);
}

void
disk_stats_end(const struct bio *first, uint32_t bytes)
{
	struct gendisk *disk = first->bdev->disk;
	uint64_t now = clock_ns();

	stats_end(&disk->whole.stats, first, bytes, now);
	if (first->bdev != &disk->whole)
		stats_end(&first->bdev->stats, first, bytes, now);
}

struct disk_stats
disk_stats_read(const struct block_device *bdev)
{
	struct request_queue *q = &bdev->disk->queue;
	struct disk_stats s;

	spin_lock(&q->lock);
	s = bdev->stats;
	if (s.in_flight > 0)
		s.busy_ns += clock_ns() - s.since_ns;
	spin_unlock(&q->lock);
	return s;
}

void
disk_stats_print(const struct block_device *bdev, struct sbuf *out)
{
	struct disk_stats s = disk_stats_read(bdev);
	uint64_t ns = s.of[BIO_READ].ns + s.of[BIO_WRITE].ns + s.of[BIO_FLUSH].ns;

	for (enum bio_op op = BIO_READ; op <= BIO_WRITE; op++)
		sbuf_printf(out, "%lu %lu %lu %lu ", s.of[op].requests, s.of[op].merges,
			    s.of[op].sectors, s.of[op].ns / NS_PER_MS);
	sbuf_printf(out, "%u %lu %lu 0 0 0 0 %lu %lu\n", s.in_flight, s.busy_ns / NS_PER_MS,
		    ns / NS_PER_MS, s.of[BIO_FLUSH].requests, s.of[BIO_FLUSH].ns / NS_PER_MS);
}
