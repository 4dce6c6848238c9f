/*
 * blk.c - the queues of disks (bio.h): neighbours in a batch become a request, the driver does it.
 *
 * Invariant: a bio is in `waiting`, or in a request that the driver has, or its owner's. After each
 * request that ends the next ones start, so nothing waits while the driver has room.
 *
 * A request that a device does not end in time ends all use of that device. It is reset, and then
 * all fails, though a write may have happened. QEMU's reset waits for what QEMU has in flight, and
 * the machine waits with it. If a device cannot be reset, the pages of its requests are never free
 * again.
 */
#include "kernel/abi/errno.h"
#include "kernel/block/bio.h"
#include "kernel/block/probe.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/page.h"
#include "kernel/mm/page_descriptor.h"
#include "kernel/sched/sleepq.h"
#include "ktr/ktr.h"

#define STOOD_NS 1000000000ul /* a callout that is so late says that the machine stood */
#define GRACE_NS 500000000ul  /* after the timeout */

static int timeout_s = 30;

SYSCTL_INT(
    kern_geom_timeout, "kern.geom.timeout", SYSCTL_WR | SYSCTL_TUN, &timeout_s, 1, 86400,
    "seconds for a request to a disk; then the disk is no longer used, and its requests fail");

static void blk_mq_timeout_work(void *arg);

