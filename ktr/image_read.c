/*
 * image_read.c - from a root to a stream.
 *
 * A ring's header says which events its slots hold (ktr/entry.h). Events below the head are whole
 * whenever the machine stopped. Damage by a reset or a bad dump is recognised by values that do not
 * fit: in a header by its check and ranges, in an entry by its site and time.
 *
 * Locking: none.
 */
#include "ktr/image_read.h"

#include "ktr/control.h"
#include "ktr/dynamic.h"
#include "ktr/event.h"
#include "ktr/fmt.h"
#include "ktr/str.h"
#include "ktr/wire.h"

#define LOOK_AHEAD 3u /* later entries with which an entry's time is compared */

/* ---- texts and sites ---- */

/* Reads a text at va, cut to size. False: it is not in the writer's read-only data. */
static bool
image_read_text(struct ktr_image *im, uint64_t va, char *buf, size_t size)
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

/* Are the texts of a site made at run time as they were made? */
static bool
site_sound(const struct ktr_image *im, const struct ktr_site *site)
{
	char text[KTR_DYNAMIC_TEXT];
	return site->kind < KTR_SITE_MADE ||
	       (im->read(im->arg, (uintptr_t)site->file, text, sizeof(text)) &&
		ktr_dynamic_check(text) == site->pc);
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
	    s->site.nargs > KTR_MAXARGS || !site_sound(im, &s->site) ||
	    !image_read_text(im, (uintptr_t)s->site.file, s->file, sizeof(s->file)) ||
	    !image_read_text(im, (uintptr_t)s->site.func, s->func, sizeof(s->func)) ||
	    !image_read_text(im, (uintptr_t)s->site.fmt, s->fmt, sizeof(s->fmt)))
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
	return image_read_text(im, value, buf, KTR_STRING_MAX) ? buf : NULL;
}

static bool
image_stats(void *arg, unsigned cpu, struct ktr_stats *stats)
{
	const struct ktr_image *im = arg;
	const struct ktr_image_cpu *c = &im->cpu[cpu];
	*stats = (struct ktr_stats){.recorded = c->head,
				    .resident = c->sound,
				    .overwritten = c->head - c->sound};
	return c->exists;
}

static uint64_t
image_mask(void *arg)
{
	const struct ktr_image *im = arg;
	return im->root.mask;
}

static const struct ktr_encode_source image_source = {
    .site = image_site,
    .thread = image_thread,
    .string_text = image_string_text,
    .stats = image_stats,
    .mask = image_mask,
};

/* ---- entries ---- */

/* Reads event seq, with its site's number. False: the entry is not an event. */
static bool
image_read_event(struct ktr_image *im, const struct ktr_image_cpu *c, uint64_t seq,
		 struct ktr_entry *e)
{
	uint64_t at = c->slots + (seq & (c->entries - 1)) * sizeof(*e);
	if (!im->read(im->arg, at, e, sizeof(*e)))
		return false;
	uint32_t offset = e->site - (uint32_t)im->root.sites;
	e->site = offset / sizeof(struct ktr_site);
	return offset % sizeof(struct ktr_site) == 0 && e->site < im->root.site_count;
}

/* Is the time not before that of the last good entry, and not after most of the next entries'? */
static bool
time_fits(struct ktr_image *im, const struct ktr_image_cpu *c, uint64_t seq, uint64_t last,
	  uint64_t ticks)
{
	unsigned seen = 0, earlier = 0;
	struct ktr_entry next;
	for (uint64_t s = seq + 1; s < c->head && s < seq + 4 * LOOK_AHEAD && seen < LOOK_AHEAD;
	     s++) {
		if (!image_read_event(im, c, s, &next))
			continue;
		seen++;
		earlier += next.ticks < ticks;
	}
	return ticks >= last && earlier * 2 <= seen;
}

/* Reads the next sound event from *seq on; *seq becomes its number + 1. False: there is none. */
static bool
next_event(struct ktr_image *im, const struct ktr_image_cpu *c, uint64_t *seq, uint64_t last,
	   struct ktr_entry *e)
{
	while (*seq < c->head) {
		uint64_t n = (*seq)++;
		if (image_read_event(im, c, n, e) && time_fits(im, c, n, last, e->ticks))
			return true;
	}
	return false;
}

/*
 * Looks for damage in a ring's header, and says in c->fault what does not fit. Two members can be
 * mended: the CPU is known anyway, and the check tells the number of slots. False if the events
 * cannot be found.
 */
