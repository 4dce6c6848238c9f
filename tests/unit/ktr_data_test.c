/*
 * ktr_data_test.c - events with long data: the decoder and the ring's own reader join the data as
 * they were recorded, whatever lies between the parts. If parts are missing, the text says that it
 * is cut.
 *
 * With KTR_HOST_RESTART, an exception's events are recorded between the parts. Without it, they are
 * refused inside a record.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ktr/decode.h"
#include "ktr/event.h"
#include "ktr/intern.h"
#include "ktr/ktr.h"
#include "ktr/port.h"
#include "ktr/ring.h"
#include "ktr/stream.h"
#include "tests/unit/ktr_decode_help.h"
#include "tests/unit/ktr_ring_help.h"

#define ENTRIES 256u
#define LONGEST 70000u

static char text[LONGEST + 1];
static uint8_t bytes[1 << 20];

/* The contents of a stream of the ring: the texts of all events with data, one after the other. */
static struct {
	char texts[1 << 16];
	unsigned events, parts, damages;
} said;

static void
on_event(void *arg, const struct ktr_decode_event *e)
{
	if (e->site != NULL && e->site->parts) {
		said.parts++;
		return;
	}
	said.events++;
	char line[KTR_DATA_MAX + 100];
	assert_true(ktr_decode_text(line, sizeof(line), e) < (int)sizeof(line));
	if (e->site != NULL && strchr(e->site->fmt, 's') != NULL) {
		assert_true(strlen(said.texts) + strlen(line) + 2 < sizeof(said.texts));
		strcat(strcat(said.texts, line), "\n");
	}
}

static void
on_damage(void *arg, uint64_t offset, uint64_t n, const char *what)
{
	(void)arg, (void)offset, (void)n;
	print_message("# damage: %s\n", what);
	said.damages++;
}

/* Everything in the rings, as a reader of /dev/ktr gets it. */
static void
decode(void)
{
	static const struct ktr_decoder_ops ops = {.realloc = decode_realloc,
						   .event = on_event,
						   .damage = on_damage};
	static struct ktr_stream s;
	memset(&said, 0, sizeof(said));
	struct ktr_decoder *d = ktr_decoder_create(&ops, NULL);
	ktr_stream_open(&s, KTR_STREAM_LIVE);
	for (size_t n; (n = ktr_stream_read(&s, bytes, sizeof(bytes))) > 0;)
		assert_int_equal(ktr_decoder_push(d, bytes, n), 0);
	assert_int_equal(ktr_decoder_finish(d), 0);
	ktr_decoder_destroy(d);
	assert_int_equal(said.damages, 0);
}

/* The newest event's text, as the debugger finds it in the ring. */
static const char *
newest(void)
{
	static char line[600];
	struct ktr_entry e;
	uint64_t head = ring_head(0);
	assert_int_equal(ktr_ring_read(0, head - 1, &e), KTR_READ_OK);
	assert_false(ktr_entry_is_part(&e));
	ktr_entry_text(line, sizeof(line), ktr_site_get(e.site), &e, 0, head - 1);
	return line;
}

static int
begin(void **state)
{
	ring_make(1, ENTRIES);
	ktr_clear();
	for (unsigned i = 0; i < LONGEST; i++)
		text[i] = (char)('a' + i % 23);
	return 0;
}

static void
data_of_any_length_come_back(void **state)
{
	static const unsigned lengths[] = {0,   1,   39,  40,   41,   79,   80,    200,
					   231, 232, 300, 3999, 4000, 4001, 65535, LONGEST};
	char line[KTR_DATA_MAX + 100];
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		unsigned n = lengths[i], kept = n < KTR_DATA_MAX ? n : KTR_DATA_MAX;
		begin(state);
		CTR_DATA2(KTR_GEN, "%d %x %s", -5, 0xbeefu, text, n);
		decode();
		int at = snprintf(line, sizeof(line), "-5 beef %.*s", (int)kept, text);
		if (kept < n)
			snprintf(line + at, sizeof(line) - (size_t)at, "(cut at %u of %u)", kept,
				 n < 65535 ? n : 65535);
		strcat(line, "\n");
		assert_string_equal(said.texts, line);
		assert_int_equal(said.events, 1);
		assert_int_equal(said.parts, (kept + 39) / 40);
		/* The ring's own reader has a smaller buffer. */
		kept = n < 232 ? n : 232;
		at = snprintf(line, sizeof(line), "-5 beef %.*s", (int)kept, text);
		if (kept < n)
			snprintf(line + at, sizeof(line) - (size_t)at, "(cut at %u of %u)", kept,
				 n < 65535 ? n : 65535);
		assert_string_equal(newest(), line);
	}
}

