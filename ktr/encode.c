/*
 * encode.c - frames: type, length, body, checksum, then COBS and a zero byte.
 *
 * Invariants: a frame is complete in `out` or not there; a batch needs nothing from another batch;
 * the metadata that a batch names stands before it in `out`. ktr_encoder_room() leaves room for the
 * batch that is being built and for one event's metadata. Locking: the stream's user.
 */
#include "ktr/encode.h"

#include "ktr/class.h"
#include "ktr/control.h"
#include "ktr/dynamic.h"
#include "ktr/event.h"
#include "ktr/frame.h"
#include "ktr/intern.h"
#include "ktr/port.h"
#include "ktr/str.h"

/* One event: site, thread and six strings; every frame's overhead is far below 16. */
#define ENCODE_METADATA_MAX \
	(KTR_ENCODER_FILE + KTR_ENCODER_FUNC + KTR_ENCODER_FMT + 64 + 7 * (KTR_ENCODER_STRING + 32))
#define ENCODE_BODY_MAX (KTR_ENCODER_FRAME - KTR_WIRE_OVERHEAD)
/* The longest frame after COBS, with its delimiter. */
#define ENCODE_COBS_MAX (KTR_ENCODER_FRAME + KTR_ENCODER_FRAME / 254u + 2u)
/* The longest event: first byte, site, time, thread, six parameters. */
#define ENCODE_EVENT_MAX (1 + 3 + 10 + 5 + 6 * 10)

_Static_assert(128 >= ENCODE_EVENT_MAX, "batch buffer");
_Static_assert(KTR_ENCODER_BATCH + 128 + 64 <= ENCODE_BODY_MAX, "a batch fits a frame");
_Static_assert(ENCODE_METADATA_MAX + 2 * ENCODE_COBS_MAX <= KTR_ENCODER_OUT, "room for one event");
/* A row of the longest table, END: the CPU, six numbers below 2^56, and one of 64 bits. */
#define ENCODE_ROW_MAX (1 + 6 * 8 + 10)
_Static_assert(12 + KTR_PORT_MAXCPU * ENCODE_ROW_MAX <= ENCODE_BODY_MAX,
	       "a table of KTR_PORT_MAXCPU rows fits a frame; KTR_SMALL has room for 8");
/* HEADER: magic, version, flags, boot id, two texts, three numbers and two counts; then tables. */
#define KTR_CLASS(name, bit, text) +(1 + sizeof(#name))
#define ENCODE_HEADER_MAX                                                                          \
	(4 + 2 * 5 + 16 + (1 + KTR_ENCODER_ARCH) + (2 + KTR_ENCODER_STRING) + 2 * 10 + 5 + 2 * 2 + \
	 KTR_PORT_MAXCPU * (1 + 10))
_Static_assert(ENCODE_HEADER_MAX
#include "ktr/classes.def"
		   <= ENCODE_BODY_MAX,
	       "a HEADER of KTR_PORT_MAXCPU rows and all classes fits a frame");
#undef KTR_CLASS

void
ktr_encoder_forget(struct ktr_encoder *e)
{
	ktr_zero(e->sites, sizeof(e->sites));
	ktr_zero(e->recent, sizeof(e->recent));
	ktr_zero(e->strings, sizeof(e->strings));
	ktr_zero(e->threads, sizeof(e->threads));
}

void
ktr_encoder_forget_made(struct ktr_encoder *e)
{
	uint32_t first = ktr_site_number(ktr_dynamic_sites);
	for (uint32_t n = first; n < first + KTR_DYNAMIC_SITES && n < KTR_ENCODER_SITES; n++)
		e->sites[n / 8] &= (uint8_t) ~(1u << n % 8);
	ktr_zero(e->recent, sizeof(e->recent));
}

static struct ktr_site *
own_site(void *arg, unsigned number)
{
	(void)arg;
	return ktr_site_get(number);
}

static uint64_t
own_thread(void *arg, uint32_t tid, char *name)
{
	(void)arg;
	return ktr_names_thread(ktr_names_get(), tid, name);
}

static const char *
own_string_text(void *arg, uint64_t value, char *buf)
{
	(void)arg;
	return ktr_string_text(value, buf);
}

