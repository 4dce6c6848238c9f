/*
 * ktr_map_test.c - the hash table holds all that was put and not removed, whatever the keys and the
 * seed. Clearing it costs no more than filling it did.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ktr/map.h"
#include "tests/unit/ktr_decode_help.h"

#define KEYS 3000u

static char values[2][KEYS];

/*
 * Consecutive keys, aligned keys, and keys that multiplication by the golden ratio maps to one
 * place.
 */
static uint64_t
key_of(unsigned kind, uint64_t n)
{
	const uint64_t inverse = 0xf1de83e19937733du; /* of 0x9e3779b97f4a7c15 modulo 2^64 */
	return kind == 0 ? n : kind == 1 ? n << 40 : kind == 2 ? ~(n * 4096) : n * inverse;
}

static void
map_holds_what_was_put_and_not_removed(void **state)
{
	for (unsigned round = 0; round < 16; round++) {
		struct ktr_map m = ktr_map_make(decode_realloc, round / 4 * 0x123456789abcdu);
		void *right[KEYS] = {NULL};
		uint32_t x = round;
		for (unsigned step = 0; step < 20000; step++) {
			x = x * 1664525 + 1013904223;
			unsigned n = (x >> 8) % KEYS;
			right[n] = (x >> 28) < 6 ? NULL : &values[x >> 31][n];
			if (right[n] != NULL)
				assert_true(ktr_map_put(&m, key_of(round % 4, n), right[n]));
			else
				ktr_map_remove(&m, key_of(round % 4, n));
		}
		size_t used = 0;
		for (unsigned n = 0; n < KEYS; n++) {
			assert_ptr_equal(ktr_map_get(&m, key_of(round % 4, n)), right[n]);
			used += right[n] != NULL;
		}
		assert_int_equal(m.used, used);
		ktr_map_clear(&m);
		for (unsigned n = 0; n < KEYS; n++)
			assert_null(ktr_map_get(&m, key_of(round % 4, n)));
		ktr_map_free(&m);
	}
}

/* The longest search for any of the keys, in steps. */
static size_t
longest_search(const struct ktr_map *m)
{
	size_t most = 0;
	for (size_t at = 0; at < m->size; at++) {
		if (m->pairs[at].value == NULL)
			continue;
		size_t way = (at - ktr_map_first(m, m->pairs[at].key)) & (m->size - 1);
		most = way > most ? way : most;
	}
	return most;
}

static void
no_kind_of_keys_is_slow_with_a_seed(void **state)
{
	for (unsigned kind = 0; kind < 4; kind++) {
		struct ktr_map m = ktr_map_make(decode_realloc, 0x6a09e667f3bcc908u);
		for (unsigned n = 0; n < KEYS; n++)
			assert_true(ktr_map_put(&m, key_of(kind, n), &values[0][n]));
		assert_true(longest_search(&m) < 64);
		ktr_map_free(&m);
	}
}

static void
a_table_that_is_nearly_empty_is_given_back(void **state)
{
	struct ktr_map m = ktr_map_make(decode_realloc, 1);
	for (unsigned n = 0; n < KEYS; n++)
		assert_true(ktr_map_put(&m, n, values[0]));
	ktr_map_clear(&m);
	assert_true(m.size >= KEYS);
	assert_true(ktr_map_put(&m, 1, values[0]));
	ktr_map_clear(&m);
	assert_int_equal(m.size, 0);
	assert_null(ktr_map_get(&m, 1));
	ktr_map_free(&m);
}

static void *
no_memory(void *p, size_t size)
{
	(void)p, (void)size;
	return NULL;
}

static void
without_memory_nothing_changes(void **state)
{
	struct ktr_map m = ktr_map_make(no_memory, 1);
	assert_false(ktr_map_put(&m, 1, values[0]));
	assert_null(ktr_map_get(&m, 1));
	ktr_map_remove(&m, 1);
	ktr_map_clear(&m);
	ktr_map_free(&m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(map_holds_what_was_put_and_not_removed),
	    cmocka_unit_test(no_kind_of_keys_is_slow_with_a_seed),
	    cmocka_unit_test(a_table_that_is_nearly_empty_is_given_back),
	    cmocka_unit_test(without_memory_nothing_changes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
