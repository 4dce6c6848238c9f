/*
 * ktr_image_test.c - a log read through its root gives the same as its own stream. So does a log
 * found after a reset, without head words. Whatever bytes are damaged, only sound events are
 * returned, and nearly all of them. KTR_TEST_SEED is the seed of the damage, in KTR_TEST_ROUNDS
 * rounds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ktr/control.h"
#include "ktr/decode.h"
#include "ktr/dynamic.h"
#include "ktr/image_read.h"
#include "ktr/intern.h"
#include "ktr/ktr.h"
#include "ktr/persist.h"
#include "ktr/stream.h"
#include "tests/unit/ktr_decode_help.h"

#define SIZE        (2u << 20)
#define PHYS        0x4000000u
#define ENTRIES     64u
#define CPUS        3u
#define EVENTS_MAX  (CPUS * ENTRIES)
#define ROUNDS      1500u
#define SEED_ROUNDS 250u /* with one seed */

struct event {
	uint64_t seq, ticks, args[6];
	unsigned cpu, tid, nargs, line;
	char text[100], thread[20];
};

struct log {
	struct event events[EVENTS_MAX];
	unsigned count, corrupt, gaps, ends, damages;
	struct ktr_decode_gap overwritten[CPUS]; /* the first of each CPU; without its header */
	uint64_t mask;
	char damage[300]; /* the last one */
};

static struct ktr_persist *region; /* in use */
static char *left;                 /* as a reset left it; may be damaged */
static struct ktr_image *image;
static uint64_t now, first_tick;

static uint64_t
tick(void)
{
	return now += 10;
}

static void
on_event(void *arg, const struct ktr_decode_event *e)
{
	struct log *log = arg;
	assert_true(log->count < EVENTS_MAX);
	struct event *to = &log->events[log->count++];
	memset(to, 0, sizeof(*to));
	to->seq = e->seq;
	to->ticks = e->ticks;
	to->cpu = e->cpu;
	to->tid = e->tid;
	to->nargs = e->nargs;
	to->line = e->site != NULL ? e->site->line : 0;
	memcpy(to->args, e->args, sizeof(to->args[0]) * e->nargs);
	ktr_decode_text(to->text, sizeof(to->text), e);
	snprintf(to->thread, sizeof(to->thread), "%s", e->thread != NULL ? e->thread : "");
}

static void
on_gap(void *arg, const struct ktr_decode_gap *g)
{
	struct log *log = arg;
	log->gaps++;
	log->corrupt += g->reason == KTR_GAP_CORRUPT ? (unsigned)g->count : 0;
	if (g->reason == KTR_GAP_OVERWRITTEN && log->overwritten[g->cpu].count == 0) {
		log->overwritten[g->cpu] = *g;
		log->overwritten[g->cpu].header = NULL;
	}
}

static void
on_mask(void *arg, uint64_t classes)
{
	((struct log *)arg)->mask = classes;
}

static void
on_end(void *arg)
{
	((struct log *)arg)->ends++;
}

static void
on_damage(void *arg, uint64_t offset, uint64_t bytes, const char *text)
{
	struct log *log = arg;
	assert_int_equal(bytes, 0); /* the stream is sound: only a ring was damaged */
	snprintf(log->damage, sizeof(log->damage), "%s", text);
	log->damages++;
}

static const struct ktr_decoder_ops ops = {.realloc = decode_realloc,
					   .event = on_event,
					   .gap = on_gap,
					   .mask = on_mask,
					   .end = on_end,
					   .damage = on_damage};

