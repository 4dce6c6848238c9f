/* dif_state_test.c - the program engine's variables and aggregations. */
#include "tests/unit/dif_unit.h"

static void
variables_of_threads_and_elements_of_arrays(void **state)
{
	uint32_t out, self, array, text;
	const uint64_t kinds = DIF_KEYS_AND(DIF_K_STR, DIF_K_INT);

	out = put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	self = put_var(&m, DIF_SELF, DIF_INT, 8, 0);
	array = put_var(&m, DIF_GLOBAL, DIF_INT, 8, kinds);
	text = put_var(&m, DIF_SELF, DIF_STR, 0, DIF_K_INT);
	uint32_t copy = put_var(&m, DIF_GLOBAL, DIF_STR, 0, 0);
	struct dif_insn a = TEXT(2, "a"), b = TEXT(2, "b"), x = TEXT(4, "some text");
	uint32_t set_self = CLAUSE(&m, SET(1, 7), STV(self, 1), RET);
	uint32_t get_self = CLAUSE(&m, LDV(1, self), STV(out, 1), RET);
	uint32_t clear_self = CLAUSE(&m, STV(self, 0), RET);
	uint32_t set_a = CLAUSE(&m, a, SET(3, 9), SET(1, 11), KEYS(2), KEY(3), STV(array, 1), RET);
	uint32_t set_b = CLAUSE(&m, b, SET(3, 9), SET(1, 12), KEYS(2), KEY(3), STV(array, 1), RET);
	uint32_t get_a = CLAUSE(&m, a, SET(3, 9), KEYS(2), KEY(3), LDV(1, array), STV(out, 1), RET);
	uint32_t get_b = CLAUSE(&m, b, SET(3, 9), KEYS(2), KEY(3), LDV(1, array), STV(out, 1), RET);
	/* a variable without keys while keys wait for another one */
	uint32_t mixed = CLAUSE(&m, a, SET(3, 9), KEYS(2), SET(5, 3), STV(self, 5), LDV(6, self),
				KEY(3), STV(array, 6), RET);
	uint32_t set_text = CLAUSE(&m, x, KEY(0), STV(text, 4), RET);
	uint32_t get_text = CLAUSE(&m, KEY(0), LDV(1, text), STV(copy, 1), STV(out, 1), RET);
	load_it(2);

	ok(0, get_self);
	assert_int_equal(global(out), 0);
	ok(0, set_self);
	ok(1, get_self); /* the same thread on another CPU */
	assert_int_equal(global(out), 7);
	dif_host.thread = 6;
	ok(0, get_self);
	assert_int_equal(global(out), 0);
	dif_host.thread = 5;
	ok(0, clear_self);
	ok(0, get_self);
	assert_int_equal(global(out), 0);
	ok(0, set_a);
	ok(0, set_b);
	ok(1, get_a);
	assert_int_equal(global(out), 11);
	ok(1, get_b);
	assert_int_equal(global(out), 12);
	ok(0, mixed);
	ok(0, get_a);
	assert_int_equal(global(out), 3);
	ok(0, get_text);
	assert_int_equal(global(out), 0);
	ok(0, set_text);
	ok(0, get_text);
	assert_string_equal(global_str(copy), "some text");
	assert_int_equal(status().dynvar_drops, 0);
}

static void
an_array_without_memory_drops_and_its_memory_comes_back(void **state)
{
	uint32_t array, room, next;

	m.h.options.dynvarsize = 4096;
	array = put_var(&m, DIF_GLOBAL, DIF_INT, 8, DIF_K_INT);
	next = put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	uint32_t set = CLAUSE(&m, LDV(1, next), {DIF_ADD | DIF_IMM, 1, 1, 0, 1}, STV(next, 1),
			      KEY(1), STV(array, 1), RET);
	uint32_t clear = CLAUSE(&m, LDV(1, next), {DIF_ADD | DIF_IMM, 1, 1, 0, 1}, STV(next, 1),
				KEY(1), STV(array, 0), RET);
	uint32_t restart = CLAUSE(&m, STV(next, 0), RET);
	load_it(1);
	room = d.dynamic.count;
	assert_in_range(room, 50, 100);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 1000; i++)
			ok(0, set);
		assert_int_equal(status().dynvar_drops, (round + 1) * (1000 - room));
		ok(0, restart);
		for (unsigned i = 0; i < 1000; i++)
			ok(0, clear);
		ok(0, restart);
	}
}

