/*
 * stream.c - drains the rings into frames, pass by pass.
 *
 * A pass takes the events below the heads that it finds at its start. It ends with a MARK, a time
 * before which no more events come. That is the time at which the last pass began, if every CPU
 * took an interrupt after that (ktr_port_sync()): a record that had read an earlier clock by then
 * was finished, and lies below the heads of this pass, or it began again and read the clock anew.
 *
 * Invariants: s->cpu[].cursor only grows; each sequence number below it was delivered or reported
 * lost, once. The ring's own cursor and counts follow those of the accounting stream.
 *
 * Locking: the control lock while frames are made, since ktr_resize() exchanges the rings.
 */
#include "ktr/stream.h"

#include "ktr/control.h"
#include "ktr/image.h"
#include "ktr/port.h"
#include "ktr/str.h"

static struct ktr_info ktr_info = {.arch = "unknown", .build = "unknown", .ncpu = 1};

void
ktr_info_set(const struct ktr_info *info)
{
	ktr_info = *info;
	ktr_image_refresh();
}

const struct ktr_info *
ktr_info_get(void)
{
	return &ktr_info;
}

static void
stream_lock(const struct ktr_stream *s)
{
	if ((s->flags & KTR_STREAM_STOPPED) == 0)
		ktr_port_lock();
}

static void
stream_unlock(const struct ktr_stream *s)
{
	if ((s->flags & KTR_STREAM_STOPPED) == 0)
		ktr_port_unlock();
}

/* A CPU that the stream sees for the first time. */
static void
stream_cpu_begin(struct ktr_stream *s, unsigned cpu)
{
	uint64_t tail, head;
	struct ktr_stream_cpu *c = &s->cpu[cpu];
	if (c->exists || !ktr_log_window(s->log, cpu, &tail, &head))
		return;
	*c = (struct ktr_stream_cpu){.exists = true};
	if ((s->flags & KTR_STREAM_ACCOUNT) != 0)
		c->first = s->log->cpu[cpu].cursor;
	else
		c->first = (s->flags & KTR_STREAM_NOW) != 0 ? head : tail;
	c->cursor = c->end = c->first;
}

void
ktr_stream_open(struct ktr_stream *s, unsigned flags)
{
	ktr_stream_open_log(s, &ktr_main, flags);
}

void
ktr_stream_open_log(struct ktr_stream *s, struct ktr_log *log, unsigned flags)
{
	ktr_encoder_init(&s->enc, NULL, log);
	s->log = log;
	s->flags = flags;
	s->state = KTR_STREAM_IDLE;
	s->turn = 0;
	s->mark = s->settled = s->started = 0;
	s->header_at = 0;
	s->first_pass = true;
	s->pass_over = false;
	s->truncated = false;
	stream_lock(s);
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		s->cpu[cpu].exists = false;
		stream_cpu_begin(s, cpu);
	}
	stream_unlock(s);
}

static unsigned
stream_table(struct ktr_stream *s)
{
	struct ktr_wire_cpu *rows = s->rows;
	unsigned n = 0;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		const struct ktr_stream_cpu *c = &s->cpu[cpu];
		uint64_t tail, head = c->cursor;
		if (!c->exists)
			continue;
		ktr_log_window(s->log, cpu, &tail, &head);
		rows[n++] = (struct ktr_wire_cpu){
		    .cpu = cpu,
		    .first = c->first,
		    .next = c->cursor,
		    .delivered = c->delivered,
		    .overwritten = c->overwritten,
		    .cleared = c->cleared,
		    .suppressed = __atomic_load_n(&s->log->cpu[cpu].suppressed, __ATOMIC_RELAXED),
		    .left = head - c->cursor,
		};
	}
	return n;
}

static void
stream_header(struct ktr_stream *s)
{
	unsigned n = stream_table(s);
	unsigned flags = (s->flags & KTR_STREAM_LIVE) != 0 ? KTR_WIRE_LIVE : 0;
	if (s->enc.total == 0) {
		/* Ends whatever an unfinished writer left in the file. */
		ktr_encode_delimiter(&s->enc);
		flags |= KTR_WIRE_START;
	}
	ktr_encoder_forget(&s->enc);
	ktr_encode_header(&s->enc, flags, &ktr_info, s->rows, n);
	s->header_at = s->enc.total;
}

