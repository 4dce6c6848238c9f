/*
 * stream.c - drains the rings into frames, pass by pass, and counts what became of the events.
 *
 * A pass covers the events below the heads that it finds at its start. It ends with a MARK, a time
 * before which no more events come. That is the time at which the last pass began, if every CPU
 * has taken an interrupt since then (ktr_port_sync()). A record that had read an earlier time was
 * finished by that interrupt, and is below the heads of this pass; or the interrupt made it begin
 * again, and it read a later time.
 *
 * Each CPU has two counts. `made` follows the frames that were made. `taken` follows those that the
 * sink took, and only then does the ring's own account move: `frames` says which events are where
 * in the buffer, so that the account is right at every byte at which a sink may fail.
 *
 * Invariants: made.next only grows, unless frames are dropped that nobody took; each sequence
 * number below it stands in one frame, as an event or as lost. The ring's cursor and counts are
 * those of the accounting stream's `taken`.
 *
 * Locking: the control lock while frames are made, because ktr_resize() exchanges the rings. The
 * accounts have one writer, the accounting stream's thread.
 */
#include "ktr/stream.h"

#include "ktr/control.h"
#include "ktr/dynamic.h"
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
	if ((s->flags & KTR_STREAM_ACCOUNT) != 0) {
		c->first = s->log->cpu[cpu].cursor;
		c->ticks = s->log->cpu[cpu].ticks;
		__atomic_store_n(&s->log->cpu[cpu].encoded, c->first, __ATOMIC_RELAXED);
	} else {
		c->first =
		    (s->flags & KTR_STREAM_NOW) != 0
			? head
			: __atomic_load_n(&ktr_log_ring(s->log, cpu)->start, __ATOMIC_RELAXED);
	}
	c->made.next = c->taken.next = c->end = c->first;
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
	s->start_end = s->header_at = 0;
	s->limit = UINT64_MAX;
	s->reused = ktr_dynamic_reused;
	s->frame_count = s->frames_taken = 0;
	s->first_pass = true;
	s->pass_over = s->making = s->truncated = false;
	stream_lock(s);
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		s->cpu[cpu].exists = false;
		stream_cpu_begin(s, cpu);
	}
	stream_unlock(s);
}

void
ktr_stream_buffer(struct ktr_stream *s, void *buf, size_t size)
{
	s->enc.out = buf;
	s->enc.out_size = size;
}

static unsigned
stream_table(struct ktr_stream *s)
{
	struct ktr_wire_cpu *rows = s->rows;
	unsigned n = 0;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		const struct ktr_stream_cpu *c = &s->cpu[cpu];
		uint64_t tail, head = c->made.next;
		if (!c->exists)
			continue;
		ktr_log_window(s->log, cpu, &tail, &head);
		rows[n++] = (struct ktr_wire_cpu){
		    .cpu = cpu,
		    .first = c->first,
		    .next = c->made.next,
		    .delivered = c->made.of[KTR_STREAM_DELIVERED],
		    .overwritten = c->made.of[KTR_LOSS_OVERWRITTEN],
		    .cleared = c->made.of[KTR_LOSS_CLEARED],
		    .suppressed = __atomic_load_n(&s->log->cpu[cpu].suppressed, __ATOMIC_RELAXED),
		    .left = head - c->made.next,
		};
	}
	return n;
}

static void
stream_header(struct ktr_stream *s)
{
	unsigned n = stream_table(s);
	unsigned flags = (s->flags & KTR_STREAM_LIVE) != 0 ? KTR_WIRE_LIVE : 0;
	bool start = s->start_end == 0;
	if (start) {
		/* Ends whatever an unfinished writer left in the file. */
		ktr_encode_delimiter(&s->enc);
		flags |= KTR_WIRE_START;
	}
	ktr_encoder_forget(&s->enc);
	ktr_encode_header(&s->enc, flags, &ktr_info, s->rows, n);
	s->header_at = s->enc.total;
	if (start)
		s->start_end = s->header_at;
	s->mask_told = ktr_encode_mask(&s->enc);
}

/* Notes that the frame that was just made holds the next `count` events of a CPU, or says that
 * they are lost. */
