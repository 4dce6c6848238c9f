/*
 * ktr_inject_test.c - interrupts and migrations at every step of the record path, and writers at
 * every step of a reader; what readers and the stream get must be whole, in order and accounted
 * for.
 *
 * With KTR_HOST_RESTART the same for the restartable claim, and for what brings a turn of the ring
 * up to date: no thread migrates there; interrupts close the ring in its place.
 *
 * Single and double points are exhaustive for rings of 4; nesting to depth 3 is random, with the
 * seed that KTR_TEST_SEED says, and KTR_TEST_ROUNDS rounds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#include "ktr/control.h"
#include "ktr/decode.h"
#include "ktr/stream.h"
#include "tests/unit/ktr_decode_help.h"
#include "tests/unit/ktr_shadow.h"

#define ENTRIES     4u
#define DEPTH       4u /* a thread, and interrupts three deep */
#define STRIKES_MAX 6u
#define ROUNDS      20000u

#ifdef KTR_HOST_RESTART
#define RESTARTABLE true
#define PHASES      ENTRIES /* places in a turn of the ring: its end is another path */
#else
#define RESTARTABLE false
#define PHASES      1u
#endif

/* At the step numbered `at` of the run: so many events from an interrupt; or the thread moves. */
struct strike {
	unsigned at;
	unsigned events;
	bool migrate; /* then others record on the old CPU, and interrupts on the new one */
	bool close;   /* the ring */
	bool refuse;  /* from now on, every CPU's events: somebody masks them off */
	bool fired;
};

static struct strike strikes[STRIKES_MAX];
static unsigned strike_count, steps, scenarios, mixes, deepest;

/* `also`: what else there is that this kind of claim must bear. */
static struct strike
strike_of(unsigned events, bool also)
{
	return (struct strike){.events = events,
			       .migrate = also && !RESTARTABLE,
			       .close = also && RESTARTABLE};
}

/* An exception was here, to the record call that goes on. */
static void
strike_over(void)
{
#ifdef KTR_HOST_RESTART
	ktr_host_exceptions++;
#endif
}

__attribute__((format(printf, 1, 2))) static void
scenario_fail(const char *fmt, ...)
{
	va_list ap;
	char text[200];
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ktr_host_interrupt = NULL;
	for (unsigned i = 0; i < strike_count; i++)
		print_message("# strike at step %u: %u events%s%s%s%s\n", strikes[i].at,
			      strikes[i].events, strikes[i].migrate ? ", migrates" : "",
			      strikes[i].close ? ", closes" : "",
			      strikes[i].refuse ? ", refuses" : "",
			      strikes[i].fired ? "" : " (not reached)");
	fail_msg("at step %u: %s", steps, text);
}

/* A reader on another CPU, here and now. */
static void
check_rings(void)
{
	for (unsigned cpu = 0; cpu < SHADOW_CPUS; cpu++) {
		uint64_t tail, head, last = 0;
		ktr_ring_window(cpu, &tail, &head);
		for (uint64_t seq = tail; seq < head; seq++) {
			struct ktr_entry e;
			enum ktr_read_status status = ktr_ring_read(cpu, seq, &e);
			const char *wrong = shadow_read_wrong(cpu, seq, status, &e);
			if (wrong != NULL)
				scenario_fail("cpu %u: event %llu %s (read status %d)", cpu,
					      (unsigned long long)seq, wrong, status);
			if (status != KTR_READ_OK)
				continue;
			bool mix = shadow_mix_possible(cpu, seq);
			mixes += mix && shadow_entry_differs(cpu, seq, &e) != NULL;
			if (!mix && e.ticks <= last)
				scenario_fail("cpu %u: event %llu is older than the one before",
					      cpu, (unsigned long long)seq);
			if (!mix)
				last = e.ticks;
		}
	}
}

static void
strike_now(struct strike *s)
{
	unsigned here = ktr_host_cpu;
	s->fired = true;
	for (unsigned i = 0; i < s->events; i++)
		shadow_record(i % 7);
	if (s->refuse)
		ktr_cpumask_set(0);
	if (s->close)
		ktr_ring_close(here);
	strike_over();
	/* Only a thread is moved, and interrupts record where they strike. */
	if (!s->migrate || shadow_depth > 1)
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
	unsigned n = steps++;
	shadow_step(step);
	check_rings();
	if (shadow_depth > deepest)
		deepest = shadow_depth;
	for (unsigned i = 0; i < strike_count && shadow_depth < DEPTH; i++) {
		if (strikes[i].at == n && !strikes[i].fired)
			strike_now(&strikes[i]);
	}
}

