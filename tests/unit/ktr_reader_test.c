/*
 * ktr_reader_test.c - writers at every step of a reader. The reader gets the event that it asked
 * for, whole, or a status that says it is unreadable.
 *
 * With KTR_HOST_RESTART the writers' records are restartable.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include <cmocka.h>

#include "ktr/control.h"
#include "ktr/port.h"
#include "ktr/ring.h"
#include "tests/unit/ktr_scenario.h"
#include "tests/unit/ktr_shadow.h"

/* Strikes are writers that run between two of the reader's loads. */
static void
on_read_step(enum ktr_host_step step)
{
	shadow_step(step);
	if (step != KTR_HOST_READ)
		return;
	unsigned n = scenario_steps++;
	for (unsigned i = 0; i < strike_count; i++) {
		if (strikes[i].at == n && !strikes[i].fired) {
			strikes[i].fired = true;
			for (unsigned k = 0; k < strikes[i].events; k++)
				shadow_record(KTR_MAXARGS - k % 7);
		}
	}
}

/*
 * The heads may move meanwhile. Either the event is right, or its status says that it is
 * unreadable.
 */
static void
read_struck(unsigned back)
{
	uint64_t tail, head;
	struct ktr_entry e;
	struct ktr_stats before = scenario_stats();
	uint64_t ids = shadow_ids;
	ktr_host_interrupt = on_read_step;
	for (unsigned i = 0; i < SCENARIO_ENTRIES; i++)
		shadow_record(KTR_MAXARGS);
	ktr_ring_window(0, &tail, &head);
	uint64_t seq = head - 1 - back;
	scenario_steps = 0;
	enum ktr_read_status status = ktr_ring_read(0, seq, &e);
	ktr_host_interrupt = NULL;
	ktr_ring_window(0, &tail, &head);
	if (status == KTR_READ_OK) {
		const char *wrong = shadow_entry_differs(0, seq, &e);
		if (wrong != NULL)
			scenario_fail("event %llu %s", (unsigned long long)seq, wrong);
	} else if (status != KTR_READ_GONE || seq >= tail) {
		scenario_fail("event %llu: read status %d, tail %llu", (unsigned long long)seq,
			      status, (unsigned long long)tail);
	}
	scenario_settle(&before, ids);
}

static void
writers_at_any_two_points_of_a_reader(void **state)
{
	strike_count = 2;
	for (unsigned back = 0; back < SCENARIO_ENTRIES - KTR_RING_SPARE; back++) {
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
	assert_int_equal(scenario_steps, 10);
	print_message("# %u scenarios\n", scenario_count);
}

/*
 * A writer with a stack of its own that runs one step at a time. A record here is one that
 * interrupts it on its CPU. A reader on another CPU lets it continue between any two loads.
 */
static ucontext_t writer_context, here_context;
static bool writer_runs, writer_done;
static bool more_steps; /* the writer was resumed, and was not done after resume_steps */
static unsigned resume_at, resume_steps;

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
		if (scenario_steps++ == resume_at) {
			writer_go_on(resume_steps);
			more_steps = !writer_done;
		}
		return;
	}
	shadow_step(step);
	uint64_t ids = shadow_ids;
	if (writer_runs)
		swapcontext(&writer_context, &here_context);
	if (shadow_ids != ids)
		strike_over();
}

/* Reads the oldest readable event, or the newest, while a writer continues. */
static bool
read_beside_writer(unsigned writer_at, unsigned events, bool oldest)
{
	static uint8_t stack[1 << 16];
	struct ktr_stats before = scenario_stats();
	uint64_t tail, head, ids = shadow_ids;
	struct ktr_entry e;
	getcontext(&writer_context);
	writer_context.uc_stack.ss_sp = stack;
	writer_context.uc_stack.ss_size = sizeof(stack);
	writer_context.uc_link = &here_context;
	makecontext(&writer_context, writer_main, 0);
	writer_done = more_steps = false;
	ktr_host_interrupt = on_late_step;
	writer_go_on(writer_at);
	bool reached = !writer_done;
	for (unsigned i = 0; i < events; i++)
		shadow_record(KTR_MAXARGS);
	ktr_ring_window(0, &tail, &head);
	uint64_t seq = oldest ? tail : head - 1;
	struct shadow_event expected = *shadow_of(0, seq);
	scenario_steps = 0;
	if (seq < head && ktr_ring_read(0, seq, &e) == KTR_READ_OK) {
		struct shadow_event now = *shadow_of(0, seq);
		*shadow_of(0, seq) = expected;
		const char *wrong = shadow_entry_differs(0, seq, &e);
		*shadow_of(0, seq) = now;
		if (wrong != NULL)
			scenario_fail(
			    "writer at step %u, %u events, %u more steps at load %u: event %llu %s",
			    writer_at, events, resume_steps, resume_at, (unsigned long long)seq,
			    wrong);
	}
	writer_go_on(100);
	scenario_settle(&before, ids);
	return reached;
}

static void
writer_goes_on_at_any_point_of_a_reader(void **state)
{
	strike_count = 0;
	for (unsigned way = 0; way < 2 * (SCENARIO_ENTRIES + 2); way++) {
		bool reached = true;
		for (unsigned at = 1; reached; at++) {
			for (resume_at = 0; resume_at <= 12; resume_at++) {
				more_steps = true;
				for (resume_steps = 1; more_steps; resume_steps++)
					reached = read_beside_writer(at, way / 2, way % 2 != 0);
			}
		}
	}
	print_message("# %u scenarios\n", scenario_count);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(writers_at_any_two_points_of_a_reader, scenario_begin),
	    cmocka_unit_test_setup(writer_goes_on_at_any_point_of_a_reader, scenario_begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
