/*
 * blk.c - the tracer `blk`: what happens to requests of the disks that are traced, as blktrace
 * tells it (Linux's kernel/trace/blktrace.c); and the files of /sys/block: DISK/trace, which say
 * which are, and what Linux's tools ask of a disk and its partitions.
 *
 * Its events are made of those of the system block. Locking: ftrace_lock; the hook reads single
 * words.
 */
#include "kernel/abi/errno.h"
#include "kernel/block/probe.h"
#include "kernel/fs/textfile.h"
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/instance.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/thread.h"

#define MINOR_BITS 20
#define MAJOR(dev) ((unsigned)((dev) >> MINOR_BITS))
#define MINOR(dev) ((unsigned)((dev) & ((1u << MINOR_BITS) - 1)))

/* What an event is about; and of which kind: act_mask has bits of these (blktrace_api.h). */
enum { READ, WRITE, FLUSH, SYNC, QUEUE, REQUEUE, ISSUE, COMPLETE, FS, META = 12, KINDS = 16 };
#define BIT(kind) (1u << (kind))
static const char *const kinds[KINDS] = {"read",  "write",   "flush",    "sync",
					 "queue", "requeue", "issue",    "complete",
					 "fs",    "pc",      "notify",   "ahead",
					 "meta",  "discard", "drv_data", "fua"};

/* How the arguments of an event are read, and what is printed. */
enum form { BIO, REQUEST, DONE, REMAP, PLUG, UNPLUG };
static const struct {
	const char *event, *act;
	enum form form;
	unsigned kinds;
} actions[] = {
    {"block_bio_queue", "Q", BIO, BIT(QUEUE)},
    {"block_getrq", "G", BIO, BIT(QUEUE)},
    {"block_bio_backmerge", "M", BIO, BIT(QUEUE)},
    {"block_rq_insert", "I", REQUEST, BIT(QUEUE) | BIT(FS)},
    {"block_rq_issue", "D", REQUEST, BIT(ISSUE) | BIT(FS)},
    {"block_rq_complete", "C", DONE, BIT(COMPLETE) | BIT(FS)},
    {"block_bio_remap", "A", REMAP, BIT(QUEUE)},
    {"block_plug", "P", PLUG, BIT(QUEUE)},
    {"block_unplug", "U", UNPLUG, BIT(QUEUE)},
};
#define ACTIONS (sizeof(actions) / sizeof(actions[0]))
static const struct ktr_site *sites[ACTIONS];

/* last: the error, the number of requests, or the sector on the device `from`. */
TRACER_SITE(blk_site, 6, "ftrace blk: action %lu dev %lu rwbs %s sector %lu count %lu last %ld");
enum { ACTION, DEV, RWBS, SECTOR, COUNT, LAST };
#define FROM_SHIFT 8 /* in ACTION */

/* A disk, and what of it is traced. */
struct blk_trace {
	struct blk_trace *next; /* constant after boot */
	const struct gendisk *disk;
	bool on; /* atomic, as all that follow */
	uint64_t settings[4];
};
enum { ACT_MASK, PID, START_LBA, END_LBA };
static struct blk_trace *traces;

static uint64_t
blk_setting(const struct blk_trace *t, unsigned n)
{
	return __atomic_load_n(&t->settings[n], __ATOMIC_RELAXED);
}

/* ---- the hook ---- */

/* What of the event's first letters is which kind. */
static unsigned
kinds_of(const char *rwbs)
{
	unsigned found = strchr(rwbs, 'W') != NULL ? BIT(WRITE) : BIT(READ);

	return found | (rwbs[0] == 'F' ? BIT(FLUSH) : 0) |
	       (strchr(rwbs, 'S') != NULL ? BIT(SYNC) : 0) |
	       (strchr(rwbs, 'M') != NULL ? BIT(META) : 0);
}

/* The trace of the disk with that device; dev 0: of any disk. NULL: it is not traced. */
static const struct blk_trace *
trace_of(uint64_t dev)
{
	const struct blk_trace *t = traces;

	for (; t != NULL; t = t->next) {
		uint64_t number = t->disk->whole.number;

		if (__atomic_load_n(&t->on, __ATOMIC_RELAXED) &&
		    (dev == 0 ||
		     (MAJOR(dev) == (number >> 8) &&
		      MINOR(dev) / (DISK_PARTS_MAX + 1) == (number & 0xff) / (DISK_PARTS_MAX + 1))))
			break;
	}
	return t;
}

