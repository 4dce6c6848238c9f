/*
 * decode_frame.c - the bodies of frames: metadata, events, gaps.
 *
 * Invariant: a CPU's events and gaps are handed on in the order of sequence numbers; a jump forward
 * that no LOSS frame explains becomes a gap with reason "damaged". Locking: none.
 */
#include "ktr/decode_body.h"
#include "ktr/decode_private.h"

#include "ktr/event.h"
#include "ktr/fmt.h"
#include "ktr/str.h"

/* The bytes of a text in the body. */
static const uint8_t *
body_bytes(struct body *b, size_t *n)
{
	uint64_t length = body_varint(b);
	b->bad |= length > (uint64_t)(b->end - b->p);
	*n = b->bad ? 0 : (size_t)length;
	b->p += *n;
	return b->p - *n;
}

static const char *
body_text(struct ktr_decoder *d, struct body *b)
{
	size_t n;
	const uint8_t *bytes = body_bytes(b, &n);
	const char *text = b->bad ? "" : decode_text(d, bytes, n);
	b->bad |= text == NULL;
	return text != NULL ? text : "";
}

static void
gap_emit(struct ktr_decoder *d, unsigned cpu, uint64_t first, uint64_t count, uint64_t from,
	 uint64_t to, enum ktr_gap_reason reason)
{
	struct ktr_decode_gap gap = {.header = d->header,
				     .cpu = cpu,
				     .reason = reason,
				     .first = first,
				     .count = count,
				     .from_ticks = from,
				     .to_ticks = to};
	if (count > 0 && d->ops.gap != NULL)
		d->ops.gap(d->arg, &gap);
}

/* The CPU's next event is seq. If events are missing before it, they were in frames that could not
 * be read. False: seq is lower than expected, which does not happen in a sound stream. */
static bool
cpu_expect(struct ktr_decoder *d, unsigned cpu, uint64_t seq, uint64_t ticks)
{
	struct decode_cpu *c = &d->cpu[cpu];
	if (c->known && seq > c->next) {
		uint64_t from = c->ticks != 0 ? c->ticks : d->header->boot_ticks;
		gap_emit(d, cpu, c->next, seq - c->next, from, ticks > from ? ticks : from,
			 KTR_GAP_DAMAGED);
	}
	bool back = c->known && seq < c->next;
	c->known = true;
	c->next = seq;
	return !back;
}

static const char no_room[] = "more texts and names than are kept";

static bool
header_same(const struct ktr_decode_header *a, const struct ktr_decode_header *b)
{
	bool same = a->flags == b->flags && a->arch == b->arch && a->build == b->build &&
		    a->hz == b->hz && a->boot_ticks == b->boot_ticks && a->ncpu == b->ncpu;
	for (unsigned i = 0; i < 16; i++)
		same = same && a->boot_id[i] == b->boot_id[i];
	for (unsigned i = 0; i < 64; i++)
		same = same && a->classes[i] == b->classes[i];
	return same;
}

/* Reads a HEADER. cpus becomes its list of CPUs. */
static const char *
header_read(struct ktr_decoder *d, struct body *b, struct ktr_decode_header *h, struct body *cpus)
{
	for (unsigned i = 0; i < 4; i++)
		if (body_byte(b) != (uint8_t)KTR_WIRE_MAGIC[i])
			return "wrong magic";
	if (body_varint(b) != KTR_WIRE_VERSION)
		return "a version of the format that this program does not know";
	h->flags = body_u32(b);
	for (unsigned i = 0; i < 16; i++)
		h->boot_id[i] = (uint8_t)body_byte(b);
	h->arch = body_text(d, b);
	h->build = body_text(d, b);
	h->hz = body_varint(b);
	h->boot_ticks = body_varint(b);
	h->ncpu = body_varint(b);
	*cpus = *b;
	uint64_t n = body_varint(b);
	for (uint64_t i = 0; i < n && !b->bad; i++) {
		body_cpu(b);
		body_varint(b);
	}
	uint64_t classes = body_varint(b);
	for (uint64_t i = 0; i < classes && !b->bad; i++) {
		uint64_t bit = body_varint(b);
		const char *name = body_text(d, b);
		if (bit < 64)
			h->classes[bit] = name;
	}
	return b->bad ? "malformed header" : NULL;
}

