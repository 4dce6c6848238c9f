/*
 * decode_fuzz.c - any bytes into the stream decoder, as ktrdump passes them. Every byte belongs to
 * a sound frame or to reported damage. Each CPU's events and gaps have no hole that is not
 * reported. Neither the sizes of the pieces nor a second run changes the result.
 *
 * The first byte of the input gives the size of the pieces, the second the moment when memory runs
 * out. Whether a frame is sound is decided here again, from ktr/WIRE.md.
 */
#include <stdbool.h>
#include <string.h>

#include "ktr/crc32c.h"
#include "ktr/decode.h"
#include "tests/fuzz/fuzz.h"

#define TEXT_MAX 300

struct damage {
	uint64_t at, bytes;
};

struct seen {
	uint64_t size;
	uint64_t hash; /* of all callbacks */
	struct damage *damages;
	size_t damage_count;
	bool back; /* sequence numbers decreased */
	struct {
		bool known;
		uint64_t next;
	} cpu[KTR_DECODE_CPUS];
};

static int allocations_left; /* negative: all succeed */

static void *
counted_realloc(void *p, size_t size)
{
	if (size != 0 && allocations_left == 0)
		return NULL;
	if (size != 0 && allocations_left > 0)
		allocations_left--;
	return fuzz_realloc(p, size);
}