/* Of whatever size: sizes of guides and tests are those of other engines' elements. */
static void
an_array_has_room_for_three(void **state)
{
	for (uint32_t size = 0; size <= 64; size += 8) {
		make(&m);
		m.h.options.dynvarsize = size;
		uint32_t next = put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
		uint32_t array = put_var(&m, DIF_GLOBAL, DIF_STR, 0, DIF_K_STR);
		struct dif_insn text = TEXT(1, "text");
		uint32_t set =
		    CLAUSE(&m, LDV(2, next), {DIF_ADD | DIF_IMM, 2, 2, 0, 1}, STV(next, 2), text,
			   {DIF_ADD, 3, 1, 2, 0}, KEYS(3), STV(array, 1), RET);

		load_it(1);
		for (unsigned i = 0; i < 4; i++)
			ok(0, set);
		assert_int_equal(d.dynamic.count, 3);
		assert_int_equal(status().dynvar_drops, 1);
		dif_unload(&d);
	}
	make(&m);
	load_it(1);
}

static uint32_t on_other_cpu[2]; /* clauses, in the midst of one on CPU 0 */

static void
other_cpu(void)
{
	ok(1, on_other_cpu[0]);
	ok(1, on_other_cpu[1]);
}

static void
a_text_stays_as_long_as_a_program_may_have_its_address(void **state)
{
	uint32_t array, copy, room;

	m.h.options.dynvarsize = 4096;
	m.h.options.strsize = 16;
	array = put_var(&m, DIF_GLOBAL, DIF_STR, 0, DIF_K_INT);
	copy = put_var(&m, DIF_GLOBAL, DIF_STR, 0, 0);
	struct dif_insn first = TEXT(1, "first"), other = TEXT(1, "other");
	uint32_t set = CLAUSE(&m, first, SET(2, 1), KEY(2), STV(array, 1), RET);
	uint32_t use =
	    CLAUSE(&m, SET(2, 1), KEY(2), LDV(1, array), {DIF_LOG, 0, 0, 0, 0}, STV(copy, 1), RET);
	uint32_t fault = CLAUSE(&m, SET(2, 1), KEY(2), LDV(1, array), {DIF_LOG, 0, 0, 0, 0},
				{DIF_LD8, 1, 0, 0, 8}, RET);
	uint32_t full = CLAUSE(&m, SET(2, 1), KEY(2), LDV(1, array), {DIF_LOG, 0, 0, 0, 0},
			       REC(put_layout(&m, 8000)), RET);
	uint32_t again = CLAUSE(&m, other, SET(2, 2), KEY(2), STV(array, 1), RET);
	on_other_cpu[0] = CLAUSE(&m, SET(2, 1), KEY(2), STV(array, 0), RET);
	on_other_cpu[1] = CLAUSE(&m, other, SET(2, 2), KEY(2), STV(array, 1), SET(2, 2), KEY(2),
				 STV(array, 0), RET);
	load_it(2);
	room = d.dynamic.count;
	assert_in_range(room, 50, 100);
	/* However the program ends, the memory comes back. */
	for (unsigned i = 0; i < 1000; i++) {
		dif_host.log = NULL;
		ok(0, set);
		dif_host.log = other_cpu;
		if (i % 3 == 0)
			ok(0, use);
		else
			fire(&d, 0, i % 3 == 1 ? fault : full);
		assert_string_equal(global_str(copy), "first");
	}
	assert_int_equal(status().dynvar_drops, 0);
	assert_int_equal(status().dropped, 333);
	assert_int_equal(status().faulted, 333);
	ok(0, again);
}