/* By CPU and number: streams take turns between CPUs in their own ways. */
static int
event_order(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* The log's own stream: the expected result. */
static void
own_log(struct log *log)
{
	static struct ktr_stream stream;
	static uint8_t bytes[1000];
	size_t n;
	memset(log, 0, sizeof(*log));
	struct ktr_decoder *d = ktr_decoder_create(&ops, log);
	ktr_stream_open(&stream, KTR_STREAM_STOPPED);
	while ((n = ktr_stream_read(&stream, bytes, sizeof(bytes))) > 0)
		ktr_decoder_push(d, bytes, n);
	ktr_stream_close(&stream, false);
	while ((n = ktr_stream_read(&stream, bytes, sizeof(bytes))) > 0)
		ktr_decoder_push(d, bytes, n);
	assert_int_equal(ktr_decoder_finish(d), 0);
	ktr_decoder_destroy(d);
	qsort(log->events, log->count, sizeof(log->events[0]), event_order);
}

/* The image's stream, read in pieces of a given size. */
static void
image_log(struct log *log, size_t piece)
{
	uint8_t bytes[1000];
	size_t n;
	memset(log, 0, sizeof(*log));
	struct ktr_decoder *d = ktr_decoder_create(&ops, log);
	while ((n = ktr_image_stream(image, bytes, piece)) > 0)
		ktr_decoder_push(d, bytes, n);
	assert_int_equal(ktr_image_stream(image, bytes, piece), 0);
	assert_int_equal(ktr_decoder_finish(d), 0);
	ktr_decoder_destroy(d);
	assert_int_equal(log->ends, 1);
	qsort(log->events, log->count, sizeof(log->events[0]), event_order);
}

static void
assert_same(const struct log *found, const struct log *right)
{
	assert_int_equal(found->count, right->count);
	assert_int_equal(found->corrupt, right->corrupt);
	assert_int_equal(found->damages, 0);
	assert_int_equal(found->mask, KTR_GEN);
	assert_memory_equal(found->overwritten, right->overwritten, sizeof(found->overwritten));
	for (unsigned i = 0; i < right->count; i++) {
		assert_string_equal(found->events[i].text, right->events[i].text);
		assert_memory_equal(&found->events[i], &right->events[i], sizeof(struct event));
	}
}

/* Reads from a running program, all of whose memory is in the dump. */
static bool
read_memory(void *arg, uint64_t va, void *buf, size_t n)
{
	memcpy(buf, (const void *)(uintptr_t)va, n);
	return true;
}

static int
open_left(struct ktr_persist_reader *r)
{
	char err[200];
	if (!ktr_persist_open(left, PHYS, SIZE))
		return -1;
	ktr_persist_reader_init(r, (struct ktr_persist *)left);
	return ktr_image_open(image, ktr_persist_read, r, ktr_persist_root(r), err, sizeof(err));
}

/* An event of a site that was just made. */
static void
record_made(unsigned i)
{
	char fmt[32], err[200];
	snprintf(fmt, sizeof(fmt), "made %u: %%u", i);
	const struct ktr_dynamic d = {.provider = "p",
				      .module = "m",
				      .function = "f",
				      .name = "n",
				      .file = "c",
				      .line = i,
				      .fmt = fmt,
				      .nargs = 1};
	struct ktr_site *site = ktr_site_make(&d, err, sizeof(err));
	if (site == NULL) { /* the rings have events of all of them */
		CTR0(KTR_GEN, "nothing");
		return;
	}
	if ((ktr_mask_get() & KTR_GEN) != 0)
		ktr_log_record(&ktr_main, site, (uint64_t[KTR_MAXARGS]){i});
	ktr_site_free(site);
}

static void
record(unsigned cpu, unsigned events)
{
	static const char *const words[] = {"first", "second"};
	char name[20];
	ktr_host_cpu = cpu;
	for (unsigned i = 0; i < events; i++) {
		ktr_host_tid = 10 + i % 3;
		snprintf(name, sizeof(name), "interned %u", i % 5);
		switch (i % 5) {
		case 0:
			CTR0(KTR_GEN, "nothing");
			break;
		case 1:
			CTR2(KTR_GEN, "string %s number %u", ktr_intern(name), i);
			break;
		case 2:
			CTR1(KTR_GEN, "word %s", words[i / 4 % 2]);
			break;
		case 3:
			record_made(i);
			break;
		default:
			CTR6(KTR_GEN, "%s %u %u %u %u %u", ktr_thread_ident(11), i, i, i, i, i);
		}
	}
	ktr_host_cpu = 0;
}

static int
make(void **state)
{
	/* This program's own constants take the place of a kernel's. */
	extern const char etext[], __data_start[];
	const struct ktr_persist_text texts[] = {{etext, (size_t)(__data_start - etext)}};
	static const struct ktr_info info = {.arch = "host",
					     .build = "a build",
					     .boot_id = {1, 2, 3},
					     .hz = 1000000000,
					     .boot_ticks = 5,
					     .ncpu = CPUS};
#ifdef __SANITIZE_ADDRESS__
	void __asan_unpoison_memory_region(const volatile void *, size_t);
	__asan_unpoison_memory_region(texts[0].start, texts[0].size); /* between them, too */
#endif
	region = aligned_alloc(4096, SIZE);
	left = aligned_alloc(4096, SIZE);
	image = aligned_alloc(64, (sizeof(*image) + 63) / 64 * 64);
	assert_true(ktr_persist_make(region, SIZE, PHYS, 3, texts, 1));
	ktr_image_add_text(texts[0].start, texts[0].size);
	ktr_info_set(&info);
	ktr_host_clock = tick;
	ktr_host_cpus = CPUS;
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		assert_int_equal(ktr_cpu_init(cpu), 0);
	}
	assert_int_equal(ktr_resize(ENTRIES), 0);
	ktr_mask_set(KTR_GEN);
	ktr_thread_name(10, "ten");
	ktr_thread_name(11, "eleven");
	/*
	 * One CPU whose ring was overwritten often, one whose ring is not full, one without events.
	 */
	first_tick = now + 10;
	record(0, 5 * ENTRIES + 7);
	record(1, ENTRIES / 2);
	return 0;
}

