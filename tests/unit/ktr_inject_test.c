/*
 * ktr_inject_test.c - exceptions and migrations at every step of the record path. What readers and
 * the stream get must be whole, in order and accounted for.
 *
 * Without KTR_HOST_RESTART records run with interrupts off. A strike is then an NMI, whose events
 * inside a record are refused. With it, records are restartable: exceptions record, and threads
 * migrate where interrupts are on.
 *
 * One strike is tried at all steps, for rings of 4, and so are two, with every fourth combination
 * of what they do, or with KTR_TEST_ALL=1 with all (`make soak`). Nesting to depth 3 is random,
 * with seed KTR_TEST_SEED, in KTR_TEST_ROUNDS rounds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ktr/control.h"
#include "ktr/ktr.h"
#include "ktr/port.h"
#include "ktr/ring.h"
#include "tests/unit/ktr_scenario.h"
#include "tests/unit/ktr_shadow.h"

#define DEPTH  4u /* a thread, and exceptions nested three deep */
#define ROUNDS 5000u

#define PHASES \
	SCENARIO_ENTRIES /* positions in a turn of the ring; the end of a turn is another path */

/* What a strike does besides recording events. */
#ifdef KTR_HOST_RESTART
enum { NOTHING, CLOSE, MIGRATE, KINDS };
#else
enum { NOTHING, CLOSE, KINDS, MIGRATE = KINDS };
#endif

static unsigned deepest;
static bool closed;    /* CPU 0's next event takes the slow path */
static unsigned phase; /* position of the event in a turn of the ring */

static struct strike
strike_of(unsigned events, unsigned kind)
{
	return (
	    struct strike){.events = events, .migrate = kind == MIGRATE, .close = kind == CLOSE};
}

static void
strike_now(struct strike *s)
{
	unsigned here = ktr_host_cpu, masked = ktr_host_masked;
	s->fired = true;
	strike_over();
	for (unsigned i = 0; i < s->events; i++)
		shadow_record(i % 7);
	if (s->refuse)
		ktr_cpumask_set(0);
	if (s->close)
		ktr_ring_close(here);
	/* Only a thread can migrate, and only while its interrupts are on. */
	if (!s->migrate || shadow_depth > 1 || masked != 0)
		return;
	ktr_host_cpu = 1 - here;
	for (unsigned i = 0; i < s->events; i++)
		shadow_record(6 - i % 7);
}

static void
on_step(enum ktr_host_step step)
{
	if (step == KTR_HOST_READ)
		return;
	unsigned n = scenario_steps++;
	shadow_step(step);
	scenario_check_rings();
	if (shadow_depth > deepest)
		deepest = shadow_depth;
	for (unsigned i = 0; i < strike_count && shadow_depth < DEPTH; i++) {
		if (strikes[i].at == n && !strikes[i].fired)
			strike_now(&strikes[i]);
	}
}

static void
record_unstruck(unsigned nargs)
{
	unsigned count = strike_count;
	strike_count = 0;
	ktr_host_interrupt = on_step;
	shadow_record(nargs);
	ktr_host_interrupt = NULL;
	strike_count = count;
}

/* Records one event with the given strikes. Returns the number of steps. */
static unsigned
run(unsigned nargs)
{
	struct ktr_stats before = scenario_stats();
	uint64_t ids = shadow_ids;
	/* At least two, so that the last one finds the ring open. */
	for (unsigned n = 0; n < 2 || ktr_ring_head(ktr_host_rings[0]) % SCENARIO_ENTRIES != phase;
	     n++)
		record_unstruck(0);
	scenario_steps = 0;
	for (unsigned i = 0; i < strike_count; i++)
		strikes[i].fired = false;
	if (closed)
		ktr_ring_close(0);
	ktr_host_interrupt = on_step;
	shadow_record(nargs);
	scenario_settle(&before, ids);
	return scenario_steps;
}

static int
begin(void **state)
{
	deepest = 0;
	closed = false;
	phase = 0;
	return scenario_begin(state);
}

static void
any_one_interruption_or_migration(void **state)
{
	for (unsigned way = 0; way < 2 * KINDS * PHASES; way++) {
		unsigned kind = way / 2 % KINDS;
		closed = way % 2;
		phase = way / (2 * KINDS);
		for (unsigned nargs = 0; nargs <= KTR_MAXARGS; nargs++) {
			strike_count = 0;
			run(nargs);
			unsigned undisturbed = run(nargs);
			bool slow = closed || phase == 0;
			/* the head, the entry with three words and the parameters, the head */
			assert_true(undisturbed >= (slow ? 5 + KTR_MAXARGS : 5 + nargs));
			strike_count = 1;
			for (unsigned at = 0; at < undisturbed; at++) {
				for (unsigned events = 0; events <= 3 * SCENARIO_ENTRIES + 1;
				     events++) {
					strikes[0] = strike_of(events, kind);
					strikes[0].at = at;
					run(nargs);
					assert_true(strikes[0].fired);
				}
			}
		}
	}
	print_message("# %u scenarios\n", scenario_count);
}