/* What the accounting stream delivered of a scenario. */
static struct ktr_stream account;
static uint8_t bytes[1 << 16];
static uint64_t got_events, got_torn, got_lost, got_ticks[SHADOW_CPUS];

static void
on_event(void *arg, const struct ktr_decode_event *e)
{
	(void)arg;
	const char *wrong = shadow_differs(e->cpu, e->seq, e->ticks, e->tid, e->args, e->nargs);
	if (wrong == NULL && shadow_of(e->cpu, e->seq)->spoiled)
		wrong = "was written over by a late writer";
	if (wrong == NULL && e->ticks <= got_ticks[e->cpu])
		wrong = "is older than the one before";
	if (wrong != NULL)
		scenario_fail("stream, cpu %u: event %llu %s", (unsigned)e->cpu,
			      (unsigned long long)e->seq, wrong);
	got_ticks[e->cpu] = e->ticks;
	got_events++;
}

static void
on_gap(void *arg, const struct ktr_decode_gap *g)
{
	(void)arg;
	for (uint64_t i = 0; g->reason == KTR_GAP_TORN && i < g->count; i++) {
		if (!shadow_of(g->cpu, g->first + i)->spoiled)
			scenario_fail("stream, cpu %u: event %llu is whole, reported as torn",
				      (unsigned)g->cpu, (unsigned long long)(g->first + i));
	}
	got_torn += g->reason == KTR_GAP_TORN ? g->count : 0;
	got_lost += g->reason == KTR_GAP_OVERWRITTEN ? g->count : 0;
}

static void
on_damage(void *arg, uint64_t offset, uint64_t length, const char *text)
{
	(void)arg;
	scenario_fail("stream: damage at %llu, %llu bytes: %s", (unsigned long long)offset,
		      (unsigned long long)length, text);
}

static void
drain_and_decode(void)
{
	static const struct ktr_decoder_ops ops = {.realloc = decode_realloc,
						   .event = on_event,
						   .gap = on_gap,
						   .damage = on_damage};
	size_t len = 0, n;
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	while ((n = ktr_stream_read(&account, bytes + len, sizeof(bytes) - len)) > 0)
		len += n;
	ktr_stream_close(&account, false);
	while ((n = ktr_stream_read(&account, bytes + len, sizeof(bytes) - len)) > 0)
		len += n;
	struct ktr_decoder *d = ktr_decoder_create(&ops, NULL);
	assert_int_equal(ktr_decoder_push(d, bytes, len), 0);
	assert_int_equal(ktr_decoder_finish(d), 0);
	ktr_decoder_destroy(d);
}

static struct ktr_stats
stats_sum(void)
{
	struct ktr_stats sum = {0}, s;
	for (unsigned cpu = 0; cpu < SHADOW_CPUS; cpu++) {
		assert_true(ktr_stats_get(cpu, &s));
		if (s.recorded != s.delivered + s.resident + s.overwritten + s.torn)
			scenario_fail("cpu %u: %llu recorded, %llu accounted for", cpu,
				      (unsigned long long)s.recorded,
				      (unsigned long long)(s.delivered + s.resident +
							   s.overwritten + s.torn));
		sum.recorded += s.recorded;
		sum.delivered += s.delivered;
		sum.resident += s.resident;
		sum.overwritten += s.overwritten;
		sum.torn += s.torn;
		sum.suppressed += s.suppressed;
	}
	return sum;
}

