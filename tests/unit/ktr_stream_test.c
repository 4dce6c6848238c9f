/*
 * ktr_stream_test.c - streams over live rings: passes, losses, torn events, and accounts that add
 * up to the event.
 */
#include <pthread.h>
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
#include "ktr/intern.h"
#include "ktr/ktr.h"
#include "ktr/port.h"
#include "ktr/stream.h"
#include "tests/unit/ktr_decode_help.h"

static uint64_t ticks;

static uint64_t
fake_clock(void)
{
	return __atomic_add_fetch(&ticks, 10, __ATOMIC_RELAXED);
}

static struct ktr_stream account, other;
static uint8_t buf[1 << 22];
static size_t len;

/* What a decoder found. */
static struct {
	uint64_t events[4], gaps[5], damages, marks, last_mark, ends, value[4];
	uint64_t events_below_mark; /* of the last mark */
	uint64_t before_mark;       /* events whose time is below an earlier mark */
	bool bad_order;
	/* of the last event */
	bool known; /* its site */
	char thread[32];
	size_t fmt_len;
} seen;

static bool damage_expected;
static uint64_t seen_ticks[64]; /* of the first events */
static size_t seen_times;

static void
on_event(void *arg, const struct ktr_decode_event *e)
{
	(void)arg;
	seen.events[e->cpu]++;
	if (seen_times < sizeof(seen_ticks) / sizeof(seen_ticks[0]))
		seen_ticks[seen_times++] = e->ticks;
	seen.before_mark += e->ticks < seen.last_mark;
	seen.bad_order |= e->nargs > 0 && e->args[0] < seen.value[e->cpu];
	if (e->nargs > 0)
		seen.value[e->cpu] = e->args[0];
	seen.known = e->site != NULL;
	seen.fmt_len = e->site != NULL ? strlen(e->site->fmt) : 0;
	snprintf(seen.thread, sizeof(seen.thread), "%s", e->thread != NULL ? e->thread : "");
}

static void
on_gap(void *arg, const struct ktr_decode_gap *g)
{
	(void)arg;
	seen.gaps[g->reason] += g->count;
}

static void
on_mark(void *arg, uint64_t t)
{
	(void)arg;
	seen.marks++;
	seen.last_mark = t;
	seen.events_below_mark = 0;
	for (uint64_t i = 0; i < seen_times; i++)
		seen.events_below_mark += seen_ticks[i] < t;
}

static void
on_end(void *arg)
{
	(void)arg;
	seen.ends++;
}

static void
on_damage(void *arg, uint64_t offset, uint64_t bytes, const char *text)
{
	(void)arg;
	if (!damage_expected)
		printf("# damage at %llu, %llu bytes: %s\n", (unsigned long long)offset,
		       (unsigned long long)bytes, text);
	seen.damages++;
}

static void
decode(void)
{
	static const struct ktr_decoder_ops ops = {.realloc = decode_realloc,
						   .event = on_event,
						   .gap = on_gap,
						   .mark = on_mark,
						   .end = on_end,
						   .damage = on_damage};
	memset(&seen, 0, sizeof(seen));
	seen_times = 0;
	struct ktr_decoder *d = ktr_decoder_create(&ops, NULL);
	assert_int_equal(ktr_decoder_push(d, buf, len), 0);
	assert_int_equal(ktr_decoder_finish(d), 0);
	ktr_decoder_destroy(d);
	assert_int_equal(seen.before_mark, 0);
}

/* One pass, in pieces. */
static size_t
drain(struct ktr_stream *s, size_t piece)
{
	size_t n, sum = 0;
	while ((n = ktr_stream_read(s, buf + len, piece)) > 0) {
		len += n;
		sum += n;
	}
	return sum;
}

static struct ktr_stats
stats(unsigned cpu)
{
	struct ktr_stats s;
	assert_true(ktr_stats_get(cpu, &s));
	assert_int_equal(s.recorded, s.delivered + s.resident + s.overwritten + s.torn);
	return s;
}

