/*
 * ktr_shadow.h - a copy of what a ring must contain, for tests that interrupt record calls.
 *
 * An event's thread id, parameters and site are computed from its id, so a mixed entry is detected.
 * Call shadow_step() first in the test's ktr_host_interrupt hook.
 *
 * Invariants: flights are the record calls in progress, outermost first. An event is in `shadow`
 * once the head that publishes it is stored. Locking: none; one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ktr/ktr.h"
#include "ktr/port.h"
#include "ktr/ring.h"

#define SHADOW_CPUS   2u
#define SHADOW_EVENTS 4096u /* remembered for each CPU; tests check only the last few */
#define SHADOW_DEPTH  16u

struct shadow_event {
	uint64_t id, ticks, seq;
	unsigned nargs;
};

struct shadow_flight {
	uint64_t id, ticks;
	unsigned nargs;
	bool complete; /* the entry is filled, for event seq of that CPU */
	unsigned cpu;
	uint64_t seq;
};

static struct shadow_event shadow[SHADOW_CPUS][SHADOW_EVENTS];
static struct shadow_flight shadow_flights[SHADOW_DEPTH];
static unsigned shadow_depth;
static uint64_t shadow_ids, shadow_ticks;

static inline struct shadow_event *
shadow_of(unsigned cpu, uint64_t seq)
{
	return &shadow[cpu][seq % SHADOW_EVENTS];
}

/* For ktr_host_clock. */
static inline uint64_t
shadow_clock(void)
{
	shadow_ticks++;
	if (shadow_depth > 0)
		shadow_flights[shadow_depth - 1].ticks = shadow_ticks;
	return shadow_ticks;
}

/* Has the call stored the head after its entry? */
static inline void
shadow_look(struct shadow_flight *f)
{
	if (!f->complete || ktr_ring_head(ktr_host_rings[f->cpu]) <= f->seq)
		return;
	*shadow_of(f->cpu, f->seq) =
	    (struct shadow_event){.id = f->id, .ticks = f->ticks, .seq = f->seq, .nargs = f->nargs};
	f->complete = false;
}

/* Must run before anything else is recorded in the step. */
static inline void
shadow_step(enum ktr_host_step step)
{
	if (shadow_depth == 0)
		return;
	struct shadow_flight *f = &shadow_flights[shadow_depth - 1];
	shadow_look(f);
	if (step != KTR_HOST_PUBLISH)
		return;
	f->complete = true;
	f->cpu = ktr_host_cpu;
	f->seq = ktr_ring_head(ktr_host_rings[f->cpu]);
}

/* An exception comes: the interrupted call must fill its entry again. */
static inline void
shadow_exception(void)
{
	if (shadow_depth > 0)
		shadow_flights[shadow_depth - 1].complete = false;
}

static inline void
shadow_call(unsigned nargs, uint64_t v)
{
	switch (nargs) {
	case 0:
		CTR0(KTR_GEN, "none");
		break;
	case 1:
		CTR1(KTR_GEN, "%lu", v);
		break;
	case 2:
		CTR2(KTR_GEN, "%lu %lu", v, v + 1);
		break;
	case 3:
		CTR3(KTR_GEN, "%lu %lu %lu", v, v + 1, v + 2);
		break;
	case 4:
		CTR4(KTR_GEN, "%lu %lu %lu %lu", v, v + 1, v + 2, v + 3);
		break;
	case 5:
		CTR5(KTR_GEN, "%lu %lu %lu %lu %lu", v, v + 1, v + 2, v + 3, v + 4);
		break;
	default:
		CTR6(KTR_GEN, "%lu %lu %lu %lu %lu %lu", v, v + 1, v + 2, v + 3, v + 4, v + 5);
	}
}

/* Records one event, and copies its effect on the ring. */
static inline void
shadow_record(unsigned nargs)
{
	uint32_t tid = ktr_host_tid;
	struct shadow_flight *f = &shadow_flights[shadow_depth++];
	*f = (struct shadow_flight){.id = ++shadow_ids, .nargs = nargs};
	ktr_host_tid = (uint32_t)f->id;
	shadow_call(nargs, f->id * 8);
	ktr_host_tid = tid;
	shadow_look(f);
	shadow_depth--;
}

/* Compares an event with the copy. NULL: equal; otherwise what differs. */
static inline const char *
shadow_differs(unsigned cpu, uint64_t seq, uint64_t ticks, uint32_t tid, const uint64_t *args,
	       unsigned nargs)
{
	const struct shadow_event *ev = shadow_of(cpu, seq);
	if (ev->id == 0 || ev->seq != seq)
		return "was not published";
	if (nargs != ev->nargs)
		return "has another event's site";
	if (tid != (uint32_t)ev->id)
		return "has another event's thread";
	if (ticks != ev->ticks)
		return "has another event's clock";
	for (unsigned i = 0; i < nargs; i++) {
		if (args[i] != ev->id * 8 + i)
			return "has another event's parameter";
	}
	return NULL;
}

static inline const char *
shadow_entry_differs(unsigned cpu, uint64_t seq, const struct ktr_entry *e)
{
	const struct ktr_site *site = ktr_site_get(e->site);
	return shadow_differs(cpu, seq, e->ticks, e->tid, e->args,
			      site != NULL ? site->nargs : KTR_MAXARGS + 1);
}
