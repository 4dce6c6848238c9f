/*
 * ktr_wire_test.c - the stream's format: the vectors of ktr/WIRE.md, round trips, and damage of
 * every kind.
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
#include "ktr/crc32c.h"
#include "ktr/decode.h"
#include "ktr/encode.h"
#include "ktr/intern.h"
#include "ktr/ktr.h"
#include "ktr/stream.h"

#define OUT_MAX (1u << 20)

/* What a decoder said, one line each. */
struct said {
	char *text;
	size_t len;
	unsigned events, damages, gaps, ends;
	uint64_t lost, next[4];
	bool disorder;
};

__attribute__((format(printf, 2, 3))) static void
say(struct said *s, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (s->len + 1000 < OUT_MAX)
		s->len += (size_t)vsnprintf(s->text + s->len, 1000, fmt, ap);
	va_end(ap);
}

static void
on_header(void *arg, const struct ktr_decode_header *h)
{
	say(arg, "header %s %s hz %llu ncpu %llu%s\n", h->arch, h->build, (unsigned long long)h->hz,
	    (unsigned long long)h->ncpu, (h->flags & KTR_WIRE_START) != 0 ? " start" : "");
}

static void
on_event(void *arg, const struct ktr_decode_event *e)
{
	struct said *s = arg;
	char text[600];
	ktr_decode_text(text, sizeof(text), e);
	say(s, "cpu %u seq %llu ticks %llu tid %u %s\n", (unsigned)e->cpu,
	    (unsigned long long)e->seq, (unsigned long long)e->ticks, (unsigned)e->tid, text);
	s->events++;
	s->disorder |= e->cpu < 4 && e->seq < s->next[e->cpu];
	if (e->cpu < 4)
		s->next[e->cpu] = e->seq + 1;
}

static void
on_gap(void *arg, const struct ktr_decode_gap *g)
{
	struct said *s = arg;
	say(s, "gap cpu %u first %llu count %llu %s\n", (unsigned)g->cpu,
	    (unsigned long long)g->first, (unsigned long long)g->count,
	    ktr_gap_reason_name(g->reason));
	s->gaps++;
	s->lost += g->count;
}

static void
on_mark(void *arg, uint64_t ticks)
{
	say(arg, "mark %llu\n", (unsigned long long)ticks);
}

static void
on_end(void *arg)
{
	((struct said *)arg)->ends++;
	say(arg, "end\n");
}

static void
on_damage(void *arg, uint64_t offset, uint64_t bytes, const char *text)
{
	struct said *s = arg;
	s->damages++;
	say(s, "damage at %llu, %llu bytes: %s\n", (unsigned long long)offset,
	    (unsigned long long)bytes, text);
}

static int alloc_left = -1;

static void *
counted_realloc(void *p, size_t size)
{
	if (size == 0) {
		free(p);
		return NULL;
	}
	if (alloc_left == 0)
		return NULL;
	if (alloc_left > 0)
		alloc_left--;
	return realloc(p, size);
}

static const struct ktr_decoder_ops ops = {counted_realloc, on_header, on_event, on_gap,
					   on_mark,         NULL,      on_end,   on_damage};

/* Decodes bytes in pieces of a size; the result's text is overwritten by the next call. */
static struct said
decode(const uint8_t *bytes, size_t len, size_t piece)
{
	static char text[OUT_MAX];
	struct said s = {.text = text};
	text[0] = '\0';
	struct ktr_decoder *d = ktr_decoder_create(&ops, &s);
	assert_non_null(d);
	for (size_t at = 0; at < len; at += piece)
		assert_int_equal(ktr_decoder_push(d, bytes + at,
						  len - at < piece ? len - at : piece),
				 0);
	assert_int_equal(ktr_decoder_finish(d), 0);
	ktr_decoder_destroy(d);
	return s;
}

static const struct ktr_info vector_info = {.arch = "x86_64",
					    .build = "v1",
					    .boot_id = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
							13, 14, 15},
					    .hz = 1000000000,
					    .boot_ticks = 5000,
					    .ncpu = 1};