/* A stream begins. If it is of the same boot, the CPUs' sequence numbers go on. */
static void
stream_start(struct ktr_decoder *d, bool same_boot)
{
	decode_names_age(d, &d->strings);
	decode_names_age(d, &d->threads);
	ktr_map_clear(&d->sites);
	for (unsigned i = 0; i < KTR_DECODE_CPUS; i++) {
		struct decode_cpu *c = &d->cpu[i];
		/* If the last stream broke off, the new one shows how many events are missing. */
		c->known = c->known && same_boot && !d->ended;
		c->events = 0;
	}
}

static const char *
frame_header(struct ktr_decoder *d, struct body *b)
{
	struct ktr_decode_header read = {0};
	struct body cpus;
	const char *wrong = header_read(d, b, &read, &cpus);
	if (wrong != NULL)
		return wrong;
	const struct ktr_decode_header *before = d->header;
	if (!d->any_header || !header_same(&read, before)) {
		struct ktr_decode_header *h = decode_alloc(d, sizeof(*h), _Alignof(uint64_t));
		d->header_lost = h == NULL;
		if (h == NULL)
			return no_room;
		*h = read;
		d->header = h;
	}
	bool same_boot = d->any_header, start = (read.flags & KTR_WIRE_START) != 0;
	for (unsigned i = 0; i < 16; i++)
		same_boot = same_boot && read.boot_id[i] == before->boot_id[i];
	/* Names that are still used come again, since a reader may begin here. */
	decode_names_age(d, &d->strings);
	decode_names_age(d, &d->threads);
	if (start)
		stream_start(d, same_boot);
	d->any_header = true;
	d->ended = d->header_lost = false;
	if (d->ops.header != NULL)
		d->ops.header(d->arg, d->header);

	uint64_t n = body_varint(&cpus);
	for (uint64_t i = 0; i < n; i++) {
		uint32_t cpu = body_cpu(&cpus);
		uint64_t next = body_varint(&cpus);
		struct decode_cpu *c = &d->cpu[cpu];
		if (start && c->known && next < c->next)
			c->known = false;
		if (!cpu_expect(d, cpu, next, c->ticks) && !start)
			return "the header's sequence numbers go back";
	}
	return NULL;
}

/* Equal texts are the same. */
static bool
site_same(const struct ktr_decode_site *a, const struct ktr_decode_site *b)
{
	return a->line == b->line && a->classes == b->classes && a->nargs == b->nargs &&
	       a->file == b->file && a->func == b->func && a->fmt == b->fmt;
}

static const char *
frame_site(struct ktr_decoder *d, struct body *b)
{
	struct ktr_decode_site site = {.number = body_u32(b), .line = body_u32(b)};
	site.classes = body_varint(b);
	site.nargs = body_u32(b);
	site.file = body_text(d, b);
	site.func = body_text(d, b);
	site.fmt = body_text(d, b);
	if (b->bad || site.nargs > 6 || site.number > 65535)
		return "malformed site";
	struct ktr_decode_site *s = ktr_map_get(&d->sites_before, site.number);
	ktr_map_remove(&d->sites, site.number);
	if (s == NULL || !site_same(s, &site)) {
		s = decode_alloc(d, sizeof(*s), _Alignof(uint64_t));
		if (s == NULL)
			return no_room;
		site.strings = ktr_event_strings(site.fmt);
		site.parts = site.nargs == 6 && decode_data_format(site.fmt);
		ktr_event_plan(&site.plan, site.fmt);
		*s = site;
	}
	if (!ktr_map_put(&d->sites, site.number, s) ||
	    !ktr_map_put(&d->sites_before, site.number, s))
		d->no_memory = true;
	return NULL;
}

static const char *
frame_name(struct ktr_decoder *d, struct decode_names *names, struct body *b)
{
	uint64_t key = names == &d->threads ? body_u32(b) : body_varint(b);
	size_t n;
	const uint8_t *bytes = body_bytes(b, &n);
	if (b->bad)
		return "malformed name";
	return decode_name(d, names, key, bytes, n) ? NULL : no_room;
}

/* Clears a slot for a site: parameters are 0 before its first event in the batch. */
static void
slot_begin(struct ktr_decoder *d, struct decode_slot *slot, uint32_t number)
{
	const struct ktr_decode_site *site = ktr_map_get(&d->sites, number);
	*slot = (struct decode_slot){.batch = d->batches};
	slot->event.header = d->header;
	slot->event.site_number = number;
	slot->event.site = site;
	slot->event.nargs = site != NULL ? site->nargs : 0;
}

