/*
 * ktr_flush_test.c - the streams that leave the kernel: the flush to a file, and /dev/ktr.
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/uio.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/sysctl.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sysctl/registry.h"
#include "kernel/trace/flush.h"
#include "kernel/trace/trace_private.h"
#include "ktr/ktr.h"
#include "ktr/stream.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/ktr_help.h"

#define FILE_NAME "/tmp/ktest.ktr"
#define EVENTS    3000u

static void
set(const char *name, const char *value)
{
	char err[160] = "";
	int error = sysctl_set_text(name, value, err, sizeof(err));

	if (error != 0)
		ktest_fail(__FILE__, __LINE__, "%s=%s: error %d, %s", name, value, -error, err);
}

/* Ends a flush that a failed test left running, and removes its file. */
static void
flush_reset(void)
{
	set("debug.ktr.alq_enable", "0");
	set("debug.ktr.alq_file", FILE_NAME);
	set("debug.ktr.alq_max", "0");
	vnode_remove(NULL, FILE_NAME, false);
}

/* Ends a test whose file has so many whole streams, with so many events in all. */
static void
end_with_streams(const char *file, uint64_t streams, uint64_t events)
{
	struct ktr_test_stream s;

	ktr_test_read_stream(file, &s);
	KT_EQ(s.damaged, 0);
	KT_GE(s.headers, streams);
	KT_LE(s.headers, streams + s.len / KTR_STREAM_REPEAT);
	KT_EQ(s.ends, streams);
	KT_EQ(s.truncated, 0);
	KT_EQ(s.events, events);
	ktest_note("%lu bytes for %lu events", s.len, s.events);
	ktr_test_free_stream(&s);
	flush_reset();
	ktr_test_end();
}

static void
record_events(unsigned i, void *arg)
{
	for (unsigned n = 0; n < EVENTS; n++) {
		CTR3(KTR_SPARE2, "test: flushed %u %u %s", i, n, "text");
		if (n % 256 == 0)
			thread_sleep_ns(1000000, 0, "ktest");
	}
}

KTEST(ktr_flush_to_a_file_has_every_event_and_an_end)
{
	struct ktr_stats before, after;

	flush_reset();
	ktr_test_begin(16384);
	set("debug.ktr.alq_enable", "1");
	ktr_mask_set(KTR_SPARE2);
	ktr_test_sum(&before);
	ktest_start(ncpus, true, record_events, NULL);
	ktest_join();
	ktr_mask_set(0);
	set("debug.ktr.alq_enable", "0");
	ktr_test_sum(&after);
	KT_EQ(after.recorded - before.recorded, ncpus * EVENTS);
	KT_EQ(after.delivered - before.delivered, ncpus * EVENTS);
	KT_EQ(after.overwritten, before.overwritten);
	KT_EQ(after.resident, 0);
	ktr_test_accounting();
	end_with_streams(FILE_NAME, 1, ncpus * EVENTS);
}

KTEST(ktr_flush_says_what_was_lost)
{
	struct ktr_test_stream s;

	flush_reset();
	ktr_test_begin(64);
	set("debug.ktr.alq_enable", "1");
	set("debug.ktr.alq_enable", "0"); /* also drains what was left in the ring */
	vnode_remove(NULL, FILE_NAME, false);
	ktr_mask_set(KTR_SPARE2);
	ktest_start(ncpus, true, record_events, NULL);
	ktest_join();
	ktr_mask_set(0);
	set("debug.ktr.alq_enable", "1");
	set("debug.ktr.alq_enable", "0");
	ktr_test_read_stream(FILE_NAME, &s);
	KT_EQ(s.damaged, 0);
	KT_EQ(s.events, ncpus * (64 - KTR_RING_SPARE));
	KT_EQ(s.lost, ncpus * (EVENTS - (64 - KTR_RING_SPARE)));
	ktr_test_free_stream(&s);
	flush_reset();
	ktr_test_end();
}

KTEST(ktr_flush_streams_follow_each_other_in_one_file)
{
	flush_reset();
	ktr_test_begin(1024);
	for (unsigned i = 0; i < 3; i++) {
		set("debug.ktr.alq_enable", "1");
		ktr_mask_set(KTR_SPARE2);
		CTR1(KTR_SPARE2, "test: stream %u", i);
		ktr_mask_set(0);
		set("debug.ktr.alq_enable", "0");
	}
	end_with_streams(FILE_NAME, 3, 3);
}

static bool
flush_is_off(void *arg)
{
	int *on = arg;
	struct sbuf out;
	char text[8];

	sbuf_init(&out, text, sizeof(text));
	sysctl_get_text(sysctl_find("debug.ktr.alq_enable"), &out);
	*on = text[0] == '1';
	return !*on;
}

