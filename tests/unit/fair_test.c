/* fair_test.c - shares by groups and by members: who goes next, and how much each has had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/lib/fair.h"

#define MS   1000000ul
#define TICK (10 * MS)
#define MOST 512

/* A CPU: groups and members, and who has it. A tick is the longest that one has it. */
static struct fair_queue top;
static struct fair_group groups[4];
static struct fair_entry members[MOST];
static uint64_t had[MOST];
static struct fair_entry *now;     /* NULL: nobody */
static struct fair_entry *hurries; /* at each tick; NULL: nobody */

static int
begin(void **state)
{
	memset(&top, 0, sizeof(top));
	memset(groups, 0, sizeof(groups));
	memset(members, 0, sizeof(members));
	memset(had, 0, sizeof(had));
	now = hurries = NULL;
	return 0;
}

static struct fair_entry *
wake(unsigned i, unsigned group)
{
	if (members[i].weight == 0)
		members[i].weight = FAIR_WEIGHT;
	fair_join(&top, &groups[group], &members[i]);
	fair_put(&top, &members[i]);
	return &members[i];
}

static void
choose(void)
{
	if (now != NULL) {
		if (now == hurries)
			fair_hurry(&top, now);
		else
			fair_calm(&top, now);
		fair_renew(&top, now);
		fair_put(&top, now);
	}
	now = fair_first(&top);
	if (now != NULL) {
		fair_take(&top, now);
		fair_run(&top, now);
	}
}

static void
use(uint64_t ns)
{
	had[now - members] += ns;
	fair_charge(&top, now, ns);
}

static void
run(unsigned ticks)
{
	for (unsigned i = 0; i < ticks; i++) {
		choose();
		use(TICK);
	}
}

static void
sleep_now(void)
{
	fair_leave(&top, now);
	now = NULL;
}

static uint64_t
sum(unsigned from, unsigned to)
{
	uint64_t ns = 0;

	for (unsigned i = from; i < to; i++)
		ns += had[i];
	return ns;
}

static void
assert_near(uint64_t found, uint64_t expected, uint64_t by)
{
	if (found + by < expected || found > expected + by)
		fail_msg("found %lu, expected %lu", found, expected);
}

/* 100 members of one group have as much as the one of another, and the same each. */
static void
shares_are_by_group_and_then_by_member(void **state)
{
	for (unsigned i = 0; i < 100; i++)
		wake(i, 0);
	wake(100, 1);
	run(4000);
	assert_near(had[100], 2000 * TICK, 4 * TICK);
	for (unsigned i = 0; i < 100; i++)
		assert_near(had[i], 20 * TICK, 4 * TICK);
}

static void
shares_of_members_are_as_their_weights(void **state)
{
	members[0].weight = fair_weight(0);
	members[1].weight = fair_weight(5);
	members[2].weight = fair_weight(-5);
	for (unsigned i = 0; i < 3; i++)
		wake(i, 0);
	run(100000);
	assert_int_equal(fair_weight(0), FAIR_WEIGHT);
	for (unsigned i = 0; i < 3; i++)
		assert_near(had[i],
			    100000 * TICK * members[i].weight /
				(fair_weight(0) + fair_weight(5) + fair_weight(-5)),
			    100 * TICK);
}

/* A group of nice members only has less than others; many of them have together what one has. */
static void
a_group_weighs_what_its_members_do_up_to_one(void **state)
{
	members[0].weight = fair_weight(19);
	wake(0, 0);
	wake(1, 1);
	run(7000);
	assert_near(had[0], 7000 * TICK * 15 / (1024 + 15), 80 * TICK);
	for (unsigned i = 2; i < 300; i++) {
		members[i].weight = fair_weight(19);
		wake(i, 0);
	}
	memset(had, 0, sizeof(had));
	run(10000);
	assert_near(had[1], 5000 * TICK, 80 * TICK);
}

static void
a_heavy_member_makes_its_group_heavy(void **state)
{
	members[0].weight = 3 * FAIR_WEIGHT;
	wake(0, 0);
	wake(1, 1);
	run(4000);
	assert_near(had[0], 3000 * TICK, 10 * TICK);
}

/* Whoever has slept goes before all others of its group, but has no more than a slice for it. */
static void
who_has_slept_goes_first(void **state)
{
	for (unsigned i = 0; i < 50; i++)
		wake(i, 0);
	run(5000);
	wake(50, 0);
	choose();
	assert_ptr_equal(now, &members[50]);
	run(50);
	assert_near(had[50], 2 * TICK, 2 * TICK);
}

