/*
 * flush.c - the flush: writes what is in the rings to alq_file, when flush_thread.c says so.
 *
 * The thread fills a buffer with frames and writes it to the sink piece by piece. It holds
 * flush.lock for one piece at a time, and never while it waits for the line. So a slow or dead line
 * blocks nothing else: new events overwrite old ones, and the stream reports the loss. A file on a
 * slow disk may make a piece wait, and who changes the flush with it. The thread's
 * own events are refused (ktr_suppress), but for its switches.
 *
 * The thread also ends a stream: whoever switches the flush off waits until it has. On a line that
 * takes nothing that is a second or more, in a signal's reach and with no lock but flush.change.
 *
 * Only events that the sink has taken count as delivered, and at the end of a stream those that the
 * line still has. Others are in the ring for the next stream, or count as overwritten.
 *
 * Locking: [l] flush.lock, a sleep mutex, taken before ktr's control lock; before it flush.change,
 * by who changes the flush. Whoever holds flush.change may wait for the thread, which never takes
 * it. After a panic, and in the debugger, only one CPU runs and no lock is taken.
 */
#include "kernel/trace/flush.h"

#include "kernel/abi/errno.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/kmap.h"
#include "kernel/sched/mutex.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"
#include "kernel/sync/stop.h"
#include "kernel/trace/trace_private.h"
#include "ktr/control.h"
#include "ktr/intern.h"
#include "ktr/ktr.h"
#include "ktr/ring.h"
#include "ktr/stream.h"

#define FLUSH_PIECE      4096u     /* after so many bytes the lock is released, and taken again */
#define FINISH_TRY_NS    100000ull /* between two tries at a busy line, in a stopped machine */
#define FINISH_STALL     10000u  /* failed tries in a row after which a line is dead: 1 s or more */
#define FINISH_TRIES     600000u /* failed tries in all: one minute or more */
#define SLEEP_TRIES      10u /* tries of the thread, which sleeps so long and waits for its CPU */
#define FLUSH_DEPTH_INIT 1024

/* How far the end of the stream is. */
struct flush_end {
	bool asked, closed, whole; /* the stream is to end; it was closed; with all events */
	unsigned passes;           /* that are over */
	unsigned stalled, tries;   /* failed ones, since the line last took something, and all */
};

static struct {
	struct mutex change, lock;
	bool on;                /* [l] written; read anywhere */
	struct flush_end end;   /* [l] */
	struct cond ended;      /* [l] */
	bool said;              /* [l] that events are lost */
	struct trace_sink sink; /* [l] */
	uint8_t *buf;           /* [l] the stream's, size bytes; NULL before the first use */
	size_t size;            /* [l] */
	unsigned depth;         /* [l] entries, for the next buffer */
	uint64_t base_failed;   /* written under [l]; events overwritten before the stream began */
	uint64_t base_lost;     /* [l] events lost before it began */
	struct spinlock naming;
	char path[TRACE_PATH_MAX]; /* [l] and naming written; empty: the machine's line to the host
				    */
	struct ktr_stream stream;  /* [l] */
} flush = {.change = MUTEX_INIT("ktr flush change"),
	   .lock = MUTEX_INIT("ktr flush"),
	   .naming = SPINLOCK_INIT("ktr flush file"),
	   .depth = FLUSH_DEPTH_INIT};

static void
flush_sums(uint64_t *failed, uint64_t *lost)
{
	struct ktr_stats s;

	*failed = *lost = 0;
	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
		if (ktr_stats_get(cpu, &s)) {
			*failed += s.overwritten;
			*lost += s.lost;
		}
}

uint64_t
flush_written(void)
{
	return ktr_stream_events(&flush.stream);
}

uint64_t
flush_failed(void)
{
	uint64_t failed, lost;

	flush_sums(&failed, &lost);
	return failed - flush.base_failed;
}

/* [l] or naming */
static const char *
flush_file(void)
{
	return flush.path[0] != '\0' ? flush.path : trace_sink_default();
}

/* Prints a message when events are lost for the first time since enabling. Lock held. */
static void
flush_say_losses(void)
{
	uint64_t failed, lost;

	if (flush.said)
		return;
	flush_sums(&failed, &lost);
	if (lost <= flush.base_lost)
		return;
	flush.said = true;
	printk("ktr: events are lost, since %s takes them too slowly; larger rings keep more: "
	       "debug.ktr.entries=%u\n",
	       flush_file(), ktr_entries_get() * 2);
}

/* Gives the sink a piece of the stream. FLUSH_IDLE: a pass is over. Lock held, or machine stopped.
 */
