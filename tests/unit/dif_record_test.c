/*
 * dif_record_test.c - the program engine's records: by each policy, what they hold, speculations;
 * and actions.
 */
#include "tests/unit/dif_unit.h"

/* The values that records of one word hold, in order. */
static unsigned
take(unsigned cpu, uint64_t *values, unsigned max)
{
	void *piece[2];
	uint32_t size[2];
	unsigned n = 0;

	dif_record_take(&d, cpu, piece, size);
	for (unsigned p = 0; p < 2; p++)
		for (uint32_t at = 0; at < size[p];) {
			const struct dif_record *r = (const void *)((const uint8_t *)piece[p] + at);

			assert_true(r->words > 0);
			at += 8u * r->words;
			assert_true(at <= size[p]);
			assert_int_equal(r->probe, 77);
			assert_int_equal(r->time, dif_host.time);
			if (n < max && r->layout == 0)
				memcpy(&values[n++], r + 1, 8);
		}
	return n;
}

static void
buffers_by_each_policy(void **state)
{
	uint64_t v[64];

	for (unsigned policy = DIF_SWITCH; policy <= DIF_FILL; policy++) {
		make(&m);
		m.h.options.policy = policy;
		m.h.options.bufsize = 24 * 10 + 16;
		uint32_t next = put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
		put_layout(&m, 8);
		put_layout(&m, 30);
		CLAUSE(&m, LDV(1, next), {DIF_ADD | DIF_IMM, 1, 1, 0, 1}, STV(next, 1), REC(0),
		       {DIF_REC8, 0, 1, 0, 0}, RET);
		CLAUSE(&m, REC(1), RET);
		load_it(1);
		for (unsigned i = 0; i < 25; i++)
			ok(0, 0);
		if (policy == DIF_RING) {
			assert_int_equal(status().completed, 25);
			assert_int_equal(take(0, v, 64), 10);
			for (unsigned i = 0; i < 10; i++)
				assert_int_equal(v[i], 16 + i);
			for (unsigned i = 0; i < 1000; i++) /* of two sizes */
				ok(0, i % 3 == 0);
			unsigned n = take(0, v, 64);
			assert_in_range(n, 4, 7);
			assert_int_equal(v[n - 1], global(next));
			for (unsigned i = 1; i < n; i++)
				assert_int_equal(v[i], v[i - 1] + 1);
		} else {
			assert_int_equal(status().completed, 10);
			assert_int_equal(status().dropped, 15);
			assert_int_equal(d.state, policy == DIF_FILL ? DIF_DRAINING : DIF_ACTIVE);
			assert_int_equal(take(0, v, 64), 10);
			assert_int_equal(v[9], 10);
			assert_int_equal(take(0, v, 64), 0);
			ok(0, 0);
			assert_int_equal(take(0, v, 64), 1);
			assert_int_equal(v[0], 26);
		}
		dif_unload(&d);
	}
	load_it(1);
}

static void
a_record_of_a_program_that_faults_is_taken_back(void **state)
{
	uint64_t v[4];

	put_layout(&m, 8);
	CLAUSE(&m, REC(0), {DIF_LD1, 1, 0, 0, 0}, RET);
	CLAUSE(&m, SET(1, 5), REC(0), {DIF_REC8, 0, 1, 0, 0}, RET);
	load_it(1);
	assert_int_equal(fire(&d, 0, 0), DIF_FAULT_BADADDR);
	ok(0, 1);
	assert_int_equal(fire(&d, 0, 0), DIF_FAULT_BADADDR);
	assert_int_equal(take(0, v, 4), 1);
	assert_int_equal(v[0], 5);
}

static void
what_a_record_holds(void **state)
{
	void *piece[2];
	uint32_t size[2];
	const uint8_t *data;

	put_layout(&m, 96);
	struct dif_insn text = TEXT(1, "abcdefgh");
	CLAUSE(&m, text, SET(2, -2), SET(3, 3), REC(0), {DIF_REC1, 0, 2, 0, 0},
	       {DIF_REC2, 0, 2, 0, 1}, {DIF_REC4, 0, 2, 0, 3}, {DIF_REC8, 0, 2, 0, 8},
	       {DIF_REC_STR, 0, 1, 0, DIF_PLACE(16, 5)}, {DIF_REC_MEM, 0, 1, 0, DIF_PLACE(24, 8)},
	       {DIF_REC_MEM, 0, 1, 3, DIF_PLACE(32, 8)},
	       {DIF_REC_STACK, 0, 0, 0, DIF_PLACE(40, 24)},
	       {DIF_REC_USTACK, 0, 0, 0, DIF_PLACE(64, 24)}, RET);
	load_it(1);
	dif_host.frames = 2;
	dif_host.stack[0] = 11;
	dif_host.stack[1] = 12;
	dif_host.uframes = 9;
	dif_host.ustack[0] = 21;
	dif_host.ustack[1] = 22;
	ok(0, 0);
	dif_record_take(&d, 0, piece, size);
	assert_int_equal(size[0], 16 + 96);
	data = (const uint8_t *)piece[0] + 16;
	assert_memory_equal(data, "\xfe\xfe\xff\xfe\xff\xff\xff", 7);
	assert_memory_equal(data + 8, "\xfe\xff\xff\xff\xff\xff\xff\xff", 8);
	assert_string_equal((const char *)data + 16, "abcd");
	assert_memory_equal(data + 24, "abcdefgh", 8);
	assert_memory_equal(data + 32, "abc", 3);
	assert_memory_equal(data + 40, ((uint64_t[]){11, 12, 0}), 24);
	assert_memory_equal(data + 64, ((uint64_t[]){42, 21, 22}), 24);
}