static bool
ring_sound(struct ktr_image_cpu *c, unsigned cpu, struct ktr_ring *ring)
{
	uint64_t head = ring->head / KTR_ENTRY_BYTES;
	uint32_t entries = KTR_ENTRIES_MIN;
	while (entries <= KTR_ENTRIES_MAX &&
	       ring->check != KTR_RING_CHECK(entries, cpu, ring->base, ring->start))
		entries *= 2;
	bool found = entries <= KTR_ENTRIES_MAX && ring->head % KTR_ENTRY_BYTES == 0 &&
		     head >= ring->base && ring->base >= ring->start && head <= KTR_WIRE_SEQ_MAX;
	if (!found || ring->entries != entries || ring->cpu != cpu)
		fmt_snprintf(
		    c->fault, sizeof(c->fault),
		    "%sits header says cpu %u, %u slots, base %llu, head %llu/%u, check %#x",
		    found ? "" : "its events are lost: ", ring->cpu, ring->entries,
		    (unsigned long long)ring->base, (unsigned long long)ring->head, KTR_ENTRY_BYTES,
		    ring->check);
	ring->entries = entries;
	return found;
}

/* Slots outside of [tail, head) hold nothing, or events from before them; not newer ones. */
static void
look_beyond(struct ktr_image *im, struct ktr_image_cpu *c)
{
	struct ktr_entry e;
	uint64_t seq = c->head + KTR_RING_SPARE, beyond = 0;
	uint64_t newest = c->last_ticks;
	/* A ring that was cleared holds what was cleared. */
	if (c->sound == 0 && c->tail > 0 && image_read_event(im, c, c->tail - 1, &e))
		newest = e.ticks;
	for (; seq < c->tail + c->entries; seq++)
		beyond += image_read_event(im, c, seq, &e) && e.ticks > newest;
	if (beyond != 0 && c->fault[0] == '\0')
		fmt_snprintf(c->fault, sizeof(c->fault),
			     "its head is %llu, but %llu newer events are in its slots",
			     (unsigned long long)c->head, (unsigned long long)beyond);
}

/* The time of the log's first event, as ktr_ring_since() has it; or a time that is possible. */
static uint64_t
log_since(struct ktr_image *im, const struct ktr_image_cpu *c, const struct ktr_ring *ring)
{
	struct ktr_entry e;
	uint64_t since = ring->since;
	if (since == 0 && c->start < c->head && image_read_event(im, c, c->start, &e))
		since = e.ticks;
	if (c->sound > 0 && since > c->first_ticks)
		since = c->first_ticks;
	return since > im->info.boot_ticks ? since : im->info.boot_ticks;
}

/* Looks at a CPU's ring. */
static void
cpu_open(struct ktr_image *im, unsigned cpu)
{
	struct ktr_image_cpu *c = &im->cpu[cpu];
	struct ktr_ring ring;
	struct ktr_entry e;
	uint64_t at = 0, row = im->root_va + offsetof(struct ktr_image_root, rings);
	bool told = im->read(im->arg, row + cpu * sizeof(at), &at, sizeof(at));
	if (told && at == 0)
		return;
	if (!told || !im->read(im->arg, at, &ring, sizeof(ring))) {
		fmt_snprintf(c->fault, sizeof(c->fault),
			     "its events are lost: no ring can be read at %#llx",
			     (unsigned long long)at);
		return;
	}
	if (!ring_sound(c, cpu, &ring))
		return;
	if (!im->read(im->arg, at + ktr_ring_bytes(ring.entries) - sizeof(e), &e, sizeof(e))) {
		fmt_snprintf(c->fault, sizeof(c->fault),
			     "its events are lost: its %u slots cannot be read", ring.entries);
		return;
	}
	c->exists = true;
	c->slots = at + sizeof(ring);
	c->entries = ring.entries;
	c->head = ring.head / KTR_ENTRY_BYTES;
	c->tail = ktr_ring_tail(&ring, c->head);
	c->start = ring.start;
	uint64_t seq = c->tail;
	while (next_event(im, c, &seq, c->last_ticks, &e)) {
		if (c->sound++ == 0)
			c->first_ticks = e.ticks;
		c->last_ticks = e.ticks;
		c->parts += e.site == im->root.parts_site;
	}
	c->corrupt = c->head - c->tail - c->sound;
	c->since = log_since(im, c, &ring);
	look_beyond(im, c);
}