/* Whenever it is looked at, a program has an address: but each time another one. */
static void
texts_come_back_while_one_program_after_the_other_has_an_address(void **state)
{
	uint32_t array;

	m.h.options.dynvarsize = 4096;
	m.h.options.strsize = 16;
	array = put_var(&m, DIF_GLOBAL, DIF_STR, 0, DIF_K_INT);
	struct dif_insn first = TEXT(1, "first");
	uint32_t set = CLAUSE(&m, first, SET(2, 1), KEY(2), STV(array, 1), RET);
	uint32_t use = CLAUSE(&m, SET(2, 1), KEY(2), LDV(1, array), {DIF_LOG, 0, 0, 0, 0}, RET);
	on_other_cpu[0] = CLAUSE(&m, SET(2, 1), KEY(2), STV(array, 0), RET);
	on_other_cpu[1] = CLAUSE(&m, first, SET(2, 1), KEY(2), STV(array, 1), RET);
	load_it(2);
	assert_in_range(d.dynamic.count, 50, 100);
	dif_host.log = NULL;
	ok(0, set);
	dif_host.log = other_cpu;
	for (unsigned i = 0; i < 1000; i++)
		ok(0, use);
	assert_int_equal(status().dynvar_drops, 0);
}

static void
values_by_address_may_be_no_address(void **state)
{
	uint32_t text, out, here;

	text = put_var(&m, DIF_GLOBAL, DIF_STR, 0, 0);
	out = put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	here = put_var(&m, DIF_THIS, DIF_BYTES, 12, 0);
	uint32_t get = CLAUSE(&m, LDV(1, text), {DIF_SNE, 1, 1, 0, 0}, STV(out, 1), RET);
	uint32_t none = CLAUSE(&m, STV(text, 0), RET);
	struct dif_insn x = TEXT(1, "x");
	uint32_t some = CLAUSE(&m, x, STV(text, 1), RET);
	/* bytes of the clause: written in place, seen by the next clause */
	uint32_t write = CLAUSE(&m, LDV(1, here), SET(2, 77), {DIF_ST4, 0, 1, 2, 8}, RET);
	uint32_t read = CLAUSE(&m, LDV(1, here), {DIF_LD4, 2, 1, 0, 8}, STV(out, 2), RET);
	load_it(1);
	ok(0, get);
	assert_int_equal(global(out), 1); /* the empty string */
	ok(0, none);
	ok(0, get);
	assert_int_equal(global(out), 0);
	ok(0, some);
	ok(0, get);
	assert_int_equal(global(out), 1);
	ok(0, write);
	ok(0, read);
	assert_int_equal(global(out), 77);
}

/* A program stores in a struct through its address, wherever the variable lies. */
static void
bytes_of_all_kinds_of_variables_are_written_in_place(void **state)
{
	uint32_t vars[4], out, count = 0;
	const struct {
		uint8_t scope;
		uint64_t keys;
	} kinds[] = {{DIF_GLOBAL, 0},
		     {DIF_SELF, 0},
		     {DIF_GLOBAL, DIF_K_INT},
		     {DIF_SELF, DIF_K_INT}};

	for (unsigned i = 0; i < 4; i++)
		vars[i] = put_var(&m, kinds[i].scope, DIF_BYTES, 24, kinds[i].keys);
	out = put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	for (unsigned i = 0; i < 4; i++) {
		struct dif_insn key =
		    kinds[i].keys != 0 ? (struct dif_insn)KEY(0) : (struct dif_insn)SET(5, 0);

		CLAUSE(&m, key, LDV(1, vars[i]), SET(2, 77), {DIF_ST8, 0, 1, 2, 16}, RET);
		CLAUSE(&m, key, LDV(1, vars[i]), {DIF_LD8, 2, 1, 0, 16}, STV(out, 2), RET);
		CLAUSE(&m, key, LDV(1, vars[i]), SET(2, 1), {DIF_ST8, 0, 1, 2, -8}, RET);
		CLAUSE(&m, key, LDV(1, vars[i]), SET(2, 1), {DIF_ST8, 0, 1, 2, 20}, RET);
	}
	load_it(1);
	for (unsigned i = 0; i < 4; i++, count += 4) {
		ok(0, count + 1);
		assert_int_equal(global(out), 0);
		ok(0, count);
		ok(0, count + 1);
		assert_int_equal(global(out), 77);
		if (i == 0) /* other variables are its neighbours */
			continue;
		/* the table's own */
		assert_int_equal(fire(&d, 0, count + 2), DIF_FAULT_BADADDR);
		assert_int_equal(fire(&d, 0, count + 3), DIF_FAULT_BADADDR);
	}
}