static void
stream_made(struct ktr_stream *s, unsigned cpu, uint64_t count, unsigned what, uint64_t events)
{
	struct ktr_stream_count *made = &s->cpu[cpu].made;
	if ((s->flags & KTR_STREAM_ACCOUNT) != 0) {
		s->frames[s->frame_count++] =
		    (struct ktr_stream_frame){.end = (uint32_t)s->enc.out_len,
					      .cpu = (uint16_t)cpu,
					      .what = (uint16_t)what,
					      .first = made->next,
					      .count = count,
					      .events = events,
					      .ticks = s->cpu[cpu].ticks};
		__atomic_store_n(&s->log->cpu[cpu].encoded, made->next + count, __ATOMIC_RELAXED);
	}
	made->next += count;
	made->of[what] += count;
	made->events += events;
}

/* How many events may still come into the stream. */
static uint64_t
stream_room(const struct ktr_stream *s)
{
	uint64_t made = 0;
	for (unsigned cpu = 0; s->limit != UINT64_MAX && cpu < KTR_PORT_MAXCPU; cpu++)
		made += s->cpu[cpu].exists ? s->cpu[cpu].made.events : 0;
	return made < s->limit ? s->limit - made : 0;
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
		any |= c->end > c->made.next;
	}
	/* A pass without events is still needed if the last pass has left a mark to give. */
	if (!any && !s->first_pass && s->settled <= s->mark)
		return false;
	bool stopped = (s->flags & KTR_STREAM_STOPPED) != 0;
	s->mark = stopped ? s->started : s->settled;
	/* No frame is half made here: if the machine stops during this wait, the stream can be
	 * used. */
	__atomic_store_n(&s->making, false, __ATOMIC_RELEASE);
	if (stopped || (any && ktr_port_sync()))
		s->settled = s->started;
	__atomic_store_n(&s->making, true, __ATOMIC_RELEASE);
	s->first_pass = false;
	s->turn = 0;
	return true;
}

#define STREAM_TRIES 100u /* tries to read an event that is overwritten next */

/* The oldest event in the ring that can be read: its number, or the tail's, and its time, or 0. */
static uint64_t
stream_oldest(const struct ktr_stream *s, unsigned cpu, uint64_t *ticks)
{
	struct ktr_entry entry;
	uint64_t tail = 0, head;
	*ticks = 0;
	for (unsigned tries = 0; tries < STREAM_TRIES; tries++) {
		ktr_log_window(s->log, cpu, &tail, &head);
		if (ktr_log_read(s->log, cpu, tail, &entry) == KTR_READ_OK) {
			*ticks = entry.ticks;
			break;
		}
	}
	return tail;
}

/* The time at which a loss begins: that of the last event before it, or the log's beginning. */
static uint64_t
stream_last_ticks(const struct ktr_stream_cpu *c, const struct ktr_ring *ring)
{
	uint64_t since = ktr_ring_since(ring);
	return c->ticks != 0 ? c->ticks : since != 0 ? since : ktr_info.boot_ticks;
}

/*
 * Reports that the next events are gone, up to where the log was cleared, or to the oldest event
 * that can be read. The loss ends at that event. If there is no event, it ends at the mark, since
 * events to come are not before that.
 */
static void
stream_gone(struct ktr_stream *s, unsigned cpu)
{
	struct ktr_stream_cpu *c = &s->cpu[cpu];
	const struct ktr_ring *ring = ktr_log_ring(s->log, cpu);
	uint64_t to, first = c->made.next, end = stream_oldest(s, cpu, &to);
	uint64_t start = __atomic_load_n(&ring->start, __ATOMIC_RELAXED);
	uint64_t since = ktr_ring_since(ring), from = stream_last_ticks(c, ring);
	enum ktr_wire_loss reason = first < start ? KTR_LOSS_CLEARED : KTR_LOSS_OVERWRITTEN;
	if (first < start) {
		end = start;
		to = since;
	}
	to = to != 0 ? to : s->mark;
	to = to > from ? to : from;
	ktr_encode_loss(&s->enc, cpu, first, end - first, from, to, reason);
	c->ticks = to;
	stream_made(s, cpu, end - first, reason, 0);
}