/* The same for groups: how many others there are, and for how long they have run, is no matter. */
static void
a_group_that_has_slept_goes_first_at_once(void **state)
{
	for (unsigned i = 0; i < 50; i++)
		wake(i, 0);
	for (unsigned round = 0; round < 300; round++) {
		run(10 + round);
		choose();
		wake(50, 1);
		assert_true(fair_before(&members[50], now, MS));
		choose();
		assert_ptr_equal(now, &members[50]);
		use(MS);
		sleep_now();
	}
}

static void
assert_woken_goes_first(unsigned i, unsigned group)
{
	struct fair_entry *e = wake(i, group);

	assert_true(fair_before(e, now, MS));
	fair_take(&top, e);
	fair_leave(&top, e);
}

/* At whatever moment of another one's slice it wakes up, which only ticks look at. */
static void
who_has_slept_goes_first_between_two_looks(void **state)
{
	for (unsigned phase = 0; phase < 40; phase++) {
		begin(state);
		wake(0, 0);
		members[1].time = groups[1].self.time = -100 * TICK;
		choose();
		use(phase * MS / 4);
		for (unsigned step = 0; step < 120; step++) {
			if (step % 20 == 0) {
				fair_renew(&top, now);
				fair_run(&top, now);
			}
			use(MS / 2);
			assert_woken_goes_first(1, 0);
			assert_woken_goes_first(2, 1);
		}
	}
}

/* One that has had much and sleeps for a moment only has not slept. */
static void
a_short_sleep_pays_no_debt(void **state)
{
	wake(0, 0);
	wake(1, 0);
	while (sum(0, 2) < 2000 * TICK) {
		choose();
		use(TICK);
		if (now == &members[0]) {
			sleep_now();
			wake(0, 0);
		}
	}
	assert_near(had[0], had[1], 4 * TICK);
}

/* Groups of naps against one that never sleeps. */
static void
naps_do_not_take_the_share_of_another_group(void **state)
{
	for (unsigned i = 0; i < 100; i++)
		wake(i, 0);
	wake(100, 1);
	for (unsigned i = 0, asleep = MOST; i < 20000; i++) {
		unsigned woken = asleep;

		choose();
		use(MS);
		if (now == &members[100])
			continue;
		asleep = (unsigned)(now - members);
		sleep_now();
		if (woken != MOST)
			wake(woken, 0);
	}
	assert_near(had[100], 10000 * MS, 50 * MS);
}

static void
a_detached_member_keeps_its_place(void **state)
{
	wake(0, 0);
	run(100);
	wake(1, 0);
	choose();
	while (now != &members[0])
		choose(), use(TICK);
	fair_leave(&top, now);
	fair_detach(now);
	now = NULL;
	run(100);
	wake(2, 1);
	run(200);
	/* ahead by what it was ahead, in a group of another time */
	wake(0, 1);
	assert_true(members[0].time - groups[1].members.time < 1000 * TICK);
	assert_ptr_equal(members[0].group, &groups[1]);
}

static void
who_yields_lets_the_next_one_go(void **state)
{
	wake(0, 0);
	wake(1, 0);
	choose();
	for (unsigned i = 0; i < 100; i++) {
		struct fair_entry *before = now;

		fair_charge(&top, now, i % 3 == 0 ? MS : 1);
		fair_yield(&top, now);
		fair_put(&top, now);
		now = fair_first(&top);
		fair_take(&top, now);
		fair_run(&top, now);
		assert_ptr_not_equal(now, before);
	}
}

static bool
is_that(const struct fair_entry *e, const void *that)
{
	return e == that;
}

static bool
is_none(const struct fair_entry *e, const void *arg)
{
	(*(unsigned *)(uintptr_t)arg)++;
	return false;
}

static void
find_comes_to_each_that_waits_but_looks_at_some_only(void **state)
{
	unsigned visited = 0;

	for (unsigned i = 0; i < FAIR_LOOKS / 2; i++)
		wake(i, i % 3);
	for (unsigned i = 0; i < FAIR_LOOKS / 2; i++)
		assert_ptr_equal(fair_find(&top, is_that, &members[i]), &members[i]);
	for (unsigned i = FAIR_LOOKS / 2; i < MOST; i++)
		wake(i, i % 3);
	assert_null(fair_find(&top, is_none, &visited));
	assert_in_range(visited, FAIR_LOOKS / 2, 2 * FAIR_LOOKS);
}