void
blk_mq_init_queue(struct gendisk *disk, unsigned depth)
{
	struct request_queue *q = &disk->queue;

	spin_init(&q->lock, "block");
	list_init(&q->waiting);
	callout_init(&q->timer, blk_mq_timeout_work, disk);
	q->timer_ns = DEADLINE_NEVER;
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

/* Does the bio go on where the one before it, of the same batch, ends? */
static bool
blk_attempt_back_merge(const struct bio *before, const struct bio *bio)
{
	return bio->bdev->disk == before->bdev->disk && bio->op == before->op &&
	       bio->op != BIO_FLUSH && bio->sector == before->sector + before->size / SECTOR_SIZE;
}

/* Adds a bio to a request, as its last one. */
static void
add_bio(struct request *rq, const struct bio *bio)
{
	if (bio->flags & BIO_GETRQ) {
		rq->op = bio->op;
		rq->flags = bio->flags;
		rq->sector = bio->sector;
		rq->size = 0;
	}
	rq->size += bio->size;
}

/* Moves a bio, and those that joined it, into a request. Lock held. */
static void
fill_request(struct request_queue *q, struct request *rq)
{
	struct bio *bio;

	rq->used = true;
	list_init(&rq->bios);
	do {
		bio = list_entry(list_first(&q->waiting), struct bio, link);
		list_remove(&bio->link);
		list_append(&rq->bios, &bio->link);
		add_bio(rq, bio);
		bio = list_entry(list_first(&q->waiting), struct bio, link);
	} while (!list_empty(&q->waiting) && !(bio->flags & BIO_GETRQ));
	q->busy++;
}

/* The callout runs then. Lock held. */
static void
set_timer(struct request_queue *q, uint64_t ns)
{
	q->timer_ns = ns;
	if (ns != DEADLINE_NEVER)
		callout_set(&q->timer, ns);
}

static uint64_t
deadline_from(uint64_t now)
{
	return now + (uint64_t)timeout_s * 1000000000;
}

/* The request must be done in time. Lock held. */
static void
blk_add_timer(struct request_queue *q, struct request *rq)
{
	rq->deadline_ns = deadline_from(clock_ns());
	if (rq->deadline_ns < q->timer_ns)
		set_timer(q, rq->deadline_ns);
}

/* Gives the driver as many requests as it has room for. Lock held. */
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
blk_mq_start_request(struct gendisk *disk, struct request *rq)
{
	SDT_CTR5(block, , , block_rq_issue,
		 SDT_ARGS6(block_dev(&disk->whole), request_rwbs(rq), rq->size, rq->sector,
			   rq->size / SECTOR_SIZE, sched_comm(curthread())),
		 KTR_GEOM, "request start: device %s tag %u rwbs %s sector %lu bytes %u",
		 disk->whole.ident, rq->tag, request_rwbs(rq), rq->sector, rq->size);
}

/* No lock held. */
static void
bio_end(struct bio *bio, int error)
{
	bio->error = error;
	bio->ended = true;
	SDT_PROBE3(io, , , done, bio, bio, bio);
	bio->done(bio);
}

/* Ends a bio without a request, with -EIO. No lock held. */
static void
bio_fail(struct bio *bio)
{
	CTR4(KTR_GEOM, "bio done: device %s rwbs %s sector %lu error %d", bio->bdev->ident,
	     block_rwbs(bio->op, bio->flags), bio->sector, EIO);
	bio_end(bio, -EIO);
}

/* The first bio of a list, which it leaves. NULL: the list is empty. */
static struct bio *
take_bio(struct list *bios)
{
	struct bio *bio = list_entry(list_first(bios), struct bio, link);

	if (list_empty(bios))
		return NULL;
	list_remove(&bio->link);
	return bio;
}

void
blk_mq_end_request(struct gendisk *disk, struct request *rq, int error)
{
	struct list bios;
	struct bio *bio;

	spin_lock(&disk->queue.lock);
	if (!rq->used) {
		spin_unlock(&disk->queue.lock);
		return;
	}
	SDT_CTR4(block, , , block_rq_complete,
		 SDT_ARGS5(block_dev(&disk->whole), request_rwbs(rq), rq->sector,
			   rq->size / SECTOR_SIZE, error),
		 KTR_GEOM, "request done: device %s tag %u sector %lu error %d", disk->whole.ident,
		 rq->tag, rq->sector, -error);
	if (error != 0)
		SDT_PROBE5(block, , , block_rq_error, block_dev(&disk->whole), request_rwbs(rq),
			   rq->sector, rq->size / SECTOR_SIZE, error);
	disk_stats_end(list_entry(list_first(&rq->bios), struct bio, link), rq->size);
	list_move_all(&rq->bios, &bios);
	rq->used = false;
	disk->queue.busy--;
	blk_mq_run_hw_queue(disk);
	spin_unlock(&disk->queue.lock);
	while ((bio = take_bio(&bios)) != NULL)
		bio_end(bio, error);
}

/* Bios that will not become requests have ended; none of their bytes moved. Lock held. */
static void
end_waiting(struct request_queue *q)
{
	list_for_each_entry (const struct bio, bio, &q->waiting, link)
		if (bio->flags & BIO_GETRQ)
			disk_stats_end(bio, 0);
}

/* Nobody else gets the pages of a request. */
static void
keep_pages(struct request_queue *q, const struct request *rq)
{
	spin_lock(&q->lock);
	if (rq->used)
		list_for_each_entry (const struct bio, bio, &rq->bios, link)
			if (bio->data != NULL)
				page_ref(bio->data);
	spin_unlock(&q->lock);
}

void
blk_mark_disk_dead(struct gendisk *disk, bool stopped)
{
	struct request_queue *q = &disk->queue;
	struct list bios;
	struct bio *bio;

	spin_lock(&q->lock);
	q->dead = true;
	end_waiting(q);
	list_move_all(&q->waiting, &bios);
	spin_unlock(&q->lock);
	while ((bio = take_bio(&bios)) != NULL)
		bio_fail(bio);
	for (unsigned i = 0; i < q->depth; i++) {
		if (!stopped)
			keep_pages(q, &q->requests[i]);
		blk_mq_end_request(disk, &q->requests[i], -EIO);
	}
	if (!stopped)
		pr_warn("%s: it may still use the memory of its requests, which is lost\n",
			disk->whole.name);
}

/*
 * Is a request late? If not, and the driver has some, the callout is set anew. It is also set anew
 * if the callout itself is late: then the machine stood still, and the device with it, and all
 * requests get their time again.
 */
static bool
blk_mq_check_expired(struct request_queue *q)
{
	uint64_t now = clock_ns(), next = DEADLINE_NEVER;
	bool stood;

	spin_lock(&q->lock);
	stood = q->timer_ns != DEADLINE_NEVER && now > q->timer_ns + STOOD_NS;
	for (unsigned i = 0; i < q->depth; i++) {
		struct request *rq = &q->requests[i];

		if (!rq->used)
			continue;
		if (stood)
			rq->deadline_ns = deadline_from(now);
		if (rq->deadline_ns < next)
			next = rq->deadline_ns;
	}
	if (next > now) {
		q->grace = false;
		set_timer(q, next);
	}
	spin_unlock(&q->lock);
	return next <= now;
}

/* Gives the device a moment more, since the machine may have stood. False: it had one already. */
static bool
give_grace(struct request_queue *q)
{
	bool given;

	spin_lock(&q->lock);
	given = q->grace;
	q->grace = true;
	if (!given)
		set_timer(q, clock_ns() + GRACE_NS);
	spin_unlock(&q->lock);
	return !given;
}

static void
blk_mq_timeout_work(void *arg)
{
	struct gendisk *disk = arg;
	struct request_queue *q = &disk->queue;

	if (!blk_mq_check_expired(q))
		return;
	disk->ops->poll(disk); /* the interrupt may be still to come */
	if (!blk_mq_check_expired(q))
		pr_warn("%s: a request was done without an interrupt\n", disk->whole.name);
	else if (!give_grace(q))
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

static void
tell_start(const struct bio *bio)
{
	char path[BIO_PATH_MAX];

	SDT_CTR_DATA4(io, , , start, SDT_ARGS3(bio, bio, bio), KTR_GEOM,
		      "bio start: device %s rwbs %s sector %lu bytes %u file %s", bio->bdev->ident,
		      block_rwbs(bio->op, bio->flags), bio->sector, bio->size, path,
		      bio_path(bio, path));
}

/* Tells what is wanted. False: it cannot be, and has failed. Not inline: probes look for it. */
static __attribute__((noinline)) bool
submit_bio(struct bio *bio)
{
	bool good = bio_check(bio);

	bio->sector += bio->bdev->start;
	if (good && bio->bdev != &bio->bdev->disk->whole)
		SDT_PROBE6(block, , , block_bio_remap, block_dev(bio->bdev),
			   block_rwbs(bio->op, bio->flags), bio->sector, bio->size / SECTOR_SIZE,
			   block_dev(bio->bdev), bio->sector - bio->bdev->start);
	if (good)
		SDT_PROBE5(block, , , block_bio_queue, block_dev(bio->bdev),
			   block_rwbs(bio->op, bio->flags), bio->sector, bio->size / SECTOR_SIZE,
			   sched_comm(curthread()));
	tell_start(bio);
	if (!good)
		bio_fail(bio);
	return good;
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
bio_batch_add(struct bio_batch *b, struct block_device *bdev, unsigned opf, uint64_t sector,
	      void *data, uint32_t size)
{
	b->bio[b->n++] = (struct bio){.bdev = bdev,
				      .sector = sector,
				      .op = opf & BIO_OPS,
				      .flags = (opf & ~BIO_OPS) | b->flags,
				      .data = data,
				      .page = page_of(data),
				      .size = size,
				      .done = batch_done,
				      .owner = b};
}

static bool
is_pending(void *arg)
{
	return __atomic_load_n(&((struct bio_batch *)arg)->pending, __ATOMIC_ACQUIRE) != 0;
}

/* Submits the bios of a batch, of which neighbours become requests. How many these are. */
static unsigned
form_requests(struct bio_batch *b)
{
	const struct bio *before = NULL;
	unsigned requests = 0, count = 0;

	for (unsigned i = 0; i < b->n; i++) {
		struct bio *bio = &b->bio[i];

		if (!submit_bio(bio))
			continue;
		if (before != NULL && count < bio->bdev->disk->queue.max_bios &&
		    blk_attempt_back_merge(before, bio)) {
			SDT_PROBE5(block, , , block_bio_backmerge, block_dev(bio->bdev),
				   block_rwbs(bio->op, bio->flags), bio->sector,
				   bio->size / SECTOR_SIZE, sched_comm(curthread()));
			count++;
		} else {
			SDT_PROBE5(block, , , block_getrq, block_dev(bio->bdev),
				   block_rwbs(bio->op, bio->flags), bio->sector,
				   bio->size / SECTOR_SIZE, sched_comm(curthread()));
			if (requests++ == 0 && b->n > 1)
				SDT_PROBE1(block, , , block_plug, sched_comm(curthread()));
			bio->flags |= BIO_GETRQ;
			count = 1;
		}
		before = bio;
	}
	return requests;
}

/* Tells of the requests of some bios, which are in the queue. Lock held. */
static void
tell_inserted(const struct ktr_site *ktr_probe_, struct gendisk *disk, const struct bio *bio,
	      const struct bio *end)
{
	struct request rq = {.size = 0};
	bool any = false;

	for (; bio < end; bio++) {
		if (bio->ended)
			continue;
		if (any && (bio->flags & BIO_GETRQ))
			tell_request(ktr_probe_, disk, &rq);
		add_bio(&rq, bio);
		any = true;
	}
	if (any)
		tell_request(ktr_probe_, disk, &rq);
}

/* Puts bios of one disk into its queue, but for those that have failed. */
static void
insert_bios(struct bio *first, struct bio *end)
{
	struct gendisk *disk = first->bdev->disk;
	struct request_queue *q = &disk->queue;
	bool dead;

	spin_lock(&q->lock);
	dead = q->dead;
	if (!dead) {
		for (struct bio *bio = first; bio < end; bio++) {
			if (bio->ended)
				continue;
			if (bio->op == BIO_WRITE)
				__atomic_store_n(&disk->written, true, __ATOMIC_RELEASE);
			disk_stats_insert(bio);
			list_append(&q->waiting, &bio->link);
		}
		SDT_FIRE(block, , , block_rq_insert, tell_inserted(ktr_probe_, disk, first, end));
		blk_mq_run_hw_queue(disk);
	}
	spin_unlock(&q->lock);
	for (struct bio *bio = first; dead && bio < end; bio++)
		if (!bio->ended)
			bio_fail(bio);
}

/* Puts the bios of a batch into the queues of their disks, one disk after the other. */
static void
insert_batch(struct bio_batch *b)
{
	struct bio *first = b->bio, *end = b->bio + b->n;

	while (first < end) {
		struct bio *next = first + 1;

		while (next < end && next->bdev->disk == first->bdev->disk)
			next++;
		insert_bios(first, next);
		first = next;
	}
}

/* Waits for a batch. The probes of the wait tell of its last bio. */
static void
await_batch(struct bio_batch *b)
{
	const struct bio *last = &b->bio[b->n - 1];

	SDT_PROBE3(io, , , wait_start, last, last, last);
	while (is_pending(b))
		sleepq_wait(&(struct sleep_request){.chan = b,
						    .still = is_pending,
						    .arg = b,
						    .wmesg = "biowait",
						    .deadline_ns = DEADLINE_NEVER});
	SDT_PROBE3(io, , , wait_done, last, last, last);
}

int
bio_batch_wait(struct bio_batch *b)
{
	unsigned requests;
	int error = 0;

	b->pending = b->n;
	requests = form_requests(b);
	if (requests > 0 && b->n > 1)
		SDT_PROBE2(block, , , block_unplug, sched_comm(curthread()), requests);
	insert_batch(b);
	if (is_pending(b))
		await_batch(b);
	for (unsigned i = 0; i < b->n; i++)
		if (b->bio[i].error != 0)
			error = b->bio[i].error;
	return error;
}