static enum flush_result
flush_write(void)
{
	const uint8_t *bytes;
	size_t n, done = 0;

	while (done < FLUSH_PIECE) {
		int64_t some;

		/* Stop at the end of a pass, so that new events cannot keep this loop running. */
		n = ktr_stream_peek(&flush.stream, &bytes);
		if (n == 0)
			return FLUSH_IDLE;
		some = trace_sink_write(&flush.sink, &flush.stream, bytes, n);
		if (some < 0)
			return FLUSH_FAILED;
		if (some == 0)
			return done > 0 ? FLUSH_MORE : FLUSH_BUSY;
		done += (size_t)some;
	}
	return FLUSH_MORE;
}

/*
 * Writes a piece of what had been recorded when the stream was to end: the rest of the current
 * pass, and one more pass. It does not go on until the rings are empty, since writing may itself
 * make events. FLUSH_IDLE: all is written. FLUSH_FAILED: the sink failed, is dead, or its time is
 * up. Tries are counted instead of time, because the debugger or the scheduler may stop this thread
 * at any point, and time in which the line was not tried must not count. Lock held, or machine
 * stopped.
 */
static enum flush_result
flush_drain(void)
{
	struct flush_end *e = &flush.end;
	enum flush_result r = flush_write();

	if (r == FLUSH_BUSY) {
		unsigned tries = stop_inside() ? 1 : SLEEP_TRIES;

		e->stalled += tries;
		e->tries += tries;
		return e->stalled < FINISH_STALL && e->tries < FINISH_TRIES ? r : FLUSH_FAILED;
	}
	e->stalled = 0;
	e->passes += r == FLUSH_IDLE;
	return r == FLUSH_IDLE && e->passes < 2 ? FLUSH_MORE : r;
}

/* Closes the stream; one that could not be written in full says so. Lock held, or machine stopped.
 */
static void
flush_close(bool whole)
{
	if (!whole) /* else the stream would drop frames that the line may yet send */
		trace_sink_let_go(&flush.sink, &flush.stream);
	ktr_stream_close(&flush.stream, !whole);
	if (!whole)
		pr_warn("ktr: %s did not take %llu events\n", flush_file(),
			(unsigned long long)ktr_stream_pending(&flush.stream));
	/* What remains: a frame that is half written, and the END frame. */
	flush.end = (struct flush_end){.asked = true, .closed = true, .whole = whole};
}

/* Does a step to the end of the stream. FLUSH_IDLE: it has ended. Lock held, or machine stopped. */
static enum flush_result
flush_end_step(void)
{
	enum flush_result r = flush_drain();

	if (r == FLUSH_BUSY)
		return FLUSH_ENDING;
	if (r == FLUSH_MORE)
		return r;
	if (flush.end.closed)
		return FLUSH_IDLE;
	flush_close(r == FLUSH_IDLE);
	return FLUSH_MORE;
}

/* The thread does not use the sink any more. Lock held. */
static void
flush_off(void)
{
	flush.on = false;
	trace_sink_close(&flush.sink);
	cond_broadcast(&flush.ended);
}

/* What the thread does next. Lock held. */
static enum flush_result
flush_step(void)
{
	enum flush_result r = FLUSH_IDLE;

	if (flush.on && flush.end.asked) {
		r = flush_end_step();
		if (r == FLUSH_IDLE)
			flush_off();
	} else if (flush.on) {
		ktr_stream_limit(&flush.stream, flush_max());
		r = flush_write();
		flush_say_losses();
		if (r == FLUSH_FAILED) {
			pr_warn("ktr: %s does not take the stream any more; the flush ends\n",
				flush_file());
			ktr_stream_close(&flush.stream, true);
			flush_off();
		} else if (flush_max() != 0 && flush_written() >= flush_max()) {
			flush.end = (struct flush_end){.asked = true};
			r = FLUSH_MORE;
		}
	}
	return r;
}

/* Lets the thread end the stream, and waits for it without the lock, which is held. -EINTR: it ends
 * later. */
static int
flush_stop(int flags)
{
	bool was_on = flush.on;
	int error = 0;

	while (flush.on && error == 0) {
		if (!flush.end.asked)
			flush.end = (struct flush_end){.asked = true};
		flush_kick();
		error = cond_wait(&flush.ended, &flush.lock, "ktrend", flags, DEADLINE_NEVER);
	}
	if (was_on && !flush.on)
		CTR3(KTR_SUBSYS, "ktr flush off: whole %d written %lu failed %lu", flush.end.whole,
		     flush_written(), flush_failed());
	return error;
}

/* Bytes of memory for so many encoded entries, and for what describes them. */
static size_t
buffer_size(unsigned entries)
{
	size_t size = (size_t)entries * KTR_ENTRY_BYTES;

	return size > KTR_ENCODER_OUT ? size : KTR_ENCODER_OUT;
}