/* One user's threads, which may not run elsewhere, hide no other user's. */
static void
find_comes_to_other_groups_however_large_the_first_is(void **state)
{
	for (unsigned i = 1; i < MOST; i++)
		wake(i, 0);
	members[0].time = 50 * TICK;
	wake(0, 1);
	groups[1].self.node.at = top.first->at;
	assert_ptr_equal(top.first, &groups[0].self.node);
	assert_ptr_equal(fair_find(&top, is_that, &members[0]), &members[0]);
}

static void
who_is_in_a_hurry_goes_before_its_group_and_pays(void **state)
{
	members[0].weight = 3; /* its next turn would come after all have had many */
	for (unsigned i = 0; i < 8; i++)
		wake(i, i / 4);
	fair_take(&top, &members[0]);
	fair_hurry(&top, &members[0]);
	fair_put(&top, &members[0]);
	assert_ptr_equal(groups[0].members.first, &members[0].node);
	for (unsigned i = 0; now != &members[0]; i++) {
		assert_true(i < 8); /* the other group has no more than its part before */
		choose();
		use(now == &members[0] ? 0 : TICK);
	}
	use(MS);
	assert_true(members[0].time >= 300 * MS);
	choose();
	assert_ptr_not_equal(now, &members[0]);
}

static void
who_is_in_a_hurry_stays_before_those_who_come(void **state)
{
	members[0].weight = 3;
	fair_join(&top, &groups[0], &members[0]);
	fair_hurry(&top, &members[0]); /* while it runs, alone */
	for (unsigned i = 1; i < 8; i++)
		wake(i, 0);
	fair_put(&top, &members[0]);
	assert_ptr_equal(groups[0].members.first, &members[0].node);
}

/* The group of a light one, which alone has had much, has its turn though all others come first. */
static void
who_is_in_a_hurry_does_not_wait_for_other_groups(void **state)
{
	members[0].weight = 3;
	wake(0, 0);
	run(1); /* now its group is seconds ahead */
	wake(1, 1);
	wake(2, 2);
	choose();
	assert_true(groups[0].self.time - top.time > 100 * TICK);
	fair_take(&top, &members[0]);
	fair_hurry(&top, &members[0]);
	fair_put(&top, &members[0]);
	for (unsigned i = 0; now != &members[0]; i++) {
		assert_true(i < 6);
		use(now == &members[0] ? 0 : TICK);
		choose();
	}
	/* Nor is the time of the queue where it is: else who comes would wait for seconds. */
	use(MS);
	wake(3, 3);
	sleep_now();
	for (unsigned i = 0; now != &members[3]; i++) {
		assert_true(i < 6);
		choose();
		use(now == &members[3] ? 0 : TICK);
	}
}

static void
who_hurries_for_ever_has_no_more_than_an_ordinary_share(void **state)
{
	members[0].weight = 3;
	for (unsigned i = 0; i < 3; i++)
		wake(i, i);
	hurries = &members[0];
	run(3000);
	assert_in_range(had[0], 400 * TICK, 1050 * TICK);
	assert_near(had[1], had[2], 4 * TICK);
}

/* However often it is queued again. */
static void
who_hurries_in_small_pieces_has_no_less(void **state)
{
	for (unsigned piece = 20; piece <= 500; piece *= 5) { /* in 10 us */
		begin(state);
		members[0].weight = 3;
		for (unsigned i = 0; i < 3; i++)
			wake(i, i);
		hurries = &members[0];
		for (uint64_t ns = 0; ns < 3000 * TICK; ns += piece * MS / 100) {
			choose();
			use(piece * MS / 100);
		}
		assert_in_range(had[0], 400 * TICK, 1050 * TICK);
		assert_near(had[1], had[2], 10 * TICK);
	}
}

/* What a light one has had in a hurry is no debt of hours for the others of its group. */
static void
the_group_of_who_has_hurried_is_not_far_ahead(void **state)
{
	members[0].weight = 3;
	wake(0, 0);
	wake(1, 1);
	hurries = &members[0];
	run(6000);
	hurries = NULL;
	wake(2, 0);
	had[1] = 0;
	for (unsigned i = 0; now != &members[2]; i++) {
		assert_true(i < 500);
		choose();
		use(TICK);
	}
	assert_true(had[1] < 500 * TICK);
}