static uint64_t
env_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	return text != NULL ? strtoull(text, NULL, 0) : otherwise;
}

/* The second strike is at any step after the first: in the same call or in the exception. */
static void
any_two_interruptions_or_migrations(void **state)
{
	static const unsigned counts[] = {1, SCENARIO_ENTRIES - 1, SCENARIO_ENTRIES,
					  SCENARIO_ENTRIES + 1};
	bool all = env_number("KTR_TEST_ALL", 0) != 0;
	for (unsigned variant = 0; variant < 4 * 4 * KINDS * KINDS * 3; variant++) {
		unsigned first = variant % 4, second = variant / 4 % 4, kinds = variant / 16;
		unsigned way = kinds / (KINDS * KINDS);
		/* Still any count of one strike is with any count of the other, and any kind. */
		if (!all && (first + second + kinds) % 4 != 0)
			continue;
		struct strike one = strike_of(counts[first], kinds % KINDS);
		struct strike two = strike_of(counts[second], kinds / KINDS % KINDS);
		closed = way == 1;
		phase = way != 0 ? SCENARIO_ENTRIES - 1 : 0;
		bool more = true;
		for (one.at = 0; more; one.at++) {
			for (two.at = one.at; true; two.at++) {
				strike_count = 2;
				strikes[0] = one;
				strikes[1] = two;
				run(KTR_MAXARGS);
				if (!strikes[1].fired)
					break;
			}
			more = strikes[0].fired;
		}
	}
	print_message("# %u scenarios\n", scenario_count);
	assert_int_equal(deepest, 3);
}

static uint64_t random_state;

static unsigned
random_below(unsigned n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(random_state >> 33) % n;
}

static void
interrupts_three_deep_and_migrations_at_random(void **state)
{
	uint64_t seed = env_number("KTR_TEST_SEED", 1);
	uint64_t rounds = env_number("KTR_TEST_ROUNDS", ROUNDS);
	random_state = seed;
	print_message("# KTR_TEST_SEED=%llu KTR_TEST_ROUNDS=%llu\n", (unsigned long long)seed,
		      (unsigned long long)rounds);
	for (uint64_t round = 0; round < rounds; round++) {
		strike_count = 1 + random_below(STRIKES_MAX);
		unsigned reach = 8u << random_below(5);
		closed = random_below(2);
		phase = random_below(SCENARIO_ENTRIES);
		for (unsigned i = 0; i < strike_count; i++) {
			strikes[i] =
			    strike_of(random_below(2 * SCENARIO_ENTRIES + 2), random_below(KINDS));
			strikes[i].at = random_below(reach);
		}
		if (random_below(8) == 0) /* other slots, which no turn knows yet */
			assert_int_equal(ktr_resize(SCENARIO_ENTRIES), 0);
		run(random_below(KTR_MAXARGS + 1));
	}
	assert_int_equal(deepest, DEPTH);
}

/* The event that the refusal strikes may or may not be recorded. The next one must be refused. */
static void
refusals_from_any_step_on(void **state)
{
	static const unsigned counts[] = {0, 1, SCENARIO_ENTRIES};
	for (unsigned variant = 0; variant < 3 * 2 * PHASES; variant++) {
		phase = variant / 6;
		for (unsigned at = 0; true; at++) {
			strike_count = 1;
			closed = variant / 3 % 2;
			strikes[0] = (struct strike){.at = at,
						     .events = counts[variant % 3],
						     .refuse = true};
			run(KTR_MAXARGS);
			if (!strikes[0].fired)
				break;
			struct ktr_stats before = scenario_stats();
			record_unstruck(1);
			assert_int_equal(scenario_stats().suppressed, before.suppressed + 1);
			ktr_cpumask_set(~0ull);
			record_unstruck(1);
			assert_int_equal(scenario_stats().recorded, before.recorded + 1);
			scenario_drain();
		}
	}
	print_message("# %u scenarios\n", scenario_count);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(any_one_interruption_or_migration, begin),
	    cmocka_unit_test_setup(any_two_interruptions_or_migrations, begin),
	    cmocka_unit_test_setup(interrupts_three_deep_and_migrations_at_random, begin),
	    cmocka_unit_test_setup(refusals_from_any_step_on, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
