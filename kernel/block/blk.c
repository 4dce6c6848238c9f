/*
 * blk.c - the queues of disks (bio.h): bios wait, neighbours become a request, the driver does it.
 *
 * Invariant: a bio is in `waiting`, or in a request that the driver has, or its owner's. After each
 * request that ends the next ones start, so nothing waits while the driver has room. A request that
 * a device does not end in time ends all use of that device, so nobody waits for ever.
 */
#include "kernel/abi/errno.h"
#include "kernel/block/bio.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/sysctl.h"
#include "kernel/sched/sleepq.h"
#include "ktr/ktr.h"

static int timeout_s = 30;

SYSCTL_INT(kern_geom_timeout, "kern.geom.timeout", SYSCTL_WR | SYSCTL_TUN, &timeout_s, 1, 86400,
	   "seconds for a request to a disk; then the disk is no longer used, and its requests fail");

static void blk_mq_timeout_work(void *arg);

void
blk_mq_init_queue(struct gendisk *disk, unsigned depth)
{
	struct request_queue *q = &disk->queue;

	spin_init(&q->lock, "block");
	list_init(&q->waiting);
	callout_init(&q->timer, blk_mq_timeout_work, disk);
	q->depth = depth;
	for (unsigned i = 0; i < depth; i++)
		q->requests[i].tag = i;
}

static struct request *
free_request(struct request_queue *q)
{
	for (unsigned i = 0; i < q->depth; i++)
		if (!q->requests[i].used)
			return &q->requests[i];
	return NULL;
}

/* Does the bio go on where the request ends? */
static bool
blk_attempt_back_merge(const struct request_queue *q, const struct request *rq,
		       const struct bio *bio)
{
	return bio->op == rq->op && bio->op != BIO_FLUSH && rq->count < q->max_bios &&
	       bio->sector == rq->sector + rq->size / SECTOR_SIZE;
}

/* Moves a bio, and those after it that are its neighbours, into a request. Lock held. */
static void
fill_request(struct request_queue *q, struct request *rq)
{
	struct bio *bio = list_entry(list_first(&q->waiting), struct bio, link);

	rq->used = true;
	rq->op = bio->op;
	rq->sector = bio->sector;
	rq->size = rq->count = 0;
	list_init(&rq->bios);
	do {
		list_remove(&bio->link);
		list_append(&rq->bios, &bio->link);
		rq->size += bio->size;
		rq->count++;
		bio = list_entry(list_first(&q->waiting), struct bio, link);
	} while (!list_empty(&q->waiting) && blk_attempt_back_merge(q, rq, bio));
	q->busy++;
}

/* The request must be done in time. Lock held. */
static void
blk_add_timer(struct request_queue *q, struct request *rq)
{
	rq->deadline_ns = clock_ns() + (uint64_t)timeout_s * 1000000000;
	if (q->timed)
		return;
	q->timed = true;
	callout_set(&q->timer, rq->deadline_ns);
}

/* Gives the driver what it has room for. Lock held. */
static void
blk_mq_run_hw_queue(struct gendisk *disk)
{
	struct request_queue *q = &disk->queue;
	struct request *rq;

	while (!q->dead && !list_empty(&q->waiting) && (rq = free_request(q)) != NULL) {
		fill_request(q, rq);
		blk_add_timer(q, rq);
		disk->ops->queue_rq(disk, rq);
	}
}

void
blk_mq_start_request(struct request *rq)
{
	CTR4(KTR_GEOM, "request start: tag %u op %u sector %lu bytes %u", rq->tag, rq->op,
	     rq->sector, rq->size);
}

/* Ends the bios of a list. No lock held. */
static void
bio_endio(struct list *bios, int error)
{
	while (!list_empty(bios)) {
		struct bio *bio = list_entry(list_first(bios), struct bio, link);

		list_remove(&bio->link);
		bio->error = error;
		bio->done(bio);
	}
}

/* Moves all of one list to another, which is empty. */
static void
take_list(struct list *from, struct list *to)
{
	list_init(to);
	if (list_empty(from))
		return;
	*to = *from;
	to->next->prev = to->prev->next = to;
	list_init(from);
}

void
blk_mq_end_request(struct gendisk *disk, struct request *rq, int error)
{
	struct list bios;

	spin_lock(&disk->queue.lock);
	if (!rq->used) {
		spin_unlock(&disk->queue.lock);
		return;
	}
	CTR3(KTR_GEOM, "request done: tag %u sector %lu error %d", rq->tag, rq->sector, -error);
	take_list(&rq->bios, &bios);
	rq->used = false;
	disk->queue.busy--;
	blk_mq_run_hw_queue(disk);
	spin_unlock(&disk->queue.lock);
	bio_endio(&bios, error);
}