static int
reset(void **state)
{
	memcpy(left, region, SIZE);
	return 0;
}

static void
a_dump_says_what_the_stream_says(void **state)
{
	static struct log right, found;
	char err[200];
	own_log(&right);
	assert_int_equal(right.count, ENTRIES - KTR_RING_SPARE + ENTRIES / 2);
	/* The log begins with its first event, and says which are overwritten, from when to when.
	 */
	const struct ktr_decode_gap *gap = right.overwritten;
	assert_int_equal(right.gaps, 1);
	assert_int_equal(gap[0].first, 0);
	assert_int_equal(gap[0].count, right.events[0].seq);
	assert_int_equal(gap[0].count, 5 * ENTRIES + 7 - (ENTRIES - KTR_RING_SPARE));
	assert_int_equal(gap[0].from_ticks, first_tick);
	assert_int_equal(gap[0].to_ticks, right.events[0].ticks);
	uint64_t root = (uintptr_t)ktr_image, sound, corrupt;
	assert_int_equal(ktr_image_open(image, read_memory, NULL, root, err, sizeof(err)), 0);
	assert_string_equal(image->info.arch, "host");
	assert_string_equal(image->info.build, "a build");
	assert_int_equal(image->info.hz, 1000000000);
	ktr_image_count(image, &sound, &corrupt);
	assert_int_equal(sound, right.count);
	assert_int_equal(corrupt, 0);
	for (size_t piece = 1; piece <= 1000; piece += 333) {
		ktr_image_rewind(image);
		image_log(&found, piece);
		assert_same(&found, &right);
	}
}

static void
what_a_reset_left_says_it_too(void **state)
{
	static struct log right, found;
	struct ktr_persist_reader r;
	own_log(&right);
	assert_int_equal(open_left(&r), 0);
	image_log(&found, 500);
	assert_same(&found, &right);
}

static void
at_any_number_of_events_the_newest_is_found(void **state)
{
	static struct log right, found;
	struct ktr_persist_reader r;
	for (unsigned i = 0; i < 3 * ENTRIES; i++) {
		record(2, 1);
		reset(NULL);
		own_log(&right);
		assert_int_equal(open_left(&r), 0);
		image_log(&found, 1000);
		assert_same(&found, &right);
	}
	/* After a clear and a resize, the numbers continue from a base. */
	ktr_clear();
	assert_int_equal(ktr_resize(ENTRIES / 2), 0);
	for (unsigned i = 0; i < ENTRIES; i++) {
		reset(NULL);
		own_log(&right);
		assert_int_equal(open_left(&r), 0);
		image_log(&found, 1000);
		assert_same(&found, &right);
		record(2, 1);
	}
	/* Cleared events stay cleared, at whatever slot of the ring the clear happened. */
	for (unsigned i = 0; i < ENTRIES; i++) {
		record(2, 1);
		ktr_clear();
		reset(NULL);
		own_log(&right);
		assert_int_equal(open_left(&r), 0);
		image_log(&found, 1000);
		assert_same(&found, &right);
	}
	assert_int_equal(ktr_resize(ENTRIES), 0);
	record(0, 5 * ENTRIES + 7);
	record(1, ENTRIES / 2);
}

