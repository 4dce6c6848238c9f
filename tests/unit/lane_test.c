/*
 * lane_test.c - lanes of a picture: bounded, without gaps, and with exact sums.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ktr/tools/export/lane.h"

#define MAX    64u
#define A      (LANE_KEY + 0)
#define B      (LANE_KEY + 1)
#define RANDOM 1664525u

static struct lane l;

static int
end(void **state)
{
	lane_clear(&l);
	return 0;
}

static void
add(uint32_t key, const char *why, uint64_t from_ns, uint64_t to_ns)
{
	assert_true(lane_add(&l, MAX, key, why, 1, from_ns, to_ns));
}

static uint64_t
sum_of(uint32_t key)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < l.count; i++)
		sum += l.parts[i].key == key ? l.parts[i].ns : 0;
	return sum;
}

static uint64_t
sum_of_all(void)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < l.count; i++)
		sum += l.parts[i].ns;
	return sum;
}

static void
holes_are_parts_and_overlaps_are_cut(void **state)
{
	add(A, NULL, 100, 200);
	add(B, NULL, 250, 300);
	add(A, NULL, 270, 310); /* the part before its start is already covered */
	add(B, NULL, 280, 290); /* all of it is covered */
	assert_int_equal(l.from_ns, 100);
	assert_int_equal(l.to_ns, 310);
	assert_int_equal(l.count, 5);
	assert_int_equal(sum_of(LANE_NOTHING), 50);
	assert_int_equal(sum_of(A), 110);
	assert_int_equal(sum_of(B), 50);
	assert_int_equal(l.parts[4].ns, 0);
}

static void
same_goes_on(void **state)
{
	static const char one[] = "one", two[] = "two";
	add(A, one, 0, 10);
	add(A, one, 10, 30);
	add(A, two, 30, 40);
	assert_int_equal(l.count, 2);
	assert_int_equal(l.parts[0].ns, 30);
	assert_int_equal(l.parts[0].count, 2);
	assert_ptr_equal(l.parts[1].why, two);
}

static void
short_neighbours_become_a_group_and_long_ones_stay(void **state)
{
	static const char one[] = "one", two[] = "two";
	uint64_t ns;
	add(A, one, 0, 1000);
	add(B, one, 1000, 1010);
	add(A, one, 1010, 1030);
	add(B, two, 1030, 1035);
	add(A, two, 1035, 2000);
	lane_merge(&l, 100);
	assert_int_equal(l.count, 4);
	assert_int_equal(lane_group(&l, 0, &ns), 1);
	assert_int_equal(ns, 1000);
	assert_ptr_equal(l.parts[0].why, one);
	assert_int_equal(lane_group(&l, 1, &ns), 2);
	assert_int_equal(ns, 35);
	assert_int_equal(l.parts[1].key, B);
	assert_int_equal(l.parts[1].ns, 15);
	assert_int_equal(l.parts[1].count, 2);
	assert_null(l.parts[1].why); /* of two, none */
	assert_ptr_equal(l.parts[2].why, one);
	assert_int_equal(lane_group(&l, 3, &ns), 1);
	assert_int_equal(ns, 965);
	/* After a full group comes another one. */
	lane_merge(&l, 10000);
	assert_int_equal(lane_group(&l, 0, &ns), 2);
	assert_int_equal(ns, 2000);
}

static void
group_has_a_place_for_others(void **state)
{
	uint64_t ns;
	for (uint32_t i = 0; i < 3 * LANE_PARTS; i++)
		add(LANE_KEY + i, NULL, i * 10, i * 10 + 10);
	lane_merge(&l, 1000);
	assert_int_equal(lane_group(&l, 0, &ns), LANE_PARTS);
	assert_int_equal(ns, 30 * LANE_PARTS);
	assert_int_equal(sum_of(LANE_OTHER), 30 * LANE_PARTS - 10 * (LANE_PARTS - 1));
}

/*
 * A million parts of all lengths, with room for 64: no time is lost, and none moves far from its
 * place.
 */
static void
many_are_kept_in_bounded_room(void **state)
{
	uint64_t now = 0, sums[2] = {0}, ns, widest = 0;
	uint32_t random = 1;
	for (uint32_t i = 0; i < 1000000; i++) {
		random = random * RANDOM + 1013904223;
		uint64_t length = random >> 20;
		add(A + i % 2, NULL, now, now + length);
		sums[i % 2] += length;
		now += length;
		assert_true(l.count <= MAX && l.room <= MAX);
	}
	assert_int_equal(sum_of(A), sums[0]);
	assert_int_equal(sum_of(B), sums[1]);
	assert_int_equal(sum_of_all(), now);
	assert_int_equal(l.to_ns - l.from_ns, now);
	for (size_t i = 0; i < l.count;) {
		i += lane_group(&l, i, &ns);
		widest = ns > widest ? ns : widest;
	}
	assert_true(widest < now / 8); /* groups of two parts: 16 at least when it was full */
	/* A long part stays alone, whatever happens to the others. */
	add(A + 2, NULL, now, now * 10);
	assert_int_equal(l.parts[l.count - 1].ns, now * 9);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(holes_are_parts_and_overlaps_are_cut, end),
	    cmocka_unit_test_teardown(same_goes_on, end),
	    cmocka_unit_test_teardown(short_neighbours_become_a_group_and_long_ones_stay, end),
	    cmocka_unit_test_teardown(group_has_a_place_for_others, end),
	    cmocka_unit_test_teardown(many_are_kept_in_bounded_room, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