/* The slot of the next event. before: the slot of the event before; NULL: this is the first. */
static inline struct decode_slot *
batch_slot(struct ktr_decoder *d, struct body *b, bool is_explicit, struct decode_slot *before)
{
	uint32_t site = 0;
	if (is_explicit)
		site = body_u32(b);
	else if (before != NULL && before->successor != 0)
		site = before->successor - 1;
	else
		b->bad = true;
	if (b->bad || site > 65535) {
		b->bad = true;
		return NULL;
	}
	if (before != NULL)
		before->successor = site + 1;
	struct decode_slot *slot = &d->slots[site % KTR_WIRE_SLOTS];
	if (slot->batch != d->batches || slot->event.site_number != site)
		slot_begin(d, slot, site);
	return slot;
}

/* The parameters that changed: bit N of `changed` for parameter N. */
static inline void
slot_args(struct ktr_decoder *d, struct body *b, unsigned cpu, struct ktr_decode_event *e,
	  unsigned changed)
{
	for (; changed != 0; changed &= changed - 1) {
		unsigned i = (unsigned)__builtin_ctz(changed);
		e->args[i] += ktr_unzigzag(body_varint(b));
		if (e->site == NULL)
			continue;
		if ((e->site->strings >> i & 1) == 0)
			continue;
		e->strings[i] = ktr_data_is_word(e->args[i])
				    ? decode_data_text(d, cpu, e->args[i])
				    : decode_names_get(&d->strings, e->args[i]);
	}
	if (e->site != NULL && e->site->parts)
		decode_data_part(d, cpu, e->args);
	if (e->site != NULL)
		return;
	for (e->nargs = 6; e->nargs > 0 && e->args[e->nargs - 1] == 0;)
		e->nargs--;
}

static const char *
frame_batch(struct ktr_decoder *d, struct body *b)
{
	struct decode_slot *slot = NULL;
	uint32_t cpu = body_cpu(b);
	uint64_t seq = body_varint(b);
	uint64_t count = body_varint(b);
	uint64_t ticks = body_varint(b);
	uint32_t tid = body_u32(b);
	if (b->bad || count == 0)
		return "malformed batch";
	bool back = !cpu_expect(d, cpu, seq, ticks);
	struct decode_cpu *c = &d->cpu[cpu];
	const char *thread = decode_names_get(&d->threads, tid);
	d->batches++;
	for (; count > 0; count--) {
		unsigned first = (unsigned)body_byte(b);
		slot = batch_slot(d, b, (first & KTR_WIRE_EVENT_SITE) != 0, slot);
		ticks += body_varint(b);
		if ((first & KTR_WIRE_EVENT_TID) != 0) {
			tid = body_u32(b);
			thread = decode_names_get(&d->threads, tid);
		}
		if (slot != NULL)
			slot_args(d, b, cpu, &slot->event, first & 63);
		if (b->bad || slot == NULL)
			return "a batch with malformed events";
		struct ktr_decode_event *e = &slot->event;
		e->cpu = cpu;
		e->seq = seq++;
		e->ticks = ticks;
		e->tid = tid;
		e->thread = thread;
		if (d->ops.event != NULL)
			d->ops.event(d->arg, e);
		c->next = seq;
		c->ticks = ticks;
		c->events++;
	}
	return back ? "sequence numbers go back" : NULL;
}

static const char *
frame_loss(struct ktr_decoder *d, struct body *b)
{
	uint32_t cpu = body_cpu(b);
	uint64_t first = body_varint(b);
	uint64_t count = body_varint(b);
	uint64_t from = body_varint(b);
	uint64_t to = from + body_varint(b);
	uint64_t reason = body_byte(b);
	if (b->bad || reason > KTR_LOSS_CLEARED || count > KTR_WIRE_SEQ_MAX)
		return "malformed loss record";
	bool back = !cpu_expect(d, cpu, first, from);
	gap_emit(d, cpu, first, count, from, to, (enum ktr_gap_reason)reason);
	d->cpu[cpu].next = first + count;
	if (to > d->cpu[cpu].ticks)
		d->cpu[cpu].ticks = to;
	return back ? "sequence numbers go back" : NULL;
}

/* The ring from which the stream was made was damaged: events of that CPU may be missing. */
static const char *
frame_fault(struct ktr_decoder *d, struct body *b)
{
	char text[KTR_WIRE_STRING_MAX + 32], said[KTR_WIRE_STRING_MAX + 1];
	uint32_t cpu = body_cpu(b);
	size_t n;
	const uint8_t *bytes = body_bytes(b, &n);
	if (b->bad || n >= sizeof(said))
		return "malformed fault record";
	ktr_copy(said, bytes, n);
	said[n] = '\0';
	fmt_snprintf(text, sizeof(text), "the ring of cpu %u was damaged: %s", cpu, said);
	if (d->ops.damage != NULL)
		d->ops.damage(d->arg, d->frame_at, 0, text);
	return NULL;
}

