/*
 * ring.h - one overwriting ring per CPU; writers never wait, readers get an entry whole or not at
 * all.
 *
 * Invariants
 *  - A head word is that CPU's sequence number, the number of events it has claimed, times 64, and
 * the CPU's number below. Claiming advances it; slot and turn follow from the claimed value alone.
 *  - In a ring of n entries the event with sequence number s stands in slot s mod n; the slot's lap
 * says in which turn of the ring, s / n, it was published there, or 0 that nothing is.
 *  - A lap has 15 bits, and readers look at the head as well. What remains: a record call that is
 * interrupted while exactly 32768 turns go by, 131072 events or more, passes for an event of now.
 *  - Sequence numbers run on over resizing and clearing; events below `base` are gone.
 *  - recorded = delivered + resident + overwritten + torn, at every moment at which no event is
 * being recorded; `suppressed` stands beside it.
 *
 * Locking: recording takes none. All else that changes a struct ktr_ring holds the control lock
 * (ktr_port_lock()). Reading an entry needs it only against ktr_resize().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ktr_port.h>

#include "ktr/restart.h"
#include "ktr/site.h"

#define KTR_MAXARGS         6
#define KTR_LAP_VALID       0x8000u
#define KTR_ENTRIES_MIN     4u
#define KTR_ENTRIES_MAX     (1u << 24)
#define KTR_BOOT_SHIFT      10
#define KTR_ENTRIES_BOOT    (1u << KTR_BOOT_SHIFT)
#define KTR_ENTRIES_DEFAULT 4096u

/**
 * One event. Parameters from the site's nargs on are what an older event left there. In the ring
 * itself, which only ktr_ring_read() and debuggers look into, site is the low half of the site's
 * address / 64.
 */
struct ktr_entry {
	union {
		struct {
			uint16_t lap;  /* turn of the ring | KTR_LAP_VALID; else not published */
			uint16_t site; /* number: index into ktr_sites */
			uint32_t tid;  /* thread id */
		};
		uint64_t publish; /* all three: one store */
	};
	uint64_t ticks;             /* raw clock (ktr_port_time()) */
	uint64_t args[KTR_MAXARGS]; /* sign-extended from their C types */
} __attribute__((aligned(64)));

#define KTR_PUBLISH_SITE_SHIFT 16
#define KTR_PUBLISH_TID_SHIFT  32

_Static_assert(sizeof(struct ktr_entry) == KTR_HEAD_STEP, "one cache line, one step of the head");

/** A CPU's ring, as control and readers see it: a line that recording reads, and the accounts. */
struct ktr_ring {
	struct ktr_entry *slots; /* changed only while no CPU records (ktr_port_exchange()) */
	uint64_t mask;           /* entries - 1 */
	uint64_t lap_mul;        /* 2^(48 - log2 entries): seq * lap_mul >> 48 is the turn */
	uint64_t limit;          /* as struct ktr_turn's where there is none; atomic */
	uint64_t suppressed;     /* refused; atomic, any context */
	uint32_t owned;          /* 1: slots are this ring's own (boot ring or allocated) */
	uint32_t printing;       /* 1: an event of this CPU is being printed; atomic */

	/* first sequence number that may still be in the slots */
	uint64_t base __attribute__((aligned(64)));
	uint64_t cursor;      /* first one that no sink has taken from the accounting stream */
	uint64_t encoded;     /* first one that stands in none of its frames */
	uint64_t overwritten; /* of those before cursor: gone before the stream came to them */
	uint64_t torn;        /* … claimed, never published; all others were delivered */
	uint64_t cleared;     /* of overwritten: by ktr_clear() or a smaller ring */
	uint32_t moving; /* odd: cursor and the counts of what is before it are being changed */
};

extern struct ktr_ring ktr_rings[KTR_PORT_MAXCPU];

#define KTR_LAP_MUL(shift) (1ull << (48 - (shift)))

/** CPU 0's ring before there is memory. */
extern struct ktr_entry ktr_boot_slots[1u << KTR_BOOT_SHIFT];

/** Gives a CPU a ring: slots, mask, lap_mul, base, cleared, owned. Nobody records. */
void ktr_ring_set(unsigned cpu, const struct ktr_ring *ring);

/**
 * The next event of that CPU takes the slow path, which looks whether events are refused or printed
 * (and ends that when neither is so). Call it when that may have begun; claims in progress on other
 * CPUs may still come to an end. Any CPU, any context.
 */
void ktr_ring_close(unsigned cpu);

static inline unsigned
ktr_head_cpu(uint64_t head)
{
	return (unsigned)(head % KTR_HEAD_STEP);
}

static inline uint64_t
ktr_head_seq(uint64_t head)
{
	return head / KTR_HEAD_STEP;
}

/** The lap under which sequence number seq is published in this ring. */
static inline uint16_t
ktr_ring_lap(const struct ktr_ring *ring, uint64_t seq)
{
	return (uint16_t)((seq * ring->lap_mul >> 48) | KTR_LAP_VALID);
}

static inline struct ktr_entry *
ktr_ring_slot(const struct ktr_ring *ring, uint64_t seq)
{
	return &ring->slots[seq & ring->mask];
}

enum ktr_read_status {
	KTR_READ_OK,          /* the entry is whole */
	KTR_READ_UNPUBLISHED, /* claimed, not published: being written, or torn */
	KTR_READ_GONE,        /* overwritten or cleared */
	KTR_READ_FUTURE,      /* not claimed yet */
	KTR_READ_NOCPU        /* no such CPU */
};

/** Sequence numbers [*tail, *head) may be read now. False: no such CPU. Any context. */
bool ktr_ring_window(unsigned cpu, uint64_t *tail, uint64_t *head);

/**
 * Copies the event seq of a CPU. Any context, no lock: for the debugger and after a panic, and
 * under the control lock otherwise. Whatever runs meanwhile, KTR_READ_OK means an entry that was
 * published whole.
 */
enum ktr_read_status ktr_ring_read(unsigned cpu, uint64_t seq, struct ktr_entry *entry);
