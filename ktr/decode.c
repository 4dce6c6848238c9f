/*
 * decode.c - finds the frames in a stream of bytes, and reports what is none.
 *
 * Invariants: raw holds the bytes since the last zero byte, as far as they fit; damage that lies
 * together is reported once, before anything that follows it.
 * Locking: none.
 */
#include "ktr/decode_private.h"

#include "ktr/crc32c.h"
#include "ktr/event.h"
#include "ktr/fmt.h"

#define ENOMEM_ 12

struct ktr_decoder *
ktr_decoder_create(const struct ktr_decoder_ops *ops, void *arg)
{
	static const struct ktr_decode_header unknown = {.arch = "unknown", .build = "unknown"};
	struct ktr_decoder *d = ops->realloc(NULL, sizeof(*d));
	if (d == NULL)
		return NULL;
	*d = (struct ktr_decoder){.ops = *ops, .arg = arg, .header = &unknown};
	return d;
}

void
ktr_decoder_destroy(struct ktr_decoder *d)
{
	if (d == NULL)
		return;
	decode_map_free(d, &d->sites);
	decode_map_free(d, &d->strings.now);
	decode_map_free(d, &d->strings.before);
	decode_map_free(d, &d->threads.now);
	decode_map_free(d, &d->threads.before);
	decode_map_free(d, &d->texts);
	decode_store_free(d);
	d->ops.realloc(d, 0);
}

uint64_t
ktr_decoder_frames(const struct ktr_decoder *d)
{
	return d->frames;
}

static void
damage_report(struct ktr_decoder *d)
{
	char text[200];
	if (d->bad_len == 0)
		return;
	if (d->bad_frames > 1)
		fmt_snprintf(text, sizeof(text), "%s (and %llu more pieces)", d->bad_text,
			     (unsigned long long)d->bad_frames - 1);
	else
		fmt_snprintf(text, sizeof(text), "%s", d->bad_text);
	if (d->ops.damage != NULL)
		d->ops.damage(d->arg, d->bad_at, d->bad_len, text);
	d->bad_len = 0;
	d->bad_frames = 0;
}

/* The bytes from frame_at up to offset are no frame. */
static void
damage_add(struct ktr_decoder *d, const char *text)
{
	if (d->bad_len == 0) {
		d->bad_at = d->frame_at;
		fmt_snprintf(d->bad_text, sizeof(d->bad_text), "%s", text);
	}
	d->bad_len = d->offset - d->bad_at;
	d->bad_frames++;
}

/* Undoes COBS in place. Returns the length, 0: not COBS. */
static size_t
cobs_decode(uint8_t *p, size_t len)
{
	size_t from = 0, to = 0;
	while (from < len) {
		size_t code = p[from++];
		if (from + code - 1 > len)
			return 0;
		for (size_t i = 1; i < code; i++)
			p[to++] = p[from++];
		if (code != 0xff && from < len)
			p[to++] = 0;
	}
	return to;
}

/* raw is what stood between two zero bytes. */
static void
frame_take(struct ktr_decoder *d)
{
	char text[100];
	uint8_t *p = d->raw;
	size_t len = cobs_decode(p, d->raw_len);
	if (len < KTR_WIRE_OVERHEAD || len > KTR_WIRE_FRAME_MAX) {
		fmt_snprintf(text, sizeof(text), "%zu bytes are no frame", d->raw_len);
		damage_add(d, text);
		return;
	}
	size_t body = (size_t)p[1] | (size_t)p[2] << 8;
	if (body + KTR_WIRE_OVERHEAD != len) {
		fmt_snprintf(text, sizeof(text), "frame says %zu bytes of body, has %zu", body,
			     len - KTR_WIRE_OVERHEAD);
		damage_add(d, text);
		return;
	}
	uint32_t found = 0;
	for (unsigned i = 0; i < 4; i++)
		found |= (uint32_t)p[3 + body + i] << 8 * i;
	uint32_t expected = ktr_crc32c(p, 3 + body);
	if (found != expected) {
		fmt_snprintf(text, sizeof(text), "frame checksum is 0x%08x, expected 0x%08x",
			     (unsigned)found, (unsigned)expected);
		damage_add(d, text);
		return;
	}
	damage_report(d);
	d->frames++;
	const char *wrong = decode_frame(d, p[0], p + 3, body);
	if (wrong != NULL) {
		fmt_snprintf(text, sizeof(text), "frame of type %u: %s", p[0], wrong);
		damage_add(d, text);
	}
}