static bool
blk_traces(const struct blk_trace *t, unsigned is, uint64_t sector)
{
	uint64_t pid = blk_setting(t, PID);

	return (blk_setting(t, ACT_MASK) & is) != 0 && (pid == 0 || pid == curthread()->tid) &&
	       (sector == 0 ||
		(sector >= blk_setting(t, START_LBA) && sector <= blk_setting(t, END_LBA)));
}

/* Puts the arguments of an event in our order. */
static void
read_event(const struct ktr_firing *f, enum form form, uint64_t to[KTR_MAXARGS])
{
	const uint64_t *a = f->args;
	unsigned at = form == REQUEST; /* after `bytes` */

	if (form == PLUG || form == UNPLUG) {
		to[RWBS] = (uintptr_t) "N";
		to[LAST] = form == UNPLUG ? a[1] : 0;
		return;
	}
	to[DEV] = (uint32_t)a[0];
	to[RWBS] = strcmp((const char *)a[1], "FF") == 0 ? (uintptr_t) "FN" : a[1];
	to[SECTOR] = a[2 + at];
	to[COUNT] = (uint32_t)a[3 + at];
	if (form == DONE)
		to[LAST] = (uint64_t)(int32_t)a[4];
	if (form == REMAP) {
		to[ACTION] |= (uint64_t)(uint32_t)a[4] << FROM_SHIFT;
		to[LAST] = a[5];
	}
}

void
blk_fire(const struct ktr_firing *f)
{
	uint64_t args[KTR_MAXARGS] = {0};
	const struct blk_trace *t;
	unsigned n = 0;

	while (n < ACTIONS && sites[n] != f->site)
		n++;
	if (n == ACTIONS)
		return;
	args[ACTION] = n;
	read_event(f, actions[n].form, args);
	t = trace_of(args[DEV]);
	if (t == NULL ||
	    !blk_traces(t, actions[n].kinds | kinds_of((const char *)args[RWBS]), args[SECTOR]))
		return;
	if (args[DEV] == 0)
		args[DEV] =
		    (t->disk->whole.number >> 8) << MINOR_BITS | (t->disk->whole.number & 0xff);
	instance_record(instance_of(f), &blk_site, args);
}

void
blk_start(void)
{
	for (unsigned n = 0; n < ACTIONS; n++)
		sites[n] = event_find("block", actions[n].event);
}

bool
blk_wants(const struct ktr_site *site)
{
	unsigned n = 0;

	while (n < ACTIONS && sites[n] != site)
		n++;
	return n < ACTIONS;
}

/* ---- how it is printed ---- */

void
blk_print_head(struct sbuf *out)
{
	sbuf_puts(out, "# DEV   CPU TIMESTAMP     PID ACT FLG\n"
		       "#  |     |     |           |   |   |\n");
}

static void
print_what(struct sbuf *out, const struct ktr_entry *e, enum form form, const char *comm)
{
	const uint64_t *a = e->args;
	unsigned long sector = a[SECTOR], count = a[COUNT];

	if (count != 0)
		sbuf_printf(out, "%lu + %lu ", sector, count);
	else if (form == DONE)
		sbuf_printf(out, "%lu ", sector);
	if (form == DONE)
		sbuf_printf(out, "[%ld]", (long)a[LAST]);
	else if (form == REMAP)
		sbuf_printf(out, "<- (%u,%u) %lu", MAJOR(a[ACTION] >> FROM_SHIFT),
			    MINOR(a[ACTION] >> FROM_SHIFT), a[LAST]);
	else if (form == UNPLUG)
		sbuf_printf(out, "[%s] %lu", comm, a[LAST]);
	else
		sbuf_printf(out, "[%s]", comm);
}