static int
begin(void **state)
{
	(void)state;
	ktr_host_clock = fake_clock;
	ktr_host_interrupt = NULL;
	ktr_host_cpus = 2;
	ktr_host_cpu = 0;
	ktr_host_tid = 1;
	assert_int_equal(ktr_cpu_init(0), 0);
	assert_int_equal(ktr_cpu_init(1), 0);
	assert_int_equal(ktr_resize(64), 0);
	ktr_mask_set(KTR_GEN);
	/* Everything of before is accounted for. */
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	len = 0;
	drain(&account, sizeof(buf));
	len = 0;
	memset(&seen, 0, sizeof(seen));
	return 0;
}

static void
record(uint64_t value)
{
	CTR1(KTR_GEN, "%lu", value);
}

static void
pass_covers_what_was_recorded_before_it(void **state)
{
	(void)state;
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	assert_true(drain(&account, 100) > 0); /* header and mark, even when nothing happened */
	assert_int_equal(drain(&account, 100), 0);
	record(1);
	record(2);
	ktr_host_cpu = 1;
	record(3);
	assert_int_equal(ktr_stream_pending(&account), 3);
	assert_true(drain(&account, 100) > 0);
	assert_int_equal(ktr_stream_pending(&account), 0);
	assert_true(drain(&account, 100) >
		    0); /* the mark up to which that pass has settled things */
	assert_int_equal(drain(&account, 100), 0);
	ktr_stream_close(&account, false);
	drain(&account, 100);
	assert_int_equal(drain(&account, 100), 0);
	decode();
	assert_int_equal(seen.events[0], 2);
	assert_int_equal(seen.events[1], 1);
	assert_int_equal(seen.marks, 3);
	assert_int_equal(seen.events_below_mark, 3);
	assert_int_equal(seen.ends, 1);
	assert_int_equal(seen.damages, 0);
}

static void
stream_stops_and_goes_on_at_any_byte(void **state)
{
	(void)state;
	for (size_t piece = 1; piece < 30; piece++) {
		len = 0;
		ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
		for (uint64_t i = 0; i < 60; i++)
			record(i);
		drain(&account, piece);
		ktr_stream_close(&account, false);
		drain(&account, piece);
		decode();
		assert_int_equal(seen.events[0], 60);
		assert_int_equal(seen.damages, 0);
		assert_false(seen.bad_order);
	}
}

static void
reader_that_goes_on_until_0_gets_one_pass_however_busy_the_rings(void **state)
{
	(void)state;
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	drain(&account, 100);
	for (uint64_t i = 0; i < 60; i++)
		record(i);
	size_t n;
	unsigned reads = 0;
	while ((n = ktr_stream_read(&account, buf + len, 7)) > 0) {
		len += n;
		record(1000);
		assert_true(++reads < 1000);
	}
	assert_true(ktr_stream_pending(&account) > 0);
}

static void
overwritten_events_are_reported_and_counted(void **state)
{
	(void)state;
	struct ktr_stats before = stats(0);
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	for (uint64_t i = 0; i < 200; i++)
		record(i);
	struct ktr_stats s = stats(0);
	assert_int_equal(s.resident, 64);
	assert_int_equal(s.overwritten - before.overwritten, 136);
	drain(&account, 1000);
	ktr_stream_close(&account, false);
	drain(&account, 1000);
	s = stats(0);
	assert_int_equal(s.resident, 0);
	assert_int_equal(s.delivered - before.delivered, 64);
	assert_int_equal(s.overwritten - before.overwritten, 136);
	decode();
	assert_int_equal(seen.events[0], 64);
	assert_int_equal(seen.gaps[KTR_GAP_OVERWRITTEN], 136);
	assert_int_equal(seen.damages, 0);
}

static void
cleared_events_are_reported_as_such(void **state)
{
	(void)state;
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	for (uint64_t i = 0; i < 10; i++)
		record(i);
	ktr_clear();
	record(11);
	drain(&account, 1000);
	ktr_stream_close(&account, false);
	drain(&account, 1000);
	stats(0);
	decode();
	assert_int_equal(seen.gaps[KTR_GAP_CLEARED], 10);
	assert_int_equal(seen.events[0], 1);
}

