/*
 * flush.c - the flush: drains the rings into alq_file, when flush_thread.c says so.
 *
 * The thread encodes into one buffer and writes that out piece by piece; flush.lock is held for a
 * piece at a time, never while waiting for the line, so a slow or dead line holds up nothing else:
 * the rings go round, and what was lost stands in the stream. Its own events are refused
 * (ktr_suppress).
 *
 * A machine that stops must not leave a frame half made, or bytes that went out but are not
 * counted: the stream's end would be damaged when it is wanted most. So whoever stops the machine
 * holds the flush first (ktr_flush_hold), which waits for the piece that is under way, and pieces
 * are short.
 *
 * Locking: [l] flush.lock, a sleep mutex, taken before ktr's control lock. With the machine stopped
 * by a panic or the debugger one CPU runs, and goes on without it; `encoding` tells it whether the
 * stream's state was left in the middle of a change all the same.
 */
#include "kernel/trace/flush.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/irq.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/kmap.h"
#include "kernel/sched/mutex.h"
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

#define FLUSH_PIECE      4096u        /* bytes written with the lock held once */
#define FLUSH_BURST      16u          /* bytes given to the line with interrupts off */
#define FLUSH_HOLD_NS    500000000ull /* for a piece to end; emulators take long */
#define FINISH_TRY_NS    100000ull    /* between two tries at a busy line */
#define FINISH_STALL     10000u  /* tries in a row: a line that takes nothing for 1 s is dead */
#define FINISH_TRIES     600000u /* in all: it gets no more than a minute */
#define FLUSH_DEPTH_INIT 64

static struct {
	struct mutex lock;
	bool on;                /* [l] written; read anywhere */
	bool encoding;          /* atomic: inside the encoder */
	bool busy;              /* atomic: inside a piece of work that is not to be cut */
	bool hold;              /* atomic: begin none */
	struct thread *encoder; /* atomic: whose encoding it is */
	bool pass_over;         /* [l] what is in buf ends a pass */
	struct trace_sink sink; /* [l] */
	uint8_t *buf;           /* [l] size bytes, NULL before the first use */
	size_t size, at, len;   /* [l] buf[at, len) is to be written */
	unsigned depth;         /* [l] KiB, for the next buffer */
	uint64_t base_written;  /* [l] sums of the accounting when it was enabled */
	uint64_t base_failed;
	char path[TRACE_PATH_MAX]; /* [l] */
	struct ktr_stream stream;  /* [l] */
} flush = {.lock = MUTEX_INIT("ktr flush"), .depth = FLUSH_DEPTH_INIT, .path = TRACE_SINK_SERIAL};

static void
flush_sums(uint64_t *written, uint64_t *failed)
{
	struct ktr_stats s;

	*written = *failed = 0;
	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
		if (ktr_stats_get(cpu, &s)) {
			*written += s.delivered;
			*failed += s.overwritten;
		}
}

uint64_t
flush_written(void)
{
	uint64_t written, failed;

	flush_sums(&written, &failed);
	return written - flush.base_written;
}

uint64_t
flush_failed(void)
{
	uint64_t written, failed;

	flush_sums(&written, &failed);
	return failed - flush.base_failed;
}

/* Begins a piece of work; false when the machine is about to stop. */
static bool
flush_piece_begin(void)
{
	if (stop_inside())
		return true;
	/* seq_cst, as in ktr_flush_hold(): of both sides one at least sees the other. */
	__atomic_store_n(&flush.busy, true, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&flush.hold, __ATOMIC_SEQ_CST))
		return true;
	__atomic_store_n(&flush.busy, false, __ATOMIC_RELEASE);
	return false;
}

static void
flush_piece_end(void)
{
	if (!stop_inside())
		__atomic_store_n(&flush.busy, false, __ATOMIC_RELEASE);
}

void
ktr_flush_hold(void)
{
	uint64_t start_ns = clock_ns();

	__atomic_store_n(&flush.hold, true, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&flush.encoder, __ATOMIC_ACQUIRE) == curthread() && flush.encoding)
		return; /* the trouble is in the encoder itself */
	while (__atomic_load_n(&flush.busy, __ATOMIC_SEQ_CST) &&
	       clock_ns() - start_ns < FLUSH_HOLD_NS)
		arch_relax();
}

void
ktr_flush_release(void)
{
	__atomic_store_n(&flush.hold, false, __ATOMIC_RELEASE);
}

bool
ktr_flush_rest_begin(void)
{
	if (!flush.encoding || __atomic_load_n(&flush.encoder, __ATOMIC_RELAXED) != curthread() ||
	    stop_inside())
		return false;
	__atomic_store_n(&flush.encoding, false, __ATOMIC_RELEASE);
	__atomic_store_n(&flush.busy, false, __ATOMIC_RELEASE);
	return true;
}

void
ktr_flush_rest_end(void)
{
	while (!flush_piece_begin())
		arch_relax(); /* the machine stops any moment, and may go on */
	__atomic_store_n(&flush.encoding, true, __ATOMIC_RELEASE);
}