bool
blk_print(struct sbuf *out, const struct instance *i, const struct ktr_entry *e, unsigned cpu)
{
	uint64_t ns = clock_ns_of(e->ticks), n = e->args[ACTION] & (BIT(FROM_SHIFT) - 1);
	char name[KTR_THREAD_NAME], rwbs[8];
	uint32_t tid;

	if (ktr_site_get(e->site) != &blk_site || n >= ACTIONS)
		return false;
	tid = print_thread(e, name);
	strlcpy(rwbs, (const char *)e->args[RWBS], sizeof(rwbs));
	sbuf_printf(out, "%3u,%-3u ", MAJOR(e->args[DEV]), MINOR(e->args[DEV]));
	if (option_on(i, OPTION_BLK_CLASSIC))
		sbuf_printf(out, "%2u %5lu.%09lu %5u ", cpu, ns / 1000000000, ns % 1000000000, tid);
	sbuf_printf(out, "%2s %3s ", actions[n].act, rwbs);
	print_what(out, e, actions[n].form, name);
	return true;
}

/* ---- /sys/block/DISK/trace ---- */

static void
blk_enable_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_printf(out, "%d\n", ((const struct blk_trace *)arg)->on);
}

/* All of the disk is traced. */
static void
blk_enable(struct blk_trace *t, bool on)
{
	if (on && !t->on) {
		t->settings[ACT_MASK] = BIT(KINDS) - 1;
		t->settings[PID] = t->settings[START_LBA] = 0;
		t->settings[END_LBA] = t->disk->whole.sectors;
	}
	/* release: the hook that sees it sees the settings, or some that were there before */
	__atomic_store_n(&t->on, on, __ATOMIC_RELEASE);
}

static int
blk_enable_store(struct instance *i, uintptr_t arg, char *text)
{
	uint64_t on;
	int error = tracefs_number(text, &on);

	if (error == 0)
		blk_enable((struct blk_trace *)arg, on != 0);
	return error;
}

static void
blk_number_show(struct sbuf *out, uintptr_t arg, unsigned n)
{
	const struct blk_trace *t = (const struct blk_trace *)arg;

	if (t->on)
		sbuf_printf(out, "%lu\n", blk_setting(t, n));
	else
		sbuf_puts(out, "disabled\n");
}

static int
blk_number_store(uintptr_t arg, unsigned n, uint64_t value)
{
	struct blk_trace *t = (struct blk_trace *)arg;

	blk_enable(t, true);
	__atomic_store_n(&t->settings[n], value, __ATOMIC_RELAXED);
	return 0;
}

#define NUMBER_FILE(name, n)                                                         \
	static void name##_show(struct instance *i, uintptr_t arg, struct sbuf *out) \
	{                                                                            \
		blk_number_show(out, arg, n);                                        \
	}                                                                            \
	static int name##_store(struct instance *i, uintptr_t arg, char *text)       \
	{                                                                            \
		uint64_t value;                                                      \
		int error = tracefs_number(text, &value);                            \
		return error == 0 ? blk_number_store(arg, n, value) : error;         \
	}
NUMBER_FILE(pid, PID)
NUMBER_FILE(start_lba, START_LBA)
NUMBER_FILE(end_lba, END_LBA)

static void
mask_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	const struct blk_trace *t = (const struct blk_trace *)arg;
	bool any = false;

	for (unsigned n = 0; n < KINDS && t->on; n++)
		if (blk_setting(t, ACT_MASK) & BIT(n)) {
			sbuf_printf(out, "%s%s", any ? "," : "", kinds[n]);
			any = true;
		}
	sbuf_puts(out, t->on ? "\n" : "disabled\n");
}

/* A number, or names with commas between them. */
static int
mask_store(struct instance *i, uintptr_t arg, char *text)
{
	uint64_t mask = 0;

	text = tracefs_trim(text);
	if (tracefs_number(text, &mask) == 0)
		return blk_number_store(arg, ACT_MASK, mask);
	for (mask = 0; *text != '\0';) {
		size_t len = 0;
		unsigned n = 0;

		while (text[len] != '\0' && text[len] != ',')
			len++;
		while (n < KINDS && (strlen(kinds[n]) != len || memcmp(kinds[n], text, len) != 0))
			n++;
		if (n == KINDS && len > 0)
			return -EINVAL;
		mask |= len > 0 ? BIT(n) : 0;
		text += len + (text[len] == ',');
	}
	return blk_number_store(arg, ACT_MASK, mask);
}