/* The entry of aggregation `agg` whose first key word is `key`; its value's words. */
static uint64_t *
find_agg(unsigned cpu, uint32_t agg, bool keyed, uint64_t key)
{
	static uint64_t table[65536 / 8];
	void *from = NULL;
	uint32_t size = dif_agg_take(&d, cpu, &from);

	memcpy(table, from, size);
	dif_agg_done(&d, cpu);
	for (uint32_t at = 0; at < size / 8;) {
		struct dif_entry *e = (struct dif_entry *)&table[at];

		at += 2u + e->key_words + e->value_words;
		if (e->agg == agg && (!keyed || table[at - e->value_words - e->key_words] == key))
			return &table[at - e->value_words];
	}
	return NULL;
}

static void
each_function_of_aggregations(void **state)
{
	static const int64_t values[] = {0, 1, -1, 5, 64, 100, -100, INT64_MAX, INT64_MIN};
	enum { N = sizeof(values) / sizeof(values[0]) };
	uint64_t *w;
	uint32_t in;

	in = put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	for (unsigned f = DIF_COUNT; f <= DIF_LLQUANTIZE; f++) {
		put_agg(&m, (enum dif_func)f, 0);
		CLAUSE(&m, LDV(1, in), AGG(f, 1, 0), RET);
	}
	memcpy(m.aggs[DIF_LQUANTIZE].p, (int64_t[]){-10, 100, 5}, 24);
	memcpy(m.aggs[DIF_LLQUANTIZE].p, (int64_t[]){10, 0, 3, 20}, 32);
	load_it(1);
	assert_int_equal(d.aggregations[DIF_LQUANTIZE].value_words, 22 + 2);
	assert_int_equal(d.aggregations[DIF_LLQUANTIZE].value_words, 2 + 9 + 18 + 18 + 18);
	for (unsigned f = DIF_COUNT; f <= DIF_LLQUANTIZE; f++) {
		for (unsigned i = 0; i < N; i++) {
			*(int64_t *)(d.globals + d.variables[in].place) = values[i];
			ok(0, f);
		}
		w = find_agg(0, f, false, 0);
		assert_non_null(w);
		switch (f) {
		case DIF_COUNT:
			assert_int_equal(w[0], N);
			break;
		case DIF_SUM:
			assert_int_equal(w[0], 69 - 1);
			break;
		case DIF_MIN:
			assert_int_equal(w[0], (uint64_t)INT64_MIN);
			break;
		case DIF_MAX:
			assert_int_equal(w[0], INT64_MAX);
			break;
		case DIF_AVG:
			assert_int_equal(w[0], N);
			assert_int_equal(w[1], 68);
			break;
		case DIF_STDDEV: { /* 2^126 twice, less 2^64 - 1, and the small ones */
			unsigned __int128 sum = (unsigned __int128)INT64_MAX * INT64_MAX;
			sum += (unsigned __int128)1 << 126;
			sum += 1 + 1 + 25 + 64 * 64 + 10000 + 10000;
			assert_int_equal(w[0], N);
			assert_int_equal(w[1], 68);
			assert_int_equal(w[2], (uint64_t)sum);
			assert_int_equal(w[3], (uint64_t)(sum >> 64));
			break;
		}
		case DIF_QUANTIZE:
			assert_int_equal(w[63], 1);      /* 0 */
			assert_int_equal(w[64], 1);      /* 1 */
			assert_int_equal(w[62], 1);      /* -1 */
			assert_int_equal(w[64 + 2], 1);  /* 5 */
			assert_int_equal(w[64 + 6], 2);  /* 64, 100 */
			assert_int_equal(w[62 - 6], 1);  /* -100 */
			assert_int_equal(w[64 + 62], 1); /* INT64_MAX */
			assert_int_equal(w[0], 1);
			break;
		case DIF_LQUANTIZE:
			assert_int_equal(w[0], 2);      /* below -10 */
			assert_int_equal(w[1 + 2], 2);  /* 0, 1 */
			assert_int_equal(w[1 + 1], 1);  /* -1 */
			assert_int_equal(w[1 + 3], 1);  /* 5 */
			assert_int_equal(w[1 + 14], 1); /* 64 */
			assert_int_equal(w[22 + 1], 2); /* 100 and more */
			break;
		default:
			assert_int_equal(w[0], 4);          /* below 1: 0, -1, -100, INT64_MIN */
			assert_int_equal(w[1], 1);          /* 1 */
			assert_int_equal(w[5], 1);          /* 5 */
			assert_int_equal(w[1 + 9 + 10], 1); /* 64: width 5 from 10 */
			assert_int_equal(w[1 + 9 + 18], 1); /* 100 */
			assert_int_equal(w[1 + 9 + 54], 1); /* from 10000 on */
		}
	}
}

