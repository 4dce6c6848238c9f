/*
 * persist_fuzz.c - memory that may be the log of an earlier boot: whatever its bytes, nothing
 * outside the region is read, and what is read equals the bytes of a window, unless a checksum is
 * wrong. A damaged header is replaced by its copy or refused.
 */
#include <stdbool.h>
#include <string.h>

#include "ktr/crc32c.h"
#include "ktr/persist.h"
#include "tests/fuzz/fuzz.h"

#define PHYS     0x7f000000u
#define READS    8
#define READ_MAX 600
#define MORE     (192u << 10) /* so that windows can have the maximum number of blocks */

/* Makes a header from numbers that are nearly right, with a right checksum. */
static void
make_header(struct fuzz_input *in, struct ktr_persist *h, uint8_t how)
{
	*h = (struct ktr_persist){.version = KTR_PERSIST_VERSION, .phys = PHYS};
	memcpy(h->magic, KTR_PERSIST_MAGIC, sizeof(h->magic));
	for (unsigned i = 0; i < KTR_PERSIST_WINDOWS; i++) {
		struct ktr_persist_window *w = &h->windows[i];

		*w = (struct ktr_persist_window){fuzz_number(in), fuzz_number(in), fuzz_number(in),
						 fuzz_number(in)};
	}
	h->root = fuzz_number(in);
	h->spare = fuzz_number(in);
	h->size = how & 1 ? fuzz_number(in) : KTR_PERSIST_HEAD + in->left + (how & 4 ? MORE : 0);
	h->crc = ktr_crc32c(&h->version, sizeof(*h) - offsetof(struct ktr_persist, version));
}

/* Does a window have these bytes at va? */
static bool
stands(const struct ktr_persist *h, uint64_t va, const uint8_t *bytes, size_t n)
{
	for (unsigned i = 0; i < KTR_PERSIST_WINDOWS; i++) {
		const struct ktr_persist_window *w = &h->windows[i];

		if (va >= w->va && va - w->va <= w->size && n <= w->size - (va - w->va))
			return memcmp((const uint8_t *)h + w->at + (va - w->va), bytes, n) == 0;
	}
	return n == 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint8_t how = fuzz_byte(&in), bytes[READ_MAX];
	struct ktr_persist_reader r;
	struct ktr_persist h;
	uint64_t vas[READS];
	size_t ns[READS], room;
	uint8_t *region;

	for (unsigned i = 0; i < READS; i++) {
		vas[i] = fuzz_number(&in);
		ns[i] = fuzz_number(&in) % (READ_MAX + 1);
	}
	make_header(&in, &h, how);
	room = KTR_PERSIST_HEAD + in.left + (how & 4 ? MORE : 0);
	region = calloc(1, room);
	FUZZ_CHECK(region != NULL, "no memory");
	memcpy(region + KTR_PERSIST_HEAD / 2, &h, sizeof(h));
	memcpy(region, &h, sizeof(h));
	memcpy(region + KTR_PERSIST_HEAD, in.p, in.left);
	if (how & 2)
		region[fuzz_byte(&in) % sizeof(h)] ^= fuzz_byte(&in);
	if (how & 8)
		region[KTR_PERSIST_HEAD / 2 + fuzz_byte(&in) % sizeof(h)] ^= fuzz_byte(&in);
	FUZZ_CHECK(!ktr_persist_open(region, PHYS + 1, room), "a copy elsewhere");
	FUZZ_CHECK(!ktr_persist_open(region, PHYS, KTR_PERSIST_HEAD - 1), "a part of a header");
	if (ktr_persist_open(region, PHYS, room)) {
		FUZZ_CHECK(memcmp(region, &h, sizeof(h)) == 0, "a header that nobody wrote");
		FUZZ_CHECK(h.size >= KTR_PERSIST_HEAD && h.size <= room, "%ju bytes",
			   (uintmax_t)h.size);
		ktr_persist_reader_init(&r, (const struct ktr_persist *)region);
		(void)ktr_persist_root(&r);
		for (unsigned i = 0; i < READS; i++)
			if (ktr_persist_read(&r, vas[i], bytes, ns[i]))
				FUZZ_CHECK(stands((const struct ktr_persist *)region, vas[i], bytes,
						  ns[i]),
					   "%zu bytes at %#jx", ns[i], (uintmax_t)vas[i]);
	}
	free(region);
	return 0;
}
