/*
 * decode.c - finds the frames in a stream of bytes, and reports the bytes that are not a frame.
 *
 * Invariants: raw holds the bytes since the last zero byte, as far as they fit. Adjacent damage is
 * reported once, before anything that follows it.
 * Locking: none.
 */
#include "ktr/decode_private.h"

#include "ktr/crc32c.h"
#include "ktr/event.h"
#include "ktr/fmt.h"
#include "ktr/frame.h"
#include "ktr/str.h"

#define ENOMEM_ 12

struct ktr_decoder *
ktr_decoder_create(const struct ktr_decoder_ops *ops, void *arg)
{
	static const struct ktr_decode_header unknown = {.arch = "unknown", .build = "unknown"};
	struct ktr_decoder *d = ops->realloc(NULL, sizeof(*d));
	if (d == NULL)
		return NULL;
	ktr_zero(d, sizeof(*d));
	d->ops = *ops;
	d->arg = arg;
	d->header = &unknown;
	decode_store_init(d);
	return d;
}

void
ktr_decoder_destroy(struct ktr_decoder *d)
{
	if (d == NULL)
		return;
	for (unsigned cpu = 0; cpu < KTR_DECODE_CPUS; cpu++)
		if (d->cpu[cpu].data != NULL)
			d->ops.realloc(d->cpu[cpu].data, 0);
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

/* Checks the bytes between two zero bytes. NULL if they are a frame, which has *body bytes of
 * body; otherwise says what is wrong. */
static const char *
frame_check(struct ktr_decoder *d, const uint8_t *raw, size_t raw_len, size_t *body, char *text,
	    size_t size)
{
	const uint8_t *p = d->frame;
	if (raw_len > KTR_WIRE_COBS_MAX)
		return "longer than any frame";
	size_t len = ktr_frame_decode(d->frame, sizeof(d->frame), raw, raw_len);
	switch (ktr_frame_check(p, len, body)) {
	case KTR_FRAME_SOUND:
		return NULL;
	case KTR_FRAME_SHORT:
		fmt_snprintf(text, size, "%zu bytes are no frame", raw_len);
		break;
	case KTR_FRAME_LENGTH:
		fmt_snprintf(text, size, "frame says %zu bytes of body, has %zu", *body,
			     len - KTR_WIRE_OVERHEAD);
		break;
	default:
		fmt_snprintf(text, size, "frame checksum is 0x%08x, expected 0x%08x",
			     (unsigned)ktr_little_u32(p + KTR_FRAME_HEAD + *body),
			     (unsigned)ktr_crc32c(p, KTR_FRAME_HEAD + *body));
	}
	return text;
}

/* Takes the bytes before a zero byte, or before the end of the input. In that case `cut` says
 * what is wrong if they are not a frame. */
static void
frame_take(struct ktr_decoder *d, const uint8_t *raw, size_t raw_len, const char *cut)
{
	char text[100];
	size_t body;
	const char *wrong = frame_check(d, raw, raw_len, &body, text, sizeof(text));
	if (wrong != NULL) {
		damage_add(d, cut != NULL ? cut : wrong);
		return;
	}
	damage_report(d);
	d->frames++;
	wrong = decode_frame(d, d->frame[0], d->frame + 3, body);
	if (wrong != NULL) {
		fmt_snprintf(text, sizeof(text), "frame of type %u: %s", d->frame[0], wrong);
		damage_add(d, text);
	}
}

/* Keeps bytes of a frame whose end has not come yet; one byte more than fits marks it as too long.
 */
static void
raw_add(struct ktr_decoder *d, const uint8_t *p, size_t n)
{
	size_t room = sizeof(d->raw) - d->raw_len;
	ktr_copy(d->raw + d->raw_len, p, n < room ? n : room);
	d->raw_len += n < room ? n : room;
}

/* The first zero byte of [p, end), or end. Looks at eight bytes at a time. */
static const uint8_t *
find_zero(const uint8_t *p, const uint8_t *end)
{
	const uint64_t ones = 0x0101010101010101u, tops = ones << 7;
	for (uint64_t w; end - p >= 8; p += 8) {
		__builtin_memcpy(&w, p, 8);
		if (((w - ones) & ~w & tops) != 0)
			break;
	}
	while (p < end && *p != 0)
		p++;
	return p;
}

int
ktr_decoder_push(struct ktr_decoder *d, const void *bytes, size_t len)
{
	const uint8_t *p = bytes, *end = p + len;
	while (p < end && !d->no_memory) {
		const uint8_t *zero = find_zero(p, end);
		size_t n = (size_t)(zero - p);
		if (d->raw_len == 0)
			d->frame_at = d->offset;
		d->offset += n + (zero < end);
		if (zero == end) {
			raw_add(d, p, n);
			break;
		}
		if (d->raw_len > 0) {
			raw_add(d, p, n);
			frame_take(d, d->raw, d->raw_len, NULL);
			d->raw_len = 0;
		} else if (n > 0) {
			frame_take(d, p, n, NULL);
		}
		p = zero + 1;
	}
	return d->no_memory ? -ENOMEM_ : 0;
}

int
ktr_decoder_finish(struct ktr_decoder *d)
{
	if (d->raw_len > 0)
		frame_take(d, d->raw, d->raw_len,
			   d->frames == 0 ? "no frame of a KTR stream" : "cut off in a frame");
	d->raw_len = 0;
	damage_report(d);
	const char *missing = NULL;
	bool live_end = d->at_mark && (d->header->flags & KTR_WIRE_LIVE) != 0;
	if (d->frames == 0)
		missing = "no KTR stream: not one frame is sound";
	else if (!d->any_header)
		missing = "no header was found: times are raw ticks";
	else if (d->header->hz == 0)
		missing = "the clock's rate was not known yet: times are raw ticks";
	else if (!d->ended && !live_end)
		missing = "the stream stops without an end record";
	if (missing != NULL && d->ops.damage != NULL)
		d->ops.damage(d->arg, d->offset, 0, missing);
	return d->no_memory ? -ENOMEM_ : 0;
}

int64_t
ktr_decode_ns(const struct ktr_decode_header *h, uint64_t ticks)
{
	const uint64_t second = 1000000000u;
	bool before = ticks < h->boot_ticks;
	uint64_t t = before ? h->boot_ticks - ticks : ticks - h->boot_ticks;
	if (h->hz != 0 && h->hz != second && h->hz <= UINT64_MAX / second)
		t = ktr_ticks_to_ns(t, h->hz);
	int64_t ns = t > INT64_MAX ? INT64_MAX : (int64_t)t;
	return before ? -ns : ns;
}

const char *
ktr_gap_reason_name(enum ktr_gap_reason reason)
{
	static const char *const names[] = {"overwritten", "corrupt", "cleared", "damaged", "left"};
	return (unsigned)reason < 5 ? names[reason] : "unknown";
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
	void *strings = (void *)(uintptr_t)e->strings;
	if (e->site != NULL)
		return ktr_event_text(buf, len, &e->site->plan, e->site->fmt, e->args, e->nargs,
				      NULL, strings);
	uint64_t args[7] = {e->site_number};
	for (unsigned i = 0; i < e->nargs; i++)
		args[i + 1] = e->args[i];
	return ktr_event_text(buf, len, NULL, unknown[e->nargs], args, e->nargs + 1, NULL, NULL);
}