static void
each_macro_puts_the_data_last(void **state)
{
	CTR_DATA0(KTR_GEN, "0 %s", "data", 4);
	CTR_DATA1(KTR_GEN, "1 %d %s", 1, "data", 4);
	CTR_DATA3(KTR_GEN, "3 %d%d%d %s", 1, 2, 3, "data", 4);
	CTR_DATA4(KTR_GEN, "4 %d%d%d%d %s", 1, 2, 3, 4, "data", 4);
	CTR_DATA5(KTR_GEN, "5 %d%d%d%d%d %s", 1, 2, 3, 4, 5, "da\0a", 4);
	CTR_DATA0(KTR_SPARE2, "off %s", (assert_true(false), "data"), 4);
	decode();
	assert_string_equal(said.texts, "0 data\n1 1 data\n3 123 data\n4 1234 data\n5 12345 da\n");
	assert_string_equal(newest(), "5 12345 da");
}

/*
 * The last parts are overwritten first. So the beginning is left, and the text says that it is cut.
 */
static void
what_was_overwritten_is_cut(void **state)
{
	char line[500];
	unsigned shown = 0;
	for (unsigned more = 0; more < ENTRIES; more++) {
		begin(state);
		CTR_DATA0(KTR_GEN, "%s", text, 400);
		uint64_t event = ring_head(0) - 1;
		for (unsigned i = 0; i < more; i++)
			CTR0(KTR_GEN, "more");
		uint64_t tail, head;
		assert_true(ktr_ring_window(0, &tail, &head));
		uint64_t left = tail > event ? 0 : event - tail;
		left = left < 10 ? left : 10;
		decode();
		if (tail > event) {
			assert_string_equal(said.texts, "");
			continue;
		}
		shown += left;
		int at = snprintf(line, sizeof(line), "%.*s", (int)left * 40, text);
		if (left < 10)
			snprintf(line + at, sizeof(line) - (size_t)at, "(cut at %u of 400)",
				 (unsigned)left * 40);
		assert_string_equal(strtok(said.texts, "\n"), line);
		assert_int_equal(said.parts, left);

		struct ktr_entry e;
		char local[KTR_STRING_MAX];
		assert_int_equal(ktr_ring_read(0, event, &e), KTR_READ_OK);
		ktr_data_text(&ktr_main, 0, event, e.args[0], local);
		unsigned kept = left * 40 < 232 ? (unsigned)left * 40 : 232;
		snprintf(line, sizeof(line), "%.*s(cut at %u of 400)", (int)kept, text, kept);
		assert_string_equal(local, line);
	}
	assert_int_equal(shown, (ENTRIES - KTR_RING_SPARE - 10) * 10 + 45);
}

/* ---- entries that a test puts into the ring itself ----------------------------------------- */

static char right[1000]; /* the expected texts */

static char
letter(uint32_t number, uint32_t part)
{
	return (char)((number % 2 != 0 ? 'a' : 'A') + (char)part);
}

static void
put_part(uint32_t number, uint32_t part)
{
	uint64_t words[KTR_MAXARGS] = {ktr_data_word(part, number)};
	memset(&words[1], letter(number, part), KTR_DATA_PART);
	assert_true(ktr_log_record(&ktr_main, &ktr_data_site, words));
}

/* Records the event. Both readers must find so many of its parts. */
static void
put_event(uint32_t number, uint32_t length, unsigned parts)
{
	char *line = right + strlen(right), *p = line;
	for (unsigned i = 0; i < parts * KTR_DATA_PART && i < length; i++)
		*p++ = letter(number, i / KTR_DATA_PART);
	*p = '\0';
	if (parts * KTR_DATA_PART < length)
		sprintf(p, "(cut at %u of %u)", parts * KTR_DATA_PART, length);
	CTR1(KTR_GEN, "%s", (const char *)(uintptr_t)ktr_data_word(length, number));
	assert_string_equal(newest(), line);
	strcat(line, "\n");
}

static void
put_begin(void **state)
{
	begin(state);
	right[0] = '\0';
}

static void
put_end(void)
{
	decode();
	assert_string_equal(said.texts, right);
}

static void
data_between_parts_of_other_data_stay_separate(void **state)
{
	put_begin(state);
	put_part(7, 2);
	put_part(7, 1);
	put_part(8, 1);
	CTR0(KTR_GEN, "between");
	put_part(8, 0);
	put_event(8, 80, 2);
	put_part(7, 0);
	put_event(7, 120, 3);
	put_end();
}

static void
part_that_is_missing_ends_the_text(void **state)
{
	for (unsigned missing = 0; missing < 4; missing++) {
		put_begin(state);
		for (unsigned part = 4; part-- > 0;) {
			if (part != missing)
				put_part(3, part);
		}
		put_event(3, 150, missing);
		put_end();
	}
	/* Another event's part does not take the place of a missing one. */
	put_begin(state);
	put_part(5, 1);
	put_part(6, 0);
	put_event(5, 80, 0);
	put_part(5, 0);
	put_event(9, 40, 0);
	put_end();
}

