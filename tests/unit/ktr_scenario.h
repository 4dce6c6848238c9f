/*
 * ktr_scenario.h - scenarios over small rings: a record call or a reader is struck at given steps.
 * Afterwards every event must be delivered or counted as lost.
 *
 * A test fills `strikes`, sets a ktr_host_interrupt hook that counts scenario_steps and executes
 * the strikes, and calls scenario_settle(). Rings hold SCENARIO_ENTRIES. ktr_shadow.h knows what
 * they must contain.
 *
 * Locking: none; one thread.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "ktr/control.h"
#include "ktr/decode.h"
#include "ktr/port.h"
#include "ktr/ring.h"
#include "ktr/stream.h"
#include "tests/unit/ktr_decode_help.h"
#include "tests/unit/ktr_shadow.h"

#define SCENARIO_ENTRIES 4u
#define STRIKES_MAX      6u

/* At step `at` of the run: so many events from an interrupt, or a migration of the thread. */
struct strike {
	unsigned at;
	unsigned events;
	bool migrate; /* then interrupts record on the new CPU; only while none are masked */
	bool close;   /* closes the ring */
	bool refuse;  /* from now on the events of all CPUs are refused, as if masked */
	bool fired;
};

static struct strike strikes[STRIKES_MAX];
static unsigned strike_count;
static unsigned scenario_steps; /* steps of this scenario so far */
static unsigned scenario_count; /* scenarios of the test so far */

/* The strike is over. For the record call that continues, it was an exception. */
static inline void
strike_over(void)
{
#ifdef KTR_HOST_RESTART
	shadow_exception();
#endif
#ifdef KTR_HOST_RESTART
	ktr_host_exceptions++;
#endif
}

/* Ends the test, and prints the strikes of the scenario. */
__attribute__((format(printf, 1, 2))) static inline void
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
	fail_msg("at step %u: %s", scenario_steps, text);
}

/* Checks all rings, as a reader on another CPU at this moment. Nothing comes between its loads. */
static inline void
scenario_check_rings(void)
{
	void (*hook)(enum ktr_host_step) = ktr_host_interrupt;
	ktr_host_interrupt = NULL;
	for (unsigned cpu = 0; cpu < SHADOW_CPUS; cpu++) {
		uint64_t tail, head, last = 0;
		ktr_ring_window(cpu, &tail, &head);
		for (uint64_t seq = tail; seq < head; seq++) {
			struct ktr_entry e;
			enum ktr_read_status status = ktr_ring_read(cpu, seq, &e);
			const char *wrong = status == KTR_READ_OK
						? shadow_entry_differs(cpu, seq, &e)
						: "cannot be read";
			if (wrong == NULL && e.ticks <= last)
				wrong = "is older than the one before";
			if (wrong != NULL)
				scenario_fail("cpu %u: event %llu %s (read status %d)", cpu,
					      (unsigned long long)seq, wrong, status);
			last = e.ticks;
		}
	}
	ktr_host_interrupt = hook;
}

/* The accounting stream, and what it has delivered so far. */
static struct ktr_stream scenario_stream;
static uint8_t scenario_bytes[1 << 16];
static uint64_t scenario_events, scenario_lost, scenario_ticks[SHADOW_CPUS];

static inline void
scenario_on_event(void *arg, const struct ktr_decode_event *e)
{
	const char *wrong = shadow_differs(e->cpu, e->seq, e->ticks, e->tid, e->args, e->nargs);
	if (wrong == NULL && e->ticks <= scenario_ticks[e->cpu])
		wrong = "is older than the one before";
	if (wrong != NULL)
		scenario_fail("stream, cpu %u: event %llu %s", (unsigned)e->cpu,
			      (unsigned long long)e->seq, wrong);
	scenario_ticks[e->cpu] = e->ticks;
	scenario_events++;
}

static inline void
scenario_on_gap(void *arg, const struct ktr_decode_gap *g)
{
	if (g->reason != KTR_GAP_OVERWRITTEN)
		scenario_fail("stream, cpu %u: a gap of kind %d at event %llu", (unsigned)g->cpu,
			      g->reason, (unsigned long long)g->first);
	scenario_lost += g->count;
}

