/*
 * writeback.c - dirty pages of files and disks are written (pagecache.h): by a thread, some seconds
 * after they became dirty, or sooner when there are many; and by sync.
 *
 * The order of a pass is what a reset in the middle of it leaves:
 *
 * 1. Pages of files. Blocks are found for them, which changes bitmaps and tables of blocks.
 * 2. What the file systems have in pages of the device: bitmaps, tables of blocks, directories.
 *    The disks are told to keep all that.
 * 3. The file systems put their inodes and superblocks into pages of the device, and these are
 *    written. The disks are told to keep all.
 *
 * So of what was dirty when the pass began, no inode on the disk has a table of blocks, or a block,
 * that is not there yet: e2fsck would take the garbage in its place for blocks of others, and clear
 * a file of which all else was synced long ago. A file that is written while the pass runs has no
 * such promise: its inode, as it is in 3, may have blocks and tables that the next pass writes.
 * What a reset leaves after 2 are names of inodes that are not used, blocks that nobody has, and
 * files that have lost their names; e2fsck removes, frees and names them anew (lost+found). Within
 * one step, the disk chooses the order.
 *
 * Pages that programs map and change may be dirty anew as soon as they are written. The maps are
 * made read-only after that, so that the next change is noticed (pager_written()): the next pass
 * writes them once more, and then only those that were changed. Where too much is dirty, or memory
 * is short, they are taken out of the maps: the next pass finds them at rest.
 *
 * Locking: `writing` is held for a whole pass, so no page is on its way twice.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/block/bio.h"
#include "kernel/fs/cache/pagecache.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/mm/page.h"
#include "kernel/mm/page_descriptor.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/vm/vm.h"
#include "ktr/ktr.h"

#define BATCH      32           /* pages that are written together */
#define DELAY_NS   5000000000ul /* from the first dirty page to its writing */
#define DIRTY_PART 16           /* of all memory: more makes writers wait */
#define RECLAIM    3            /* passes: one begun, one that cleans maps, one that writes */
#define LOOK_NS    500000000ul  /* how often a waiter for a pass looks whether he has to end */
#define LOOKS_MAX  6            /* … and whether anything was written, if memory is wanted */

/* vnode.io_error: the last error, whether somebody has heard of it, and a number of its own. */
#define IO_ERRNO 0xfffu
#define IO_HEARD 0x1000u
#define IO_NEXT  0x2000u

static struct mutex writing = MUTEX_INIT("writeback");
static struct list clients = LIST_INIT(clients); /* writing */
static struct bio bios[BATCH * PAGE_SECTORS];    /* writing */
static bool failed;                              /* writing: something of this pass */
static bool background;                          /* writing: nobody waits for this pass */
static bool crowded;                /* writing: maps have to let go of what this pass writes */
static bool started;                /* constant after boot: the thread */
static bool wanted, urgent, ending; /* atomic */
static bool crowd;                  /* atomic: a pass has ended: are there too many names? */
static uint64_t passes, batches;    /* atomic: that have ended */

struct written {
	struct page *page[BATCH];
	uint8_t sectors[BATCH];
	uint8_t again[BATCH]; /* sectors that stay dirty */
	unsigned n;
};

/* Collects dirty pages, at most *left, and makes them busy. */
static void
writeback_collect(struct written *w, bool device, unsigned long *left)
{
	struct page *p;

	w->n = 0;
	spin_lock(&pages_lock);
	while (w->n<BATCH && * left> 0 && (p = pagecache_first_dirty(device)) != NULL) {
		void *page = page_address(p);

		if (p->busy) { /* others read the page; or it is in w, and dirty once more */
			if (w->n > 0)
				break;
			sleep_on(page, &pages_lock, "page", 0, DEADLINE_NEVER);
			continue;
		}
		(*left)--;
		page_ref(page);
		w->page[w->n] = p;
		w->sectors[w->n] = p->dirty;
		/* Programs may change it further; two references are the file's and ours. */
		w->again[w->n++] = p->shared && page_refs(page) > 2 ? ALL_SECTORS : 0;
		p->busy = true;
		p->shared = false; /* … until it is written through a map anew */
		pagecache_clean(p);
	}
	spin_unlock(&pages_lock);
}

