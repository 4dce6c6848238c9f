/*
 * ktr_wire_test.c - the stream's format: its constants, and the vectors of ktr/WIRE.md, byte by
 * byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ktr/control.h"
#include "ktr/crc32c.h"
#include "ktr/encode.h"
#include "tests/unit/ktr_said_help.h"

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

/* No sites with these numbers are in this program: no SITE frames, all six parameters are sent. */
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
	ktr_mask_set(KTR_PROC | KTR_SYSC);
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
	if (all || strcmp(name, "mask") == 0)
		ktr_encode_mask(&enc);
	if (all || strcmp(name, "end") == 0)
		ktr_encode_end(&enc, &vector_cpu_end, 1);
}

/* Opens a file of the repository, whether the test runs from the root or elsewhere. */
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
 * In WIRE.md, indented lines of hex follow "vector NAME", and the output of a decoder for that
 * vector follows "expect".
 */
static void
vectors_of_the_specification_hold(void **state)
{
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
			struct said s = said_decode(bytes, len, 1);
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
	assert_int_equal(checked, 7);
	assert_int_equal(expected, 1);
}

static void
checksum_is_crc32c(void **state)
{
	uint8_t zeros[32] = {0};
	assert_int_equal(ktr_crc32c("123456789", 9), 0xe3069283);
	assert_int_equal(ktr_crc32c(zeros, 32), 0x8a9136aa); /* RFC 3720, B.4 */
	assert_int_equal(ktr_crc32c("", 0), 0);
}

/* ---- frames, byte by byte: what the encoder does by words ---- */

static uint32_t
crc_by_bits(const uint8_t *p, size_t len)
{
	uint32_t crc = 0xffffffff;
	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

static void
checksum_is_that_of_its_bits(void **state)
{
	uint8_t bytes[80];
	uint32_t random = 1;
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
	for (unsigned from = 0; from < 8; from++)
		for (unsigned len = 0; from + len <= sizeof(bytes); len++)
			assert_int_equal(ktr_crc32c(bytes + from, len),
					 crc_by_bits(bytes + from, len));
}

static size_t
cobs_by_bytes(const uint8_t *frame, size_t len, uint8_t *out)
{
	uint8_t *start = out, *code = out++, run = 1;
	for (size_t i = 0; i < len; i++) {
		if (frame[i] != 0) {
			*out++ = frame[i];
			run++;
		}
		if (frame[i] == 0 || run == 0xff) {
			*code = run;
			code = out++;
			run = 1;
		}
	}
	*code = run;
	*out++ = 0;
	return (size_t)(out - start);
}

/* Checks the frames in the encoder's buffer, and takes them away. Returns how many there were. */
static unsigned
check_frames(void)
{
	static uint8_t frame[KTR_WIRE_FRAME_MAX], made[KTR_WIRE_COBS_MAX];
	unsigned frames = 0;
	for (size_t at = 0; at < enc.out_len; frames++) {
		const uint8_t *from = enc.out + at, *p = from;
		size_t len = 0;
		while (*p != 0) {
			uint8_t code = *p++;
			memcpy(frame + len, p, code - 1u);
			len += code - 1u;
			p += code - 1u;
			if (code != 0xff && *p != 0)
				frame[len++] = 0;
		}
		assert_true(len > 7);
		assert_int_equal(frame[1] | frame[2] << 8, len - 7);
		uint32_t crc = crc_by_bits(frame, len - 4);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(frame[len - 4 + i], crc >> 8 * i & 0xff);
		assert_int_equal(cobs_by_bytes(frame, len, made), p + 1 - from);
		assert_memory_equal(made, from, (size_t)(p + 1 - from));
		at += (size_t)(p + 1 - from);
	}
	enc.out_len = 0;
	return frames;
}

/* Texts of all lengths; then events of which more and more bytes are zeroes. */
static void
frames_are_those_that_bytes_make(void **state)
{
	struct ktr_entry e = {.tid = 1, .site = 60000};
	char text[KTR_WIRE_STRING_MAX + 1];
	uint32_t random = 1;
	unsigned frames = 0;
	ktr_encoder_init(&enc, NULL, NULL);
	for (unsigned len = 0; len < sizeof(text); len++) {
		memset(text, 'x', len);
		text[len] = '\0';
		for (unsigned cpu = 0; cpu < 200; cpu++) {
			ktr_encode_fault(&enc, cpu, text);
			assert_int_equal(check_frames(), 1);
		}
	}
	for (uint64_t seq = 0; seq < 60000; seq++) {
		random = random * 1664525 + 1013904223;
		e.ticks += (random >> 16) % 60000 > seq ? random >> 8 : 0;
		e.tid = random >> 28 == 0 ? e.tid + 1 : e.tid;
		e.args[seq % 6] +=
		    (random >> 4) % 50000 > seq ? (uint64_t)random << random % 32 : 0;
		if (!ktr_encode_event(&enc, 0, seq, &e)) {
			ktr_encode_batch(&enc);
			frames += check_frames();
			assert_true(ktr_encode_event(&enc, 0, seq, &e));
		}
	}
	assert_true(frames > 100);
}

static void
varints_and_zigzag_are_as_specified(void **state)
{
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(checksum_is_crc32c),
	    cmocka_unit_test(checksum_is_that_of_its_bits),
	    cmocka_unit_test(frames_are_those_that_bytes_make),
	    cmocka_unit_test(varints_and_zigzag_are_as_specified),
	    cmocka_unit_test(vectors_of_the_specification_hold),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