static void
parts_without_their_event_are_ignored(void **state)
{
	put_begin(state);
	for (unsigned number = 10; number < 20; number++)
		put_part(number, number % 3);
	put_part(20, 0);
	put_event(20, 40, 1);
	put_end();
	assert_int_equal(said.events, 1);
	assert_int_equal(said.parts, 11);
}

/* ---- what steps in ------------------------------------------------------------------------- */

static unsigned strike_at, steps, struck;

/* At one step an exception records an event with data. */
static void
on_step(enum ktr_host_step step)
{
	if (step == KTR_HOST_READ || steps++ != strike_at)
		return;
	ktr_host_interrupt = NULL;
	CTR_DATA0(KTR_GEN, "nested %s", text + 3, 50);
	ktr_host_interrupt = on_step;
	struck++;
#ifdef KTR_HOST_RESTART
	ktr_host_exceptions++;
#endif
}

static void
nested_record_at_any_step_changes_nothing(void **state)
{
	unsigned whole = 0, nested = 0;
	do {
		begin(state);
		struct ktr_stats before = ring_stats(0), after;
		steps = struck = 0;
		ktr_host_interrupt = on_step;
		CTR_DATA0(KTR_GEN, "outer %s", text, 100);
		ktr_host_interrupt = NULL;
		after = ring_stats(0);
		decode();
		char *outer = strstr(said.texts, "outer "), *inner = strstr(said.texts, "nested ");
		assert_true(outer != NULL && strncmp(outer + 6, text, 100) == 0 &&
			    outer[106] == '\n');
		whole++;
		if (inner != NULL) {
			assert_true(strncmp(inner + 7, text + 3, 50) == 0 && inner[57] == '\n');
			nested++;
		} else if (struck != 0) {
			assert_true(after.suppressed > before.suppressed);
		}
		strike_at++;
	} while (struck != 0);
	assert_true(whole > 20);
#ifdef KTR_HOST_RESTART
	assert_true(nested > 20);
#endif
}

static void
refused_event_leaves_nothing(void **state)
{
	struct ktr_stats before = ring_stats(0);
	ktr_host_refuse = true;
	ktr_ring_close(0);
	CTR_DATA0(KTR_GEN, "%s", text, 100);
	ktr_host_refuse = false;
	assert_int_equal(ring_stats(0).suppressed, before.suppressed + 1);
	CTR_DATA0(KTR_GEN, "%s", text, 4);
	decode();
	assert_string_equal(said.texts, "abcd\n");
	assert_int_equal(said.parts, 1);
}

static void
printed_event_has_its_data_and_no_parts(void **state)
{
	ktr_host_quiet = true;
	unsigned calls = ktr_host_verbose_calls;
	assert_int_equal(ktr_verbose_set(1), 0);
	CTR_DATA0(KTR_GEN, "%s", text, 100);
	ktr_verbose_set(0);
	assert_int_equal(ktr_host_verbose_calls, calls + 1);
}

static void
any_log_has_data(void **state)
{
	static struct ktr_log log = {.name = "test", .policy = KTR_POLICY_FILL};
	struct ktr_entry e;
	char local[KTR_STRING_MAX];
	assert_int_equal(ktr_log_open(&log, 16), 0);
	CTR_DATA1(KTR_GEN, "%u %s", 5, "", 0); /* a site with two parameters */
	assert_int_equal(ktr_ring_read(0, ring_head(0) - 1, &e), KTR_READ_OK);
	const struct ktr_site *site = ktr_site_get(e.site);
	assert_true(ktr_log_record_data(&log, site, (uint64_t[6]){9}, text, 100));
	assert_int_equal(ktr_log_read(&log, 0, 3, &e), KTR_READ_OK);
	assert_int_equal(e.args[0], 9);
	ktr_data_text(&log, 0, 3, e.args[1], local);
	assert_true(strlen(local) == 100 && strncmp(local, text, 100) == 0);
	assert_true(ktr_log_record_data(&log, site, (uint64_t[6]){9}, text, 100));
	assert_true(ktr_log_record_data(&log, site, (uint64_t[6]){9}, text, 100));
	assert_false(ktr_log_record_data(&log, site, (uint64_t[6]){9}, text, 100));
	ktr_log_close(&log);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(data_of_any_length_come_back, begin),
	    cmocka_unit_test_setup(each_macro_puts_the_data_last, begin),
	    cmocka_unit_test_setup(what_was_overwritten_is_cut, begin),
	    cmocka_unit_test(data_between_parts_of_other_data_stay_separate),
	    cmocka_unit_test(part_that_is_missing_ends_the_text),
	    cmocka_unit_test(parts_without_their_event_are_ignored),
	    cmocka_unit_test(nested_record_at_any_step_changes_nothing),
	    cmocka_unit_test_setup(refused_event_leaves_nothing, begin),
	    cmocka_unit_test_setup(printed_event_has_its_data_and_no_parts, begin),
	    cmocka_unit_test_setup(any_log_has_data, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