/*
 * Makes the maps of these bytes read-only, so that the next change is noticed; or, where too much
 * is dirty, takes the pages out of the maps. This comes before the next pages are collected, since
 * `shared` says of these which ones a map may change unnoticed.
 */
static void
clean_maps(const struct vnode *vn, uint64_t from, uint64_t to)
{
	if (vn != NULL && crowded)
		vm_drop_object(vn, from, to);
	else if (vn != NULL)
		vm_clean_object(vn, from, to);
}

/* The pages are not busy any more. Those that programs map may have changed meanwhile. */
static void
let_go(struct written *w)
{
	const struct vnode *mapped = NULL; /* compared only */
	uint64_t from = 0, to = 0;

	for (unsigned i = 0; i < w->n; i++) {
		void *page = page_address(w->page[i]);

		spin_lock(&pages_lock);
		w->page[i]->busy = false;
		spin_unlock(&pages_lock);
		wakeup(page);
		if (w->again[i] != 0)
			pagecache_dirty(page, w->again[i]);
	}
	for (unsigned i = 0; i < w->n; i++) {
		const struct vnode *vn = w->page[i]->vnode;
		uint64_t at = w->page[i]->index * PAGE_SIZE;

		if (w->again[i] == ALL_SECTORS && vn != NULL) {
			if (vn != mapped) {
				clean_maps(mapped, from, to);
				mapped = vn;
				from = to = at;
			}
			from = at < from ? at : from;
			to = at + PAGE_SIZE > to ? at + PAGE_SIZE : to;
		}
		page_unref(page_address(w->page[i]));
	}
	clean_maps(mapped, from, to);
	__atomic_fetch_add(&batches, 1, __ATOMIC_RELAXED);
}

