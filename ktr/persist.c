/*
 * persist.c - makes the region that survives a reset, allocates rings from it, and reads the region
 * of an earlier boot.
 *
 * A region's parts, in order: header, root, header again, copies with their checksums, names, root
 * again, rings.
 */
#include "ktr/persist.h"

#include "ktr/crc32c.h"
#include "ktr/dynamic.h"
#include "ktr/image.h"
#include "ktr/intern.h"
#include "ktr/port.h"
#include "ktr/site.h"
#include "ktr/str.h"

#define ALIGN     64u                    /* of everything in the region */
#define RINGS_MAX (2u * KTR_PORT_MAXCPU) /* the main log's old ones and new, while they change */

#define SPARE (KTR_PERSIST_HEAD / 2) /* offset of the second header */

_Static_assert(sizeof(struct ktr_persist) + ALIGN + sizeof(struct ktr_image_root) <= SPARE,
	       "header and root stand before the second header");

static struct ktr_persist *persist; /* written once */

/* [control lock] The allocated rings, by ascending offset. */
static struct {
	uint64_t at, end;
} rings[RINGS_MAX];
static unsigned ring_count;

static uint64_t
round_up(uint64_t v)
{
	return (v + ALIGN - 1) / ALIGN * ALIGN;
}

static void *
persist_part(const struct ktr_persist *h, uint64_t at)
{
	return (char *)(uintptr_t)h + at;
}

static uint32_t
header_crc(const struct ktr_persist *h)
{
	size_t from = offsetof(struct ktr_persist, version);
	return ktr_crc32c((const char *)h + from, sizeof(*h) - from);
}

static uint64_t
window_blocks(const struct ktr_persist_window *w)
{
	return (w->size + KTR_PERSIST_BLOCK - 1) / KTR_PERSIST_BLOCK;
}

static uint32_t
block_crc(const struct ktr_persist *h, const struct ktr_persist_window *w, uint64_t block)
{
	uint64_t from = block * KTR_PERSIST_BLOCK;
	uint64_t n = w->size - from < KTR_PERSIST_BLOCK ? w->size - from : KTR_PERSIST_BLOCK;
	return ktr_crc32c(persist_part(h, w->at + from), n);
}

/* Adds a window of size bytes at h->rings, which then points after it. */
static struct ktr_persist_window *
window_add(struct ktr_persist *h, uint64_t va, uint64_t size)
{
	struct ktr_persist_window *w = h->windows;
	while (w->size != 0)
		w++;
	*w = (struct ktr_persist_window){.va = va, .size = size, .at = h->rings};
	h->rings = round_up(h->rings + size);
	return w;
}

/* Adds a window for a copy of constant data, and room for its checksums. */
static void
window_add_copy(struct ktr_persist *h, const struct ktr_persist_text *text)
{
	struct ktr_persist_window *w = window_add(h, (uintptr_t)text->start, text->size);
	w->crcs = h->rings;
	h->rings = round_up(h->rings + window_blocks(w) * sizeof(uint32_t));
}

void
ktr_persist_store(const void *p, size_t size)
{
	for (unsigned i = 0; persist != NULL && i < KTR_PERSIST_WINDOWS; i++) {
		const struct ktr_persist_window *w = &persist->windows[i];
		uint64_t from = (uintptr_t)p - w->va;
		if (w->crcs == 0 && from < w->size)
			ktr_copy(persist_part(persist, w->at + from), p, size);
	}
}

static void
copies_fill(struct ktr_persist *h)
{
	for (unsigned i = 0; i < KTR_PERSIST_WINDOWS; i++) {
		const struct ktr_persist_window *w = &h->windows[i];
		uint32_t *crcs = persist_part(h, w->crcs);
		if (w->crcs == 0)
			continue;
		ktr_copy(persist_part(h, w->at), (const void *)(uintptr_t)w->va, w->size);
		for (uint64_t b = 0; b < window_blocks(w); b++)
			crcs[b] = block_crc(h, w, b);
	}
}