static struct ktr_entry *
left_slot(unsigned cpu, unsigned i)
{
	const struct ktr_ring *ring = ktr_log_ring(&ktr_main, cpu);
	return (struct ktr_entry *)(left + ((uintptr_t)ktr_ring_slots(ring) - (uintptr_t)region)) +
	       i;
}

static void
a_corrupt_entry_is_a_gap_and_not_an_event(void **state)
{
	static struct log right, found;
	struct ktr_persist_reader r;
	own_log(&right);
	left_slot(0, 20)->site = 0xfffffff0;
	left_slot(0, 21)->site ^= 1;
	left_slot(1, 40)->ticks = UINT64_MAX; /* far from its neighbours' times */
	assert_int_equal(open_left(&r), 0);
	image_log(&found, 1000);
	assert_int_equal(found.count, right.count - 3);
	assert_int_equal(found.corrupt, 3);
	assert_int_equal(found.gaps, right.gaps + 2);
}

static const struct event *
right_event(const struct log *right, const struct event *e)
{
	for (unsigned i = 0; i < right->count; i++) {
		if (right->events[i].cpu == e->cpu && right->events[i].seq == e->seq)
			return &right->events[i];
	}
	return NULL;
}

static bool
in_header(size_t at)
{
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		if (at - ((uintptr_t)ktr_log_ring(&ktr_main, cpu) - (uintptr_t)region) <
		    sizeof(struct ktr_ring))
			return true;
	return false;
}

/* Damage is tried at one place of n; with KTR_TEST_ALL=1 at all of them (`make soak`). */
static unsigned
one_of(unsigned n)
{
	return getenv("KTR_TEST_ALL") != NULL ? 1 : n;
}

/* Damage costs only the events that it hits, and adds none. Parameters have no checksum, though. */
static void
damage_anywhere_costs_no_more_than_what_it_hit(void **state)
{
	static struct log right, found;
	const char *text = getenv("KTR_TEST_SEED");
	unsigned first = text != NULL ? (unsigned)atoi(text) : 1, seed = 0, opened = 0;
	text = getenv("KTR_TEST_ROUNDS");
	unsigned rounds = text != NULL ? (unsigned)atoi(text) : ROUNDS / one_of(3);
	own_log(&right);
	size_t used =
	    (uintptr_t)ktr_log_ring(&ktr_main, 2) - (uintptr_t)region + ktr_ring_bytes(ENTRIES);
	for (unsigned round = 0; round < rounds; round++) {
		struct ktr_persist_reader r;
		if (round % SEED_ROUNDS == 0) {
			seed = first + round / SEED_ROUNDS;
			print_message("# KTR_TEST_SEED=%u\n", seed);
		}
		reset(NULL);
		unsigned flips = round % 10 == 0 ? 100 : 1, wrong = 0;
		size_t at = 0;
		for (unsigned i = 0; i < flips; i++) {
			seed = seed * 1103515245 + 12345;
			at = (size_t)(seed / 65536 * 32768u + seed % 32768u) % used;
			left[at] = (char)(left[at] ^ (1 << seed / 256 % 8));
		}
		bool open = open_left(&r) == 0;
		assert_true(open || flips > 1);
		if (!open)
			continue;
		opened++;
		image_log(&found, 1000);
		uint64_t last[CPUS] = {0};
		assert_true(found.count <= right.count);
		for (unsigned i = 0; i < found.count; i++) {
			const struct event *e = &found.events[i];
			assert_true(e->cpu < CPUS && e->ticks >= last[e->cpu]);
			last[e->cpu] = e->ticks;
			const struct event *same = right_event(&right, e);
			wrong += same == NULL || memcmp(same, e, sizeof(*e)) != 0;
		}
		/*
		 * A name or a site belongs to many events, a slot to one. But of the last two
		 * events, it is unknown whose time is wrong.
		 */
		if (flips == 1 && at >= r.region->rings && !in_header(at))
			assert_true(right.count - found.count + wrong <= 2);
		/*
		 * Each loss is reported. But only the head says whether the last two events were
		 * recorded.
		 */
		if (flips == 1 && found.count + found.corrupt + 2 < right.count)
			assert_true(found.damages != 0);
	}
	print_message("# %u of %u were opened\n", opened, rounds);
	assert_true(opened > rounds / 10 * 9);
}