/* Some of what was written to the file is lost. */
static void
note_error(struct vnode *vn, int error)
{
	uint32_t old = __atomic_load_n(&vn->io_error, __ATOMIC_RELAXED), new;

	failed = true;
	do {
		new = (old & ~(IO_ERRNO | IO_HEARD)) | (uint32_t)-error;
		if (old & IO_HEARD)
			new += IO_NEXT;
	} while (!__atomic_compare_exchange_n(&vn->io_error, &old, new, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
}

/* The page is lost; for lack of memory it is tried again. */
static void
note_page_error(const struct page *p, int error)
{
	struct vnode *vn = p->vnode;

	note_error(vn, error);
	CTR3(KTR_BUF, "writeback error: ino %lu page %u error %d", vn->ino, p->index, -error);
}

/* A disk does not confirm what was written, and may lose it: its users hear that, whoever began
 * this pass. */
static void
note_flush_error(struct gendisk *disk)
{
	if (disk->whole.vn != NULL)
		note_error(disk->whole.vn, -EIO);
	for (unsigned i = 0; i < disk->parts; i++)
		if (disk->part[i].vn != NULL)
			note_error(disk->part[i].vn, -EIO);
}

/* Writes the collected pages. */
static void
write_pages(struct written *w)
{
	struct bio_batch b = {.bio = bios,
			      .max = BATCH * PAGE_SECTORS,
			      .flags = background ? BIO_BACKGROUND : 0};
	int e;

	for (unsigned i = 0; i < w->n; i++) {
		struct vnode *vn = w->page[i]->vnode;

		e = vn->ops->writepage(vn, w->page[i]->index, page_address(w->page[i]),
				       w->sectors[i], &b);
		if (e == -ENOMEM)
			w->again[i] |= w->sectors[i];
		if (e != 0)
			note_page_error(w->page[i], e);
	}
	e = bio_batch_wait(&b);
	for (unsigned i = 0; e != 0 && i < b.n; i++)
		if (b.bio[i].error != 0)
			note_page_error(page_of((void *)page_round_down((uintptr_t)b.bio[i].data)),
					-EIO);
}

/* Writes the pages that are dirty now. */
static void
write_dirty(bool device)
{
	unsigned long left = pagecache_count_dirty(device);
	struct written w;

	while (left > 0) {
		writeback_collect(&w, device, &left);
		if (w.n == 0)
			break;
		write_pages(&w);
		let_go(&w);
	}
}

static unsigned long
count_dirty(void)
{
	return pagecache_count_dirty(false) + pagecache_count_dirty(true);
}

bool
writeback_is_late(void)
{
	return count_dirty() >= page_count_total() / DIRTY_PART;
}

static int
sync_all(bool by_thread)
{
	int error = 0, e;

	mutex_lock(&writing);
	failed = false;
	background = by_thread;
	crowded = writeback_is_late() || uidinfo_memory_short();
	write_dirty(false);
	if (!list_empty(&clients) && pagecache_count_dirty(true) > 0) {
		write_dirty(true);
		error = blkdev_issue_flush(note_flush_error);
	}
	list_for_each_entry (struct writeback_client, c, &clients, link)
		failed |= c->sync(c, __atomic_load_n(&ending, __ATOMIC_RELAXED)) != 0;
	write_dirty(true);
	e = blkdev_issue_flush(note_flush_error);
	error = error != 0 ? error : e;
	if (failed && __atomic_load_n(&ending, __ATOMIC_RELAXED))
		pr_warn("not all that was written is on the disks\n");
	mutex_unlock(&writing);
	CTR2(KTR_BUF, "writeback: failed %d error %d", failed, -error);
	return error;
}

int
vfs_sync(void)
{
	return sync_all(false);
}

void
writeback_join(struct writeback_client *c)
{
	mutex_lock(&writing);
	list_append(&clients, &c->link);
	mutex_unlock(&writing);
}

void
writeback_leave(struct writeback_client *c)
{
	mutex_lock(&writing);
	list_remove(&c->link);
	mutex_unlock(&writing);
}

uint32_t
writeback_sample(const struct vnode *vn)
{
	uint32_t now = __atomic_load_n(&vn->io_error, __ATOMIC_RELAXED);

	return now & IO_HEARD ? now : 0;
}

int
writeback_error(struct vnode *vn, uint32_t *since)
{
	uint32_t now = __atomic_load_n(&vn->io_error, __ATOMIC_RELAXED);

	if (now == __atomic_load_n(since, __ATOMIC_RELAXED))
		return 0;
	now = __atomic_or_fetch(&vn->io_error, IO_HEARD, __ATOMIC_RELAXED);
	__atomic_store_n(since, now, __ATOMIC_RELAXED);
	return -(int)(now & IO_ERRNO);
}

static int
sync_since(struct vnode *vn, const struct file *f, uint32_t *since)
{
	int error, e, lost;

	if (vn->disk == NULL && !S_ISBLK(vn->mode))
		return 0;
	error = vn->disk != NULL && vn->disk->remote && !S_ISBLK(vn->mode) ? 0 : vfs_sync();
	e = writeback_error(vn, since);
	lost = vn->disk != NULL ? vn->disk->failed(vn, f) : 0;
	return e != 0 ? e : lost != 0 ? lost : error;
}

int
vnode_sync(struct vnode *vn)
{
	uint32_t since = writeback_sample(vn);

	return sync_since(vn, NULL, &since);
}

int
file_sync(struct file *f)
{
	return sync_since(f->vn, f, &f->io_heard);
}

/* ---- the threads ---- */

static bool
is_false(void *arg)
{
	return !__atomic_load_n((bool *)arg, __ATOMIC_ACQUIRE);
}

static void
await_true(bool *flag, const char *wmesg, uint64_t deadline_ns)
{
	sleepq_wait(&(struct sleep_request){.chan = flag,
					    .still = is_false,
					    .arg = flag,
					    .wmesg = wmesg,
					    .deadline_ns = deadline_ns});
}

static void
set_true(bool *flag)
{
	/* What the caller made dirty is seen, or the flag is false here: writeback_thread(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(flag, __ATOMIC_RELAXED))
		return;
	/* release: pairs with is_false() */
	__atomic_store_n(flag, true, __ATOMIC_RELEASE);
	wakeup(flag);
}

static void
writeback_thread(void *arg)
{
	for (;;) {
		await_true(&wanted, "syncer", DEADLINE_NEVER);
		if (is_false(&wanted))
			continue;
		await_true(&urgent, "syncer", clock_ns() + DELAY_NS);
		__atomic_store_n(&wanted, false, __ATOMIC_RELEASE);
		__atomic_store_n(&urgent, false, __ATOMIC_RELEASE);
		__atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with set_true() */
		sync_all(true);
		__atomic_fetch_add(&batches, 1, __ATOMIC_RELAXED); /* nothing is stuck */
		__atomic_fetch_add(&passes, 1, __ATOMIC_RELEASE);
		wakeup(&passes);
		set_true(&crowd);
	}
}

/*
 * After each pass, forgets names that nobody uses where there are too many. For that it takes
 * vfs_lock, whose holder may be waiting for the next pass: so it is a thread of its own.
 */
static void
trim_thread(void *arg)
{
	for (;;) {
		await_true(&crowd, "trimmer", DEADLINE_NEVER);
		if (is_false(&crowd))
			continue;
		__atomic_store_n(&crowd, false, __ATOMIC_RELEASE);
		vfs_trim();
	}
}

void
writeback_want(void)
{
	set_true(&wanted);
}

bool
writeback_trim(void)
{
	if (started)
		set_true(&crowd);
	return started;
}

void
writeback_hurry(void)
{
	set_true(&urgent);
	set_true(&wanted);
}

static bool
is_same_pass(void *arg)
{
	return __atomic_load_n(&passes, __ATOMIC_ACQUIRE) == *(uint64_t *)arg;
}

/*
 * Waits until the thread has ended a pass, which may have begun before the call, or until the
 * process is to end. If it is not patient, returns false when nothing was written for long, as to a
 * disk that does not answer.
 */
static bool
await_pass(bool patient)
{
	uint64_t pass = __atomic_load_n(&passes, __ATOMIC_ACQUIRE), before, now;
	unsigned looks = 0;

	if (!started) {
		vfs_sync();
		return true;
	}
	writeback_hurry();
	before = __atomic_load_n(&batches, __ATOMIC_RELAXED);
	while (is_same_pass(&pass) && !proc_signal_kills()) {
		if (!patient && looks == LOOKS_MAX)
			return false;
		sleepq_wait(&(struct sleep_request){.chan = &passes,
						    .still = is_same_pass,
						    .arg = &pass,
						    .wmesg = "dirty",
						    .deadline_ns = clock_ns() + LOOK_NS});
		now = __atomic_load_n(&batches, __ATOMIC_RELAXED);
		looks = now == before ? looks + 1 : 0;
		before = now;
	}
	return true;
}

void
writeback_throttle(void)
{
	if (writeback_is_late())
		await_pass(true);
}

bool
writeback_reclaim(void)
{
	static uint64_t stuck = UINT64_MAX; /* atomic: the count of batches when one failed */

	if (!started || __atomic_load_n(&stuck, __ATOMIC_RELAXED) ==
			    __atomic_load_n(&batches, __ATOMIC_RELAXED))
		return false;
	vm_drop_object(NULL, 0, UINT64_MAX);
	for (unsigned i = 0; i < RECLAIM; i++) {
		if (vfs_give_up_pages())
			return true;
		if (count_dirty() == 0)
			return false;
		if (!await_pass(false)) {
			__atomic_store_n(&stuck, __atomic_load_n(&batches, __ATOMIC_RELAXED),
					 __ATOMIC_RELAXED);
			return false;
		}
	}
	return vfs_give_up_pages();
}

void
writeback_start(void)
{
	if (!started)
		started = thread_create("trimmer", PRIO_KERN, trim_thread, NULL) != NULL &&
			  thread_create("syncer", PRIO_KERN, writeback_thread, NULL) != NULL;
	if (!started)
		pr_warn("no memory for the thread that writes to disks: only sync does\n");
}

/* The machine is about to end. */
static void
writeback_shutdown(void)
{
	__atomic_store_n(&ending, true, __ATOMIC_RELAXED);
	/* The second pass says that what the first has written is all. */
	if (vfs_sync() != 0 || vfs_sync() != 0)
		pr_warn("the disks do not say that they have all\n");
}

HOOK(shutdown_sync, writeback_shutdown);