/* What happened to `count` events from the cursor on; the accounting follows. */
static void
stream_advance(struct ktr_stream *s, unsigned cpu, uint64_t count, uint64_t *here, uint64_t *ring)
{
	s->cpu[cpu].cursor += count;
	*here += count;
	if ((s->flags & KTR_STREAM_ACCOUNT) == 0)
		return;
	/* The count and the cursor are one fact for ktr_stats_get(), which takes no lock. */
	uint32_t *moving = &s->log->cpu[cpu].moving;
	__atomic_store_n(moving, *moving | 1, __ATOMIC_RELAXED); /* a panic may have left it odd */
	__atomic_thread_fence(__ATOMIC_RELEASE);                 /* odd before any change is seen */
	__atomic_store_n(ring, *ring + count, __ATOMIC_RELAXED);
	__atomic_store_n(&s->log->cpu[cpu].cursor, s->cpu[cpu].cursor, __ATOMIC_RELAXED);
	/* release: pairs with the acquire in ktr_stats_get() */
	__atomic_store_n(moving, *moving + 1, __ATOMIC_RELEASE);
}

/* Starts a pass when there is something to drain. Control lock held. */
static bool
stream_pass_begin(struct ktr_stream *s)
{
	bool any = false;
	s->started = ktr_port_time();
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		uint64_t tail;
		struct ktr_stream_cpu *c = &s->cpu[cpu];
		stream_cpu_begin(s, cpu);
		if (!c->exists)
			continue;
		ktr_log_window(s->log, cpu, &tail, &c->end);
		any |= c->end > c->cursor;
	}
	/* A pass without events still has a mark to give, if the last one left it. */
	if (!any && !s->first_pass && s->settled <= s->mark)
		return false;
	bool stopped = (s->flags & KTR_STREAM_STOPPED) != 0;
	s->mark = stopped ? s->started : s->settled;
	if (stopped || (any && ktr_port_sync()))
		s->settled = s->started;
	s->first_pass = false;
	s->turn = 0;
	return true;
}

/* The clock of the first event from seq on that can be read; the pass's time when there is none. */
static uint64_t
stream_next_ticks(const struct ktr_stream *s, unsigned cpu, uint64_t seq)
{
	struct ktr_entry entry;
	for (unsigned tries = 0; tries < 4 && seq < s->cpu[cpu].end; tries++, seq++) {
		if (ktr_log_read(s->log, cpu, seq, &entry) == KTR_READ_OK)
			return entry.ticks;
	}
	return s->started;
}

/* Events up to the ring's tail are gone. */
static void
stream_gone(struct ktr_stream *s, unsigned cpu)
{
	struct ktr_stream_cpu *c = &s->cpu[cpu];
	uint64_t tail, head, first = c->cursor;
	if (!ktr_log_window(s->log, cpu, &tail, &head))
		return;
	bool cleared = tail == ktr_log_ring(s->log, cpu)->base;
	uint64_t to = stream_next_ticks(s, cpu, tail);
	uint64_t from = c->ticks != 0 ? c->ticks : ktr_info.boot_ticks;
	ktr_encode_loss(&s->enc, cpu, first, tail - first, from, to,
			cleared ? KTR_LOSS_CLEARED : KTR_LOSS_OVERWRITTEN);
	stream_advance(s, cpu, tail - first, cleared ? &c->cleared : &c->overwritten,
		       &s->log->cpu[cpu].overwritten);
}