/* No call is in progress: all that was recorded since `before` is delivered or counted as lost. */
static void
settle(const struct ktr_stats *before, uint64_t ids)
{
	uint64_t events = got_events, torn = got_torn, lost = got_lost;
	ktr_host_interrupt = NULL;
	ktr_host_cpu = 0;
	check_rings();
	stats_sum();
	drain_and_decode();
	struct ktr_stats s = stats_sum();
	events = got_events - events;
	torn = got_torn - torn;
	lost = got_lost - lost;
	ids += s.suppressed - before->suppressed;
	if (s.recorded - before->recorded != shadow_ids - ids || s.resident != 0 ||
	    s.delivered - before->delivered != events || s.torn - before->torn != torn ||
	    s.overwritten - before->overwritten != lost || events + torn + lost != shadow_ids - ids)
		scenario_fail("%llu recorded; %llu delivered, %llu torn, %llu overwritten",
			      (unsigned long long)(shadow_ids - ids), (unsigned long long)events,
			      (unsigned long long)torn, (unsigned long long)lost);
	scenarios++;
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

static bool closed;    /* CPU 0's next event takes the slow path */
static unsigned phase; /* where in a turn of the ring it comes */

/* One event, struck as said. Returns the number of steps. */
static unsigned
run(unsigned nargs)
{
	struct ktr_stats before = stats_sum();
	uint64_t ids = shadow_ids;
	/* Two at least, the last of which finds the ring open. */
	for (unsigned n = 0;
	     RESTARTABLE && (n < 2 || ktr_head_seq(ktr_host_heads[0]) % ENTRIES != phase); n++)
		record_unstruck(0);
	steps = 0;
	for (unsigned i = 0; i < strike_count; i++)
		strikes[i].fired = false;
	if (closed)
		ktr_ring_close(0);
	ktr_host_interrupt = on_step;
	shadow_record(nargs);
	settle(&before, ids);
	return steps;
}

static int
begin(void **state)
{
	(void)state;
	ktr_host_interrupt = NULL;
	ktr_host_clock = shadow_clock;
	shadow_depth = 0; /* of a test that failed in mid-call */
	ktr_host_cpus = SHADOW_CPUS;
	ktr_host_cpu = 0;
	for (unsigned cpu = 0; cpu < SHADOW_CPUS; cpu++)
		assert_int_equal(ktr_cpu_init(cpu), 0);
	assert_int_equal(ktr_resize(ENTRIES), 0);
	ktr_mask_set(KTR_GEN);
	drain_and_decode();
	scenarios = mixes = deepest = 0;
	closed = false;
	ktr_cpumask_set(~0ull);
	phase = 0;
	return 0;
}

static void
any_one_interruption_or_migration(void **state)
{
	(void)state;
	for (unsigned way = 0; way < 4 * PHASES; way++) {
		closed = way / 2 % 2;
		phase = way / 4;
		for (unsigned nargs = 0; nargs <= KTR_MAXARGS; nargs++) {
			strike_count = 0;
			run(nargs);
			unsigned undisturbed = run(nargs);
			/* begin, head, clock, claim, invalidation; time; parameters */
			unsigned fast = 6 + nargs;
			/* begin and head twice, and again behind it; all parameters */
			unsigned slow = 6 + KTR_MAXARGS + 3 * 2;
			if (RESTARTABLE) {
				fast += 3;     /* limit, bias, lap */
				slow += 1 + 4; /* limit; the turn */
			}
			bool ends = RESTARTABLE && phase == 0; /* a turn */
			assert_int_equal(undisturbed, closed || ends ? slow : fast);
			strike_count = 1;
			for (unsigned at = 0; at < undisturbed; at++) {
				for (unsigned events = 0; events <= 3 * ENTRIES + 1; events++) {
					strikes[0] = strike_of(events, way % 2 != 0);
					strikes[0].at = at;
					run(nargs);
					assert_true(strikes[0].fired);
				}
			}
		}
	}
	print_message("# %u scenarios; %u mixed reads under a late writer\n", scenarios, mixes);
	assert_true(mixes > 0);
}

/* The second point is anywhere behind the first: in the same call or in the interrupt's. */
static void
any_two_interruptions_or_migrations(void **state)
{
	(void)state;
	static const unsigned counts[] = {1, ENTRIES - 1, ENTRIES, ENTRIES + 1};
	for (unsigned variant = 0; variant < 4 * 4 * 4 * (RESTARTABLE ? 3 : 2); variant++) {
		closed = variant / 64 == 1;
		phase = variant / 64 != 0 ? ENTRIES - 1 : 0;
		struct strike one = strike_of(counts[variant % 4], variant / 16 % 2);
		struct strike two = strike_of(counts[variant / 4 % 4], variant / 32 % 2);
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
	print_message("# %u scenarios; %u mixed reads under a late writer\n", scenarios, mixes);
	assert_int_equal(deepest, 3);
}

static uint64_t
env_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	return text != NULL ? strtoull(text, NULL, 0) : otherwise;
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
	(void)state;
	uint64_t seed = env_number("KTR_TEST_SEED", 1);
	uint64_t rounds = env_number("KTR_TEST_ROUNDS", ROUNDS);
	random_state = seed;
	print_message("# KTR_TEST_SEED=%llu KTR_TEST_ROUNDS=%llu\n", (unsigned long long)seed,
		      (unsigned long long)rounds);
	for (uint64_t round = 0; round < rounds; round++) {
		strike_count = 1 + random_below(STRIKES_MAX);
		unsigned reach = 8u << random_below(5);
		closed = random_below(2);
		phase = random_below(ENTRIES);
		for (unsigned i = 0; i < strike_count; i++) {
			strikes[i] = strike_of(random_below(2 * ENTRIES + 2), random_below(3) == 0);
			strikes[i].at = random_below(reach);
		}
		if (random_below(8) == 0) /* other slots, of which no turn knows yet */
			assert_int_equal(ktr_resize(ENTRIES), 0);
		run(random_below(KTR_MAXARGS + 1));
	}
	assert_int_equal(deepest, DEPTH);
}

/* From when on that is, the event that it strikes may or may not know; the next one must. */
static void
refusals_from_any_step_on(void **state)
{
	(void)state;
	static const unsigned counts[] = {0, 1, ENTRIES};
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
			struct ktr_stats before = stats_sum();
			record_unstruck(1);
			assert_int_equal(stats_sum().suppressed, before.suppressed + 1);
			ktr_cpumask_set(~0ull);
			record_unstruck(1);
			assert_int_equal(stats_sum().recorded, before.recorded + 1);
			drain_and_decode();
		}
	}
	print_message("# %u scenarios\n", scenarios);
}