static void
readers_do_not_disturb_the_accounts(void **state)
{
	(void)state;
	record(1);
	record(2);
	struct ktr_stats before = stats(0);
	ktr_stream_open(&other, KTR_STREAM_LIVE);
	drain(&other, 1000);
	struct ktr_stats s = stats(0);
	assert_int_equal(s.delivered, before.delivered);
	assert_int_equal(s.resident, before.resident);
	decode(); /* a live stream may end behind a mark */
	assert_int_equal(seen.damages, 0);
	assert_true(seen.events[0] >= 2);
	/* From now on. */
	ktr_stream_open(&other, KTR_STREAM_LIVE | KTR_STREAM_NOW);
	record(3);
	len = 0;
	drain(&other, 1000);
	decode();
	assert_int_equal(seen.events[0], 1);
}

static jmp_buf tear_jump;

static void
tear(enum ktr_host_step step)
{
	if (step == KTR_HOST_CLAIMED) {
		ktr_host_interrupt = NULL;
		longjmp(tear_jump, 1);
	}
}

static void
record_torn(void)
{
	if (setjmp(tear_jump) == 0) {
		ktr_host_interrupt = tear;
		record(666666);
		fail();
	}
}

static void
torn_events_are_reported_and_do_not_stop_the_stream(void **state)
{
	(void)state;
	struct ktr_stats before = stats(0);
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	record(1);
	record_torn();
	record_torn();
	record(2);
	record_torn();
	drain(&account, 1000);
	ktr_stream_close(&account, false);
	drain(&account, 1000);
	struct ktr_stats s = stats(0);
	assert_int_equal(s.torn - before.torn, 3);
	assert_int_equal(s.delivered - before.delivered, 2);
	assert_int_equal(s.resident, 0);
	decode();
	assert_int_equal(seen.events[0], 2);
	assert_int_equal(seen.gaps[KTR_GAP_TORN], 3);
	assert_int_equal(seen.value[0], 2);
}

static void
drain_inside(enum ktr_host_step step)
{
	if (step != KTR_HOST_CLAIMED)
		return;
	ktr_host_interrupt = NULL;
	record(2); /* a nested event, behind the unfinished one */
	ktr_host_quiescent = false;
	drain(&account, 1000);
	ktr_host_quiescent = true;
}

static void
unfinished_event_is_waited_for(void **state)
{
	(void)state;
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	ktr_host_interrupt = drain_inside;
	record(1);
	drain(&account, 1000);
	ktr_stream_close(&account, false);
	drain(&account, 1000);
	stats(0);
	decode();
	assert_int_equal(seen.events[0], 2);
	assert_int_equal(seen.gaps[KTR_GAP_TORN], 0);
	assert_int_equal(seen.damages, 0);
}

static void
stopped_machine_is_dumped_without_lock_and_wait(void **state)
{
	(void)state;
	record(1);
	record_torn();
	record(2);
	ktr_port_lock();
	ktr_host_quiescent = false;
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT | KTR_STREAM_STOPPED);
	drain(&account, 1000);
	ktr_stream_close(&account, false);
	drain(&account, 1000);
	ktr_host_quiescent = true;
	ktr_port_unlock();
	decode();
	assert_int_equal(seen.events[0], 2);
	assert_int_equal(seen.gaps[KTR_GAP_TORN], 1);
	assert_int_equal(seen.ends, 1);
	assert_int_equal(seen.damages, 0);
}

static void
truncated_stream_says_what_it_leaves(void **state)
{
	(void)state;
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	record(1);
	drain(&account, 1000);
	record(2);
	record(3);
	ktr_stream_close(&account, true);
	drain(&account, 1000);
	decode();
	assert_int_equal(seen.events[0], 1);
	assert_int_equal(seen.gaps[KTR_GAP_LEFT], 2);
	assert_int_equal(seen.ends, 1);
}