/* The run of events from the cursor on that fits into one batch. False: the next one is gone. */
static bool
stream_run(struct ktr_stream *s, unsigned cpu)
{
	struct ktr_stream_cpu *c = &s->cpu[cpu];
	const struct ktr_ring *ring = ktr_log_ring(s->log, cpu);
	struct ktr_entry entry;
	bool there = true;
	uint64_t seq = c->cursor;
	while (seq < c->end) {
		there = ktr_ring_copy(ring, seq, &entry);
		if (!there || !ktr_encode_event(&s->enc, cpu, seq, &entry))
			break;
		c->ticks = entry.ticks;
		seq++;
	}
	if (seq != c->cursor)
		stream_advance(s, cpu, seq - c->cursor, &c->delivered,
			       &s->log->cpu[cpu].delivered);
	ktr_encode_batch(&s->enc);
	return there;
}

/* Makes one batch of a CPU's events, or reports one loss. False: nothing is left of it in this
 * pass. */
static bool
stream_cpu_batch(struct ktr_stream *s, unsigned cpu)
{
	struct ktr_stream_cpu *c = &s->cpu[cpu];
	uint64_t start = c->cursor;
	if (!c->exists || c->cursor >= c->end)
		return false;
	bool there = stream_run(s, cpu);
	if (c->cursor != start)
		return true;
	if (!there)
		stream_gone(s, cpu);
	return c->cursor != start;
}

/* A batch of the next CPU that has one. False: the pass is over. */
static bool
stream_batch(struct ktr_stream *s)
{
	for (unsigned tries = 0; tries < KTR_PORT_MAXCPU; tries++) {
		unsigned cpu = s->turn;
		s->turn = (s->turn + 1) % KTR_PORT_MAXCPU;
		if (stream_cpu_batch(s, cpu))
			return true;
	}
	return false;
}

static void
stream_end(struct ktr_stream *s)
{
	unsigned n = stream_table(s);
	if (s->enc.total == 0)
		stream_header(s);
	if (s->truncated)
		ktr_encode_truncated(&s->enc, s->rows, n);
	ktr_encode_stats(&s->enc, ktr_port_time());
	ktr_encode_end(&s->enc, s->rows, n);
	s->state = KTR_STREAM_ENDED;
}

/* Makes some frames. False: the pass is over, nothing was made. */
static bool
stream_fill(struct ktr_stream *s)
{
	if (s->state == KTR_STREAM_ENDED)
		return false;
	if (s->state == KTR_STREAM_CLOSING) {
		stream_end(s);
		return true;
	}
	if (s->state == KTR_STREAM_IDLE) {
		if (!stream_pass_begin(s))
			return false;
		s->state = KTR_STREAM_PASS;
		if (s->enc.total == 0) {
			stream_header(s);
			return true;
		}
	}
	if (s->enc.total - s->header_at > KTR_STREAM_REPEAT) {
		stream_header(s);
		ktr_encode_stats(&s->enc, ktr_port_time());
		return true;
	}
	if (s->state == KTR_STREAM_PASS && stream_batch(s))
		return true;
	ktr_encode_mark(&s->enc, s->mark);
	s->state = KTR_STREAM_IDLE;
	return true;
}

size_t
ktr_stream_read(struct ktr_stream *s, void *buf, size_t len)
{
	uint8_t *to = buf;
	size_t done = 0;
	while (done < len) {
		size_t n = ktr_encoder_take(&s->enc, to + done, len - done);
		done += n;
		if (n > 0)
			continue;
		/* A reader that goes on until 0 gets one pass, however busy the rings. */
		if (s->pass_over) {
			s->pass_over = done > 0;
			break;
		}
		stream_lock(s);
		bool made = stream_fill(s);
		stream_unlock(s);
		if (!made)
			break;
		s->pass_over = s->state == KTR_STREAM_IDLE;
	}
	return done;
}

uint64_t
ktr_stream_pending(const struct ktr_stream *s)
{
	uint64_t sum = 0;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		uint64_t tail, head;
		if (s->cpu[cpu].exists && ktr_log_window(s->log, cpu, &tail, &head) &&
		    head > s->cpu[cpu].cursor)
			sum += head - s->cpu[cpu].cursor;
	}
	return sum;
}

void
ktr_stream_close(struct ktr_stream *s, bool truncated)
{
	if (s->state == KTR_STREAM_ENDED)
		return;
	s->truncated = truncated;
	s->pass_over = false;
	s->state = KTR_STREAM_CLOSING;
}