static void
keys_weights_and_two_tables(void **state)
{
	uint32_t count, quant, agg_full = 0;
	uint64_t *w;

	m.h.options.aggsize = 8192;
	count = put_agg(&m, DIF_COUNT, DIF_K_INT);
	quant = put_agg(&m, DIF_QUANTIZE, DIF_K_STR);
	uint32_t next = put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	struct dif_insn text = TEXT(1, "a longer key");
	uint32_t add = CLAUSE(&m, {DIF_ARG, 1, 0, 0, 3}, KEY(1), AGG(count, 0, 0), RET);
	uint32_t weigh = CLAUSE(&m, text, SET(2, 8), SET(3, 10), KEYS(1), AGG(quant, 2, 3), RET);
	uint32_t other = CLAUSE(&m, LDV(1, next), {DIF_ADD | DIF_IMM, 1, 1, 0, 1}, STV(next, 1),
				KEY(1), AGG(count, 0, 0), RET);
	load_it(2);
	for (unsigned i = 0; i < 5; i++)
		ok(1, add);
	ok(0, weigh);
	ok(0, weigh);
	assert_int_equal(*find_agg(1, count, true, 103), 5);
	assert_null(find_agg(1, count, true, 103)); /* it was taken */
	ok(1, add);
	assert_int_equal(*find_agg(1, count, true, 103), 1);
	w = find_agg(0, quant, false, 0);
	assert_int_equal(w[64 + 3], 20);
	assert_memory_equal(w - 2, "a longer key\0\0\0", 16);
	/* A full table drops, and is empty after it was taken. */
	for (unsigned i = 0; i < 1000; i++)
		ok(0, other);
	agg_full = (uint32_t)status().agg_drops;
	assert_in_range(agg_full, 700, 950);
	assert_int_equal(*find_agg(0, count, true, 1), 1);
	ok(0, other);
	assert_int_equal(status().agg_drops, agg_full);
}

/* No chain of the aggregations on CPU 0 is long. */
static void
check_chains(void)
{
	const uint8_t *table = (const uint8_t *)d.cpu[0].aggs.slots;

	assert_int_equal(status().agg_drops, 0);
	for (uint32_t b = 0; b <= d.bucket_mask; b++) {
		unsigned length = 0;

		for (uint32_t at = d.cpu[0].aggs.buckets[b]; at != 0;
		     at = ((const struct dif_entry *)(table + at))->next)
			length++;
		assert_in_range(length, 0, 32);
	}
}