static void
hash(struct seen *s, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s->hash = (s->hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
}

static void
hash_text(struct seen *s, const char *text)
{
	hash(s, text != NULL ? text : "\x01", text != NULL ? strlen(text) + 1 : 1);
}

/* Events [first, first + count) of a CPU are delivered or accounted for. */
static void
cpu_follow(struct seen *s, unsigned cpu, uint64_t first, uint64_t count)
{
	FUZZ_CHECK(cpu < KTR_DECODE_CPUS, "cpu %u", cpu);
	FUZZ_CHECK(count > 0 && first <= KTR_WIRE_SEQ_MAX && count <= KTR_WIRE_SEQ_MAX - first,
		   "events %#jx + %#jx", (uintmax_t)first, (uintmax_t)count);
	if (s->cpu[cpu].known) {
		FUZZ_CHECK(first <= s->cpu[cpu].next, "cpu %u: hole from %ju to %ju", cpu,
			   (uintmax_t)s->cpu[cpu].next, (uintmax_t)first);
		s->back |= first < s->cpu[cpu].next;
	}
	s->cpu[cpu].known = true;
	s->cpu[cpu].next = first + count;
}

static void
on_header(void *arg, const struct ktr_decode_header *h)
{
	struct seen *s = arg;

	hash(s, "H", 1);
	hash(s, h->boot_id, sizeof(h->boot_id));
	hash_text(s, h->arch);
	hash_text(s, h->build);
	for (unsigned i = 0; i < 64; i++)
		hash_text(s, h->classes[i]);
	if ((h->flags & KTR_WIRE_START) != 0)
		memset(s->cpu, 0, sizeof(s->cpu));
}

/* In a buffer of any size, the text is a prefix of the whole text, and ends with NUL. */
static void
check_text(struct seen *s, const struct ktr_decode_event *e)
{
	char whole[TEXT_MAX];
	size_t room = s->hash % 64 + 1;
	int n = ktr_decode_text(whole, sizeof(whole), e);
	char *cut = malloc(room);

	FUZZ_CHECK(cut != NULL, "no memory");
	FUZZ_CHECK(n >= 0 && (n >= TEXT_MAX || strlen(whole) <= (size_t)n), "%d characters", n);
	FUZZ_CHECK(memchr(whole, 0, sizeof(whole)) != NULL, "no NUL");
	FUZZ_CHECK(ktr_decode_text(cut, room, e) == n, "%d characters", n);
	FUZZ_CHECK(ktr_decode_text(NULL, 0, e) == n, "%d characters", n);
	FUZZ_CHECK(cut[strnlen(cut, room - 1)] == '\0' && strncmp(cut, whole, room - 1) == 0, "%s",
		   whole);
	hash_text(s, whole);
	free(cut);
}

static void
on_event(void *arg, const struct ktr_decode_event *e)
{
	struct seen *s = arg;

	FUZZ_CHECK(e->header != NULL && e->nargs <= 6, "%u parameters", e->nargs);
	FUZZ_CHECK(e->site == NULL || e->site->number == e->site_number, "site %u", e->site_number);
	FUZZ_CHECK(e->site == NULL || e->nargs == e->site->nargs, "%u parameters", e->nargs);
	cpu_follow(s, e->cpu, e->seq, 1);
	hash(s, &e->ticks, sizeof(e->ticks));
	hash(s, &e->tid, sizeof(e->tid));
	hash(s, e->args, sizeof(e->args));
	hash_text(s, e->thread);
	check_text(s, e);
	(void)ktr_decode_ns(e->header, e->ticks);
}

static void
on_gap(void *arg, const struct ktr_decode_gap *g)
{
	struct seen *s = arg;

	FUZZ_CHECK(strcmp(ktr_gap_reason_name(g->reason), "unknown") != 0, "reason %d", g->reason);
	FUZZ_CHECK(g->from_ticks <= g->to_ticks, "from %ju to %ju", (uintmax_t)g->from_ticks,
		   (uintmax_t)g->to_ticks);
	cpu_follow(s, g->cpu, g->first, g->count);
	hash(s, &g->first, sizeof(g->first));
	hash(s, &g->count, sizeof(g->count));
}

static void
on_mark(void *arg, uint64_t ticks)
{
	hash(arg, &ticks, sizeof(ticks));
}

static void
on_mask(void *arg, uint64_t classes)
{
	hash(arg, &classes, sizeof(classes));
}

static void
on_stats(void *arg, const struct ktr_decode_stats *stats)
{
	FUZZ_CHECK(stats->cpu < KTR_DECODE_CPUS, "cpu %u", stats->cpu);
	hash(arg, &stats->recorded, sizeof(stats->recorded));
}

static void
on_end(void *arg)
{
	hash(arg, "E", 1);
}

static void
on_damage(void *arg, uint64_t offset, uint64_t bytes, const char *text)
{
	struct seen *s = arg;
	const struct damage *last = s->damage_count > 0 ? &s->damages[s->damage_count - 1] : NULL;

	FUZZ_CHECK(text != NULL && text[0] != '\0', "no reason");
	FUZZ_CHECK(offset <= s->size && bytes <= s->size - offset, "%ju bytes at %ju of %ju",
		   (uintmax_t)bytes, (uintmax_t)offset, (uintmax_t)s->size);
	FUZZ_CHECK(last == NULL || last->at + last->bytes <= offset, "damage at %ju twice",
		   (uintmax_t)offset);
	hash(s, &offset, sizeof(offset));
	hash_text(s, text);
	s->damages = realloc(s->damages, (s->damage_count + 1) * sizeof(*s->damages));
	FUZZ_CHECK(s->damages != NULL, "no memory");
	s->damages[s->damage_count++] = (struct damage){offset, bytes};
}

/* Decodes the frame between two zero bytes. Returns its length; 0: not a frame. */
static size_t
uncobs(const uint8_t *p, size_t len, uint8_t *out, size_t room)
{
	size_t n = 0;

	for (const uint8_t *end = p + len; p < end;) {
		unsigned code = *p++;

		if (code - 1 > (size_t)(end - p) || n + code > room)
			return 0;
		memcpy(out + n, p, code - 1);
		n += code - 1;
		p += code - 1;
		if (code < 0xff && p < end)
			out[n++] = 0;
	}
	return n;
}

static bool
is_frame(const uint8_t *p, size_t len)
{
	static uint8_t f[2 * KTR_WIRE_FRAME_MAX];
	size_t n = uncobs(p, len, f, sizeof(f));
	uint32_t crc;

	if (n < 7 || n > KTR_WIRE_FRAME_MAX || (size_t)(f[1] | f[2] << 8) != n - 7)
		return false;
	crc = ktr_crc32c(f, n - 4);
	for (unsigned i = 0; i < 4; i++, crc >>= 8)
		if (f[n - 4 + i] != (crc & 0xff))
			return false;
	return true;
}

/*
 * The damage that covers [at, at + len). NULL: none of it is damaged. It must not be damaged in
 * part.
 */
static const struct damage *
covered(const struct seen *s, uint64_t at, uint64_t len)
{
	for (size_t i = 0; i < s->damage_count; i++) {
		const struct damage *d = &s->damages[i];

		if (d->at + d->bytes <= at || at + len <= d->at)
			continue;
		FUZZ_CHECK(d->at <= at && at + len <= d->at + d->bytes,
			   "%ju bytes at %ju are damaged in part", (uintmax_t)len, (uintmax_t)at);
		return d;
	}
	return NULL;
}

/* Checks every byte. Returns the number of sound frames. */
static uint64_t
check_bytes(const struct seen *s, const uint8_t *bytes)
{
	uint64_t frames = 0;

	for (uint64_t at = 0, end; at < s->size; at = end + 1) {
		const struct damage *d;
		bool sound;

		for (end = at; end < s->size && bytes[end] != 0; end++)
			;
		if (end == at)
			continue;
		/* also at the end of the input, if only its zero byte is missing */
		sound = is_frame(bytes + at, end - at);
		d = covered(s, at, end - at);
		frames += sound;
		FUZZ_CHECK(sound || d != NULL, "%ju bytes at %ju are neither frame nor damage",
			   (uintmax_t)(end - at), (uintmax_t)at);
		/* A sound frame with a malformed body starts a range of damage. */
		FUZZ_CHECK(!sound || d == NULL || d->at == at, "the frame at %ju is called damage",
			   (uintmax_t)at);
	}
	return frames;
}

static struct ktr_decoder *
decode(struct seen *s, const uint8_t *bytes, size_t size, size_t piece)
{
	static const struct ktr_decoder_ops ops = {.realloc = counted_realloc,
						   .seed = 1,
						   .header = on_header,
						   .event = on_event,
						   .gap = on_gap,
						   .mark = on_mark,
						   .mask = on_mask,
						   .stats = on_stats,
						   .end = on_end,
						   .damage = on_damage};
	struct ktr_decoder *d;

	*s = (struct seen){.size = size, .hash = 1};
	d = ktr_decoder_create(&ops, s);
	if (d == NULL)
		return NULL;
	for (size_t at = 0, n; at < size; at += n) {
		n = size - at < piece ? size - at : piece;
		if (ktr_decoder_push(d, bytes + at, n) != 0) {
			FUZZ_CHECK(allocations_left == 0, "no memory, though there is");
			ktr_decoder_destroy(d);
			return NULL;
		}
	}
	ktr_decoder_finish(d);
	return d;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct seen whole, pieces;
	struct fuzz_input in = {data, size};
	size_t piece = fuzz_byte(&in) % 64 + 1;
	int allocations = fuzz_byte(&in) % 16;
	struct ktr_decoder *d;

	allocations_left = -1;
	d = decode(&whole, in.p, in.left, in.left + 1);
	FUZZ_CHECK(d != NULL, "no memory");
	FUZZ_CHECK(ktr_decoder_frames(d) == check_bytes(&whole, in.p), "%ju frames",
		   (uintmax_t)ktr_decoder_frames(d));
	FUZZ_CHECK(!whole.back || whole.damage_count > 0, "a step back is no damage");
	ktr_decoder_destroy(d);

	d = decode(&pieces, in.p, in.left, piece);
	FUZZ_CHECK(d != NULL && pieces.hash == whole.hash, "pieces of %zu bytes differ", piece);
	ktr_decoder_destroy(d);
	free(pieces.damages);

	allocations_left = allocations;
	ktr_decoder_destroy(decode(&pieces, in.p, in.left, piece));
	free(pieces.damages);
	free(whole.damages);
	return 0;
}
