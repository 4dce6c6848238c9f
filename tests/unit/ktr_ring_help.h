/*
 * ktr_ring_help.h - helpers over the hosted port's rings: a clock, events, and accounts that must
 * add up.
 *
 * Locking: any thread may call ring_clock(), recording threads ring_record(), the test's own thread
 * the rest.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ktr/control.h"
#include "ktr/ktr.h"
#include "ktr/port.h"
#include "ktr/ring.h"

#define RING_CPUS    4u
#define RING_ENTRIES 4u
#define RING_KEPT    (RING_ENTRIES - KTR_RING_SPARE) /* that can be read */

static uint64_t ring_ticks;

/* For ktr_host_clock. No two readings are equal. */
static inline uint64_t
ring_clock(void)
{
	return __atomic_add_fetch(&ring_ticks, 1, __ATOMIC_RELAXED);
}

/* Makes rings of so many entries on so many CPUs. This thread records KTR_GEN on CPU 0. */
static inline void
ring_make(unsigned cpus, unsigned entries)
{
	ktr_host_clock = ring_clock;
	ktr_host_interrupt = NULL;
	ktr_host_cpus = cpus;
	ktr_host_cpu = 0;
	ktr_host_tid = 1;
	for (unsigned cpu = 0; cpu < cpus; cpu++)
		assert_int_equal(ktr_cpu_init(cpu), 0);
	assert_int_equal(ktr_resize(entries), 0);
	ktr_mask_set(KTR_GEN);
}

/* A test's setup: empty rings of RING_ENTRIES on RING_CPUS, recording KTR_GEN on CPU 0. */
static inline int
ring_begin(void **state)
{
	ring_make(RING_CPUS, RING_ENTRIES);
	ktr_cpumask_set(~(uint64_t)0);
	ktr_clear();
	return 0;
}

/* A CPU's accounts. Fails the test if they do not add up. */
static inline struct ktr_stats
ring_stats(unsigned cpu)
{
	struct ktr_stats s;
	assert_true(ktr_stats_get(cpu, &s));
	assert_int_equal(s.recorded, s.delivered + s.resident + s.overwritten);
	return s;
}

/* The sequence number of the CPU's next event. */
static inline uint64_t
ring_head(unsigned cpu)
{
	uint64_t tail, head;
	assert_true(ktr_ring_window(cpu, &tail, &head));
	return head;
}

static inline void
ring_record(uint64_t value)
{
	CTR2(KTR_GEN, "%lu %lu", value, ~value);
}
