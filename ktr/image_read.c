/*
 * image_read.c - from a root to a stream.
 *
 * The newest event: the head word says it, where it can be read (a dump). Else (after a reset) the
 * laps do: a ring's slots hold the laps of its last turn up to the newest event, and those of the
 * turn before behind it. The place where most slots agree with that is taken, so that damaged ones
 * are outvoted.
 *
 * Locking: none.
 */
#include "ktr/image_read.h"

#include "ktr/control.h"
#include "ktr/event.h"
#include "ktr/fmt.h"
#include "ktr/str.h"
#include "ktr/wire.h"

#define LOOK_AHEAD 3u /* later entries that may call an entry's time wrong, by a majority */
#define LAPS_TRIED 8u /* laps that are tried as that of the last turn */
#define LAP_SAMPLE 64u
#define LAP_TURNS  (1u << 15) /* laps have 15 bits */

/* ---- texts and sites --------------------------------------------------------------------------
 */

/* A text at va, cut to size, in what the writer called read-only data. False: not there. */
static bool
read_text(struct ktr_image *im, uint64_t va, char *buf, size_t size)
{
	bool known = false;
	for (unsigned i = 0; i < KTR_IMAGE_TEXTS; i++)
		known |= va - im->root.texts[i].start < im->root.texts[i].size;
	for (size_t i = 0; known && i < size; i++) {
		if (i == size - 1 || !im->read(im->arg, va + i, &buf[i], 1)) {
			buf[i] = '\0';
			return i == size - 1;
		}
		if (buf[i] == '\0')
			return true;
	}
	return false;
}

static struct ktr_site *
image_site(void *arg, unsigned number)
{
	struct ktr_image *im = arg;
	struct ktr_image_site *s = &im->sites[number % KTR_IMAGE_SITES];
	if (s->number == number + 1)
		return &s->site;
	s->number = 0;
	if (number >= im->root.site_count ||
	    !im->read(im->arg, im->root.sites + (uint64_t)number * sizeof(s->site), &s->site,
		      sizeof(s->site)) ||
	    s->site.nargs > KTR_MAXARGS ||
	    !read_text(im, (uintptr_t)s->site.file, s->file, sizeof(s->file)) ||
	    !read_text(im, (uintptr_t)s->site.func, s->func, sizeof(s->func)) ||
	    !read_text(im, (uintptr_t)s->site.fmt, s->fmt, sizeof(s->fmt)))
		return NULL;
	s->site.file = s->file;
	s->site.func = s->func;
	s->site.fmt = s->fmt;
	s->site.strings = 0;
	s->number = number + 1;
	return &s->site;
}

static uint64_t
image_thread(void *arg, uint32_t tid, char *name)
{
	const struct ktr_image *im = arg;
	return ktr_names_thread(&im->names, tid, name);
}

static const char *
image_string_text(void *arg, uint64_t value, char *buf)
{
	struct ktr_image *im = arg;
	char name[KTR_THREAD_NAME];
	if (value >> 48 == KTR_IDENT_TAG)
		return ktr_ident_text(value,
				      image_thread(im, (uint32_t)value, name) != 0 ? name : NULL,
				      buf);
	if (value >> 48 == KTR_INTERN_TAG)
		return ktr_names_text(&im->names, value, buf);
	return read_text(im, value, buf, KTR_STRING_MAX) ? buf : NULL;
}

static bool
image_stats(void *arg, unsigned cpu, struct ktr_stats *stats)
{
	const struct ktr_image *im = arg;
	const struct ktr_image_cpu *c = &im->cpu[cpu];
	*stats = (struct ktr_stats){.recorded = c->head,
				    .resident = c->sound,
				    .torn = c->torn,
				    .overwritten = c->head - c->sound - c->torn};
	return c->exists;
}

static const struct ktr_encode_source image_source = {
    .site = image_site,
    .thread = image_thread,
    .string_text = image_string_text,
    .stats = image_stats,
};

/* ---- entries ----------------------------------------------------------------------------------
 */

/* The entry in a slot, with its site's number. False: it holds none. */
static bool
read_slot(struct ktr_image *im, const struct ktr_image_ring *ring, uint64_t slot,
	  struct ktr_entry *e)
{
	if (!im->read(im->arg, ring->slots + slot * sizeof(*e), e, sizeof(*e)))
		return false;
	e->site = (uint16_t)(e->site - im->root.sites / sizeof(struct ktr_site));
	return (e->lap & KTR_LAP_VALID) != 0 && e->site < im->root.site_count;
}