/* Opens the sink, and begins a stream in it. flush.change and the lock held. */
static int
flush_begin(const char *path)
{
	struct trace_sink sink = {0};
	uint8_t *buf = flush.buf;
	unsigned depth = flush_depth();
	size_t size = buffer_size(depth);
	int error;

	if (buf == NULL || flush.size != size) {
		buf = kmap_alloc(size);
		if (buf == NULL)
			return -ENOMEM;
	}
	error = trace_sink_open(&sink, path);
	if (error == 0)
		error = flush_stop(SLEEP_INTR);
	if (error < 0) {
		trace_sink_close(&sink);
		if (buf != flush.buf)
			kmap_free(buf);
		return error;
	}
	if (buf != flush.buf && flush.buf != NULL)
		kmap_free(flush.buf);
	flush.buf = buf;
	flush.size = size;
	flush.sink = sink;
	flush.said = false;
	flush.end = (struct flush_end){0};
	ktr_stream_open(&flush.stream, KTR_STREAM_ACCOUNT);
	flush_sums(&flush.base_failed, &flush.base_lost);
	ktr_stream_buffer(&flush.stream, flush.buf, flush.size);
	flush.on = true;
	flush_kick();
	CTR2(KTR_SUBSYS, "ktr flush on: file %s depth %u", ktr_intern(path), depth);
	return 0;
}

static void
flush_lock(void)
{
	mutex_lock(&flush.change);
	mutex_lock(&flush.lock);
}

static void
flush_unlock(void)
{
	mutex_unlock(&flush.lock);
	mutex_unlock(&flush.change);
}

int
flush_set_enabled(bool on)
{
	int error = 0;

	flush_lock();
	if (!on)
		error = flush_stop(SLEEP_INTR);
	else if (!flush.on || flush.end.asked)
		error = flush_begin(flush_file());
	flush_unlock();
	return error;
}

bool
flush_enabled(void)
{
	return __atomic_load_n(&flush.on, __ATOMIC_RELAXED);
}

/* Opens the file to see whether that works. It is created, if it does not exist. */
static int
flush_try_file(const char *path)
{
	struct trace_sink sink;
	int error = trace_sink_open(&sink, path);

	if (error == 0)
		trace_sink_close(&sink);
	return error;
}

static void
flush_name_file(const char *path)
{
	spin_lock(&flush.naming);
	strlcpy(flush.path, path, sizeof(flush.path));
	spin_unlock(&flush.naming);
}

int
flush_set_file(const char *path)
{
	int error = 0;

	if (path[0] != '/' || strlen(path) >= TRACE_PATH_MAX)
		return -EINVAL;
	if (curthread() == NULL) { /* at boot: alq_enable opens it later */
		flush_name_file(path);
		return 0;
	}
	flush_lock();
	if (flush.on && flush.end.asked) /* the stream does not go on in the new file */
		error = flush_stop(SLEEP_INTR);
	if (error == 0)
		error = flush.on ? flush_begin(path) : flush_try_file(path);
	if (error == 0)
		flush_name_file(path);
	flush_unlock();
	return error;
}

void
flush_get_file(char path[TRACE_PATH_MAX])
{
	bool lock = !stop_inside();

	if (lock)
		spin_lock(&flush.naming);
	strlcpy(path, flush_file(), TRACE_PATH_MAX);
	if (lock)
		spin_unlock(&flush.naming);
}

void
flush_set_depth(unsigned entries)
{
	__atomic_store_n(&flush.depth, entries, __ATOMIC_RELAXED);
}

unsigned
flush_depth(void)
{
	return flush.depth;
}

enum flush_result
flush_work(void)
{
	enum flush_result r;

	mutex_lock(&flush.lock);
	r = flush_step();
	mutex_unlock(&flush.lock);
	return r;
}

void
ktr_flush_finish(void)
{
	if (!stop_inside()) {
		flush_lock(); /* a thread that has it may be about to begin a stream */
		if (flush.on) {
			/* Stops the recording, so that nothing is missing after the END frame. */
			ktr_cpumask_set(0);
			flush_stop(0);
		}
		flush_unlock();
		return;
	}
	if (!flush_enabled())
		return;
	ktr_port_final = true;
	if (!trace_sink_is_line(&flush.sink))
		return; /* a file would need threads, and ends with the machine */
	/* The flush thread was stopped while it made frames: make these again, in a new stream. */
	if (__atomic_load_n(&flush.stream.making, __ATOMIC_ACQUIRE))
		ktr_stream_open(&flush.stream, KTR_STREAM_ACCOUNT | KTR_STREAM_STOPPED);
	flush.end = (struct flush_end){.asked = true};
	for (enum flush_result r; (r = flush_end_step()) != FLUSH_IDLE;)
		if (r == FLUSH_ENDING)
			clock_delay_ns(FINISH_TRY_NS);
	flush.on = false;
}

HOOK(shutdown, ktr_flush_finish);
