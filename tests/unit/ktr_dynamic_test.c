/*
 * ktr_dynamic_test.c - sites made at run time: they are probes like all others, and no event ever
 * gets the texts of another site that had the same number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ktr/control.h"
#include "ktr/decode.h"
#include "ktr/dynamic.h"
#include "ktr/event.h"
#include "ktr/probe.h"
#include "ktr/ring.h"
#include "ktr/stream.h"
#include "tests/unit/ktr_decode_help.h"
#include "tests/unit/ktr_ring_help.h"

#define ENTRIES 64u

static struct ktr_stream stream;
static char said[1 << 16]; /* texts of a stream's events */
static char err[200];

/* A site whose texts all contain n. */
static struct ktr_site *
site_make(unsigned n)
{
	char name[32], file[32], fmt[64];
	snprintf(name, sizeof(name), "probe-%u", n);
	snprintf(file, sizeof(file), "folder/file%u.c", n);
	snprintf(fmt, sizeof(fmt), "made %u: value %%lu", n);
	const struct ktr_dynamic d = {.provider = "made",
				      .module = "",
				      .function = "f",
				      .name = name,
				      .file = file,
				      .line = n,
				      .fmt = fmt,
				      .nargs = 1,
				      .types = {"long"}};
	err[0] = '\0';
	ktr_port_lock();
	struct ktr_site *site = ktr_site_make(&d, err, sizeof(err));
	ktr_port_unlock();
	return site;
}

static void
site_free(struct ktr_site *site)
{
	ktr_port_lock();
	ktr_site_free(site);
	ktr_port_unlock();
}

static bool
fire(struct ktr_log *log, const struct ktr_site *site, uint64_t value)
{
	return ktr_log_record(log, site, (uint64_t[KTR_MAXARGS]){value});
}

static void
on_event(void *arg, const struct ktr_decode_event *e)
{
	char text[100];
	ktr_decode_text(text, sizeof(text), e);
	assert_true(e->site == NULL || atoi(e->site->fmt + 5) == (int)e->site->line);
	strncat(said, text, sizeof(said) - strlen(said) - 1);
	strcat(said, "\n");
}

static void
stream_push(struct ktr_decoder *d)
{
	static uint8_t bytes[1 << 16];
	size_t n;
	while ((n = ktr_stream_read(&stream, bytes, sizeof(bytes))) > 0)
		assert_int_equal(ktr_decoder_push(d, bytes, n), 0);
}

static struct ktr_decoder *
stream_begin(void)
{
	static const struct ktr_decoder_ops ops = {.realloc = decode_realloc, .event = on_event};
	said[0] = '\0';
	ktr_stream_open(&stream, 0);
	return ktr_decoder_create(&ops, NULL);
}

static int
begin(void **state)
{
	ring_make(2, ENTRIES);
	ktr_clear();
	return 0;
}

/* Frees what a test has made. */
static int
end(void **state)
{
	for (unsigned i = 0; i < KTR_DYNAMIC_SITES; i++) {
		if (ktr_dynamic_sites[i].kind == KTR_SITE_MADE)
			site_free(&ktr_dynamic_sites[i]);
	}
	ktr_clear();
	return 0;
}

static void
a_made_site_is_a_probe_like_all_others(void **state)
{
	struct ktr_site *site = site_make(7);
	struct ktr_probe_name name;
	assert_non_null(site);
	ktr_probe_name(site, &name);
	assert_string_equal(name.provider, "made");
	assert_string_equal(name.module, "folder");
	assert_string_equal(name.function, "f");
	assert_string_equal(name.name, "probe-7");
	assert_string_equal(site->sdt->types[0], "long");
	assert_ptr_equal(ktr_site_get(ktr_site_number(site)), site);
	assert_int_equal(ktr_select(KTR_OWNER_COMMAND, "made:::probe-7", true, NULL, err, 200), 1);
	assert_int_equal(site->on, KTR_SITE_ON);
	ktr_mask_set(~0ull);
	ktr_mask_set(0);
	assert_int_equal(site->on, KTR_SITE_ON);
	site_free(site);
	assert_int_equal(site->on, KTR_SITE_OFF);
	assert_int_equal(ktr_owner_sites(KTR_OWNER_COMMAND), 0);
	assert_int_equal(ktr_select(KTR_OWNER_COMMAND, "made:::", true, NULL, err, 200),
			 -KTR_ENOENT);
}