static unsigned
ring_shift(const struct ktr_image_ring *ring)
{
	return (unsigned)__builtin_ctzll(ring->entries);
}

static uint16_t
lap_of(const struct ktr_image_ring *ring, uint64_t seq)
{
	return (uint16_t)(seq >> ring_shift(ring) | KTR_LAP_VALID);
}

/* The event of that number, when its lap and its time are good ones. */
static bool
read_event(struct ktr_image *im, const struct ktr_image_cpu *c, uint64_t seq, struct ktr_entry *e)
{
	const struct ktr_image_ring *ring = &c->ring;
	return read_slot(im, ring, seq & (ring->entries - 1), e) && e->lap == lap_of(ring, seq);
}

/* Its time fits: not before the last good one, and not after most of the next ones. */
static bool
time_fits(struct ktr_image *im, const struct ktr_image_cpu *c, uint64_t seq, uint64_t last,
	  uint64_t ticks)
{
	unsigned seen = 0, earlier = 0;
	struct ktr_entry next;
	for (uint64_t s = seq + 1; s < c->head && s < seq + 4 * LOOK_AHEAD && seen < LOOK_AHEAD;
	     s++) {
		if (!read_event(im, c, s, &next))
			continue;
		seen++;
		earlier += next.ticks < ticks;
	}
	return ticks >= last && earlier * 2 <= seen;
}

/* How many slots agree with the last turn's lap being `lap`; *newest: the slot up to which it is.
 */
static uint64_t
lap_votes(struct ktr_image *im, const struct ktr_image_ring *ring, uint16_t lap, uint64_t *newest)
{
	uint16_t before = (uint16_t)((lap - 1) | KTR_LAP_VALID);
	uint64_t with = 0, behind = 0, best = 0;
	struct ktr_entry e;
	for (uint64_t slot = 0; slot < ring->entries; slot++)
		behind += read_slot(im, ring, slot, &e) && e.lap == before;
	for (uint64_t slot = 0; slot < ring->entries; slot++) {
		if (!read_slot(im, ring, slot, &e))
			continue;
		with += e.lap == lap;
		behind -= e.lap == before;
		if (e.lap == lap && with + behind > best) {
			best = with + behind;
			*newest = slot;
		}
	}
	return best;
}

/* The head by the laps of the slots; 0: the ring is empty. */
static uint64_t
find_head(struct ktr_image *im, const struct ktr_image_ring *ring)
{
	uint16_t tried[2 * LAPS_TRIED];
	uint64_t step = ring->entries > LAP_SAMPLE ? ring->entries / LAP_SAMPLE : 1;
	uint64_t best = 0, slot = 0, newest = 0;
	uint16_t lap = 0;
	unsigned n = 0;
	struct ktr_entry e;
	for (uint64_t at = 0; at < ring->entries && n < LAPS_TRIED; at += step) {
		/* Where there are holes, the next that is not one. */
		uint64_t s = at;
		while (s < at + step && !read_slot(im, ring, s, &e))
			s++;
		unsigned i = 0;
		while (i < n && tried[i] != e.lap)
			i++;
		if (s == at + step || i < n)
			continue;
		tried[n++] = e.lap;
		uint64_t votes = lap_votes(im, ring, e.lap, &newest);
		if (votes > best) {
			best = votes;
			lap = e.lap;
			slot = newest;
		}
	}
	if (best == 0)
		return 0;
	/* Turns run on beyond 15 bits: the first of that lap that does not end before the ring's
	 * base. */
	uint64_t turn = (ring->base - (ring->base != 0)) >> ring_shift(ring);
	turn += (uint64_t)(lap - turn) % LAP_TURNS;
	return (turn << ring_shift(ring)) + slot + 1;
}

static uint64_t
read_head(struct ktr_image *im, unsigned cpu, const struct ktr_image_ring *ring)
{
	uint64_t word;
	if (ring->head != 0 && im->read(im->arg, ring->head, &word, sizeof(word)) &&
	    ktr_head_cpu(word) == cpu && ktr_head_seq(word) >= ring->base &&
	    ktr_head_seq(word) <= KTR_WIRE_SEQ_MAX)
		return ktr_head_seq(word);
	return find_head(im, ring);
}