static bool
own_stats(void *arg, unsigned cpu, struct ktr_stats *stats)
{
	return ktr_log_stats_locked(arg != NULL ? arg : &ktr_main, cpu, stats);
}

static uint64_t
own_mask(void *arg)
{
	(void)arg;
	return ktr_mask_get();
}

static const struct ktr_encode_source own_log = {
    .site = own_site,
    .thread = own_thread,
    .string_text = own_string_text,
    .stats = own_stats,
    .mask = own_mask,
};

void
ktr_encoder_init(struct ktr_encoder *e, const struct ktr_encode_source *source, void *arg)
{
	e->source = source != NULL ? source : &own_log;
	e->source_arg = arg;
	ktr_encoder_forget(e);
	e->out = e->own;
	e->out_size = sizeof(e->own);
	e->out_len = e->out_pos = 0;
	e->total = 0;
	e->frame_len = 0;
	e->batch_count = 0;
	e->batch_len = 0;
}

bool
ktr_encoder_room(const struct ktr_encoder *e)
{
	return e->out_len + 2 * ENCODE_COBS_MAX + ENCODE_METADATA_MAX <= e->out_size;
}

static void
frame_begin(struct ktr_encoder *e, enum ktr_wire_type type)
{
	e->frame[0] = (uint8_t)type;
	e->frame_len = 3;
}

static void
put_byte(struct ktr_encoder *e, uint8_t v)
{
	e->frame[e->frame_len++] = v;
}

static void
put_varint(struct ktr_encoder *e, uint64_t v)
{
	e->frame_len += ktr_varint_put(e->frame + e->frame_len, v);
}

static void
encode_text(struct ktr_encoder *e, const char *text, size_t max)
{
	size_t n = 0;
	while (n < max && text[n] != '\0')
		n++;
	put_varint(e, n);
	ktr_copy(e->frame + e->frame_len, text, n);
	e->frame_len += n;
}

/* Appends the frame. */
static void
frame_end(struct ktr_encoder *e)
{
	size_t n = ktr_frame_write(e->out + e->out_len, e->frame, e->frame_len);
	e->total += n;
	e->out_len += n;
	e->frame_len = 0;
}

void
ktr_encode_delimiter(struct ktr_encoder *e)
{
	e->out[e->out_len++] = 0;
	e->total++;
}

void
ktr_encode_header(struct ktr_encoder *e, unsigned flags, const struct ktr_info *info,
		  const struct ktr_wire_cpu *cpus, unsigned n)
{
	frame_begin(e, KTR_WIRE_HEADER);
	ktr_copy(e->frame + e->frame_len, KTR_WIRE_MAGIC, 4);
	e->frame_len += 4;
	put_varint(e, KTR_WIRE_VERSION);
	put_varint(e, flags);
	ktr_copy(e->frame + e->frame_len, info->boot_id, 16);
	e->frame_len += 16;
	encode_text(e, info->arch, KTR_ENCODER_ARCH);
	encode_text(e, info->build, KTR_ENCODER_STRING);
	put_varint(e, info->hz);
	put_varint(e, info->boot_ticks);
	put_varint(e, info->ncpu);
	put_varint(e, n);
	for (unsigned i = 0; i < n; i++) {
		put_varint(e, cpus[i].cpu);
		put_varint(e, cpus[i].next);
	}
	put_varint(e, ktr_class_count);
	for (unsigned i = 0; i < ktr_class_count; i++) {
		unsigned bit = 0;
		while (ktr_classes[i].bit >> bit != 1)
			bit++;
		put_varint(e, bit);
		encode_text(e, ktr_classes[i].name, 31);
	}
	frame_end(e);
}

void
ktr_encode_loss(struct ktr_encoder *e, unsigned cpu, uint64_t first, uint64_t count,
		uint64_t from_ticks, uint64_t to_ticks, enum ktr_wire_loss reason)
{
	frame_begin(e, KTR_WIRE_LOSS);
	put_varint(e, cpu);
	put_varint(e, first);
	put_varint(e, count);
	put_varint(e, from_ticks);
	put_varint(e, to_ticks > from_ticks ? to_ticks - from_ticks : 0);
	put_byte(e, (uint8_t)reason);
	frame_end(e);
}

