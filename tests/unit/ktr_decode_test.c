/*
 * ktr_decode_test.c - the decoder: it returns what was recorded, from pieces of any size. Damage of
 * any kind costs only what it hits.
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
#include "ktr/decode.h"
#include "ktr/intern.h"
#include "ktr/ktr.h"
#include "ktr/port.h"
#include "ktr/stream.h"
#include "tests/unit/ktr_decode_help.h"
#include "tests/unit/ktr_said_help.h"

static const struct ktr_info info = {.arch = "x86_64", .build = "v1", .hz = 1000000000, .ncpu = 2};

static uint64_t ticks;

static uint64_t
fake_clock(void)
{
	return ticks += 100;
}

static struct ktr_stream stream;

/* A stream of so many events, of several sites on two CPUs, in buf. */
static size_t
sample(uint8_t *buf, size_t size, unsigned events)
{
	static bool made;
	if (!made) {
		ktr_host_clock = fake_clock;
		ktr_host_cpus = 2;
		assert_int_equal(ktr_cpu_init(0), 0);
		assert_int_equal(ktr_cpu_init(1), 0);
		ktr_mask_set(KTR_ALL);
		ktr_info_set(&info);
		ktr_thread_name(21, "one");
		ktr_thread_name(22, "two");
		made = true;
	}
	ktr_clear();
	ktr_stream_open(&stream, KTR_STREAM_NOW);
	uint32_t x = 99;
	size_t len = 0, n;
	for (unsigned i = 0; i < events; i++) {
		x = x * 1664525 + 1013904223;
		ktr_host_cpu = x >> 31;
		ktr_host_tid = 21 + (x >> 29 & 1);
		switch (x >> 26 & 3) {
		case 0:
			CTR3(KTR_SCHED, "%s runs %d on %u", ktr_thread_ident(ktr_host_tid), (int)i,
			     x >> 31);
			break;
		case 1:
			CTR6(KTR_SYSC, "call %lx %lx %lx %lx %lx %d", (unsigned long)x,
			     (unsigned long)x << 32, 0ul, ~0ul, 5ul, -1);
			break;
		case 2:
			CTR1(KTR_PROC, "name %s", ktr_intern(x >> 20 & 1 ? "first" : "second"));
			break;
		default:
			CTR0(KTR_GEN, "nothing");
		}
		if (i % 64 == 63 || i + 1 == events)
			while ((n = ktr_stream_read(&stream, buf + len, size - len)) > 0)
				len += n;
	}
	ktr_stream_close(&stream, false);
	while ((n = ktr_stream_read(&stream, buf + len, size - len)) > 0)
		len += n;
	assert_true(len < size);
	return len;
}

static uint8_t buf[1 << 18], hurt[1 << 18];

static void
round_trip_gives_every_event_back(void **state)
{
	size_t len = sample(buf, sizeof(buf), 640);
	struct said s = said_decode(buf, len, len);
	assert_int_equal(s.events, 640);
	assert_int_equal(s.damages, 0);
	assert_int_equal(s.gaps, 0);
	assert_int_equal(s.ends, 1);
	assert_false(s.disorder);
	assert_non_null(strstr(s.text, " tid 21 one tid 21 runs "));
	assert_non_null(strstr(s.text, " 0 ffffffffffffffff 5 -1\n"));
	assert_non_null(strstr(s.text, " name second\n"));
	assert_null(strstr(s.text, "(bad"));
	assert_null(strstr(s.text, "(site"));
}

static void
decoder_takes_the_stream_in_pieces_of_any_size(void **state)
{
	static char whole[SAID_MAX];
	size_t len = sample(buf, sizeof(buf), 200);
	strcpy(whole, said_decode(buf, len, len).text);
	for (size_t piece = 1; piece < 40; piece++)
		assert_string_equal(said_decode(buf, len, piece).text, whole);
}

static void
truncation_at_every_byte_keeps_what_is_sound(void **state)
{
	size_t len = sample(buf, sizeof(buf), 200);
	unsigned last = 0;
	for (size_t cut = 0; cut < len; cut++) {
		struct said s = said_decode(buf, cut, len);
		assert_true(s.events >= last); /* a longer file never gives fewer */
		/* Every byte counts but the zero byte after the last frame. */
		assert_int_equal(s.damages > 0, cut < len - 1);
		assert_false(s.disorder);
		last = s.events;
	}
	assert_int_equal(said_decode(buf, len, len).damages, 0);
	assert_int_equal(said_decode(buf, len, len).events, 200);
}

static void
flipped_bits_cost_no_more_than_their_frames(void **state)
{
	size_t len = sample(buf, sizeof(buf), 200);
	for (size_t at = 0; at < len; at++) {
		memcpy(hurt, buf, len);
		hurt[at] ^= (uint8_t)(1u << at % 8);
		struct said s = said_decode(hurt, len, len);
		/*
		 * The first byte is only a delimiter: when it changes, it begins a bad frame or
		 * joins the header.
		 */
		assert_true(s.damages > 0);
		assert_true(s.events + s.lost <= 200 + 64);
		assert_true(s.events >= 200 - 2 * 64);
		assert_false(s.disorder);
		/* The sequence numbers say what a damaged batch contained. */
		if (s.events < 200)
			assert_int_equal(s.events + s.lost, 200);
	}
}