/* The next event from *seq on that is sound; false: none below head. *seq is behind it then. */
static bool
next_event(struct ktr_image *im, const struct ktr_image_cpu *c, uint64_t *seq, uint64_t last,
	   struct ktr_entry *e)
{
	while (*seq < c->head) {
		uint64_t n = (*seq)++;
		if (read_event(im, c, n, e) && time_fits(im, c, n, last, e->ticks))
			return true;
	}
	return false;
}

/* Looks at a CPU's ring. */
static void
cpu_open(struct ktr_image *im, unsigned cpu)
{
	struct ktr_image_cpu *c = &im->cpu[cpu];
	struct ktr_image_ring *ring = &c->ring;
	struct ktr_entry e;
	uint64_t at = im->root_va + offsetof(struct ktr_image_root, rings);
	*c = (struct ktr_image_cpu){.exists = false};
	if (!im->read(im->arg, at + cpu * sizeof(*ring), ring, sizeof(*ring)) || ring->entries == 0)
		return;
	/* A row that cannot be is a CPU without a ring. */
	if ((ring->entries & (ring->entries - 1)) != 0 || ring->entries > KTR_ENTRIES_MAX ||
	    ring->base > KTR_WIRE_SEQ_MAX || !im->read(im->arg, ring->slots, &e, sizeof(e)) ||
	    !im->read(im->arg, ring->slots + (ring->entries - 1) * sizeof(e), &e, sizeof(e)))
		return;
	c->exists = true;
	c->head = read_head(im, cpu, ring);
	c->tail = c->head > ring->entries ? c->head - ring->entries : 0;
	if (c->tail < ring->base)
		c->tail = ring->base < c->head ? ring->base : c->head;
	uint64_t seq = c->tail;
	while (next_event(im, c, &seq, c->last_ticks, &e)) {
		if (c->sound++ == 0)
			c->first_ticks = e.ticks;
		c->last_ticks = e.ticks;
	}
	c->torn = c->head - c->tail - c->sound;
}

static bool
same_text(const char *found, const char *expected, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (found[i] != expected[i])
			return false;
	}
	return true;
}

static int
root_check(const struct ktr_image_root *r, char *err, size_t errlen)
{
	const struct {
		const char *what;
		uint32_t found, expected;
	} sizes[] = {
	    {"version", r->version, KTR_IMAGE_VERSION},
	    {"size of an entry", r->entry_size, sizeof(struct ktr_entry)},
	    {"size of a row of rings", r->ring_size, sizeof(struct ktr_image_ring)},
	    {"size of a site", r->site_size, sizeof(struct ktr_site)},
	    {"size of the names", r->names_size, sizeof(struct ktr_names)},
	};
	if (!same_text(r->magic, KTR_IMAGE_MAGIC, sizeof(r->magic))) {
		fmt_snprintf(err, errlen,
			     "no root of an event log there: expected " KTR_IMAGE_MAGIC);
		return -KTR_EINVAL;
	}
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (sizes[i].found == sizes[i].expected)
			continue;
		fmt_snprintf(err, errlen, "the event log's %s is %u, expected %u", sizes[i].what,
			     sizes[i].found, sizes[i].expected);
		return -KTR_EINVAL;
	}
	if (r->site_count > 65536 || r->ring_count > 256) {
		fmt_snprintf(
		    err, errlen,
		    "the event log has %u sites and %u rings, expected at most 65536 and 256",
		    r->site_count, r->ring_count);
		return -KTR_EINVAL;
	}
	return 0;
}