bool
ktr_persist_make(void *p, size_t size, uint64_t phys, uint64_t boot,
		 const struct ktr_persist_text *texts, unsigned count)
{
	const struct ktr_persist_text sites = {__start_ktr_sites, (uintptr_t)__stop_ktr_sites -
								      (uintptr_t)__start_ktr_sites};
	struct ktr_persist h = {.version = KTR_PERSIST_VERSION,
				.size = size,
				.phys = phys,
				.boot = boot,
				.rings = KTR_PERSIST_HEAD};
	uint64_t blocks = 0;
	if (count > KTR_PERSIST_TEXTS)
		return false;

	/* Before the sites: they are some of them, and the first window that fits is read. */
	window_add(&h, (uintptr_t)ktr_dynamic_sites, sizeof(ktr_dynamic_sites));
	window_add(&h, (uintptr_t)ktr_dynamic_texts, sizeof(ktr_dynamic_texts));
	window_add_copy(&h, &sites);
	for (unsigned i = 0; i < count; i++)
		window_add_copy(&h, &texts[i]);
	for (unsigned i = 0; i < KTR_PERSIST_WINDOWS; i++)
		blocks += h.windows[i].crcs != 0 ? window_blocks(&h.windows[i]) : 0;
	uint64_t names = h.rings, root = round_up(sizeof(h));
	uint64_t spare = round_up(names + sizeof(struct ktr_names));
	h.root = (uintptr_t)p + root;
	h.spare = (uintptr_t)p + spare;
	h.rings = round_up(spare + sizeof(struct ktr_image_root));
	if (h.rings > size || blocks > KTR_PERSIST_BLOCKS)
		return false;
	*window_add(&h, (uintptr_t)p, 0) =
	    (struct ktr_persist_window){.va = (uintptr_t)p, .size = size};

	h.crc = header_crc(&h);
	ktr_copy(p, &h, sizeof(h));
	copies_fill(p);
	ktr_names_move(persist_part(p, names));
	ktr_image_move(persist_part(p, root), persist_part(p, spare));
	/* Complete: now it may be found. */
	ktr_copy(((struct ktr_persist *)p)->magic, KTR_PERSIST_MAGIC, sizeof(h.magic));
	ktr_copy(persist_part(p, SPARE), p, sizeof(h));
	persist = p;
	ktr_persist_store(ktr_dynamic_sites, sizeof(ktr_dynamic_sites));
	ktr_persist_store(ktr_dynamic_texts, sizeof(ktr_dynamic_texts));
	return true;
}

const struct ktr_persist *
ktr_persist_get(void)
{
	return persist;
}

void *
ktr_persist_alloc(size_t size)
{
	if (persist == NULL || ring_count == RINGS_MAX || size == 0 || size > persist->size)
		return NULL;
	uint64_t at = persist->rings, n = round_up(size);
	unsigned i = 0;
	/* The first gap that holds it. */
	while (i < ring_count && rings[i].at - at < n)
		at = rings[i++].end;
	if (at > persist->size || n > persist->size - at)
		return NULL;
	for (unsigned j = ring_count++; j > i; j--)
		rings[j] = rings[j - 1];
	rings[i].at = at;
	rings[i].end = at + n;
	ktr_zero(persist_part(persist, at), n);
	return persist_part(persist, at);
}

bool
ktr_persist_free(void *p)
{
	uint64_t at = (uintptr_t)p - (uintptr_t)persist;
	for (unsigned i = 0; i < ring_count; i++) {
		if (rings[i].at != at)
			continue;
		for (ring_count--; i < ring_count; i++)
			rings[i] = rings[i + 1];
		return true;
	}
	return false;
}

/* [at, at + size) is in the region. */
static bool
persist_is_inside(const struct ktr_persist *h, uint64_t at, uint64_t size)
{
	return size <= h->size && at <= h->size - size;
}