/* Keys of which the hash without a secret is 0, by which an aggregation was kept once. */
static void
who_chooses_the_keys_does_not_choose_their_chains(void **state)
{
	enum { KEYS = 2000 };
	const uint64_t mix = 0x9e3779b97f4a7c15u;
	uint64_t inverse = mix;

	while (inverse * mix != 1)
		inverse *= 2 - mix * inverse;
	uint32_t count = put_agg(&m, DIF_COUNT, DIF_K_INT);
	uint32_t key = put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	uint32_t array = put_var(&m, DIF_GLOBAL, DIF_INT, 8, DIF_K_INT);
	m.h.options.aggsize = m.h.options.dynvarsize = 1 << 20;
	CLAUSE(&m, LDV(1, key), KEY(1), AGG(count, 0, 0), KEY(1), STV(array, 1), RET);
	load_it(1);
	for (uint64_t x = 1; x <= KEYS; x++) {
		*(uint64_t *)(d.globals + d.variables[key].place) =
		    ((x << 32 | x) * inverse) ^ (count + 1) * mix;
		ok(0, 0);
	}
	assert_int_equal(status().dynvar_drops, 0);
	check_chains();
}

/* Texts in which a word's highest bit changes, and in the next word the bit that the first one's
 * change became by a hash with a secret, the product's lower half with its bytes exchanged. */
static void
changes_of_two_words_do_not_make_up_for_each_other(void **state)
{
	enum { WORDS = 13 };
	static char text[512];

	uint32_t count = put_agg(&m, DIF_COUNT, DIF_K_STR);
	m.h.options.aggsize = 1 << 20;
	dif_host.kernel = (struct dif_host_area){0x10000, (uint8_t *)text, sizeof(text)};
	CLAUSE(&m, SET(1, 0x10000), KEYS(1), AGG(count, 0, 0), RET);
	load_it(1);
	for (unsigned x = 0; x < 1u << (WORDS - 2); x++) {
		memset(text, 'a', 8 * WORDS);
		for (unsigned i = 0; i < WORDS - 1; i++) {
			text[8 * i + 7] ^= (char)(x >> i << 7);
			text[8 * i + 8] ^= (char)(x >> i << 7);
		}
		ok(0, 0);
	}
	check_chains();
}

/* A key takes the room that its string takes, however long strings may be. */
static void
a_short_key_of_long_strings_has_room(void **state)
{
	static char text[3000];

	m.h.options.strsize = 4096;
	uint32_t one = put_agg(&m, DIF_COUNT, DIF_K_STR);
	uint32_t two = put_agg(&m, DIF_COUNT, DIF_KEYS_AND(DIF_K_STR, DIF_K_STR));
	dif_host.kernel = (struct dif_host_area){0x10000, (uint8_t *)text, sizeof(text)};
	CLAUSE(&m, SET(1, 0x10000), KEYS(1), AGG(one, 0, 0), RET);
	CLAUSE(&m, SET(1, 0x10000), KEYS(1), KEYS(1), AGG(two, 0, 0), RET);
	load_it(1);
	for (unsigned length = 0; length < 2100; length += length < 1000 ? 333 : 1) {
		memset(text, 'a', length);
		text[length] = '\0';
		assert_int_equal(fire(&d, 0, 0),
				 length < DIF_MAX_KEY ? DIF_FAULT_NONE : DIF_FAULT_TUPOFLOW);
		assert_int_equal(fire(&d, 0, 1), 2 * (length / 8 + 1) <= DIF_KEY_WORDS
						     ? DIF_FAULT_NONE
						     : DIF_FAULT_TUPOFLOW);
		if (length < DIF_MAX_KEY)
			assert_non_null(find_agg(0, one, false, 0));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(variables_of_threads_and_elements_of_arrays),
	    TEST(an_array_without_memory_drops_and_its_memory_comes_back),
	    TEST(an_array_has_room_for_three),
	    TEST(texts_come_back_while_one_program_after_the_other_has_an_address),
	    TEST(a_text_stays_as_long_as_a_program_may_have_its_address),
	    TEST(values_by_address_may_be_no_address),
	    TEST(bytes_of_all_kinds_of_variables_are_written_in_place),
	    TEST(each_function_of_aggregations),
	    TEST(keys_weights_and_two_tables),
	    TEST(who_chooses_the_keys_does_not_choose_their_chains),
	    TEST(changes_of_two_words_do_not_make_up_for_each_other),
	    TEST(a_short_key_of_long_strings_has_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