static const struct ktr_wire_cpu vector_cpu = {.cpu = 0, .first = 10, .next = 10, .delivered = 0};
static const struct ktr_wire_cpu vector_cpu_end = {
    .cpu = 0, .first = 10, .next = 15, .delivered = 3, .overwritten = 2, .suppressed = 1};

static struct ktr_encoder enc;

/* Sites of these numbers are not in this program: no SITE frames, all six parameters travel. */
static void
vector_batch(void)
{
	static const struct ktr_entry entries[] = {
	    {.ticks = 6000, .tid = 7, .site = 60000, .args = {1, 2, 3}},
	    {.ticks = 6100, .tid = 7, .site = 60001, .args = {0xffffffffffffffff}},
	    {.ticks = 6300, .tid = 8, .site = 60000, .args = {1, 5, 2}},
	};
	for (unsigned i = 0; i < 3; i++)
		assert_true(ktr_encode_event(&enc, 0, 10 + i, &entries[i]));
	ktr_encode_batch(&enc);
}

static void
vector_make(const char *name)
{
	bool all = strcmp(name, "stream") == 0;
	ktr_encoder_init(&enc, NULL, NULL);
	if (all)
		ktr_encode_delimiter(&enc);
	if (all || strcmp(name, "header") == 0)
		ktr_encode_header(&enc, KTR_WIRE_START, &vector_info, &vector_cpu, 1);
	if (all || strcmp(name, "batch") == 0)
		vector_batch();
	if (all || strcmp(name, "loss") == 0)
		ktr_encode_loss(&enc, 0, 13, 2, 6300, 7000, KTR_LOSS_OVERWRITTEN);
	if (all || strcmp(name, "mark") == 0)
		ktr_encode_mark(&enc, 7000);
	if (all || strcmp(name, "end") == 0)
		ktr_encode_end(&enc, &vector_cpu_end, 1);
}

/* Opens a file of the repository: tests run from its root, or from anywhere else by their source's
 * path. */
static FILE *
open_source(const char *path)
{
	char full[1000];
	FILE *f = fopen(path, "r");
	const char *tests = strstr(__FILE__, "tests/unit/");
	if (f == NULL && tests != NULL) {
		snprintf(full, sizeof(full), "%.*s%s", (int)(tests - __FILE__), __FILE__, path);
		f = fopen(full, "r");
	}
	return f;
}

static size_t
parse_hex(const char *text, uint8_t *bytes, size_t max)
{
	size_t n = 0;
	unsigned byte;
	int used;
	while (n < max && sscanf(text, " %2x%n", &byte, &used) == 1) {
		bytes[n++] = (uint8_t)byte;
		text += used;
	}
	return n;
}

static void
print_hex(const char *name)
{
	printf("# vector %s", name);
	for (size_t i = 0; i < enc.out_len; i++)
		printf("%s%02x", i % 32 == 0 ? "\n#   " : " ", enc.out[i]);
	printf("\n");
}

/*
 * Lines "vector NAME" of WIRE.md are followed by indented lines of hex; "expect" by what a decoder
 * says of the vector before.
 */
static void
vectors_of_the_specification_hold(void **state)
{
	(void)state;
	FILE *f = open_source("ktr/WIRE.md");
	char line[400], name[40] = "", expect[4000] = "";
	uint8_t bytes[2000];
	size_t len = 0;
	unsigned checked = 0, expected = 0;
	enum { NONE, HEX, EXPECT } mode = NONE;
	assert_non_null(f);
	for (bool more = true; more;) {
		more = fgets(line, sizeof(line), f) != NULL;
		if (more && mode != NONE && strncmp(line, "  ", 2) == 0) {
			if (mode == HEX)
				len += parse_hex(line, bytes + len, sizeof(bytes) - len);
			else
				strncat(expect, line + 2, sizeof(expect) - strlen(expect) - 1);
			continue;
		}
		if (mode == HEX) {
			vector_make(name);
			if (len != enc.out_len || memcmp(bytes, enc.out, len) != 0) {
				print_hex(name);
				fail_msg("vector %s: %zu bytes, the encoder makes %zu", name, len,
					 enc.out_len);
			}
			checked++;
		} else if (mode == EXPECT) {
			struct said s = decode(bytes, len, 1);
			assert_string_equal(s.text, expect);
			expected++;
		}
		mode = NONE;
		if (more && sscanf(line, "vector %39s", name) == 1) {
			mode = HEX;
			len = 0;
		} else if (more && strcmp(line, "expect\n") == 0) {
			mode = EXPECT;
			expect[0] = '\0';
		}
	}
	fclose(f);
	assert_int_equal(checked, 6);
	assert_int_equal(expected, 1);
}