/* Writers in the middle of a reader. */
static void
on_read_step(enum ktr_host_step step)
{
	shadow_step(step);
	if (step != KTR_HOST_READ)
		return;
	unsigned n = steps++;
	for (unsigned i = 0; i < strike_count; i++) {
		if (strikes[i].at == n && !strikes[i].fired) {
			strikes[i].fired = true;
			for (unsigned k = 0; k < strikes[i].events; k++)
				shadow_record(KTR_MAXARGS - k % 7);
		}
	}
}

/* The heads may move here: what was read is the event, or is said to be unreadable. */
static void
read_struck(unsigned back)
{
	uint64_t tail, head;
	struct ktr_entry e;
	struct ktr_stats before = stats_sum();
	uint64_t ids = shadow_ids;
	ktr_host_interrupt = on_read_step;
	for (unsigned i = 0; i < ENTRIES; i++)
		shadow_record(KTR_MAXARGS);
	ktr_ring_window(0, &tail, &head);
	uint64_t seq = head - 1 - back;
	steps = 0;
	enum ktr_read_status status = ktr_ring_read(0, seq, &e);
	ktr_host_interrupt = NULL;
	ktr_ring_window(0, &tail, &head);
	const struct shadow_event ev = *shadow_of(0, seq);
	if (status == KTR_READ_OK) {
		const char *wrong = shadow_entry_differs(0, seq, &e);
		if (wrong != NULL)
			scenario_fail("event %llu %s", (unsigned long long)seq, wrong);
	} else if (status != KTR_READ_GONE || seq >= tail || ev.published == 0) {
		scenario_fail("event %llu: read status %d, tail %llu", (unsigned long long)seq,
			      status, (unsigned long long)tail);
	}
	settle(&before, ids);
}

static void
writers_at_any_two_points_of_a_reader(void **state)
{
	(void)state;
	strike_count = 2;
	for (unsigned back = 0; back < ENTRIES; back++) {
		for (unsigned one = 0; one <= 10; one++) {
			for (unsigned two = one; two <= 10; two++) {
				for (unsigned n = 0; n < 81; n++) {
					strikes[0] = (struct strike){.at = one, .events = n % 9};
					strikes[1] = (struct strike){.at = two, .events = n / 9};
					read_struck(back);
				}
			}
		}
	}
	assert_int_equal(steps, 10);
	print_message("# %u scenarios\n", scenarios);
}