static void
a_speculation_that_is_not_active_takes_no_room(void **state)
{
	uint64_t v[4];

	for (unsigned policy = DIF_SWITCH; policy <= DIF_FILL; policy++) {
		make(&m);
		m.h.options.policy = policy;
		m.h.options.bufsize = 2 * 24;
		put_layout(&m, 8);
		CLAUSE(&m, SET(1, 5), REC(0), {DIF_REC8, 0, 1, 0, 0}, RET);
		CLAUSE(&m, SET(1, 9), {DIF_SPECULATE, 0, 0, 0, 0}, REC(0), {DIF_REC8, 0, 1, 0, 0},
		       RET);
		load_it(1);
		ok(0, 0);
		ok(0, 0);
		for (unsigned i = 0; i < 5; i++)
			ok(0, 1);
		assert_int_equal(status().dropped, 0);
		assert_int_equal(status().buf_drops, 0);
		assert_int_equal(d.state, DIF_ACTIVE);
		assert_int_equal(take(0, v, 4), 2);
		assert_int_equal(v[1], 5);
		dif_unload(&d);
	}
	load_it(1);
}

static void
speculations(void **state)
{
	uint64_t v[16];
	uint32_t id;

	id = put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	put_layout(&m, 8);
	uint32_t begin = CLAUSE(&m, CALL(1, SPECULATION, 0), STV(id, 1), RET);
	uint32_t record = CLAUSE(&m, LDV(1, id), {DIF_SPECULATE, 0, 1, 0, 0}, REC(0),
				 {DIF_REC8, 0, 1, 0, 0}, RET);
	uint32_t commit = CLAUSE(&m, LDV(1, id), {DIF_COMMIT, 0, 1, 0, 0}, RET);
	uint32_t discard = CLAUSE(&m, LDV(1, id), {DIF_DISCARD, 0, 1, 0, 0}, RET);
	load_it(2);
	ok(0, record); /* speculation 0: nowhere */
	assert_int_equal(take(0, v, 16), 0);
	ok(0, begin);
	assert_int_equal(global(id), 1);
	ok(0, record);
	ok(0, record);
	assert_int_equal(take(0, v, 16), 0);
	dif_host.time += 100; /* the buffer's records have the time at which they came there */
	ok(0, commit);
	assert_int_equal(take(0, v, 16), 2);
	ok(0, record); /* it is over */
	ok(0, commit);
	assert_int_equal(take(0, v, 16), 0);
	ok(0, begin); /* one CPU only had records: it is free again */
	assert_int_equal(global(id), 1);
	ok(0, record);
	ok(0, discard);
	assert_int_equal(take(0, v, 16), 0);
	ok(0, begin);
	ok(0, record);
	ok(1, record);
	ok(1, commit); /* CPU 0 gets to it when it is cleaned */
	assert_int_equal(take(1, v, 16), 1);
	assert_int_equal(take(0, v, 16), 0);
	ok(0, begin);
	assert_int_equal(global(id), 2);
	ok(0, begin);
	assert_int_equal(global(id), 0);
	assert_int_equal(status().spec_none, 1);
	assert_int_equal(status().spec_busy, 1);
	dif_spec_clean(&d, 0);
	dif_spec_clean(&d, 1);
	assert_int_equal(take(0, v, 16), 1);
	ok(0, begin);
	assert_int_equal(global(id), 1);
	for (unsigned i = 0; i < 50; i++) /* 1024 bytes */
		ok(0, record);
	assert_int_equal(status().spec_drops, 50 - 1024 / 24);
	assert_int_equal(status().dropped, 50 - 1024 / 24);
}

static void
actions_and_the_end(void **state)
{
	m.h.flags = DIF_DESTRUCTIVE;
	CLAUSE(&m, SET(1, 9), {DIF_RAISE, 0, 1, 0, 0}, RET);
	CLAUSE(&m, {DIF_STOP, 0, 0, 0, 0}, {DIF_PANIC, 0, 0, 0, 0}, RET);
	CLAUSE(&m, SET(1, 400000000), {DIF_CHILL, 0, 1, 0, 0}, RET);
	CLAUSE(&m, SET(1, 3), {DIF_EXIT, 0, 1, 0, 0}, RET);
	load_it(1);
	ok(0, 0);
	assert_int_equal(dif_host.act, DIF_RAISE);
	assert_int_equal(dif_host.act_arg, 9);
	ok(0, 1);
	assert_int_equal(dif_host.act, DIF_PANIC);
	dif_host.chill_max = 400000000;
	ok(0, 2);
	assert_int_equal(dif_host.act_arg, 400000000);
	dif_host.chill_max = 399999999;
	assert_int_equal(fire(&d, 0, 2), DIF_FAULT_ILLOP);
	assert_int_equal(dif_host.acts, 5);
	ok(0, 3);
	assert_int_equal(d.state, DIF_DRAINING);
	assert_int_equal(status().exit_status, 3);
}

/* Another CPU ends the tracing at the same time: it has set the state, and not yet the limits. */
static void
nothing_runs_on_a_cpu_after_its_exit(void **state)
{
	CLAUSE(&m, SET(1, 3), {DIF_EXIT, 0, 1, 0, 0}, RET);
	load_it(1);
	d.cpu[0].limit = 10;
	d.state = DIF_DRAINING;
	ok(0, 0);
	assert_int_equal(d.cpu[0].limit, 0);
	assert_int_equal(status().exit_status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(buffers_by_each_policy),
	    TEST(a_record_of_a_program_that_faults_is_taken_back),
	    TEST(what_a_record_holds),
	    TEST(speculations),
	    TEST(a_speculation_that_is_not_active_takes_no_room),
	    TEST(actions_and_the_end),
	    TEST(nothing_runs_on_a_cpu_after_its_exit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