/* Encodes up to a buffer's worth, not beyond the end of a pass; false when the stream has nothing.
 */
static bool
flush_encode(void)
{
	flush.at = flush.len = 0;
	flush.pass_over = false;
	/* In pieces: a machine that stops waits for one of them only. */
	while (flush.len < flush.size && !flush.pass_over && flush_piece_begin()) {
		size_t room = flush.size - flush.len;
		size_t want = room < FLUSH_PIECE ? room : FLUSH_PIECE;
		size_t n;

		__atomic_store_n(&flush.encoder, curthread(), __ATOMIC_RELEASE);
		__atomic_store_n(&flush.encoding, true, __ATOMIC_RELEASE);
		n = ktr_stream_read(&flush.stream, flush.buf + flush.len, want);
		flush.pass_over = n == 0;
		__atomic_store_n(&flush.len, flush.len + n, __ATOMIC_RELEASE);
		__atomic_store_n(&flush.encoding, false, __ATOMIC_RELEASE);
		flush_piece_end();
	}
	return flush.len > 0;
}

/*
 * Gives the sink some bytes, and counts them. A file's writing is not held: with the machine
 * stopped, nobody goes on with it.
 */
static int64_t
flush_write_some(void)
{
	size_t left = flush.len - flush.at;
	int64_t n = 0;

	if (flush.sink.uart == NULL) {
		n = trace_sink_write(&flush.sink, flush.buf + flush.at, left);
		flush.at += n > 0 ? (size_t)n : 0;
		return n;
	}
	/* Interrupts off: one of them may be what stops the machine. */
	irq_push();
	if (flush_piece_begin()) {
		n = trace_sink_write(&flush.sink, flush.buf + flush.at,
				     left < FLUSH_BURST ? left : FLUSH_BURST);
		flush.at += n > 0 ? (size_t)n : 0;
		flush_piece_end();
	}
	irq_pop();
	return n;
}