static inline void
scenario_on_damage(void *arg, uint64_t offset, uint64_t length, const char *text)
{
	scenario_fail("stream: damage at %llu, %llu bytes: %s", (unsigned long long)offset,
		      (unsigned long long)length, text);
}

/* Drains all that was recorded, and checks it as a reader of the stream. */
static inline void
scenario_drain(void)
{
	static const struct ktr_decoder_ops ops = {.realloc = decode_realloc,
						   .event = scenario_on_event,
						   .gap = scenario_on_gap,
						   .damage = scenario_on_damage};
	size_t len = 0, n;
	ktr_stream_open(&scenario_stream, KTR_STREAM_ACCOUNT);
	while ((n = ktr_stream_read(&scenario_stream, scenario_bytes + len,
				    sizeof(scenario_bytes) - len)) > 0)
		len += n;
	ktr_stream_close(&scenario_stream, false);
	while ((n = ktr_stream_read(&scenario_stream, scenario_bytes + len,
				    sizeof(scenario_bytes) - len)) > 0)
		len += n;
	struct ktr_decoder *d = ktr_decoder_create(&ops, NULL);
	assert_int_equal(ktr_decoder_push(d, scenario_bytes, len), 0);
	assert_int_equal(ktr_decoder_finish(d), 0);
	ktr_decoder_destroy(d);
}

/* The accounts of all CPUs. Each must add up. */
static inline struct ktr_stats
scenario_stats(void)
{
	struct ktr_stats sum = {0}, s;
	for (unsigned cpu = 0; cpu < SHADOW_CPUS; cpu++) {
		assert_true(ktr_stats_get(cpu, &s));
		if (s.recorded != s.delivered + s.resident + s.overwritten)
			scenario_fail("cpu %u: %llu recorded, %llu accounted for", cpu,
				      (unsigned long long)s.recorded,
				      (unsigned long long)(s.delivered + s.resident +
							   s.overwritten));
		sum.recorded += s.recorded;
		sum.delivered += s.delivered;
		sum.resident += s.resident;
		sum.overwritten += s.overwritten;
		sum.suppressed += s.suppressed;
	}
	return sum;
}

/*
 * Call it when no record call is in progress: all events recorded since `before` must be delivered
 * or counted as lost. `ids`: shadow_ids at that time.
 */
static inline void
scenario_settle(const struct ktr_stats *before, uint64_t ids)
{
	uint64_t events = scenario_events, lost = scenario_lost;
	ktr_host_interrupt = NULL;
	ktr_host_cpu = 0;
	scenario_check_rings();
	scenario_stats();
	scenario_drain();
	struct ktr_stats s = scenario_stats();
	events = scenario_events - events;
	lost = scenario_lost - lost;
	ids += s.suppressed - before->suppressed;
	if (s.recorded - before->recorded != shadow_ids - ids || s.resident != 0 ||
	    s.delivered - before->delivered != events ||
	    s.overwritten - before->overwritten != lost || events + lost != shadow_ids - ids)
		scenario_fail("%llu recorded; %llu delivered, %llu overwritten",
			      (unsigned long long)(shadow_ids - ids), (unsigned long long)events,
			      (unsigned long long)lost);
	scenario_count++;
}

/* A test's setup, or the start of it. */
static inline int
scenario_begin(void **state)
{
	ktr_host_interrupt = NULL;
	ktr_host_clock = shadow_clock;
	shadow_depth = 0; /* a test may have failed inside a call */
	ktr_host_cpus = SHADOW_CPUS;
	ktr_host_cpu = 0;
	for (unsigned cpu = 0; cpu < SHADOW_CPUS; cpu++)
		assert_int_equal(ktr_cpu_init(cpu), 0);
	assert_int_equal(ktr_resize(SCENARIO_ENTRIES), 0);
	ktr_mask_set(KTR_GEN);
	scenario_drain();
	scenario_count = 0;
	ktr_cpumask_set(~0ull);
	return 0;
}
