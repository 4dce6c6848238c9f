/*
 * decode_frame.c - the bodies of frames: bounds-checked reading, metadata, events, gaps.
 *
 * Invariant: a CPU's events and gaps are handed on in the order of sequence numbers; a jump forward
 * that no LOSS frame explains becomes a gap with reason "damaged". Locking: none.
 */
#include "ktr/decode_private.h"

#include "ktr/event.h"
#include "ktr/intern.h"

/* A body that is read from the front. Once bad, everything read is 0. */
struct body {
	const uint8_t *p, *end;
	bool bad;
};

static uint64_t
body_byte(struct body *b)
{
	if (b->p == b->end) {
		b->bad = true;
		return 0;
	}
	return *b->p++;
}

static uint64_t
body_varint(struct body *b)
{
	uint64_t v = 0;
	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint64_t byte = body_byte(b);
		if (shift == 63 && byte > 1)
			break;
		v |= (byte & 0x7f) << shift;
		if ((byte & 0x80) == 0)
			return b->bad ? 0 : v;
	}
	b->bad = true;
	return 0;
}

static uint32_t
body_u32(struct body *b)
{
	uint64_t v = body_varint(b);
	if (v > UINT32_MAX)
		b->bad = true;
	return b->bad ? 0 : (uint32_t)v;
}

static uint32_t
body_cpu(struct body *b)
{
	uint32_t cpu = body_u32(b);
	if (cpu >= KTR_DECODE_CPUS)
		b->bad = true;
	return b->bad ? 0 : cpu;
}

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
	const char *text = b->bad ? "" : decode_text_once(d, bytes, n);
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

/*
 * The stream goes on at seq on that CPU. Events in between were in frames that could not be read.
 * False: it goes back, which a sound stream never does.
 */
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

static const char *
frame_header(struct ktr_decoder *d, struct body *b)
{
	struct ktr_decode_header *h =
	    decode_alloc(d, sizeof(*h), _Alignof(struct ktr_decode_header));
	if (h == NULL)
		return "no memory";
	*h = (struct ktr_decode_header){0};
	for (unsigned i = 0; i < 4; i++) {
		if (body_byte(b) != (uint8_t)KTR_WIRE_MAGIC[i])
			return "wrong magic";
	}
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
	struct body cpus = *b;
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
	if (b->bad)
		return "malformed header";

	bool same_boot = d->any_header;
	for (unsigned i = 0; i < 16; i++)
		same_boot = same_boot && h->boot_id[i] == d->header->boot_id[i];
	bool start = (h->flags & KTR_WIRE_START) != 0;
	/* What is still used will be told again: a reader may begin here. */
	for (unsigned i = 0; i < 1u + start; i++) {
		decode_names_age(&d->strings);
		decode_names_age(&d->threads);
	}
	if (start) {
		decode_map_clear(&d->sites);
		for (unsigned i = 0; i < KTR_DECODE_CPUS; i++) {
			struct decode_cpu *c = &d->cpu[i];
			/* After a writer that broke off, its successor may tell how much is
			 * missing. */
			c->known = c->known && same_boot && !d->ended;
			c->events = 0;
		}
	}
	d->header = h;
	d->any_header = true;
	d->ended = false;
	if (d->ops.header != NULL)
		d->ops.header(d->arg, h);

	n = body_varint(&cpus);
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

/* Texts are kept once, but for two of one hash. */
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
	const struct ktr_decode_site *old = decode_map_get(&d->sites, site.number);
	if (old != NULL && site_same(old, &site))
		return NULL;
	struct ktr_decode_site *s = decode_alloc(d, sizeof(*s), _Alignof(struct ktr_decode_site));
	if (s == NULL)
		return "no memory";
	site.strings = ktr_event_strings(site.fmt);
	ktr_event_plan(&site.plan, site.fmt);
	*s = site;
	decode_map_put(d, &d->sites, s->number, s);
	return NULL;
}