static void
missing_and_repeated_bytes_are_damage_not_death(void **state)
{
	size_t len = sample(buf, sizeof(buf), 200);
	for (size_t at = 1; at + 1 < len; at += 7) {
		memcpy(hurt, buf, at);
		memcpy(hurt + at, buf + at + 1, len - at - 1);
		struct said s = said_decode(hurt, len - 1, 61);
		assert_false(s.disorder);
		memcpy(hurt, buf, at);
		memcpy(hurt + at, buf + at - 1, len - at + 1);
		s = said_decode(hurt, len + 1, 61);
		assert_false(s.disorder);
	}
}

static void
random_bytes_are_damage_not_death(void **state)
{
	uint32_t x = 7;
	for (unsigned round = 0; round < 300; round++) {
		size_t len = 1 + x % 5000;
		for (size_t i = 0; i < len; i++) {
			x = x * 1664525 + 1013904223;
			hurt[i] = (uint8_t)(x >> 24) % (round % 3 == 0 ? 256 : 5);
		}
		struct said s = said_decode(hurt, len, len);
		assert_int_equal(s.events, 0);
		assert_true(s.damages > 0);
	}
	assert_int_equal(said_decode(hurt, 0, 1).damages, 1);
}

/* Frames with a right checksum and wrong contents: only the checks of the bodies can find that. */
static void
malformed_bodies_are_damage_not_death(void **state)
{
	uint32_t x = 3;
	for (unsigned round = 0; round < 60000; round++) {
		uint8_t frame[64];
		x = x * 1664525 + 1013904223;
		size_t body = (x >> 20) % 40;
		frame[0] = (uint8_t)(1 + (x >> 16) % 12);
		frame[1] = (uint8_t)body;
		frame[2] = 0;
		for (size_t i = 0; i < body; i++) {
			x = x * 1664525 + 1013904223;
			frame[3 + i] = (uint8_t)(x >> 28 < 8 ? x >> 24 & 3 : x >> 24);
		}
		uint32_t crc = ktr_crc32c(frame, 3 + body);
		for (unsigned i = 0; i < 4; i++)
			frame[3 + body + i] = (uint8_t)(crc >> 8 * i);
		/* COBS by hand: all frames here are shorter than 254 bytes. */
		size_t len = 0, code = len++;
		for (size_t i = 0; i < body + 7; i++) {
			if (frame[i] != 0) {
				hurt[len++] = frame[i];
				continue;
			}
			hurt[code] = (uint8_t)(len - code);
			code = len++;
		}
		hurt[code] = (uint8_t)(len - code);
		hurt[len++] = 0;
		said_decode(hurt, len, len);
	}
}

static void
concatenated_streams_decode_one_after_the_other(void **state)
{
	size_t first = sample(buf, sizeof(buf), 100);
	size_t second = sample(buf + first, sizeof(buf) - first, 150);
	struct said s = said_decode(buf, first + second, 1000);
	assert_int_equal(s.events, 250);
	assert_int_equal(s.damages, 0);
	assert_int_equal(s.ends, 2);
	/* The first one is cut in the middle: its rest is missing, the second one is complete. */
	memcpy(hurt, buf, first / 2);
	memcpy(hurt + first / 2, buf + first, second);
	s = said_decode(hurt, first / 2 + second, 1000);
	assert_true(s.events >= 150);
	assert_true(s.damages > 0);
	assert_int_equal(s.events + s.lost, 250);
}

static int alloc_left;

static void *
counted_realloc(void *p, size_t size)
{
	if (size != 0 && alloc_left-- <= 0)
		return NULL;
	return decode_realloc(p, size);
}

static void
decoder_without_memory_fails_cleanly(void **state)
{
	static char text[SAID_MAX];
	struct ktr_decoder_ops counted = said_ops;
	size_t len = sample(buf, sizeof(buf), 200);
	unsigned failed = 0;
	counted.realloc = counted_realloc;
	for (int left = 0; left < 40; left++) {
		struct said s = {.text = text};
		alloc_left = left;
		struct ktr_decoder *d = ktr_decoder_create(&counted, &s);
		if (d == NULL || ktr_decoder_push(d, buf, len) == -12)
			failed++;
		ktr_decoder_destroy(d);
	}
	assert_true(failed >= 3 && failed < 40);
}

static void
times_too_far_from_the_boot_are_cut(void **state)
{
	static const uint64_t far = 1ull << 63, rates[] = {0, 1, 1000000000, UINT64_MAX};
	for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct ktr_decode_header h = {.hz = rates[i], .boot_ticks = far};
		assert_true(ktr_decode_ns(&h, 0) == -INT64_MAX);
		h.boot_ticks = 0;
		assert_true(ktr_decode_ns(&h, far) == INT64_MAX);
		assert_true(ktr_decode_ns(&h, UINT64_MAX) == INT64_MAX);
	}
	struct ktr_decode_header h = {.hz = 1000000000, .boot_ticks = 100};
	assert_true(ktr_decode_ns(&h, 40) == -60 && ktr_decode_ns(&h, 160) == 60);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(round_trip_gives_every_event_back),
	    cmocka_unit_test(decoder_takes_the_stream_in_pieces_of_any_size),
	    cmocka_unit_test(truncation_at_every_byte_keeps_what_is_sound),
	    cmocka_unit_test(flipped_bits_cost_no_more_than_their_frames),
	    cmocka_unit_test(missing_and_repeated_bytes_are_damage_not_death),
	    cmocka_unit_test(random_bytes_are_damage_not_death),
	    cmocka_unit_test(malformed_bodies_are_damage_not_death),
	    cmocka_unit_test(concatenated_streams_decode_one_after_the_other),
	    cmocka_unit_test(decoder_without_memory_fails_cleanly),
	    cmocka_unit_test(times_too_far_from_the_boot_are_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