/* Reads a frame of one number, and gives that to `op` if op is not NULL. */
static const char *
frame_number(struct ktr_decoder *d, struct body *b, void (*op)(void *arg, uint64_t number),
	     const char *malformed)
{
	uint64_t number = body_varint(b);
	if (b->bad)
		return malformed;
	if (op != NULL)
		op(d->arg, number);
	return NULL;
}

static const char *
frame_stats(struct ktr_decoder *d, struct body *b)
{
	body_varint(b); /* when */
	uint64_t n = body_varint(b);
	for (; n > 0 && !b->bad; n--) {
		struct ktr_decode_stats s;
		s.cpu = body_cpu(b);
		s.recorded = body_varint(b);
		s.delivered = body_varint(b);
		s.resident = body_varint(b);
		s.overwritten = body_varint(b);
		s.dropped = body_varint(b);
		s.suppressed = body_varint(b);
		if (!b->bad && d->ops.stats != NULL)
			d->ops.stats(d->arg, &s);
	}
	return b->bad ? "malformed statistics" : NULL;
}

static const char *
frame_truncated(struct ktr_decoder *d, struct body *b)
{
	uint64_t n = body_varint(b);
	for (; n > 0 && !b->bad; n--) {
		uint32_t cpu = body_cpu(b);
		uint64_t next = body_varint(b);
		uint64_t left = body_varint(b);
		if (b->bad)
			break;
		struct decode_cpu *c = &d->cpu[cpu];
		cpu_expect(d, cpu, next, c->ticks);
		gap_emit(d, cpu, next, left, c->ticks, c->ticks, KTR_GAP_LEFT);
	}
	return b->bad ? "malformed truncation record" : NULL;
}

static const char *
frame_end(struct ktr_decoder *d, struct body *b)
{
	const char *wrong = NULL;
	uint64_t n = body_varint(b);
	for (; n > 0 && !b->bad; n--) {
		uint32_t cpu = body_cpu(b);
		uint64_t first = body_varint(b);
		uint64_t next = body_varint(b);
		uint64_t sum = 0;
		for (unsigned i = 0; i < 4; i++)
			sum += body_varint(b);
		body_varint(b); /* suppressed */
		if (b->bad)
			break;
		cpu_expect(d, cpu, next, d->cpu[cpu].ticks);
		if (first + sum != next)
			wrong = "the end record's accounts do not add up";
	}
	d->ended = true;
	if (d->ops.end != NULL)
		d->ops.end(d->arg);
	return b->bad ? "malformed end record" : wrong;
}

const char *
decode_frame(struct ktr_decoder *d, unsigned type, const uint8_t *body, size_t len)
{
	struct body b = {.p = body, .end = body + len};
	bool after_end = d->ended && type != KTR_WIRE_HEADER;
	const char *wrong = NULL;
	if (d->header_lost && type != KTR_WIRE_HEADER)
		return "follows a header that was not kept";
	d->at_mark = type == KTR_WIRE_MARK;
	switch (type) {
	case KTR_WIRE_HEADER:
		wrong = frame_header(d, &b);
		break;
	case KTR_WIRE_SITE:
		wrong = frame_site(d, &b);
		break;
	case KTR_WIRE_STRING:
		wrong = frame_name(d, &d->strings, &b);
		break;
	case KTR_WIRE_THREAD:
		wrong = frame_name(d, &d->threads, &b);
		break;
	case KTR_WIRE_BATCH:
		wrong = frame_batch(d, &b);
		break;
	case KTR_WIRE_LOSS:
		wrong = frame_loss(d, &b);
		break;
	case KTR_WIRE_FAULT:
		wrong = frame_fault(d, &b);
		break;
	case KTR_WIRE_STATS:
		wrong = frame_stats(d, &b);
		break;
	case KTR_WIRE_MARK:
		wrong = frame_number(d, &b, d->ops.mark, "malformed mark");
		break;
	case KTR_WIRE_MASK:
		wrong = frame_number(d, &b, d->ops.mask, "malformed mask");
		break;
	case KTR_WIRE_TRUNCATED:
		wrong = frame_truncated(d, &b);
		break;
	case KTR_WIRE_END:
		wrong = frame_end(d, &b);
		break;
	default:
		/* A newer writer may add types that older readers can skip. */
		return NULL;
	}
	if (wrong == NULL && b.p != b.end)
		wrong = "bytes are left over";
	if (wrong == NULL && after_end)
		wrong = "comes after the end record";
	return wrong;
}