/* Its group does not come later because another of its members runs, sleeps or comes. */
static void
who_is_in_a_hurry_is_not_held_up_by_its_group(void **state)
{
	members[0].weight = members[1].weight = 3;
	wake(0, 0);
	run(1);
	sleep_now();
	wake(1, 0);
	wake(2, 1);
	choose();
	use(TICK);
	for (unsigned i = 0; now != &members[1]; i++) {
		choose();
		use(TICK);
	}
	wake(0, 0); /* now their group is far ahead, and member 1 runs */
	fair_take(&top, &members[0]);
	fair_hurry(&top, &members[0]);
	fair_put(&top, &members[0]);
	choose();
	for (unsigned i = 0; now != &members[0]; i++) {
		assert_true(i < 6);
		use(TICK);
		choose();
	}
}

/* Of a heap of n, the right spine is at most log2(n + 1) long, and no child is before its parent.
 */
static unsigned
heap_is_good(const struct leftist *e, const struct leftist *up)
{
	unsigned left, right;

	if (e == NULL)
		return 0;
	assert_ptr_equal(e->up, up);
	assert_true(up == NULL || !leftist_earlier(e->at, up->at));
	left = heap_is_good(e->left, e);
	right = heap_is_good(e->right, e);
	assert_int_equal(e->rank, (e->right != NULL ? e->right->rank : 0) + 1);
	assert_true(e->left != NULL || e->right == NULL);
	assert_true(e->right == NULL || e->left->rank >= e->right->rank);
	assert_true(1ul << e->rank <= left + right + 2);
	return left + right + 1;
}

static void
heaps_stay_good_whoever_comes_and_goes(void **state)
{
	static bool in[MOST];
	unsigned count = 0;

	srand(7);
	memset(in, 0, sizeof(in));
	for (unsigned round = 0; round < 20000; round++) {
		unsigned i = (unsigned)rand() % MOST;

		if (in[i]) {
			fair_take(&top, &members[i]);
			fair_leave(&top, &members[i]);
		} else {
			members[i].weight = fair_weight(rand() % 40 - 20);
			members[i].time += (uint64_t)rand();
			wake(i, i % 4);
		}
		in[i] = !in[i];
		count += in[i] ? 1 : -1u;
		if (round % 100 == 0) {
			unsigned found = 0;

			for (unsigned g = 0; g < 4; g++)
				found += heap_is_good(groups[g].members.first, NULL);
			assert_int_equal(found, count);
			heap_is_good(top.first, NULL);
		}
	}
}

/* Virtual time goes on beyond the largest number. */
static void
time_wraps_around(void **state)
{
	top.time = groups[0].members.time = groups[1].members.time = 0ul - 50 * TICK;
	groups[0].self.time = groups[1].self.time = 0ul - 50 * TICK;
	wake(0, 0);
	wake(1, 1);
	run(400);
	assert_near(had[0], 200 * TICK, 4 * TICK);
}

static void
light_ones_wait_their_turn_and_have_it(void **state)
{
	members[0].weight = 3;
	wake(0, 0);
	wake(1, 0);
	run(100);
	assert_int_equal(had[0], 0); /* it has not slept: its first deadline is far */
	run(20000);
	assert_near(had[0], 20100 * TICK * 3 / 1027, 40 * TICK);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, begin)
	const struct CMUnitTest tests[] = {
	    TEST(shares_are_by_group_and_then_by_member),
	    TEST(shares_of_members_are_as_their_weights),
	    TEST(a_group_weighs_what_its_members_do_up_to_one),
	    TEST(a_heavy_member_makes_its_group_heavy),
	    TEST(who_has_slept_goes_first),
	    TEST(a_group_that_has_slept_goes_first_at_once),
	    TEST(who_has_slept_goes_first_between_two_looks),
	    TEST(a_short_sleep_pays_no_debt),
	    TEST(naps_do_not_take_the_share_of_another_group),
	    TEST(a_detached_member_keeps_its_place),
	    TEST(who_yields_lets_the_next_one_go),
	    TEST(find_comes_to_each_that_waits_but_looks_at_some_only),
	    TEST(find_comes_to_other_groups_however_large_the_first_is),
	    TEST(who_is_in_a_hurry_goes_before_its_group_and_pays),
	    TEST(who_is_in_a_hurry_does_not_wait_for_other_groups),
	    TEST(who_hurries_for_ever_has_no_more_than_an_ordinary_share),
	    TEST(who_hurries_in_small_pieces_has_no_less),
	    TEST(the_group_of_who_has_hurried_is_not_far_ahead),
	    TEST(who_is_in_a_hurry_is_not_held_up_by_its_group),
	    TEST(who_is_in_a_hurry_stays_before_those_who_come),
	    TEST(heaps_stay_good_whoever_comes_and_goes),
	    TEST(time_wraps_around),
	    TEST(light_ones_wait_their_turn_and_have_it),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