/* Each event has so many parts of data before it, which are not counted. */
static void
flush_to_the_maximum(unsigned parts)
{
	static const char data[80];
	struct ktr_test_stream s;
	int on;

	flush_reset();
	ktr_test_begin(1024);
	set("debug.ktr.alq_max", "100");
	set("debug.ktr.alq_enable", "1");
	ktr_mask_set(KTR_SPARE2);
	for (unsigned i = 0; i < 200; i++) {
		if (parts == 0)
			CTR1(KTR_SPARE2, "test: max %u", i);
		else
			CTR_DATA1(KTR_SPARE2, "test: max %u data %s", i, data, 40 * parts);
	}
	ktr_mask_set(0);
	KT_ASSERT(ktest_wait(flush_is_off, &on));
	KT_EQ(flush_written(), 100);
	ktr_test_read_stream(FILE_NAME, &s);
	KT_EQ(s.ends, 1);
	KT_EQ(s.events, 100 * (1 + parts));
	ktr_test_free_stream(&s);
	flush_reset();
	ktr_test_end();
}

KTEST(ktr_flush_ends_after_alq_max_events)
{
	flush_to_the_maximum(0);
	flush_to_the_maximum(2);
}

/*
 * /dev/ktest.line, a serial line. It accepts `room` bytes, then reports that it is full. Before
 * that it is busy until it has been tried `busy` times, counted while `counts`; with `lasts` only
 * from the time on when it has all events that the flush may write. With `away`, between two such
 * tries more time passes than the timeout of a line that is tried continuously, as if the debugger,
 * the scheduler or the host had taken the CPU away. After `stalls` bytes it is busy for ever. Who
 * writes to it while `holds` waits, and says so by `held`.
 */
#define LINE_AWAY_NS 1100000000ull

static struct {
	bool counts, away; /* atomic */
	bool holds, held;  /* atomic */
	bool lasts;
	unsigned busy; /* atomic */
	size_t stalls, room;
	size_t len, at; /* bytes written; bytes read again */
	uint8_t data[65536];
} test_line;

static bool
line_is_busy(void *arg)
{
	return __atomic_load_n(&test_line.busy, __ATOMIC_ACQUIRE) > 0 &&
	       (!test_line.lasts || flush_written() == flush_max());
}

static bool
line_is_free(void *arg)
{
	return !__atomic_load_n(&test_line.holds, __ATOMIC_ACQUIRE);
}

static bool
line_is_held(void *arg)
{
	return __atomic_load_n(&test_line.held, __ATOMIC_ACQUIRE);
}

static int64_t
line_write(struct file *f, struct uio *u)
{
	size_t limit = test_line.stalls < test_line.room ? test_line.stalls : test_line.room;
	size_t n = limit - test_line.len;

	if (!line_is_free(NULL)) {
		__atomic_store_n(&test_line.held, true, __ATOMIC_RELEASE);
		ktest_wait(line_is_free, NULL);
		__atomic_store_n(&test_line.held, false, __ATOMIC_RELEASE);
	}
	if (line_is_busy(NULL)) {
		if (!__atomic_load_n(&test_line.counts, __ATOMIC_ACQUIRE))
			return -EAGAIN;
		if (test_line.away)
			clock_delay_ns(LINE_AWAY_NS);
		__atomic_fetch_sub(&test_line.busy, 1, __ATOMIC_RELEASE);
		return -EAGAIN;
	}
	if (test_line.len == test_line.stalls)
		return -EAGAIN;
	if (n == 0)
		return -ENOSPC;
	n = n < u->resid ? n : u->resid;
	test_line.len += n;
	return uio_take(u, test_line.data + test_line.len - n, n) < 0 ? -EFAULT : (int64_t)n;
}

static int64_t
line_read(struct file *f, struct uio *u)
{
	size_t n = test_line.len - test_line.at;

	n = n < u->resid ? n : u->resid;
	test_line.at += n;
	return uio_put(u, test_line.data + test_line.at - n, n) < 0 ? -EFAULT : (int64_t)n;
}

/* Starts a flush to an empty line that accepts `room` bytes and stalls after `stalls`. */
static void
line_begin(size_t room, size_t stalls)
{
	static const struct dev_ops ops = {.read = line_read, .write = line_write, .mode = 0600};
	static bool registered;

	if (!registered)
		KT_EQ(devfs_register("ktest.line", &ops, NULL), 0);
	registered = true;
	flush_reset();
	test_line.len = test_line.at = 0;
	test_line.busy = 0;
	test_line.counts = test_line.away = test_line.holds = test_line.lasts = false;
	test_line.room = room;
	test_line.stalls = stalls;
	set("debug.ktr.alq_file", "/dev/ktest.line");
	ktr_test_begin(1024);
}