static void
laps_that_wrap_in_the_middle_of_a_reader(void **state)
{
	(void)state;
	strike_count = 1;
	for (unsigned at = 1; at < 10; at += 4) {
		strikes[0] = (struct strike){.at = at, .events = 32768 * ENTRIES};
		read_struck(0);
	}
}

/*
 * A writer on a stack of its own, which goes on a step at a time: what it interrupted on its CPU
 * records here, and a reader on another CPU lets it go on between any two of its loads.
 */
static ucontext_t writer_context, here_context;
static bool writer_runs, writer_done;
static unsigned resume_at, resume_steps;

#define WRITER_STEPS (RESTARTABLE ? 24u : 14u)

static void
writer_main(void)
{
	shadow_record(KTR_MAXARGS);
	writer_done = true;
}

static void
writer_go_on(unsigned n)
{
	for (; n > 0 && !writer_done; n--) {
		writer_runs = true;
		swapcontext(&here_context, &writer_context);
		writer_runs = false;
	}
}

static void
on_late_step(enum ktr_host_step step)
{
	if (step == KTR_HOST_READ) {
		if (steps++ == resume_at)
			writer_go_on(resume_steps);
		return;
	}
	shadow_step(step);
	uint64_t ids = shadow_ids;
	if (writer_runs)
		swapcontext(&writer_context, &here_context);
	if (shadow_ids != ids)
		strike_over();
}

/* The newest event is read while a writer that claimed before it goes on. */
static bool
read_beside_late_writer(unsigned writer_at, unsigned events)
{
	static uint8_t stack[1 << 16];
	struct ktr_stats before = stats_sum();
	uint64_t tail, head, ids = shadow_ids;
	struct ktr_entry e;
	getcontext(&writer_context);
	writer_context.uc_stack.ss_sp = stack;
	writer_context.uc_stack.ss_size = sizeof(stack);
	writer_context.uc_link = &here_context;
	makecontext(&writer_context, writer_main, 0);
	writer_done = false;
	ktr_host_interrupt = on_late_step;
	writer_go_on(writer_at);
	bool reached = !writer_done;
	for (unsigned i = 0; i < events; i++)
		shadow_record(KTR_MAXARGS);
	ktr_ring_window(0, &tail, &head);
	bool mix = shadow_mix_possible(0, head - 1);
	steps = 0;
	if (ktr_ring_read(0, head - 1, &e) == KTR_READ_OK && !mix) {
		const char *wrong = shadow_entry_differs(0, head - 1, &e);
		if (wrong != NULL)
			scenario_fail(
			    "writer at step %u, %u events, %u more steps at load %u: event %llu %s",
			    writer_at, events, resume_steps, resume_at,
			    (unsigned long long)head - 1, wrong);
	}
	writer_go_on(100);
	settle(&before, ids);
	return reached;
}

static void
late_writer_goes_on_at_any_point_of_a_reader(void **state)
{
	(void)state;
	strike_count = 0;
	for (unsigned events = ENTRIES - 1; events <= ENTRIES + 1; events++) {
		bool reached = true;
		for (unsigned at = 1; reached; at++) {
			for (resume_at = 0; resume_at <= 12; resume_at++) {
				for (resume_steps = 1; resume_steps <= WRITER_STEPS; resume_steps++)
					reached = read_beside_late_writer(at, events);
			}
		}
	}
	print_message("# %u scenarios\n", scenarios);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(any_one_interruption_or_migration, begin),
	    cmocka_unit_test_setup(any_two_interruptions_or_migrations, begin),
	    cmocka_unit_test_setup(interrupts_three_deep_and_migrations_at_random, begin),
	    cmocka_unit_test_setup(refusals_from_any_step_on, begin),
	    cmocka_unit_test_setup(writers_at_any_two_points_of_a_reader, begin),
	    cmocka_unit_test_setup(laps_that_wrap_in_the_middle_of_a_reader, begin),
	    cmocka_unit_test_setup(late_writer_goes_on_at_any_point_of_a_reader, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