void
ktr_encode_fault(struct ktr_encoder *e, unsigned cpu, const char *text)
{
	frame_begin(e, KTR_WIRE_FAULT);
	put_varint(e, cpu);
	encode_text(e, text, KTR_ENCODER_STRING);
	frame_end(e);
}

void
ktr_encode_mark(struct ktr_encoder *e, uint64_t ticks)
{
	frame_begin(e, KTR_WIRE_MARK);
	put_varint(e, ticks);
	frame_end(e);
}

uint64_t
ktr_encode_mask(struct ktr_encoder *e)
{
	uint64_t mask = e->source->mask(e->source_arg);
	frame_begin(e, KTR_WIRE_MASK);
	put_varint(e, mask);
	frame_end(e);
	return mask;
}

void
ktr_encode_stats(struct ktr_encoder *e, uint64_t ticks)
{
	struct ktr_stats s;
	unsigned n = 0;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++)
		n += e->source->stats(e->source_arg, cpu, &s);
	frame_begin(e, KTR_WIRE_STATS);
	put_varint(e, ticks);
	put_varint(e, n);
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU && n > 0; cpu++) {
		if (!e->source->stats(e->source_arg, cpu, &s))
			continue;
		put_varint(e, cpu);
		put_varint(e, s.recorded);
		put_varint(e, s.delivered);
		put_varint(e, s.resident);
		put_varint(e, s.overwritten);
		put_varint(e, s.dropped);
		put_varint(e, s.suppressed);
		n--;
	}
	frame_end(e);
}

void
ktr_encode_truncated(struct ktr_encoder *e, const struct ktr_wire_cpu *cpus, unsigned n)
{
	frame_begin(e, KTR_WIRE_TRUNCATED);
	put_varint(e, n);
	for (unsigned i = 0; i < n; i++) {
		put_varint(e, cpus[i].cpu);
		put_varint(e, cpus[i].next);
		put_varint(e, cpus[i].left);
	}
	frame_end(e);
}

void
ktr_encode_end(struct ktr_encoder *e, const struct ktr_wire_cpu *cpus, unsigned n)
{
	frame_begin(e, KTR_WIRE_END);
	put_varint(e, n);
	for (unsigned i = 0; i < n; i++) {
		put_varint(e, cpus[i].cpu);
		put_varint(e, cpus[i].first);
		put_varint(e, cpus[i].next);
		put_varint(e, cpus[i].delivered);
		put_varint(e, cpus[i].overwritten);
		put_varint(e, cpus[i].corrupt);
		put_varint(e, cpus[i].cleared);
		put_varint(e, cpus[i].suppressed);
	}
	frame_end(e);
}

static void
encode_site(struct ktr_encoder *e, const struct ktr_site *site, unsigned number)
{
	if (number < KTR_ENCODER_SITES) {
		uint8_t bit = (uint8_t)(1u << number % 8);
		if ((e->sites[number / 8] & bit) != 0)
			return;
		e->sites[number / 8] |= bit;
	}
	frame_begin(e, KTR_WIRE_SITE);
	put_varint(e, number);
	put_varint(e, site->line);
	put_varint(e, site->classes);
	put_varint(e, site->nargs);
	encode_text(e, site->file, KTR_ENCODER_FILE);
	encode_text(e, site->func, KTR_ENCODER_FUNC);
	encode_text(e, site->fmt, KTR_ENCODER_FMT);
	frame_end(e);
}

#define TOLD_THREAD (1ull << 63) /* flag beside a thread's id; idents have no flag */

/* Was that thread's name, or that ident's, looked at in this batch? If so, once is enough: the
 * batch's events are older than the first look. */
static bool
batch_told(struct ktr_encoder *e, uint64_t what)
{
	uint64_t *told = &e->told[what >> 63][what % KTR_ENCODER_TOLD];
	bool is = *told == what;
	*told = what;
	return is;
}