void
blk_mark_disk_dead(struct gendisk *disk)
{
	struct request_queue *q = &disk->queue;
	struct list bios;

	spin_lock(&q->lock);
	q->dead = true;
	take_list(&q->waiting, &bios);
	spin_unlock(&q->lock);
	bio_endio(&bios, -EIO);
	for (unsigned i = 0; i < q->depth; i++)
		if (q->requests[i].used)
			blk_mq_end_request(disk, &q->requests[i], -EIO);
}

/* Is a request late? If none is, but the driver has some, the callout is set anew. */
static bool
blk_mq_check_expired(struct request_queue *q)
{
	uint64_t now = clock_ns(), next = DEADLINE_NEVER;

	spin_lock(&q->lock);
	for (unsigned i = 0; i < q->depth; i++)
		if (q->requests[i].used && q->requests[i].deadline_ns < next)
			next = q->requests[i].deadline_ns;
	q->timed = next != DEADLINE_NEVER;
	if (q->timed && next > now)
		callout_set(&q->timer, next);
	spin_unlock(&q->lock);
	return next <= now;
}

static void
blk_mq_timeout_work(void *arg)
{
	struct gendisk *disk = arg;

	if (!blk_mq_check_expired(&disk->queue))
		return;
	/* The machine may have stood, and the interrupt be still to come. */
	disk->ops->poll(disk);
	if (blk_mq_check_expired(&disk->queue))
		disk->ops->timeout(disk);
}

/* May it be done at all? */
static bool
bio_check(const struct bio *bio)
{
	const struct block_device *bdev = bio->bdev;

	if (bio->op == BIO_FLUSH)
		return true;
	return bio->size > 0 && bio->size % SECTOR_SIZE == 0 && bio->sector < bdev->sectors &&
	       bio->size / SECTOR_SIZE <= bdev->sectors - bio->sector &&
	       !(bio->op == BIO_WRITE && bdev->disk->readonly);
}

/* Puts it into the queue of its disk; what cannot be done fails at once. */
static void
submit_bio(struct bio *bio)
{
	struct gendisk *disk = bio->bdev->disk;
	struct request_queue *q = &disk->queue;
	bool good = bio_check(bio);

	CTR4(KTR_GEOM, "bio: device %s op %u sector %lu bytes %u", bio->bdev->name, bio->op,
	     bio->sector, bio->size);
	if (bio->op == BIO_WRITE)
		__atomic_store_n(&disk->written, true, __ATOMIC_RELEASE);
	spin_lock(&q->lock);
	good &= !q->dead;
	if (good) {
		bio->sector += bio->bdev->start;
		list_append(&q->waiting, &bio->link);
	}
	spin_unlock(&q->lock);
	if (!good) {
		bio->error = -EIO;
		bio->done(bio);
	}
}

static void
batch_done(struct bio *bio)
{
	struct bio_batch *b = bio->owner;

	/* release: pairs with the acquire in bio_batch_wait(), after which b may be gone */
	if (__atomic_sub_fetch(&b->pending, 1, __ATOMIC_ACQ_REL) == 0)
		wakeup(b);
}

void
bio_batch_add(struct bio_batch *b, struct block_device *bdev, enum bio_op op, uint64_t sector,
	      void *data, uint32_t size)
{
	b->bio[b->n++] = (struct bio){.bdev = bdev,
				      .sector = sector,
				      .op = op,
				      .data = data,
				      .size = size,
				      .done = batch_done,
				      .owner = b};
}

static bool
is_pending(void *arg)
{
	return __atomic_load_n(&((struct bio_batch *)arg)->pending, __ATOMIC_ACQUIRE) != 0;
}

static void
start_disk(struct gendisk *disk)
{
	spin_lock(&disk->queue.lock);
	blk_mq_run_hw_queue(disk);
	spin_unlock(&disk->queue.lock);
}

int
bio_batch_wait(struct bio_batch *b)
{
	int error = 0;

	b->pending = b->n;
	for (unsigned i = 0; i < b->n; i++)
		submit_bio(&b->bio[i]);
	for (unsigned i = 0; i < b->n; i++)
		start_disk(b->bio[i].bdev->disk);
	while (is_pending(b))
		sleepq_wait(&(struct sleep_request){.chan = b,
						    .still = is_pending,
						    .arg = b,
						    .wmesg = "biowait",
						    .deadline_ns = DEADLINE_NEVER});
	for (unsigned i = 0; i < b->n; i++)
		if (b->bio[i].error != 0)
			error = b->bio[i].error;
	return error;
}