/* Makes a batch of a CPU's events, or a loss. False: nothing of the CPU is left in this pass. */
static bool
stream_batch(struct ktr_stream *s, unsigned cpu)
{
	struct ktr_stream_cpu *c = &s->cpu[cpu];
	const struct ktr_ring *ring = ktr_log_ring(s->log, cpu);
	struct ktr_entry entry;
	bool there = true;
	uint64_t first = c->made.next, seq = first, end = c->end, parts = 0, room = stream_room(s);
	uint32_t part_site = ktr_site_number(&ktr_data_site);
	if (!c->exists)
		return false;
	if (end > first && end - first > room)
		end = first + room;
	while (seq < end) {
		there = ktr_ring_copy(ring, seq, &entry);
		if (!there || !ktr_encode_event(&s->enc, cpu, seq, &entry))
			break;
		seq++;
		parts += entry.site == part_site;
	}
	ktr_encode_batch(&s->enc);
	if (seq != first) {
		c->ticks = s->enc.batch_ticks; /* of the last event */
		stream_made(s, cpu, seq - first, KTR_STREAM_DELIVERED, seq - first - parts);
	} else if (!there) {
		stream_gone(s, cpu);
	}
	return c->made.next != first;
}

static void
stream_end(struct ktr_stream *s)
{
	unsigned n = stream_table(s);
	if (s->start_end == 0)
		stream_header(s);
	if (s->truncated)
		ktr_encode_truncated(&s->enc, s->rows, n);
	ktr_encode_mask(&s->enc);
	ktr_encode_stats(&s->enc, ktr_port_time());
	ktr_encode_end(&s->enc, s->rows, n);
	s->state = KTR_STREAM_ENDED;
}

/* Makes the next frames: the header, a batch, or what ends a pass. False: there is nothing. */
static bool
stream_fill(struct ktr_stream *s)
{
	if (s->state == KTR_STREAM_ENDED || (s->state == KTR_STREAM_IDLE && !stream_pass_begin(s)))
		return false;
	if (s->state == KTR_STREAM_CLOSING) {
		stream_end(s);
		return true;
	}
	s->state = KTR_STREAM_PASS;
	if (s->reused != ktr_dynamic_reused)
		ktr_encoder_forget_made(&s->enc);
	s->reused = ktr_dynamic_reused;
	if (s->start_end == 0 || s->enc.total - s->header_at > KTR_STREAM_REPEAT) {
		bool again = s->start_end != 0;
		stream_header(s);
		if (again)
			ktr_encode_stats(&s->enc, ktr_port_time());
		return true;
	}
	for (unsigned tries = 0; tries < KTR_PORT_MAXCPU; tries++) {
		unsigned cpu = s->turn;
		s->turn = (s->turn + 1) % KTR_PORT_MAXCPU;
		if (stream_batch(s, cpu))
			return true;
	}
	if (ktr_mask_get() != s->mask_told)
		s->mask_told = ktr_encode_mask(&s->enc);
	if (stream_room(s) > 0)
		ktr_encode_mark(&s->enc, s->mark);
	s->state = KTR_STREAM_IDLE;
	return true;
}

size_t
ktr_stream_peek(struct ktr_stream *s, const uint8_t **bytes)
{
	struct ktr_encoder *e = &s->enc;
	bool made = true;
	if (e->out_pos == e->out_len) {
		/* Reading until 0 gives one pass, however busy the rings are. */
		if (s->pass_over) {
			s->pass_over = false;
			return 0;
		}
		__atomic_store_n(&s->making, true, __ATOMIC_RELEASE);
		e->out_pos = e->out_len = 0;
		s->frame_count = s->frames_taken = 0;
		while (made && !s->pass_over && ktr_encoder_room(e) &&
		       s->frame_count < KTR_STREAM_FRAMES) {
			stream_lock(s);
			made = stream_fill(s);
			stream_unlock(s);
			s->pass_over = made && s->state == KTR_STREAM_IDLE;
		}
		__atomic_store_n(&s->making, false, __ATOMIC_RELEASE);
	}
	*bytes = e->out + e->out_pos;
	return e->out_len - e->out_pos;
}

static void
count_frame(struct ktr_stream_count *c, const struct ktr_stream_frame *f)
{
	if (c->next != f->first)
		return; /* a thread that was stopped in here has counted them already */
	c->of[f->what] += f->count;
	c->events += f->events;
	c->next = f->first + f->count;
}