static bool
header_sound(const struct ktr_persist *h, uint64_t phys, size_t room)
{
	uint64_t blocks = 0;
	for (size_t i = 0; i < sizeof(h->magic); i++)
		if (h->magic[i] != KTR_PERSIST_MAGIC[i])
			return false;
	if (h->version != KTR_PERSIST_VERSION || h->crc != header_crc(h) || h->phys != phys ||
	    h->size > room || h->size < KTR_PERSIST_HEAD)
		return false;
	for (unsigned i = 0; i < KTR_PERSIST_WINDOWS; i++) {
		const struct ktr_persist_window *w = &h->windows[i];
		if (!persist_is_inside(h, w->at, w->size) || w->va + w->size < w->va)
			return false;
		if (w->crcs == 0)
			continue;
		blocks += window_blocks(w);
		if (blocks > KTR_PERSIST_BLOCKS || w->crcs % sizeof(uint32_t) != 0 ||
		    !persist_is_inside(h, w->crcs, window_blocks(w) * sizeof(uint32_t)))
			return false;
	}
	return true;
}

bool
ktr_persist_open(void *p, uint64_t phys, size_t room)
{
	if (room < KTR_PERSIST_HEAD)
		return false;
	if (!header_sound(p, phys, room) && header_sound(persist_part(p, SPARE), phys, room))
		ktr_copy(p, persist_part(p, SPARE), sizeof(struct ktr_persist));
	return header_sound(p, phys, room);
}

bool
ktr_persist_resembles(const void *p)
{
	const struct ktr_persist *h = p;
	unsigned same = 0;
	for (size_t i = 0; i < sizeof(h->magic); i++)
		same += h->magic[i] == KTR_PERSIST_MAGIC[i];
	return same > sizeof(h->magic) / 2;
}

static bool
block_is_bad(const struct ktr_persist_reader *r, uint64_t n)
{
	return (r->bad[n / 64] >> n % 64 & 1) != 0;
}

void
ktr_persist_reader_init(struct ktr_persist_reader *r, const struct ktr_persist *region)
{
	uint64_t n = 0;
	*r = (struct ktr_persist_reader){.region = region};
	for (unsigned i = 0; i < KTR_PERSIST_WINDOWS; i++) {
		const struct ktr_persist_window *w = &region->windows[i];
		const uint32_t *crcs = persist_part(region, w->crcs);
		for (uint64_t b = 0; w->crcs != 0 && b < window_blocks(w); b++, n++) {
			if (crcs[b] == block_crc(region, w, b))
				continue;
			r->bad[n / 64] |= 1ull << n % 64;
			r->bad_count++;
		}
	}
}

bool
ktr_persist_read(void *reader, uint64_t va, void *buf, size_t n)
{
	const struct ktr_persist_reader *r = reader;
	uint64_t block = 0; /* the window's first, of all */
	for (unsigned i = 0; i < KTR_PERSIST_WINDOWS; i++) {
		const struct ktr_persist_window *w = &r->region->windows[i];
		uint64_t from = va - w->va;
		if (n <= w->size && from <= w->size - n) {
			uint64_t first = from / KTR_PERSIST_BLOCK;
			uint64_t last = (from + n - 1) / KTR_PERSIST_BLOCK;
			/* For n = 0 at a window's end there is no block. */
			for (uint64_t b = first; n > 0 && w->crcs != 0 && b <= last; b++)
				if (block_is_bad(r, block + b))
					return false;
			ktr_copy(buf, persist_part(r->region, w->at + from), n);
			return true;
		}
		if (w->crcs != 0)
			block += window_blocks(w);
	}
	return false;
}

static bool
root_whole(struct ktr_persist_reader *r, uint64_t va)
{
	struct ktr_image_root root;
	return ktr_persist_read(r, va, &root, sizeof(root)) && ktr_image_whole(&root);
}

uint64_t
ktr_persist_root(struct ktr_persist_reader *r)
{
	const struct ktr_persist *h = r->region;
	return !root_whole(r, h->root) && root_whole(r, h->spare) ? h->spare : h->root;
}