static void
checksum_is_crc32c(void **state)
{
	(void)state;
	uint8_t zeros[32] = {0};
	assert_int_equal(ktr_crc32c("123456789", 9), 0xe3069283);
	assert_int_equal(ktr_crc32c(zeros, 32), 0x8a9136aa); /* RFC 3720, B.4 */
	assert_int_equal(ktr_crc32c("", 0), 0);
}

static void
varints_and_zigzag_are_as_specified(void **state)
{
	(void)state;
	static const struct {
		uint64_t value;
		const char *hex;
	} cases[] = {{0, "00"},
		     {127, "7f"},
		     {128, "8001"},
		     {16384, "808001"},
		     {UINT64_MAX, "ffffffffffffffffff01"}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t found[10], expected[10];
		size_t n = parse_hex(cases[i].hex, expected, 10);
		assert_int_equal(ktr_varint_put(found, cases[i].value), n);
		assert_memory_equal(found, expected, n);
	}
	assert_int_equal(ktr_zigzag(0), 0);
	assert_int_equal(ktr_zigzag((uint64_t)-1), 1);
	assert_int_equal(ktr_zigzag(1), 2);
	assert_int_equal(ktr_zigzag(1ull << 63), UINT64_MAX);
	for (unsigned bit = 0; bit < 64; bit++) {
		assert_int_equal(ktr_unzigzag(ktr_zigzag(1ull << bit)), 1ull << bit);
		assert_int_equal(ktr_unzigzag(ktr_zigzag(-(1ull << bit))), -(1ull << bit));
	}
}

static uint64_t ticks;

static uint64_t
fake_clock(void)
{
	return ticks += 100;
}

static struct ktr_stream stream;

/* A stream of some hundred events of several sites on two CPUs, with losses; in buf. */
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
		ktr_info_set(&vector_info);
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
	(void)state;
	size_t len = sample(buf, sizeof(buf), 640);
	struct said s = decode(buf, len, len);
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
	(void)state;
	static char whole[OUT_MAX];
	size_t len = sample(buf, sizeof(buf), 200);
	strcpy(whole, decode(buf, len, len).text);
	for (size_t piece = 1; piece < 40; piece++)
		assert_string_equal(decode(buf, len, piece).text, whole);
}

static void
truncation_at_every_byte_keeps_what_is_sound(void **state)
{
	(void)state;
	size_t len = sample(buf, sizeof(buf), 200);
	unsigned last = 0;
	for (size_t cut = 0; cut < len; cut++) {
		struct said s = decode(buf, cut, len);
		assert_true(s.events >= last); /* a longer file never gives fewer */
		/* The zero byte behind the last frame is the only one that nothing depends on. */
		assert_true(s.damages > 0);
		assert_false(s.disorder);
		last = s.events;
	}
	assert_int_equal(decode(buf, len, len).damages, 0);
	assert_int_equal(decode(buf, len, len).events, 200);
}

static void
flipped_bits_cost_no_more_than_their_frames(void **state)
{
	(void)state;
	size_t len = sample(buf, sizeof(buf), 200);
	for (size_t at = 0; at < len; at++) {
		memcpy(hurt, buf, len);
		hurt[at] ^= (uint8_t)(1u << at % 8);
		struct said s = decode(hurt, len, len);
		/* The first byte is only a delimiter: what it becomes is a bad frame, or joins the
		 * header. */
		assert_true(s.damages > 0);
		assert_true(s.events + s.lost <= 200 + 64);
		assert_true(s.events >= 200 - 2 * 64);
		assert_false(s.disorder);
		/* What a damaged batch held is known from the sequence numbers. */
		if (s.events < 200)
			assert_int_equal(s.events + s.lost, 200);
	}
}

