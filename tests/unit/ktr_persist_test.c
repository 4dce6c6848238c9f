/*
 * ktr_persist_test.c - the region that survives a reset: made, allocated from, found again, and
 * read whatever bytes it contains.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ktr/control.h"
#include "ktr/crc32c.h"
#include "ktr/image.h"
#include "ktr/intern.h"
#include "ktr/ktr.h"
#include "ktr/persist.h"
#include "ktr/ring.h"
#include "ktr/site.h"

#define SIZE    (1u << 20)
#define PHYS    0x4000000u
#define ENTRIES 64u
#define SPARE   (KTR_PERSIST_HEAD / 2) /* offset of the second header */

static char rodata[5000] = "a text of the program";
static const char *before;         /* interned before the region existed */
static struct ktr_persist *region; /* while it is in use */
static char *copy;                 /* as a reset left it */

static void
site(uint64_t v)
{
	CTR1(KTR_GEN, "value %lu", v);
}

/* Makes a region with a ring and names in it, and copies its bytes. */
static int
make(void **state)
{
	const struct ktr_persist_text texts[] = {{rodata, sizeof(rodata)}};
	for (unsigned i = 100; i < sizeof(rodata); i++)
		rodata[i] = (char)(i * 7);
	before = ktr_intern("said before");
	region = aligned_alloc(4096, SIZE);
	copy = aligned_alloc(4096, SIZE);
	memset(region, 0xa5, SIZE);
	assert_null(ktr_persist_alloc(64));
	assert_false(ktr_persist_make(region, 65536, PHYS, 7, texts, 1));
	assert_false(ktr_persist_open(region, PHYS, SIZE));
	assert_true(ktr_persist_make(region, SIZE, PHYS, 7, texts, 1));
	assert_ptr_equal(ktr_persist_get(), region);
	assert_int_equal(ktr_resize(ENTRIES), 0);
	ktr_mask_set(KTR_GEN);
	ktr_thread_name(3, "three");
	for (uint64_t v = 0; v < ENTRIES + 5; v++)
		site(v);
	return 0;
}

static int
again(void **state)
{
	memcpy(copy, region, SIZE);
	return 0;
}

static bool
valid(void)
{
	return ktr_persist_open(copy, PHYS, SIZE);
}

static void
a_region_is_found_where_it_was_made_and_nowhere_else(void **state)
{
	assert_true(valid());
	assert_int_equal(((struct ktr_persist *)copy)->boot, 7);
	assert_false(ktr_persist_open(copy, PHYS + 4096, SIZE));
	assert_false(ktr_persist_open(copy, PHYS, SIZE - 1));
	assert_false(ktr_persist_open(copy, PHYS, KTR_PERSIST_HEAD - 1));
}

static void
any_changed_byte_of_the_header_is_noticed(void **state)
{
	/* One header is written anew from the other; of two that are damaged none is taken. */
	for (unsigned i = 0; i < sizeof(struct ktr_persist); i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			copy[i] ^= (char)(1 << bit);
			assert_true(valid());
			assert_memory_equal(copy, region, sizeof(struct ktr_persist));
			copy[SPARE + i] ^= (char)(1 << bit);
			assert_true(valid());
			copy[i] ^= (char)(1 << bit);
			assert_false(valid());
			again(NULL);
		}
	}
}

/* Gives a wrong header a good checksum. */
static void
seal(struct ktr_persist *h)
{
	h->crc = ktr_crc32c(&h->version, sizeof(*h) - offsetof(struct ktr_persist, version));
}

static void
a_header_that_points_outside_is_refused(void **state)
{
	static const uint64_t bad[] = {SIZE, SIZE + 1, UINT64_MAX, UINT64_MAX - 63, 1ull << 63};
	struct ktr_persist *h = (struct ktr_persist *)copy;
	const struct ktr_persist good = *h;
	copy[SPARE] ^= 1;
	seal(h);
	assert_true(valid());
	for (unsigned w = 0; w < 2; w++) {
		for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			*h = good;
			h->windows[w].at = bad[i];
			seal(h);
			assert_false(valid());
			*h = good;
			h->windows[w].size = bad[i];
			seal(h);
			assert_false(valid());
			*h = good;
			h->windows[w].crcs = bad[i];
			seal(h);
			assert_false(valid());
		}
	}
	*h = good;
	h->size = SIZE + 4096;
	seal(h);
	assert_false(valid());
	*h = good;
	h->version++;
	seal(h);
	assert_false(valid());
}

static struct ktr_persist_reader
reader(void)
{
	struct ktr_persist_reader r;
	ktr_persist_reader_init(&r, (struct ktr_persist *)copy);
	return r;
}