static void
record_lines(void)
{
	ktr_mask_set(KTR_SPARE2);
	for (unsigned i = 0; i < 700; i++)
		CTR2(KTR_SPARE2, "test: line %u %lu", i, i * 0x9e3779b97f4a7c15ul);
	ktr_mask_set(0);
}

/* The line must hold exactly the events that were delivered since *before. Returns how many. */
static uint64_t
line_accounts(const struct ktr_stats *before)
{
	struct ktr_test_stream s;
	struct ktr_stats after;

	ktr_test_accounting();
	ktr_test_sum(&after);
	test_line.at = 0;
	ktr_test_read_stream("/dev/ktest.line", &s);
	KT_EQ(s.events, after.delivered - before->delivered);
	KT_LE(s.damaged, 1); /* the last frame may be cut off */
	ktr_test_free_stream(&s);
	return after.delivered - before->delivered;
}

/* What waits for a line until it counts as dead, a second a time, does it the same with each number
 * of CPUs. */
static void
one_cpu(void)
{
	if (ncpus > ktest_times(1, MAX_CPUS))
		ktest_skip("one CPU is enough");
}

KTEST(ktr_flush_ends_whole_on_a_line_that_was_not_tried_for_long)
{
	one_cpu();
	line_begin(sizeof(test_line.data), SIZE_MAX);
	test_line.busy = 3; /* one perhaps before the end, and one for each attempt to write it */
	test_line.away = true;
	set("debug.ktr.alq_enable", "1");
	record_lines();
	__atomic_store_n(&test_line.counts, true, __ATOMIC_RELEASE);
	set("debug.ktr.alq_enable", "0");
	KT_EQ(test_line.busy, 0);
	end_with_streams("/dev/ktest.line", 1, 700);
}

static void
end_flush(unsigned i, void *arg)
{
	__atomic_store_n(&test_line.counts, true, __ATOMIC_RELEASE);
	set("debug.ktr.alq_enable", "0");
}

static bool
line_was_tried(void *arg)
{
	return __atomic_load_n(&test_line.busy, __ATOMIC_ACQUIRE) <= *(unsigned *)arg;
}

/*
 * Another thread ends the flush by `end`, on a line that is busy for so many tries. Waits until
 * some of these were made.
 */
static void
end_on_busy_line(unsigned busy, unsigned some, void (*end)(unsigned, void *))
{
	unsigned few = busy - some;

	line_begin(sizeof(test_line.data), SIZE_MAX);
	test_line.busy = busy;
	set("debug.ktr.alq_enable", "1");
	record_lines();
	ktest_start(1, false, end, NULL);
	KT_ASSERT(ktest_wait(line_was_tried, &few));
}

/* The line takes nothing until another sysctl has been set, and two have been read. */
KTEST(ktr_flush_that_waits_for_its_end_keeps_nobody_from_others)
{
	char text[32];
	struct sbuf out;

	end_on_busy_line(1000000, 50, end_flush); /* a thousand tries, and it is dead */
	set("debug.ktr.alq_depth", "1024");
	sbuf_init(&out, text, sizeof(text));
	sysctl_get_text(sysctl_find("debug.ktr.alq_enable"), &out);
	KT_STR_EQ(text, "1");
	sbuf_init(&out, text, sizeof(text));
	sysctl_get_text(sysctl_find("debug.ktr.alq_file"), &out);
	KT_STR_EQ(text, "/dev/ktest.line");
	__atomic_store_n(&test_line.busy, 0, __ATOMIC_RELEASE);
	ktest_join();
	end_with_streams("/dev/ktest.line", 1, 700);
}

KTEST(ktr_flush_that_two_end_at_once_is_off_for_both)
{
	line_begin(sizeof(test_line.data), SIZE_MAX);
	test_line.busy = 100;
	set("debug.ktr.alq_enable", "1");
	record_lines();
	ktest_start(2, false, end_flush, NULL);
	ktest_join();
	KT_ASSERT(!flush_enabled());
	end_with_streams("/dev/ktest.line", 1, 700);
}

/* As a write to a disk that does not answer. */
KTEST(ktr_flush_whose_file_takes_long_keeps_nobody_from_its_name)
{
	char path[TRACE_PATH_MAX];

	line_begin(sizeof(test_line.data), SIZE_MAX);
	__atomic_store_n(&test_line.holds, true, __ATOMIC_RELEASE);
	set("debug.ktr.alq_enable", "1");
	KT_ASSERT(ktest_wait(line_is_held, NULL));
	flush_get_file(path);
	KT_ASSERT(line_is_held(NULL));
	KT_STR_EQ(path, "/dev/ktest.line");
	__atomic_store_n(&test_line.holds, false, __ATOMIC_RELEASE);
	flush_reset();
	ktr_test_end();
}