/* The sink has the whole frame: its events are accounted for. */
static void
stream_take_frame(struct ktr_stream *s, const struct ktr_stream_frame *f)
{
	struct ktr_log_cpu *account = &s->log->cpu[f->cpu];
	uint64_t lost = f->what == KTR_STREAM_DELIVERED ? 0 : f->count;
	if (f->first == account->cursor) {
		/* ktr_stats_get() must see both changes or none, even if the machine stops in here.
		 */
		uint32_t *moving = &account->moving;
		/* a panic may have left it odd */
		__atomic_store_n(moving, *moving | 1, __ATOMIC_RELAXED);
		/* odd before any change is seen */
		__atomic_thread_fence(__ATOMIC_RELEASE);
		__atomic_store_n(&account->overwritten, account->overwritten + lost,
				 __ATOMIC_RELAXED);
		account->ticks = f->ticks;
		__atomic_store_n(&account->cursor, f->first + f->count, __ATOMIC_RELAXED);
		/* release: pairs with the acquire in ktr_stats_get() */
		__atomic_store_n(moving, *moving + 1, __ATOMIC_RELEASE);
	}
	count_frame(&s->cpu[f->cpu].taken, f);
}

void
ktr_stream_taken(struct ktr_stream *s, size_t n)
{
	struct ktr_encoder *e = &s->enc;
	__atomic_store_n(&e->out_pos, e->out_pos + n, __ATOMIC_RELAXED);
	/* A frame counts without its zero byte: another zero byte follows, or the end of the file.
	 */
	for (; s->frames_taken < s->frame_count; s->frames_taken++) {
		const struct ktr_stream_frame *f = &s->frames[s->frames_taken];
		if (e->out_pos + 1 < f->end)
			break;
		stream_take_frame(s, f);
	}
}

size_t
ktr_stream_read(struct ktr_stream *s, void *buf, size_t len)
{
	const uint8_t *bytes;
	size_t done = 0, n;
	while (done < len) {
		if (done > 0 && s->pass_over && s->enc.out_pos == s->enc.out_len)
			break; /* the next call returns 0 */
		n = ktr_stream_peek(s, &bytes);
		if (n == 0)
			break;
		n = n < len - done ? n : len - done;
		ktr_copy((uint8_t *)buf + done, bytes, n);
		ktr_stream_taken(s, n);
		done += n;
	}
	return done;
}

void
ktr_stream_limit(struct ktr_stream *s, uint64_t events)
{
	s->limit = events != 0 ? events : UINT64_MAX;
}

uint64_t
ktr_stream_events(const struct ktr_stream *s)
{
	uint64_t sum = 0;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		const struct ktr_stream_cpu *c = &s->cpu[cpu];
		sum += c->exists ? __atomic_load_n(&c->taken.events, __ATOMIC_RELAXED) : 0;
	}
	return sum;
}

uint64_t
ktr_stream_pending(const struct ktr_stream *s)
{
	uint64_t sum = 0;
	stream_lock(s); /* ktr_resize() frees rings */
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		uint64_t tail, head, next = s->cpu[cpu].made.next;
		if (s->cpu[cpu].exists && ktr_log_window(s->log, cpu, &tail, &head) && head > next)
			sum += head - next;
	}
	stream_unlock(s);
	return sum;
}

/* Drops the frames of which nothing was taken: their events stand in no frame any more. */
static void
stream_cut(struct ktr_stream *s)
{
	struct ktr_encoder *e = &s->enc;
	size_t end = e->out_pos;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++)
		s->cpu[cpu].made = s->cpu[cpu].taken;
	/* A frame of which some bytes were taken stays. */
	while (end > 0 && end < e->out_len && e->out[end - 1] != 0)
		end++;
	for (unsigned i = s->frames_taken; i < s->frame_count && s->frames[i].end <= end; i++)
		count_frame(&s->cpu[s->frames[i].cpu].made, &s->frames[i]);
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++)
		if (s->cpu[cpu].exists)
			__atomic_store_n(&s->log->cpu[cpu].encoded, s->cpu[cpu].made.next,
					 __ATOMIC_RELAXED);
	e->total -= e->out_len - end;
	e->out_len = end;
	if (e->total < s->start_end)
		s->start_end = 0; /* the stream's first frame was dropped */
}

void
ktr_stream_close(struct ktr_stream *s, bool truncated)
{
	if (s->state == KTR_STREAM_ENDED)
		return;
	if (truncated && (s->flags & KTR_STREAM_ACCOUNT) != 0)
		stream_cut(s);
	s->truncated = truncated;
	s->pass_over = false;
	s->state = KTR_STREAM_CLOSING;
}