int
ktr_image_open(struct ktr_image *im, ktr_image_read_fn *read, void *arg, uint64_t root, char *err,
	       size_t errlen)
{
	struct ktr_image_root *r = &im->root;
	im->read = read;
	im->arg = arg;
	im->root_va = root;
	for (unsigned i = 0; i < KTR_IMAGE_SITES; i++)
		im->sites[i].number = 0;
	if (!read(arg, root, r, offsetof(struct ktr_image_root, rings))) {
		fmt_snprintf(err, errlen, "the event log's root at %#lx cannot be read",
			     (unsigned long)root);
		return -KTR_EINVAL;
	}
	int error = root_check(r, err, errlen);
	if (error != 0)
		return error;
	if (!read(arg, r->names, &im->names, sizeof(im->names)))
		ktr_zero(&im->names, sizeof(im->names));
	r->arch[KTR_IMAGE_ARCH - 1] = r->build[KTR_IMAGE_BUILD - 1] = '\0';
	im->info = (struct ktr_info){.arch = r->arch,
				     .build = r->build,
				     .hz = r->hz,
				     .boot_ticks = r->boot_ticks,
				     .ncpu = (uint32_t)r->ncpu};
	ktr_copy(im->info.boot_id, r->boot_id, sizeof(r->boot_id));
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		im->cpu[cpu].exists = false;
		if (cpu < r->ring_count)
			cpu_open(im, cpu);
	}
	ktr_image_rewind(im);
	return 0;
}

void
ktr_image_count(const struct ktr_image *im, uint64_t *sound, uint64_t *torn)
{
	*sound = *torn = 0;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		*sound += im->cpu[cpu].exists ? im->cpu[cpu].sound : 0;
		*torn += im->cpu[cpu].exists ? im->cpu[cpu].torn : 0;
	}
}

/* ---- the stream -------------------------------------------------------------------------------
 */

void
ktr_image_rewind(struct ktr_image *im)
{
	ktr_encoder_init(&im->enc, &image_source, im);
	im->turn = 0;
	im->ended = false;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		struct ktr_image_cpu *c = &im->cpu[cpu];
		c->cursor = c->tail;
		c->ticks = c->delivered = c->lost = 0;
	}
}

static unsigned
image_table(struct ktr_image *im)
{
	unsigned n = 0;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		const struct ktr_image_cpu *c = &im->cpu[cpu];
		if (c->exists)
			im->rows[n++] = (struct ktr_wire_cpu){.cpu = cpu,
							      .first = c->tail,
							      .next = c->cursor,
							      .delivered = c->delivered,
							      .torn = c->lost};
	}
	return n;
}

/* A batch of a CPU's events, or a loss in front of them. False: there is nothing more. */
static bool
image_batch(struct ktr_image *im, unsigned cpu)
{
	struct ktr_image_cpu *c = &im->cpu[cpu];
	struct ktr_entry e;
	while (c->exists && c->cursor < c->head) {
		uint64_t seq = c->cursor;
		bool any = next_event(im, c, &seq, c->ticks, &e);
		uint64_t lost = any ? seq - 1 - c->cursor : c->head - c->cursor;
		if (lost > 0) {
			if (im->enc.batch_count > 0)
				break;
			ktr_encode_loss(&im->enc, cpu, c->cursor, lost,
					c->ticks != 0 ? c->ticks : im->info.boot_ticks,
					any ? e.ticks : c->last_ticks, KTR_LOSS_TORN);
			c->cursor += lost;
			c->lost += lost;
			return true;
		}
		if (!ktr_encode_event(&im->enc, cpu, c->cursor, &e))
			break;
		c->ticks = e.ticks;
		c->cursor++;
		c->delivered++;
	}
	bool made = im->enc.batch_count > 0;
	ktr_encode_batch(&im->enc);
	return made;
}

/* Makes some frames. False: the stream has ended. */
static bool
image_fill(struct ktr_image *im)
{
	if (im->ended)
		return false;
	if (im->enc.total == 0) {
		ktr_encode_delimiter(&im->enc);
		ktr_encode_header(&im->enc, KTR_WIRE_START, &im->info, im->rows, image_table(im));
		return true;
	}
	for (; im->turn < KTR_PORT_MAXCPU; im->turn++) {
		if (image_batch(im, im->turn))
			return true;
	}
	uint64_t last = 0;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		const struct ktr_image_cpu *c = &im->cpu[cpu];
		if (c->exists && c->last_ticks > last)
			last = c->last_ticks;
	}
	ktr_encode_stats(&im->enc, last);
	ktr_encode_end(&im->enc, im->rows, image_table(im));
	im->ended = true;
	return true;
}

size_t
ktr_image_stream(struct ktr_image *im, void *buf, size_t len)
{
	uint8_t *to = buf;
	size_t done = 0;
	while (done < len) {
		size_t n = ktr_encoder_take(&im->enc, to + done, len - done);
		if (n == 0 && !image_fill(im))
			break;
		done += n;
	}
	return done;
}