static __attribute__((noinline)) void
string_frame(struct ktr_encoder *e, uint64_t value, struct ktr_encoder_string sent[2])
{
	char buf[KTR_STRING_MAX];
	bool ident = value >> 48 == KTR_IDENT_TAG;
	uint64_t name = ident ? e->source->thread(e->source_arg, (uint32_t)value, NULL) : 0;
	if (value == 0 || (sent[0].value == value && sent[0].name == name) ||
	    (sent[1].value == value && sent[1].name == name))
		return;
	const char *text = e->source->string_text(e->source_arg, value, buf);
	if (text == NULL)
		return;
	if (sent[0].value != value)
		sent[1] = sent[0];
	sent[0] = (struct ktr_encoder_string){value, name};
	frame_begin(e, KTR_WIRE_STRING);
	put_varint(e, value);
	encode_text(e, text, KTR_ENCODER_STRING);
	frame_end(e);
}

/* The text of a value never changes, except for a thread ident: each name has its own number. */
static inline void
encode_string(struct ktr_encoder *e, uint64_t value)
{
	uint64_t mixed = value * 0x9e3779b97f4a7c15ull;
	/* Remembers two values for each slot, so that two that come in turn are not sent again. */
	struct ktr_encoder_string *sent = e->strings[(mixed >> 54) % KTR_ENCODER_STRINGS];
	bool there = value >> 48 == KTR_IDENT_TAG
			 ? batch_told(e, value)
			 : sent[0].value == value || sent[1].value == value;
	if (!there)
		string_frame(e, value, sent);
}

static void
encode_thread(struct ktr_encoder *e, uint32_t tid)
{
	char name[KTR_THREAD_NAME];
	/* Remembers two threads for each slot, so that two that run in turn are not sent again. */
	uint64_t *sent = e->threads[tid % KTR_ENCODER_THREADS];
	if (batch_told(e, TOLD_THREAD | tid))
		return;
	uint64_t number = e->source->thread(e->source_arg, tid, NULL);
	if (number == 0 || number == sent[0] || number == sent[1])
		return;
	number = e->source->thread(e->source_arg, tid, name);
	if (number == 0)
		return;
	if (sent[0] >> 32 != tid)
		sent[1] = sent[0];
	sent[0] = number;
	frame_begin(e, KTR_WIRE_THREAD);
	put_varint(e, tid);
	encode_text(e, name, sizeof(name) - 1);
	frame_end(e);
}

/* Which parameters are strings: computed once for each site. */
static unsigned
site_strings(struct ktr_site *site)
{
	uint8_t strings = __atomic_load_n(&site->strings, __ATOMIC_RELAXED);
	if ((strings & 0x80) == 0) {
		strings = ktr_event_strings(site->fmt) | 0x80;
		__atomic_store_n(&site->strings, strings, __ATOMIC_RELAXED);
	}
	return strings & 0x7f;
}

static void
batch_begin(struct ktr_encoder *e, unsigned cpu, uint64_t seq, const struct ktr_entry *entry)
{
	e->batch_cpu = cpu;
	e->batch_first = seq;
	e->batch_base = e->batch_ticks = entry->ticks;
	e->batch_tid0 = e->batch_tid = entry->tid;
	e->batch_none = 0;
	e->batch_last = &e->batch_none;
	e->batch_len = 0;
	ktr_zero(e->slots, sizeof(e->slots));
	ktr_zero(e->told, sizeof(e->told));
}

/*
 * Returns the site's slot, cleared if another site had it. The slot of the event before remembers
 * this site as its successor. *predicted: this site was the successor already.
 */
static inline struct ktr_wire_slot *
batch_slot(struct ktr_encoder *e, uint32_t site, bool *predicted)
{
	struct ktr_wire_slot *slot = &e->slots[site % KTR_ENCODER_SLOTS];
	*predicted = *e->batch_last == site + 1;
	*e->batch_last = site + 1;
	if (slot->site != site + 1)
		*slot = (struct ktr_wire_slot){.site = site + 1};
	e->batch_last = &slot->successor;
	return slot;
}

/* ktr_varint_put(), for which most numbers need no loop. */
static inline uint8_t *
batch_number(uint8_t *p, uint64_t v)
{
	if (v < 0x80) {
		*p = (uint8_t)v;
		return p + 1;
	}
	p[0] = (uint8_t)(v | 0x80);
	if (v < 1u << 14) {
		p[1] = (uint8_t)(v >> 7);
		return p + 2;
	}
	p[1] = (uint8_t)(v >> 7 | 0x80);
	if (v < 1u << 21) {
		p[2] = (uint8_t)(v >> 14);
		return p + 3;
	}
	return p + 2 + ktr_varint_put(p + 2, v >> 14);
}