static void
flip(const void *of_region, unsigned bit)
{
	size_t at = (uintptr_t)of_region - (uintptr_t)region + bit / 8;
	left[at] = (char)(left[at] ^ (1 << bit % 8));
}

/* The same place in the second root. */
static const void *
in_spare(const void *of_root)
{
	const struct ktr_persist *h = (const struct ktr_persist *)region;
	return (const char *)of_root + (h->spare - h->root);
}

/* Each bit of the root, and of the second root: the log is whole. */
static void
one_of_two_roots_is_enough(void **state)
{
	static struct log right, found;
	struct ktr_persist_reader r;
	own_log(&right);
	for (unsigned bit = 0; bit < sizeof(struct ktr_image_root) * 8; bit += one_of(5)) {
		reset(NULL);
		flip(bit % 2 == 0 ? ktr_image : in_spare(ktr_image), bit);
		assert_int_equal(open_left(&r), 0);
		assert_int_equal(ktr_persist_root(&r),
				 bit % 2 == 0 ? r.region->spare : r.region->root);
		image_log(&found, 1000);
		assert_same(&found, &right);
	}
}

/*
 * Bits of the headers, each of their heads among them, and of both roots' pointers to them: a
 * loss is reported. The number of slots and the CPU are found again.
 */
static void
damage_headers(void)
{
	static struct log right, found;
	struct ktr_persist_reader r;
	own_log(&right);
	for (unsigned n = 0; n < CPUS * 64 * 9; n += n < CPUS * 64 ? 1 : one_of(7)) {
		unsigned cpu = n % CPUS, bit = n / CPUS % 512;
		const struct ktr_ring *ring = ktr_log_ring(&ktr_main, cpu);
		char who[40];
		bool row = n / CPUS >= 512;
		reset(NULL);
		flip(row ? (const void *)&ktr_image->rings[cpu] : ring, bit);
		if (row)
			flip(in_spare(&ktr_image->rings[cpu]), bit);
		assert_int_equal(open_left(&r), 0);
		image_log(&found, 1000);
		unsigned member = bit / 8;
		bool used = row || member < offsetof(struct ktr_ring, limit) ||
			    (member >= offsetof(struct ktr_ring, base) &&
			     member < offsetof(struct ktr_ring, busy)) ||
			    (member >= offsetof(struct ktr_ring, start) &&
			     member < offsetof(struct ktr_ring, since));
		snprintf(who, sizeof(who), "the ring of cpu %u was damaged: ", cpu);
		assert_true(found.damages <= 1);
		if (found.damages == 1)
			assert_memory_equal(found.damage, who, strlen(who));
		if (found.count + found.corrupt + 2 < right.count)
			assert_int_equal(found.damages, 1);
		if (!used || (!row && member >= offsetof(struct ktr_ring, entries) &&
			      member < offsetof(struct ktr_ring, check)))
			assert_int_equal(found.count, right.count);
		if (!row && member >= offsetof(struct ktr_ring, base))
			assert_int_equal(found.damages, used);
		for (unsigned i = 0; i < found.count && (row || member >= sizeof(ring->head)); i++)
			assert_non_null(right_event(&right, &found.events[i]));
	}
}

static void
damaged_header_of_a_ring_is_reported(void **state)
{
	damage_headers();
	/* The same with rings that are partly empty and have cleared events. */
	ktr_clear();
	record(0, 5);
	record(1, ENTRIES / 2);
	damage_headers();
}