static void
addresses_of_the_writer_lead_to_what_it_had_there(void **state)
{
	struct ktr_persist_reader r = reader();
	char text[32];
	struct ktr_image_root root;
	struct ktr_site one;
	assert_int_equal(r.bad_count, 0);
	assert_true(ktr_persist_read(&r, (uintptr_t)rodata, text, 22));
	assert_string_equal(text, "a text of the program");
	assert_true(ktr_persist_read(&r, r.region->root, &root, sizeof(root)));
	/* Interned before and after the names moved into the region. */
	static struct ktr_names names;
	char buf[KTR_STRING_MAX];
	assert_true(ktr_persist_read(&r, root.names, &names, sizeof(names)));
	assert_string_equal(ktr_names_text(&names, (uintptr_t)before, buf), "said before");
	assert_true(ktr_names_thread(&names, 3, buf) != 0);
	assert_string_equal(buf, "three");
	assert_memory_equal(root.magic, KTR_IMAGE_MAGIC, 8);
	assert_true(ktr_persist_read(&r, root.sites, &one, sizeof(one)));
	assert_true(one.line == __start_ktr_sites[0].line);
	/* The ring is found, too. One byte more on either side of a window is outside. */
	struct ktr_ring ring;
	assert_true(ktr_persist_read(&r, root.rings[0], &ring, sizeof(ring)));
	assert_int_equal(ring.entries, ENTRIES);
	assert_true(ktr_persist_read(&r, (uintptr_t)rodata + sizeof(rodata) - 1, text, 1));
	assert_false(ktr_persist_read(&r, (uintptr_t)rodata + sizeof(rodata) - 1, text, 2));
	assert_false(ktr_persist_read(&r, (uintptr_t)rodata - 1, text, 2));
	assert_false(ktr_persist_read(&r, (uintptr_t)region + SIZE - 4, text, 5));
	assert_false(ktr_persist_read(&r, UINT64_MAX, text, 2));
	assert_false(ktr_persist_read(&r, 0, text, SIZE_MAX));
}

static void
damaged_copies_are_not_read(void **state)
{
	const struct ktr_persist_window *w = &((struct ktr_persist *)copy)->windows[3];
	char byte;
	assert_true(w->va == (uintptr_t)rodata);
	copy[w->at + 4097] ^= 1;
	struct ktr_persist_reader r = reader();
	assert_int_equal(r.bad_count, 1);
	assert_true(ktr_persist_read(&r, w->va + 4095, &byte, 1));
	assert_false(ktr_persist_read(&r, w->va + 4096, &byte, 1));
	assert_false(ktr_persist_read(&r, w->va + 4999, &byte, 1));
	/* A damaged checksum costs its block. */
	again(NULL);
	copy[w->crcs] ^= 1;
	r = reader();
	assert_int_equal(r.bad_count, 1);
	assert_false(ktr_persist_read(&r, w->va, &byte, 1));
}

static void
rings_come_from_the_region_while_they_fit(void **state)
{
	char *end = (char *)region + SIZE, *p[8];
	for (unsigned i = 0; i < 8; i++) {
		p[i] = ktr_persist_alloc(10000);
		assert_non_null(p[i]);
		assert_true(p[i] > (char *)region && p[i] + 10000 <= end);
		assert_true((uintptr_t)p[i] % 64 == 0 && p[i][0] == 0 && p[i][9999] == 0);
		memset(p[i], 1, 10000);
		for (unsigned j = 0; j < i; j++)
			assert_true(p[j] + 10000 <= p[i] || p[i] + 10000 <= p[j]);
	}
	assert_null(ktr_persist_alloc(SIZE));
	assert_null(ktr_persist_alloc(SIZE_MAX - 5));
	assert_null(ktr_persist_alloc(0));
	/* A gap is allocated again, zeroed. */
	assert_true(ktr_persist_free(p[3]));
	assert_false(ktr_persist_free(p[3]));
	assert_ptr_equal(ktr_persist_alloc(9000), p[3]);
	assert_int_equal(p[3][0], 0);
	assert_int_equal(p[4][0], 1);
	for (unsigned i = 0; i < 8; i++)
		assert_true(ktr_persist_free(p[i]));
	assert_false(ktr_persist_free(&end));
	assert_false(ktr_persist_free(NULL));
}

static bool
is_inside(const void *p)
{
	return (const char *)p >= (char *)region && (const char *)p < (char *)region + SIZE;
}

static void
only_the_main_logs_rings_are_in_the_region(void **state)
{
	static struct ktr_log log;
	assert_int_equal(ktr_log_open(&log, ENTRIES), 0);
	assert_false(is_inside(ktr_log_ring(&log, 0)));
	assert_int_equal(ktr_resize(2 * ENTRIES), 0);
	assert_true(is_inside(ktr_log_ring(&ktr_main, 0)));
	ktr_log_close(&log);
	assert_int_equal(ktr_resize(ENTRIES), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(a_region_is_found_where_it_was_made_and_nowhere_else, again),
	    cmocka_unit_test_setup(any_changed_byte_of_the_header_is_noticed, again),
	    cmocka_unit_test_setup(a_header_that_points_outside_is_refused, again),
	    cmocka_unit_test_setup(addresses_of_the_writer_lead_to_what_it_had_there, again),
	    cmocka_unit_test_setup(damaged_copies_are_not_read, again),
	    cmocka_unit_test(rings_come_from_the_region_while_they_fit),
	    cmocka_unit_test(only_the_main_logs_rings_are_in_the_region),
	};
	return cmocka_run_group_tests(tests, make, NULL);
}