static void
fill_trace(struct vnode *dir)
{
	static const struct tracefs_file files[] = {
	    TRACEFS_TEXT("enable", 0644, blk_enable_show, blk_enable_store, NULL),
	    TRACEFS_TEXT("act_mask", 0644, mask_show, mask_store, NULL),
	    TRACEFS_TEXT("pid", 0644, pid_show, pid_store, NULL),
	    TRACEFS_TEXT("start_lba", 0644, start_lba_show, start_lba_store, NULL),
	    TRACEFS_TEXT("end_lba", 0644, end_lba_show, end_lba_store, NULL),
	};

	tracefs_add_all(dir, files, sizeof(files) / sizeof(files[0]), tracefs_arg(dir));
}

/* ---- what /sys/block tells of a disk or a partition ---- */

static void
blk_dev_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	uint32_t dev = block_dev((const struct block_device *)arg);

	sbuf_printf(out, "%u:%u\n", dev >> 20, dev & 0xfffff);
}

static void
blk_size_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_printf(out, "%lu\n", ((const struct block_device *)arg)->sectors);
}

static void
blk_start_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_printf(out, "%lu\n", ((const struct block_device *)arg)->start);
}

static void
blk_stat_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	disk_stats_print((const struct block_device *)arg, out);
}

static void
blk_ro_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_printf(out, "%d\n", ((const struct block_device *)arg)->disk->readonly);
}

static void
blk_removable_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_puts(out, "0\n");
}

/* The number at the end of the name: a table of partitions may leave some out. */
static void
blk_partition_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	const struct block_device *part = (const struct block_device *)arg;

	sbuf_printf(out, "%s\n", part->name + strlen(part->disk->whole.name));
}

static void
fill_part(struct vnode *dir)
{
	static const struct tracefs_file files[] = {
	    TRACEFS_TELLS("dev", blk_dev_show),     TRACEFS_TELLS("partition", blk_partition_show),
	    TRACEFS_TELLS("ro", blk_ro_show),       TRACEFS_TELLS("size", blk_size_show),
	    TRACEFS_TELLS("start", blk_start_show), TRACEFS_TELLS("stat", blk_stat_show),
	};

	tracefs_add_all(dir, files, sizeof(files) / sizeof(files[0]), tracefs_arg(dir));
}

static void
fill_disk(struct vnode *dir)
{
	static const struct tracefs_file trace = {.mode = 0755, .fill = fill_trace},
					 part = {.mode = 0755, .fill = fill_part},
					 files[] = {
					     TRACEFS_TELLS("dev", blk_dev_show),
					     TRACEFS_TELLS("removable", blk_removable_show),
					     TRACEFS_TELLS("ro", blk_ro_show),
					     TRACEFS_TELLS("size", blk_size_show),
					     TRACEFS_TELLS("stat", blk_stat_show),
					 };
	const struct gendisk *disk = ((const struct blk_trace *)tracefs_arg(dir))->disk;

	tracefs_add(dir, &trace, "trace", tracefs_arg(dir));
	tracefs_add_all(dir, files, sizeof(files) / sizeof(files[0]), (uintptr_t)&disk->whole);
	for (unsigned n = 0; n < disk->parts; n++)
		tracefs_add(dir, &part, disk->part[n].name, (uintptr_t)&disk->part[n]);
}

static void
fill_block(struct vnode *dir)
{
	static const struct tracefs_file disk = {.mode = 0755, .fill = fill_disk};

	for (struct blk_trace *t = traces; t != NULL; t = t->next)
		tracefs_add(dir, &disk, t->disk->whole.name, (uintptr_t)t);
}

void
blk_make_files(struct vnode *sys)
{
	struct vnode *block;

	for (const struct gendisk *d = NULL; (d = block_next_disk(d)) != NULL;) {
		struct blk_trace *t = kzalloc(sizeof(*t));

		if (t == NULL) {
			pr_warn("no memory for /sys/block/%s\n", d->whole.name);
			continue;
		}
		t->disk = d;
		t->next = traces;
		traces = t;
	}
	block = traces != NULL ? tracefs_make_dir(sys, "block", 0755) : NULL;
	if (block != NULL) {
		block->fill = fill_block;
		block->missing = true;
	}
	vnode_unref(block);
}