static void
finish_flush(unsigned i, void *arg)
{
	__atomic_store_n(&test_line.counts, true, __ATOMIC_RELEASE);
	ktr_flush_finish();
}

/* Of the two, one may begin while the other waits: the machine's end has the last word. */
KTEST(ktr_flush_that_is_finished_is_off_after_another_file_is_set)
{
	end_on_busy_line(500, 1, finish_flush);
	set("debug.ktr.alq_file", FILE_NAME);
	ktest_join();
	KT_ASSERT(!flush_enabled());
	flush_reset();
	ktr_test_end();
}

/* It has enough events, and the line takes the end later. */
KTEST(ktr_flush_that_is_ending_is_off_after_another_file_is_set)
{
	unsigned few = 499;

	line_begin(sizeof(test_line.data), SIZE_MAX);
	test_line.counts = test_line.lasts = true;
	test_line.busy = 500;
	set("debug.ktr.alq_max", "100");
	set("debug.ktr.alq_enable", "1");
	record_lines();
	KT_ASSERT(ktest_wait(line_was_tried, &few));
	set("debug.ktr.alq_file", FILE_NAME);
	KT_ASSERT(!flush_enabled());
	flush_reset();
	ktr_test_end();
}

KTEST(ktr_flush_counts_as_delivered_what_a_full_file_took)
{
	struct ktr_stats before;
	uint64_t first;
	int on;

	for (size_t room = 1; room < 20000; room = room * 3 + 100) {
		line_begin(room, SIZE_MAX);
		ktr_test_sum(&before);
		set("debug.ktr.alq_enable", "1");
		record_lines();
		set("debug.ktr.alq_enable", "0"); /* it may have ended itself */
		KT_ASSERT(ktest_wait(flush_is_off, &on));
		first = line_accounts(&before);
		/*
		 * With room again, the next stream holds the events that did not fit into the full
		 * file.
		 */
		test_line.room = sizeof(test_line.data);
		set("debug.ktr.alq_enable", "1");
		set("debug.ktr.alq_enable", "0");
		KT_EQ(line_accounts(&before), 700);
		ktest_note("room for %lu bytes: %lu events", room, first);
	}
	flush_reset();
	ktr_test_end();
}

KTEST(ktr_flush_that_is_disabled_on_a_stalled_line_drops_no_event)
{
	struct ktr_stats before;

	one_cpu();
	line_begin(sizeof(test_line.data), 5000);
	ktr_test_sum(&before);
	set("debug.ktr.alq_enable", "1");
	record_lines();
	set("debug.ktr.alq_enable", "0");
	KT_LT(line_accounts(&before), 700);
	test_line.stalls = SIZE_MAX;
	set("debug.ktr.alq_enable", "1");
	set("debug.ktr.alq_enable", "0");
	KT_EQ(line_accounts(&before), 700);
	flush_reset();
	ktr_test_end();
}

KTEST(ktr_dev_gives_a_snapshot_and_takes_nothing_away)
{
	struct ktr_test_stream s;
	struct ktr_stats before, after;

	ktr_test_begin(1024);
	ktr_mask_set(KTR_SPARE2);
	for (unsigned i = 0; i < 500; i++)
		CTR1(KTR_SPARE2, "test: snapshot %u", i);
	ktr_mask_set(0);
	ktr_test_sum(&before);
	for (unsigned i = 0; i < 2; i++) { /* the second reader gets the same events */
		ktr_test_read_stream("/dev/ktr", &s);
		KT_EQ(s.damaged, 0);
		KT_EQ(s.headers, 1);
		KT_EQ(s.events, 500);
		ktr_test_free_stream(&s);
	}
	ktr_test_sum(&after);
	KT_EQ(after.delivered, before.delivered);
	KT_EQ(after.resident, before.resident);
	ktr_test_end();
}

KTEST(ktr_dev_ends_though_reading_makes_events)
{
	struct ktr_test_stream s;

	ktr_test_begin(1024);
	ktr_mask_set(KTR_VOP | KTR_DEV | KTR_LOCK | KTR_VFS);
	ktr_test_read_stream("/dev/ktr", &s); /* succeeds if it returns */
	ktr_mask_set(0);
	KT_EQ(s.damaged, 0);
	ktr_test_free_stream(&s);
	ktr_test_end();
}