static const char *
frame_name(struct ktr_decoder *d, struct decode_names *names, struct body *b)
{
	uint64_t key = names == &d->threads ? body_u32(b) : body_varint(b);
	bool ident = names == &d->strings && key >> 48 == KTR_IDENT_TAG; /* another each */
	size_t n;
	const uint8_t *bytes = body_bytes(b, &n);
	if (b->bad)
		return "malformed name";
	const char *text = decode_names_get(names, key);
	if (text == NULL || !decode_text_is(text, bytes, n))
		text = ident ? decode_text(d, bytes, n) : decode_text_once(d, bytes, n);
	if (text == NULL)
		return "no memory";
	decode_map_put(d, &names->now, key, text);
	return NULL;
}

/* The site of the next event, its slot ready. */
static struct ktr_wire_slot *
batch_slot(struct ktr_decoder *d, struct body *b, bool is_explicit, uint32_t *last)
{
	struct ktr_wire_slot *before = *last != 0 ? &d->slots[(*last - 1) % KTR_WIRE_SLOTS] : NULL;
	uint32_t site;
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
	struct ktr_wire_slot *slot = &d->slots[site % KTR_WIRE_SLOTS];
	if (slot->site != site + 1)
		*slot = (struct ktr_wire_slot){.site = site + 1};
	*last = site + 1;
	return slot;
}

static void
event_emit(struct ktr_decoder *d, struct ktr_decode_event *e, const struct ktr_wire_slot *slot)
{
	e->header = d->header;
	e->site_number = slot->site - 1;
	e->site = decode_map_get(&d->sites, e->site_number);
	e->thread = decode_names_get(&d->threads, e->tid);
	e->nargs = e->site != NULL ? e->site->nargs : 0;
	for (unsigned i = 0; i < 6; i++) {
		e->args[i] = slot->args[i];
		if (e->site == NULL && e->args[i] != 0)
			e->nargs = i + 1;
		e->strings[i] = NULL;
		if (e->site != NULL && (e->site->strings >> i & 1) != 0)
			e->strings[i] = decode_names_get(&d->strings, e->args[i]);
	}
	if (d->ops.event != NULL)
		d->ops.event(d->arg, e);
}

static const char *
frame_batch(struct ktr_decoder *d, struct body *b)
{
	struct ktr_decode_event e = {0};
	uint32_t last = 0;
	e.cpu = body_cpu(b);
	e.seq = body_varint(b);
	uint64_t count = body_varint(b);
	e.ticks = body_varint(b);
	e.tid = body_u32(b);
	if (b->bad || count == 0)
		return "malformed batch";
	bool back = !cpu_expect(d, e.cpu, e.seq, e.ticks);
	for (unsigned i = 0; i < KTR_WIRE_SLOTS; i++)
		d->slots[i] = (struct ktr_wire_slot){0};

	struct decode_cpu *c = &d->cpu[e.cpu];
	for (; count > 0; count--) {
		uint64_t first = body_byte(b);
		struct ktr_wire_slot *slot =
		    batch_slot(d, b, (first & KTR_WIRE_EVENT_SITE) != 0, &last);
		e.ticks += body_varint(b);
		if ((first & KTR_WIRE_EVENT_TID) != 0)
			e.tid = body_u32(b);
		for (unsigned i = 0; i < 6 && slot != NULL; i++) {
			if ((first >> i & 1) != 0)
				slot->args[i] += ktr_unzigzag(body_varint(b));
		}
		if (b->bad || slot == NULL)
			return "a batch with malformed events";
		event_emit(d, &e, slot);
		e.seq++;
		c->next = e.seq;
		c->ticks = e.ticks;
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
	return back ? "sequence numbers go back" : NULL;
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
	case KTR_WIRE_STATS:
		wrong = frame_stats(d, &b);
		break;
	case KTR_WIRE_MARK: {
		uint64_t ticks = body_varint(&b);
		if (b.bad)
			return "malformed mark";
		if (d->ops.mark != NULL)
			d->ops.mark(d->arg, ticks);
		break;
	}
	case KTR_WIRE_TRUNCATED:
		wrong = frame_truncated(d, &b);
		break;
	case KTR_WIRE_END:
		wrong = frame_end(d, &b);
		break;
	default:
		/* A newer minor revision may have frames that this one may pass over. */
		return NULL;
	}
	if (wrong == NULL && b.p != b.end)
		wrong = "bytes are left over";
	if (wrong == NULL && after_end)
		wrong = "stands behind the end record";
	return wrong;
}