static void
reopened_stream_goes_on_where_the_last_one_stopped(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 5; i++) {
		ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
		record(i);
		drain(&account, 1000);
		ktr_stream_close(&account, false);
		drain(&account, 1000);
		record(i);
	}
	decode();
	assert_int_equal(seen.events[0], 9);
	assert_int_equal(seen.ends, 5);
	assert_int_equal(seen.damages, 0);
}

static void
metadata_comes_again_so_that_a_reader_may_begin_in_the_middle(void **state)
{
	(void)state;
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	uint64_t n = 0;
	while (len < KTR_STREAM_REPEAT + 600000) {
		for (unsigned i = 0; i < 60; i++, n++)
			CTR6(KTR_GEN, "%lu %lx %lx %lx %lx %s", n, n * 0x123456789abcdef1,
			     n * 0x23456789abcdef12, n * 0x3456789abcdef123, n * 0x456789abcdef1234,
			     "text");
		drain(&account, 1000);
	}
	ktr_stream_close(&account, false);
	drain(&account, 1000);
	size_t cut = KTR_STREAM_REPEAT - 200000;
	memmove(buf, buf + cut, len - cut);
	len -= cut;
	decode();
	assert_true(seen.damages <= 1); /* the frame that was cut; the header came later */
	assert_true(seen.events[0] > 10000);
	assert_true(seen.known);
	assert_false(seen.bad_order);
	assert_int_equal(seen.gaps[KTR_GAP_DAMAGED], 0);
}

static void
thread_s_new_name_is_told(void **state)
{
	(void)state;
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	ktr_thread_name(1, "before");
	record(1);
	drain(&account, 1000);
	decode();
	assert_string_equal(seen.thread, "before");
	ktr_thread_name(1, "after");
	record(2);
	drain(&account, 1000);
	decode();
	assert_string_equal(seen.thread, "after");
}

#define TEXT_64 "a text that has 64 bytes and none of them is zero, four times o"
static void
frame_with_a_long_run_of_bytes_that_are_not_zero_is_read(void **state)
{
	(void)state;
	static const char text[] = TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64;
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	CTR0(KTR_GEN, TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64);
	drain(&account, 1000);
	ktr_stream_close(&account, false);
	drain(&account, 1000);
	decode();
	assert_int_equal(seen.damages, 0);
	assert_int_equal(seen.fmt_len,
			 strlen(text) < KTR_WIRE_FMT_MAX ? strlen(text) : KTR_WIRE_FMT_MAX);
}

static void
every_event_of_a_damaged_frame_is_missed(void **state)
{
	(void)state;
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	drain(&account, 1000);
	size_t header = len;
	for (uint64_t i = 0; i < 3; i++) {
		record(i);
		drain(&account, 1000);
	}
	ktr_stream_close(&account, false);
	drain(&account, 1000);
	unsigned missed = 0;
	damage_expected = true;
	for (size_t at = header; at < len; at++) {
		buf[at] ^= 0x10;
		decode();
		buf[at] ^= 0x10;
		assert_int_equal(seen.events[0] + seen.gaps[KTR_GAP_DAMAGED], 3);
		missed += seen.gaps[KTR_GAP_DAMAGED] == 1;
	}
	damage_expected = false;
	assert_true(missed > 0);
}

/* Recorders run while the accounting stream drains, and another thread resizes and clears. */
#define STRESS_EVENTS 100000

static void *
stress_writer(void *arg)
{
	ktr_host_tid = (uint32_t)(uintptr_t)arg;
	ktr_host_cpu = ktr_host_tid % 2;
	assert_true(ktr_host_enter());
	for (uint64_t i = 0; i < STRESS_EVENTS; i++) {
		record(i);
		ktr_host_pass();
	}
	ktr_host_leave();
	return NULL;
}

static bool stress_over;