static void
an_event_keeps_the_texts_of_its_site(void **state)
{
	struct ktr_decoder *d = stream_begin();
	struct ktr_site *first = site_make(1), *other;
	fire(&ktr_main, first, 10);
	site_free(first);
	stream_push(d);
	assert_string_equal(said, "made 1: value 10\n");
	/* All numbers are used once: but not that of the event that is still in the ring. */
	for (unsigned i = 0; i < 3 * KTR_DYNAMIC_SITES; i++) {
		other = site_make(2);
		assert_non_null(other);
		assert_ptr_not_equal(other, first);
		site_free(other);
	}
	/* It goes, and its number is used again, in the same stream. */
	ktr_clear();
	for (unsigned i = 0; i < 2 * KTR_DYNAMIC_SITES; i++) {
		other = site_make(100 + i);
		assert_non_null(other);
		fire(&ktr_main, other, i);
		site_free(other);
		if (i == KTR_DYNAMIC_SITES - 1) {
			stream_push(d);
			ktr_clear();
		}
	}
	stream_push(d);
	ktr_stream_close(&stream, false);
	stream_push(d);
	assert_int_equal(ktr_decoder_finish(d), 0);
	ktr_decoder_destroy(d);
	char expected[64], *line = said;
	assert_memory_equal(line, "made 1: value 10\n", 17);
	line += 17;
	for (unsigned i = 0; i < 2 * KTR_DYNAMIC_SITES; i++) {
		int n = snprintf(expected, sizeof(expected), "made %u: value %u\n", 100 + i, i);
		assert_memory_equal(line, expected, (size_t)n);
		line += n;
	}
	assert_string_equal(line, "");
}

static void
numbers_run_out_with_a_reason_and_come_back(void **state)
{
	struct ktr_site *sites[KTR_DYNAMIC_SITES];
	for (unsigned i = 0; i < KTR_DYNAMIC_SITES; i++) {
		sites[i] = site_make(i);
		assert_non_null(sites[i]);
		fire(&ktr_main, sites[i], i);
	}
	assert_null(site_make(99));
	assert_non_null(strstr(err, "are taken"));
	site_free(sites[3]);
	assert_null(site_make(99)); /* its event is still there */
	for (unsigned i = 0; i < ENTRIES; i++)
		fire(&ktr_main, sites[4], i);
	assert_ptr_equal(site_make(99), sites[3]);
}

static void
other_logs_keep_numbers_too(void **state)
{
	struct ktr_log log = {.name = "other", .policy = KTR_POLICY_FILL};
	struct ktr_site *sites[KTR_DYNAMIC_SITES];
	assert_int_equal(ktr_log_open(&log, ENTRIES), 0);
	for (unsigned i = 0; i < KTR_DYNAMIC_SITES; i++) {
		sites[i] = site_make(i);
		assert_non_null(sites[i]);
		assert_true(fire(&log, sites[i], i));
	}
	site_free(sites[0]);
	assert_null(site_make(99));
	ktr_log_close(&log);
	assert_ptr_equal(site_make(99), sites[0]);
}

static void
a_hundred_thousand_sites_leave_nothing(void **state)
{
	for (unsigned i = 0; i < 100000; i++) {
		struct ktr_site *site = site_make(i);
		assert_non_null(site);
		if (i % 3 == 0)
			fire(&ktr_main, site, i);
		site_free(site);
		if (i % 8 == 0)
			ktr_clear();
	}
	ktr_clear();
	for (unsigned i = 0; i < KTR_DYNAMIC_SITES; i++)
		assert_non_null(site_make(i));
}

static void
too_much_text_is_refused(void **state)
{
	char text[KTR_DYNAMIC_TEXT];
	struct ktr_dynamic d = {
	    .provider = "p", .module = "m", .function = "f", .name = "n", .file = "c", .fmt = text};
	memset(text, 'x', sizeof(text));
	text[KTR_DYNAMIC_TEXT - 11] = '\0'; /* the others take 10 bytes */
	struct ktr_site *site = ktr_site_make(&d, err, sizeof(err));
	assert_non_null(site);
	assert_string_equal(site->fmt, text);
	text[KTR_DYNAMIC_TEXT - 11] = 'x';
	text[KTR_DYNAMIC_TEXT - 10] = '\0';
	assert_null(ktr_site_make(&d, err, sizeof(err)));
	assert_non_null(strstr(err, "expected at most"));
	d.fmt = "";
	d.nargs = KTR_MAXARGS + 1;
	assert_null(ktr_site_make(&d, err, sizeof(err)));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(a_made_site_is_a_probe_like_all_others, begin, end),
	    cmocka_unit_test_setup_teardown(an_event_keeps_the_texts_of_its_site, begin, end),
	    cmocka_unit_test_setup_teardown(numbers_run_out_with_a_reason_and_come_back, begin,
					    end),
	    cmocka_unit_test_setup_teardown(other_logs_keep_numbers_too, begin, end),
	    cmocka_unit_test_setup_teardown(a_hundred_thousand_sites_leave_nothing, begin, end),
	    cmocka_unit_test_setup_teardown(too_much_text_is_refused, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