static bool
image_same_text(const char *found, const char *expected, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (found[i] != expected[i])
			return false;
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
	    {"size of a ring's header", r->ring_size, sizeof(struct ktr_ring)},
	    {"size of a site", r->site_size, sizeof(struct ktr_site)},
	};
	if (!image_same_text(r->magic, KTR_IMAGE_MAGIC, sizeof(r->magic))) {
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
	if (r->names_size > sizeof(struct ktr_names)) {
		fmt_snprintf(err, errlen,
			     "the event log has %u bytes of names, expected at most %u",
			     r->names_size, (unsigned)sizeof(struct ktr_names));
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
	ktr_zero(&im->names, sizeof(im->names));
	if (!read(arg, r->names, &im->names, r->names_size) ||
	    !ktr_names_sound(&im->names, r->names_size))
		ktr_zero(&im->names, sizeof(im->names));
	r->arch[KTR_IMAGE_ARCH - 1] = r->build[KTR_IMAGE_BUILD - 1] = '\0';
	im->info = (struct ktr_info){.arch = r->arch,
				     .build = r->build,
				     .hz = r->hz,
				     .boot_ticks = r->boot_ticks,
				     .ncpu = (uint32_t)r->ncpu};
	ktr_copy(im->info.boot_id, r->boot_id, sizeof(r->boot_id));
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		im->cpu[cpu] = (struct ktr_image_cpu){.exists = false};
		if (cpu < r->ring_count)
			cpu_open(im, cpu);
	}
	ktr_image_rewind(im);
	return 0;
}

void
ktr_image_count(const struct ktr_image *im, uint64_t *sound, uint64_t *corrupt)
{
	*sound = *corrupt = 0;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		*sound += im->cpu[cpu].exists ? im->cpu[cpu].sound - im->cpu[cpu].parts : 0;
		*corrupt += im->cpu[cpu].exists ? im->cpu[cpu].corrupt : 0;
	}
}

/* ---- the stream ---- */

void
ktr_image_rewind(struct ktr_image *im)
{
	ktr_encoder_init(&im->enc, &image_source, im);
	im->turn = 0;
	im->ended = false;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		struct ktr_image_cpu *c = &im->cpu[cpu];
		c->cursor = c->start;
		c->ticks = c->since;
		c->delivered = c->lost = c->overwritten = 0;
		c->fault_told = false;
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
							      .first = c->start,
							      .next = c->cursor,
							      .delivered = c->delivered,
							      .overwritten = c->overwritten,
							      .corrupt = c->lost};
	}
	return n;
}

/* The next `count` events are lost. */
static void
image_loss(struct ktr_image *im, unsigned cpu, uint64_t count, uint64_t to_ticks,
	   enum ktr_wire_loss reason)
{
	struct ktr_image_cpu *c = &im->cpu[cpu];
	ktr_encode_loss(&im->enc, cpu, c->cursor, count, c->ticks, to_ticks, reason);
	c->cursor += count;
	*(reason == KTR_LOSS_OVERWRITTEN ? &c->overwritten : &c->lost) += count;
}

/* Makes a batch of a CPU's events, or the loss before them. False: there is nothing more. */
static bool
image_batch(struct ktr_image *im, unsigned cpu)
{
	struct ktr_image_cpu *c = &im->cpu[cpu];
	struct ktr_entry e;
	if (c->exists && c->cursor < c->tail) {
		image_loss(im, cpu, c->tail - c->cursor, c->first_ticks, KTR_LOSS_OVERWRITTEN);
		return true;
	}
	while (c->exists && c->cursor < c->head) {
		uint64_t seq = c->cursor;
		bool any = next_event(im, c, &seq, c->ticks, &e);
		uint64_t lost = any ? seq - 1 - c->cursor : c->head - c->cursor;
		if (lost > 0) {
			if (im->enc.batch_count > 0)
				break;
			image_loss(im, cpu, lost, any ? e.ticks : c->last_ticks, KTR_LOSS_CORRUPT);
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
		ktr_encode_mask(&im->enc);
		return true;
	}
	for (; im->turn < KTR_PORT_MAXCPU; im->turn++) {
		struct ktr_image_cpu *c = &im->cpu[im->turn];
		if (c->fault[0] != '\0' && !c->fault_told) {
			ktr_encode_fault(&im->enc, im->turn, c->fault);
			c->fault_told = true;
			return true;
		}
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

/* Takes up to len bytes of the frames that were made. Returns how many; 0: all are taken. */
static size_t
image_take(struct ktr_encoder *e, void *buf, size_t len)
{
	size_t n = e->out_len - e->out_pos;
	if (n > len)
		n = len;
	ktr_copy(buf, e->out + e->out_pos, n);
	e->out_pos += n;
	if (e->out_pos == e->out_len)
		e->out_len = e->out_pos = 0;
	return n;
}

size_t
ktr_image_stream(struct ktr_image *im, void *buf, size_t len)
{
	uint8_t *to = buf;
	size_t done = 0;
	while (done < len) {
		size_t n = image_take(&im->enc, to + done, len - done);
		if (n == 0 && !image_fill(im))
			break;
		done += n;
	}
	return done;
}