/* A ring that was used before a change of size is not taken for the current one. */
static void
freed_ring_is_not_read(void **state)
{
	struct ktr_persist_reader r;
	uint64_t sound, corrupt, old = ktr_image->rings[0];
	assert_int_equal(ktr_resize(ENTRIES / 2), 0);
	assert_int_not_equal(ktr_image->rings[0], old);
	reset(NULL);
	assert_int_equal(open_left(&r), 0);
	assert_string_equal(image->cpu[0].fault, "");
	memcpy(left + ((uintptr_t)&ktr_image->rings[0] - (uintptr_t)region), &old, sizeof(old));
	flip(in_spare(ktr_image), 0);
	assert_int_equal(open_left(&r), 0);
	assert_string_not_equal(image->cpu[0].fault, "");
	assert_false(image->cpu[0].exists);
	ktr_image_count(image, &sound, &corrupt);
	assert_true(sound > 0);
}

/* A good header, followed by noise only. */
static void
noise_in_place_of_everything_is_survived(void **state)
{
	static struct log found;
	unsigned seed = 1;
	for (unsigned round = 0; round < 30; round++) {
		struct ktr_persist_reader r;
		reset(NULL);
		for (size_t at = sizeof(struct ktr_persist); at < SIZE; at++) {
			seed = seed * 1103515245 + 12345;
			left[at] = (char)(round % 2 == 0 ? seed >> 16 : 0xff);
		}
		/* The root may still be valid. */
		const struct ktr_persist *h = (const struct ktr_persist *)left;
		size_t root = h->root - (uintptr_t)region, spare = h->spare - (uintptr_t)region;
		if (round % 3 != 0)
			memcpy(left + root, (char *)region + root, sizeof(struct ktr_image_root));
		else if (round % 4 == 0)
			memcpy(left + spare, (char *)region + spare, sizeof(struct ktr_image_root));
		if (open_left(&r) == 0)
			image_log(&found, 1000);
		else
			assert_true(round % 3 == 0 && round % 4 != 0);
	}
}

static void
a_wrong_root_is_refused_with_a_sentence(void **state)
{
	char err[200];
	struct ktr_persist_reader r;
	struct ktr_image_root *root =
	    (struct ktr_image_root *)(left + ((uintptr_t)ktr_image - (uintptr_t)region));
	root->entry_size = 88;
	ktr_persist_reader_init(&r, (struct ktr_persist *)left);
	uint64_t va = r.region->root;
	assert_int_equal(ktr_image_open(image, ktr_persist_read, &r, va, err, sizeof(err)),
			 -KTR_EINVAL);
	assert_string_equal(err, "the event log's size of an entry is 88, expected 64");
	root->magic[0] = 'x';
	assert_int_equal(ktr_image_open(image, ktr_persist_read, &r, va, err, sizeof(err)),
			 -KTR_EINVAL);
	assert_string_equal(err, "no root of an event log there: expected KTRIMAGE");
	assert_int_equal(ktr_image_open(image, ktr_persist_read, &r, 8, err, sizeof(err)),
			 -KTR_EINVAL);
	assert_string_equal(err, "the event log's root at 0x8 cannot be read");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(a_dump_says_what_the_stream_says, reset),
	    cmocka_unit_test_setup(what_a_reset_left_says_it_too, reset),
	    cmocka_unit_test_setup(at_any_number_of_events_the_newest_is_found, reset),
	    cmocka_unit_test_setup(a_corrupt_entry_is_a_gap_and_not_an_event, reset),
	    cmocka_unit_test_setup(damage_anywhere_costs_no_more_than_what_it_hit, reset),
	    cmocka_unit_test_setup(one_of_two_roots_is_enough, reset),
	    cmocka_unit_test_setup(damaged_header_of_a_ring_is_reported, reset),
	    cmocka_unit_test_setup(freed_ring_is_not_read, reset),
	    cmocka_unit_test_setup(noise_in_place_of_everything_is_survived, reset),
	    cmocka_unit_test_setup(a_wrong_root_is_refused_with_a_sentence, reset),
	};
	return cmocka_run_group_tests(tests, make, NULL);
}