static void
byte_take(struct ktr_decoder *d, uint8_t byte)
{
	if (d->raw_len == 0)
		d->frame_at = d->offset;
	d->offset++;
	if (byte != 0) {
		/* One more than fits marks a frame that is too long. */
		if (d->raw_len < sizeof(d->raw))
			d->raw[d->raw_len] = byte;
		if (d->raw_len <= sizeof(d->raw))
			d->raw_len++;
		return;
	}
	if (d->raw_len > sizeof(d->raw))
		damage_add(d, "longer than any frame");
	else if (d->raw_len > 0)
		frame_take(d);
	d->raw_len = 0;
}

int
ktr_decoder_push(struct ktr_decoder *d, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	for (size_t i = 0; i < len && !d->no_memory; i++)
		byte_take(d, p[i]);
	return d->no_memory ? -ENOMEM_ : 0;
}

int
ktr_decoder_finish(struct ktr_decoder *d)
{
	bool cut = d->raw_len > 0;
	if (cut)
		damage_add(d, d->frames == 0 ? "no frame of a KTR stream" : "cut off in a frame");
	d->raw_len = 0;
	damage_report(d);
	const char *missing = NULL;
	bool live_end = d->at_mark && (d->header->flags & KTR_WIRE_LIVE) != 0;
	if (d->frames == 0)
		missing = "no KTR stream: not one frame is sound";
	else if (!d->any_header)
		missing = "no header was found: times are raw ticks";
	else if (!d->ended && !live_end)
		missing = "the stream stops without an end record";
	if (missing != NULL && d->ops.damage != NULL)
		d->ops.damage(d->arg, d->offset, 0, missing);
	return d->no_memory ? -ENOMEM_ : 0;
}

int64_t
ktr_decode_ns(const struct ktr_decode_header *h, uint64_t ticks)
{
	bool before = ticks < h->boot_ticks;
	uint64_t t = before ? h->boot_ticks - ticks : ticks - h->boot_ticks;
	if (h->hz != 0 && h->hz != 1000000000u && h->hz <= 18000000000ull) {
		/* The remainder is below hz, so that its product fits. */
		t = t / h->hz * 1000000000u + t % h->hz * 1000000000u / h->hz;
	}
	return before ? -(int64_t)t : (int64_t)t;
}

const char *
ktr_gap_reason_name(enum ktr_gap_reason reason)
{
	static const char *const names[] = {"overwritten", "corrupt", "cleared", "damaged", "left"};
	return (unsigned)reason < 5 ? names[reason] : "unknown";
}

/* The strings were looked up when the event was decoded: here a value finds its parameter again. */
static const char *
decode_string(void *arg, uint64_t value)
{
	const struct ktr_decode_event *e = arg;
	for (unsigned i = 0; i < 6; i++) {
		if (e->args[i] == value && e->strings[i] != NULL)
			return e->strings[i];
	}
	return NULL;
}

int
ktr_decode_text(char *buf, size_t len, const struct ktr_decode_event *e)
{
	static const char *const unknown[] = {
	    "(site %u)",
	    "(site %u) %#llx",
	    "(site %u) %#llx %#llx",
	    "(site %u) %#llx %#llx %#llx",
	    "(site %u) %#llx %#llx %#llx %#llx",
	    "(site %u) %#llx %#llx %#llx %#llx %#llx",
	    "(site %u) %#llx %#llx %#llx %#llx %#llx %#llx",
	};
	int n = e->site == NULL ? -1
				: ktr_event_plan_text(buf, len, &e->site->plan, e->site->fmt,
						      e->args, e->nargs, e->strings);
	if (n >= 0)
		return n;
	if (e->site != NULL)
		return ktr_event_text(buf, len, e->site->fmt, e->args, e->nargs, decode_string,
				      (void *)(uintptr_t)e);
	uint64_t args[7] = {e->site_number};
	for (unsigned i = 0; i < e->nargs; i++)
		args[i + 1] = e->args[i];
	return ktr_event_text(buf, len, unknown[e->nargs], args, e->nargs + 1, decode_string,
			      (void *)(uintptr_t)e);
}
