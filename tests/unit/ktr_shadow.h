/*
 * ktr_shadow.h - what a ring must hold, kept beside it: for tests that interrupt record calls.
 *
 * Every event's thread id, parameters and site follow from its id, so that a mixed entry gives
 * itself away. shadow_step() belongs at the start of the test's ktr_host_interrupt hook.
 *
 * Invariants: flights are the record calls in progress, outermost first; an event is in `shadow`
 * from its claim on. Locking: none; one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ktr/ktr.h"
#include "ktr/port.h"
#include "ktr/ring.h"

#define SHADOW_CPUS   2u
#define SHADOW_EVENTS 4096u /* remembered a CPU; a test looks at the last few */
#define SHADOW_DEPTH  16u

struct shadow_event {
	uint64_t id, ticks;
	unsigned nargs;
	uint64_t published; /* moment; 0: not yet */
	bool spoiled;       /* a writer that was late by a turn or more wrote over it */
};

struct shadow_flight {
	uint64_t id, ticks, seq;
	unsigned cpu, nargs;
	bool claimed, published;
	uint64_t invalidated; /* moment; 0: not yet */
};

static struct shadow_event shadow[SHADOW_CPUS][SHADOW_EVENTS];
static struct shadow_flight shadow_flights[SHADOW_DEPTH];
static unsigned shadow_depth;
static uint64_t shadow_ids, shadow_ticks, shadow_moment;

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

/* The call has stored its last word of the entry. */
static inline void
shadow_published(struct shadow_flight *f)
{
	if (!f->claimed) /* refused */
		return;
	const uint64_t entries = ktr_rings[f->cpu].mask + 1;
	uint64_t head = ktr_head_seq(ktr_host_heads[f->cpu]);

	if (f->published)
		return;
	f->published = true;
	shadow_of(f->cpu, f->seq)->published = ++shadow_moment;
	if (head - f->seq > entries)
		shadow_of(f->cpu, f->seq + (head - 1 - f->seq) / entries * entries)->spoiled = true;
}

static inline void
shadow_step(enum ktr_host_step step)
{
	if (shadow_depth == 0)
		return;
	struct shadow_flight *f = &shadow_flights[shadow_depth - 1];
	if (step == KTR_HOST_OWNED) {
		f->claimed = true;
		f->cpu = ktr_host_cpu;
		f->seq = ktr_head_seq(ktr_host_heads[f->cpu]) - 1;
		*shadow_of(f->cpu, f->seq) =
		    (struct shadow_event){.id = f->id, .ticks = f->ticks, .nargs = f->nargs};
	} else if (step == KTR_HOST_CLAIMED) {
		f->invalidated = ++shadow_moment;
	} else if (step == KTR_HOST_BEGIN && f->claimed) {
		shadow_published(f); /* the slow path looks at the head once more */
	}
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

/* Records one event, and notes what it did to the ring. */
static inline void
shadow_record(unsigned nargs)
{
	uint32_t tid = ktr_host_tid;
	struct shadow_flight *f = &shadow_flights[shadow_depth++];
	*f = (struct shadow_flight){.id = ++shadow_ids, .nargs = nargs};
	ktr_host_tid = (uint32_t)f->id;
	shadow_call(nargs, f->id * 8);
	ktr_host_tid = tid;
	shadow_depth--;
	shadow_published(f);
}

/* A call in progress owns the slot of that event, or did and will yet write there. */
static inline bool
shadow_slot_busy(unsigned cpu, uint64_t seq)
{
	for (unsigned i = 0; i < shadow_depth; i++) {
		const struct shadow_flight *f = &shadow_flights[i];
		if (f->claimed && !f->published && f->cpu == cpu && f->seq <= seq &&
		    ((f->seq ^ seq) & ktr_rings[cpu].mask) == 0)
			return true;
	}
	return false;
}

/*
 * The one case in which ktr_ring_read() alone may give a mixed entry: a writer that was interrupted
 * in its fill goes on, and the interrupt published a newer event in the slot. Streams wait for it
 * to finish.
 */
static inline bool
shadow_mix_possible(unsigned cpu, uint64_t seq)
{
	for (unsigned i = 0; i < shadow_depth; i++) {
		const struct shadow_flight *f = &shadow_flights[i];
		if (f->invalidated != 0 && !f->published &&
		    f->invalidated < shadow_of(cpu, seq)->published && f->cpu == cpu &&
		    f->seq < seq && ((f->seq ^ seq) & ktr_rings[cpu].mask) == 0)
			return true;
	}
	return false;
}

/* NULL, or which word differs. */
static inline const char *
shadow_differs(unsigned cpu, uint64_t seq, uint64_t ticks, uint32_t tid, const uint64_t *args,
	       unsigned nargs)
{
	const struct shadow_event *ev = shadow_of(cpu, seq);
	if (ev->published == 0)
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

/* What is wrong with what a reader got, or NULL. The heads have not moved since it began. */
static inline const char *
shadow_read_wrong(unsigned cpu, uint64_t seq, enum ktr_read_status status,
		  const struct ktr_entry *e)
{
	const struct shadow_event *ev = shadow_of(cpu, seq);
	if (status == KTR_READ_OK) {
		const char *wrong = shadow_entry_differs(cpu, seq, e);
		if (wrong == NULL && ev->spoiled)
			wrong = "was written over by a late writer";
		return shadow_mix_possible(cpu, seq) ? NULL : wrong;
	}
	if (status != KTR_READ_UNPUBLISHED)
		return "is neither whole nor unpublished";
	if (ev->published != 0 && !ev->spoiled && !shadow_slot_busy(cpu, seq))
		return "was published and cannot be read";
	return NULL;
}