/* Who asks in the middle gets sums that are exact, too. */
static void *
stress_accountant(void *arg)
{
	uint64_t *wrong = arg;
	for (unsigned cpu = 0; !__atomic_load_n(&stress_over, __ATOMIC_ACQUIRE); cpu = !cpu) {
		struct ktr_stats s = stats(cpu);
		*wrong += s.recorded != s.delivered + s.resident + s.overwritten + s.torn;
	}
	return NULL;
}

static void
stress_accounts_hold_to_the_last_event(void **state)
{
	(void)state;
	struct ktr_stats before[2] = {stats(0), stats(1)};
	uint64_t marked = 0;
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	pthread_t writers[2];
	for (uintptr_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&writers[i], NULL, stress_writer, (void *)(i + 2)),
				 0);
	pthread_t accountant;
	uint64_t wrong = 0;
	stress_over = false;
	assert_int_equal(pthread_create(&accountant, NULL, stress_accountant, &wrong), 0);
	uint64_t recorded = 0;
	for (unsigned round = 0; recorded < 2 * STRESS_EVENTS; round++) {
		drain(&account, 4096);
		if (round % 16 == 5)
			ktr_resize(16u << round % 5);
		if (round % 64 == 9)
			ktr_clear();
		recorded =
		    stats(0).recorded - before[0].recorded + stats(1).recorded - before[1].recorded;
		marked++;
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(writers[i], NULL);
	__atomic_store_n(&stress_over, true, __ATOMIC_RELEASE);
	pthread_join(accountant, NULL);
	assert_int_equal(wrong, 0);
	drain(&account, 4096);
	ktr_stream_close(&account, false);
	drain(&account, 4096);
	decode();
	assert_int_equal(seen.damages, 0);
	assert_false(seen.bad_order);
	assert_true(marked > 0);
	uint64_t lost = 0;
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		struct ktr_stats s = stats(cpu);
		assert_int_equal(s.recorded - before[cpu].recorded, STRESS_EVENTS);
		assert_int_equal(s.resident, 0);
		assert_int_equal(s.torn, before[cpu].torn);
		assert_int_equal(s.delivered - before[cpu].delivered, seen.events[cpu]);
		lost += s.overwritten - before[cpu].overwritten;
	}
	assert_int_equal(lost, seen.gaps[KTR_GAP_OVERWRITTEN] + seen.gaps[KTR_GAP_CLEARED]);
	assert_int_equal(seen.events[0] + seen.events[1] + lost, 2 * STRESS_EVENTS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(pass_covers_what_was_recorded_before_it, begin),
	    cmocka_unit_test_setup(stream_stops_and_goes_on_at_any_byte, begin),
	    cmocka_unit_test_setup(reader_that_goes_on_until_0_gets_one_pass_however_busy_the_rings,
				   begin),
	    cmocka_unit_test_setup(overwritten_events_are_reported_and_counted, begin),
	    cmocka_unit_test_setup(cleared_events_are_reported_as_such, begin),
	    cmocka_unit_test_setup(readers_do_not_disturb_the_accounts, begin),
	    cmocka_unit_test_setup(torn_events_are_reported_and_do_not_stop_the_stream, begin),
	    cmocka_unit_test_setup(unfinished_event_is_waited_for, begin),
	    cmocka_unit_test_setup(stopped_machine_is_dumped_without_lock_and_wait, begin),
	    cmocka_unit_test_setup(truncated_stream_says_what_it_leaves, begin),
	    cmocka_unit_test_setup(reopened_stream_goes_on_where_the_last_one_stopped, begin),
	    cmocka_unit_test_setup(metadata_comes_again_so_that_a_reader_may_begin_in_the_middle,
				   begin),
	    cmocka_unit_test_setup(thread_s_new_name_is_told, begin),
	    cmocka_unit_test_setup(frame_with_a_long_run_of_bytes_that_are_not_zero_is_read, begin),
	    cmocka_unit_test_setup(every_event_of_a_damaged_frame_is_missed, begin),
	    cmocka_unit_test_setup(stress_accounts_hold_to_the_last_event, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