/* Writes a piece of what is encoded. Lock held, or machine stopped. */
static enum flush_result
flush_write(void)
{
	size_t done = 0;

	while (flush.at < flush.len && done < FLUSH_PIECE) {
		int64_t n = flush_write_some();

		if (n < 0)
			return FLUSH_FAILED;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return done > 0 ? FLUSH_MORE : FLUSH_BUSY;
}

/* The thread's piece of work: it rests after each pass. Lock held. */
static enum flush_result
flush_step(void)
{
	if (flush.at == flush.len) {
		bool rest = flush.pass_over;

		flush.pass_over = false;
		if (rest || !flush_encode())
			return FLUSH_IDLE;
	}
	return flush_write();
}

/* Tries at a busy line: those since it took something, and all. */
struct flush_tries {
	unsigned stalled, all;
};

/*
 * Before a busy line is tried again; false when it is dead or had its time. That is counted in
 * tries, not read off a clock: between any two steps the debugger may stop this CPU, or the
 * scheduler take it away, and a line that nobody tried is not dead. Nor is it when a stop of the
 * machine is what keeps us from it.
 */
static bool
flush_try_again(struct flush_tries *t)
{
	if (__atomic_load_n(&flush.hold, __ATOMIC_RELAXED) && !stop_inside()) {
		arch_relax();
		return true;
	}
	clock_delay_ns(FINISH_TRY_NS);
	return ++t->stalled < FINISH_STALL && ++t->all < FINISH_TRIES;
}

/* Writes what is encoded. False when the line is dead or had its time. Lock held, or machine
 * stopped. */
static bool
flush_write_all(struct flush_tries *t)
{
	while (flush.at < flush.len) {
		enum flush_result r = flush_write();

		if (r == FLUSH_MORE)
			t->stalled = 0;
		else if (r == FLUSH_FAILED || !flush_try_again(t))
			return false;
	}
	return true;
}

/*
 * Writes what had been recorded when it was called: to the end of the pass that is under way, and
 * one more. Not until there is nothing, for writing may itself make events. False as
 * flush_write_all().
 */
static bool
flush_drain(void)
{
	struct flush_tries tries = {0};

	for (unsigned passes = 0; flush_write_all(&tries); passes += flush.pass_over) {
		if (passes == 2)
			return true;
		flush_encode();
	}
	return false;
}

/* Ends the stream in good order, or says in it that it was cut. Lock held, or machine stopped. */
static void
flush_end(void)
{
	bool whole = flush_drain();

	if (!whole)
		warnk("ktr: %s did not take %llu events\n", flush.path,
		      (unsigned long long)ktr_stream_pending(&flush.stream));
	CTR3(KTR_SUBSYS, "ktr flush off: whole %d written %lu failed %lu", whole, flush_written(),
	     flush_failed());
	ktr_stream_close(&flush.stream, !whole);
	/* What is half written must be whole, however slow the line: only a dead one ends it. */
	flush_drain();
	flush.on = false;
}

/* Opens the sink, and begins a stream in it. Lock held. */
static int
flush_begin(const char *path)
{
	struct trace_sink sink;
	uint8_t *buf = flush.buf;
	int error;

	if (buf == NULL || flush.size != flush.depth * 1024ul) {
		buf = kmap_alloc(flush.depth * 1024ul);
		if (buf == NULL)
			return -ENOMEM;
	}
	error = trace_sink_open(&sink, path);
	if (error < 0) {
		if (buf != flush.buf)
			kmap_free(buf);
		return error;
	}
	if (flush.on)
		flush_end();
	trace_sink_close(&flush.sink);
	if (buf != flush.buf && flush.buf != NULL)
		kmap_free(flush.buf);
	flush.buf = buf;
	flush.size = flush.depth * 1024ul;
	flush.at = flush.len = 0;
	flush.pass_over = false;
	flush.sink = sink;
	flush_sums(&flush.base_written, &flush.base_failed);
	ktr_stream_open(&flush.stream, KTR_STREAM_ACCOUNT);
	flush.on = true;
	flush_kick();
	CTR2(KTR_SUBSYS, "ktr flush on: file %s depth %u", ktr_intern(path), flush.depth);
	return 0;
}

int
flush_set_enabled(bool on)
{
	int error = 0;

	mutex_lock(&flush.lock);
	if (on && !flush.on) {
		error = flush_begin(flush.path);
	} else if (!on && flush.on) {
		flush_end();
		trace_sink_close(&flush.sink);
	}
	mutex_unlock(&flush.lock);
	return error;
}

bool
flush_enabled(void)
{
	return __atomic_load_n(&flush.on, __ATOMIC_RELAXED);
}

/* Can it be opened? A file is made, so that the answer holds. */
static int
flush_try_file(const char *path)
{
	struct trace_sink sink;
	int error = trace_sink_open(&sink, path);

	if (error == 0)
		trace_sink_close(&sink);
	return error;
}

int
flush_set_file(const char *path)
{
	int error = 0;

	if (path[0] != '/' || strlen(path) >= TRACE_PATH_MAX)
		return -EINVAL;
	if (curthread() == NULL) { /* at boot: alq_enable opens it later */
		strlcpy(flush.path, path, sizeof(flush.path));
		return 0;
	}
	mutex_lock(&flush.lock);
	error = flush.on ? flush_begin(path) : flush_try_file(path);
	if (error == 0)
		strlcpy(flush.path, path, sizeof(flush.path));
	mutex_unlock(&flush.lock);
	return error;
}

const char *
flush_file(void)
{
	return flush.path;
}

int
flush_set_depth(unsigned kib)
{
	uint8_t *buf;
	int error = 0;

	if (curthread() == NULL || flush.buf == NULL) {
		flush.depth = kib; /* flush_begin() makes it */
		return 0;
	}
	mutex_lock(&flush.lock);
	buf = kmap_alloc(kib * 1024ul);
	if (buf == NULL) {
		error = -ENOMEM;
	} else if (flush.len - flush.at > kib * 1024ul) {
		kmap_free(buf); /* what waits does not fit: the next enabling makes it */
		flush.depth = kib;
	} else {
		memcpy(buf, flush.buf + flush.at, flush.len - flush.at);
		kmap_free(flush.buf);
		flush.buf = buf;
		flush.len -= flush.at;
		flush.at = 0;
		flush.depth = kib;
		flush.size = kib * 1024ul;
	}
	mutex_unlock(&flush.lock);
	return error;
}

unsigned
flush_depth(void)
{
	return flush.depth;
}

enum flush_result
flush_work(void)
{
	enum flush_result r = FLUSH_IDLE;

	mutex_lock(&flush.lock);
	if (flush.on) {
		r = flush_step();
		if (r == FLUSH_FAILED) {
			warnk("ktr: %s does not take the stream any more; the flush ends\n",
			      flush.path);
			flush.on = false;
			trace_sink_close(&flush.sink);
		} else if (flush_max() != 0 && flush_written() >= flush_max()) {
			flush_end();
			trace_sink_close(&flush.sink);
		}
	}
	mutex_unlock(&flush.lock);
	return r;
}

void
ktr_flush_finish(void)
{
	bool stopped = stop_inside();

	if (!flush_enabled())
		return;
	if (!stopped) {
		/* Nobody records any more, so that the end record is the last word. */
		ktr_cpumask_set(0);
		mutex_lock(&flush.lock);
		if (flush.on)
			flush_end();
		mutex_unlock(&flush.lock);
		return;
	}
	ktr_port_final = true;
	if (flush.sink.uart == NULL)
		return; /* a file would need threads, and ends with the machine */
	if (__atomic_load_n(&flush.encoding, __ATOMIC_ACQUIRE)) {
		/* Stopped inside the encoder: a stream that goes on from the ring's own count
		 * follows. */
		flush_write_all(&(struct flush_tries){0});
		flush.at = flush.len = 0;
		ktr_stream_open(&flush.stream, KTR_STREAM_ACCOUNT | KTR_STREAM_STOPPED);
	}
	flush_end();
}

HOOK(shutdown, ktr_flush_finish);