static void
missing_and_repeated_bytes_are_damage_not_death(void **state)
{
	(void)state;
	size_t len = sample(buf, sizeof(buf), 200);
	for (size_t at = 1; at + 1 < len; at += 7) {
		memcpy(hurt, buf, at);
		memcpy(hurt + at, buf + at + 1, len - at - 1);
		struct said s = decode(hurt, len - 1, 61);
		assert_false(s.disorder);
		memcpy(hurt, buf, at);
		memcpy(hurt + at, buf + at - 1, len - at + 1);
		s = decode(hurt, len + 1, 61);
		assert_false(s.disorder);
	}
}

static void
random_bytes_are_damage_not_death(void **state)
{
	(void)state;
	uint32_t x = 7;
	for (unsigned round = 0; round < 300; round++) {
		size_t len = 1 + x % 5000;
		for (size_t i = 0; i < len; i++) {
			x = x * 1664525 + 1013904223;
			hurt[i] = (uint8_t)(x >> 24) % (round % 3 == 0 ? 256 : 5);
		}
		struct said s = decode(hurt, len, len);
		assert_int_equal(s.events, 0);
		assert_true(s.damages > 0);
	}
	assert_int_equal(decode(hurt, 0, 1).damages, 1);
}

/* Frames with a right checksum and wrong insides: only the bodies' own checks stand between. */
static void
malformed_bodies_are_damage_not_death(void **state)
{
	(void)state;
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
		/* COBS by hand: frames here are shorter than 254 bytes. */
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
		decode(hurt, len, len);
	}
}

static void
concatenated_streams_decode_one_after_the_other(void **state)
{
	(void)state;
	size_t first = sample(buf, sizeof(buf), 100);
	size_t second = sample(buf + first, sizeof(buf) - first, 150);
	struct said s = decode(buf, first + second, 1000);
	assert_int_equal(s.events, 250);
	assert_int_equal(s.damages, 0);
	assert_int_equal(s.ends, 2);
	/* The first one broken off in the middle: the rest of it is missing, the second is whole.
	 */
	memcpy(hurt, buf, first / 2);
	memcpy(hurt + first / 2, buf + first, second);
	s = decode(hurt, first / 2 + second, 1000);
	assert_true(s.events >= 150);
	assert_true(s.damages > 0);
	assert_int_equal(s.events + s.lost, 250);
}

static void
decoder_without_memory_fails_cleanly(void **state)
{
	(void)state;
	static char text[OUT_MAX];
	size_t len = sample(buf, sizeof(buf), 200);
	unsigned failed = 0;
	for (int left = 0; left < 40; left++) {
		struct said s = {.text = text};
		alloc_left = left;
		struct ktr_decoder *d = ktr_decoder_create(&ops, &s);
		if (d == NULL || ktr_decoder_push(d, buf, len) == -12)
			failed++;
		ktr_decoder_destroy(d);
	}
	alloc_left = -1;
	assert_true(failed >= 3 && failed < 40);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(checksum_is_crc32c),
	    cmocka_unit_test(varints_and_zigzag_are_as_specified),
	    cmocka_unit_test(vectors_of_the_specification_hold),
	    cmocka_unit_test(round_trip_gives_every_event_back),
	    cmocka_unit_test(decoder_takes_the_stream_in_pieces_of_any_size),
	    cmocka_unit_test(truncation_at_every_byte_keeps_what_is_sound),
	    cmocka_unit_test(flipped_bits_cost_no_more_than_their_frames),
	    cmocka_unit_test(missing_and_repeated_bytes_are_damage_not_death),
	    cmocka_unit_test(random_bytes_are_damage_not_death),
	    cmocka_unit_test(malformed_bodies_are_damage_not_death),
	    cmocka_unit_test(concatenated_streams_decode_one_after_the_other),
	    cmocka_unit_test(decoder_without_memory_fails_cleanly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