/* Adds an event, and before the batch what its strings need. */
static inline void
batch_add(struct ktr_encoder *e, const struct ktr_entry *entry, const struct ktr_encoder_site *site)
{
	bool predicted;
	struct ktr_wire_slot *slot = batch_slot(e, entry->site, &predicted);
	uint8_t *start = e->batch + e->batch_len, *p = start + 1;
	unsigned first = 0, nargs = site->nargs, strings = site->strings;
	/* A clock that runs backwards is a fault of the port; it must not become a step of 2^64. */
	uint64_t delta = entry->ticks > e->batch_ticks ? entry->ticks - e->batch_ticks : 0;
	if (!predicted) {
		first = KTR_WIRE_EVENT_SITE;
		p = batch_number(p, entry->site);
	}
	e->batch_ticks += delta;
	p = batch_number(p, delta);
	if (entry->tid != e->batch_tid) {
		first |= KTR_WIRE_EVENT_TID;
		p = batch_number(p, entry->tid);
		e->batch_tid = entry->tid;
	}
	for (unsigned i = 0; i < nargs; i++) {
		uint64_t arg = entry->args[i];
		delta = arg - slot->args[i];
		if (delta == 0)
			continue;
		if ((strings >> i & 1) != 0)
			encode_string(e, arg);
		first |= 1u << i;
		p = batch_number(p, ktr_zigzag(delta));
		slot->args[i] = arg;
	}
	*start = (uint8_t)first;
	e->batch_len = (size_t)(p - e->batch);
	e->batch_count++;
}

/* Finds what is known of a site. Makes its SITE frame if the stream does not have it yet. */
static const struct ktr_encoder_site *
known_site(struct ktr_encoder *e, unsigned number)
{
	struct ktr_encoder_site *known = &e->recent[number % KTR_ENCODER_SLOTS];
	if (known->site == number + 1)
		return known;
	struct ktr_site *site = e->source->site(e->source_arg, number);
	*known = (struct ktr_encoder_site){.site = number + 1, .nargs = KTR_MAXARGS};
	if (site != NULL) {
		encode_site(e, site, number);
		known->nargs = site->nargs;
		known->strings = (uint8_t)(site_strings(site) & ((1u << site->nargs) - 1));
	}
	return known;
}

/* Does the batch need a second slot of the wire's where the encoder keeps one? */
static bool
batch_slot_taken(const struct ktr_encoder *e, uint32_t site)
{
	if (KTR_ENCODER_SLOTS == KTR_WIRE_SLOTS)
		return false;
	uint32_t other = e->slots[site % KTR_ENCODER_SLOTS].site;
	return other != 0 && (other - 1 - site) % KTR_WIRE_SLOTS != 0;
}

bool
ktr_encode_event(struct ktr_encoder *e, unsigned cpu, uint64_t seq, const struct ktr_entry *entry)
{
	if (!ktr_encoder_room(e))
		return false;
	if (e->batch_count > 0 &&
	    (e->batch_cpu != cpu || e->batch_first + e->batch_count != seq ||
	     e->batch_len >= KTR_ENCODER_BATCH || batch_slot_taken(e, entry->site)))
		return false;
	const struct ktr_encoder_site *site = known_site(e, entry->site);
	bool begins = e->batch_count == 0;
	if (begins)
		batch_begin(e, cpu, seq, entry);
	/* First the frames that must come before the event, and have not come for this batch. */
	if (begins || entry->tid != e->batch_tid)
		encode_thread(e, entry->tid);
	batch_add(e, entry, site);
	return true;
}

void
ktr_encode_batch(struct ktr_encoder *e)
{
	if (e->batch_count == 0)
		return;
	frame_begin(e, KTR_WIRE_BATCH);
	put_varint(e, e->batch_cpu);
	put_varint(e, e->batch_first);
	put_varint(e, e->batch_count);
	put_varint(e, e->batch_base);
	put_varint(e, e->batch_tid0);
	ktr_copy(e->frame + e->frame_len, e->batch, e->batch_len);
	e->frame_len += e->batch_len;
	frame_end(e);
	e->batch_count = 0;
	e->batch_len = 0;
}
