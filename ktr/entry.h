/*
 * entry.h - an event in memory, and the ring of a CPU's events: the layout that recorders, readers,
 * memory dumps and the boot after a reset share.
 *
 * A ring is one block of memory: this header, which fills a cache line, and then its slots. The
 * header holds everything that a reader needs to find the events, so a ring is readable wherever
 * its block is found. ktr/ring.c explains how a ring works.
 *
 * This file includes nothing of ktr/, so that a <ktr_port.h> may use it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define KTR_MAXARGS     6
#define KTR_ENTRY_BYTES 64

/**
 * One event. In a slot, `site` is the low half of the address of the event's struct ktr_site, and
 * parameters from the site's nargs on hold whatever an older event left there. ktr_ring_read() puts
 * the site's number in place of the address.
 */
struct ktr_entry {
	uint64_t ticks;             /* raw clock (ktr_port_time()) */
	uint32_t tid;               /* thread id */
	uint32_t site;              /* address, low half; in a copy: number */
	uint64_t args[KTR_MAXARGS]; /* sign-extended from their C types */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct ktr_entry) == KTR_ENTRY_BYTES, "one cache line");

/**
 * A CPU's ring. Its own CPU writes head, limit, bias and since; any CPU may write 0 to limit. The
 * control lock guards base and start, and 0 in since. The other members are constant.
 *
 * `head` counts bytes: it is KTR_ENTRY_BYTES times the number of events that the CPU has recorded
 * since start-up. The event at `head` goes to the slot at address head + bias, as long as head is
 * below limit.
 *
 * Events from `start` on are the log's. Those below base or ktr_ring_tail() are overwritten, or
 * there was no room for them in a smaller ring.
 */
struct ktr_ring {
	uint64_t head;    /* atomic: its store publishes an event */
	uint64_t limit;   /* atomic: from this head on, the slow path records; 0: it always does */
	uint64_t bias;    /* address of the event's slot, less head */
	uint64_t base;    /* sequence number of the first event that may be in the slots */
	uint32_t entries; /* slots: a power of two; 0: none, every event is refused */
	uint32_t cpu;
	uint32_t check; /* KTR_RING_CHECK(): entries, cpu, base and start are undamaged */
	uint32_t busy;  /* a record with interrupts off is under way: an NMI's event is refused */
	uint64_t start; /* sequence number of the first event since boot or ktr_clear(); <= base */
	uint64_t since; /* atomic: ticks of that event; 0: it is still in its slot, or is to come */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct ktr_ring) == KTR_ENTRY_BYTES, "slots follow at once");
_Static_assert(offsetof(struct ktr_ring, head) == 0, "ports know the offsets");
_Static_assert(offsetof(struct ktr_ring, limit) == 8, "ports know the offsets");
_Static_assert(offsetof(struct ktr_ring, bias) == 16, "ports know the offsets");

static inline struct ktr_entry *
ktr_ring_slots(const struct ktr_ring *ring)
{
	return (struct ktr_entry *)((uintptr_t)ring + sizeof(*ring));
}

/** Bytes of a ring with so many slots. */
static inline size_t
ktr_ring_bytes(uint32_t entries)
{
	return sizeof(struct ktr_ring) + (size_t)entries * sizeof(struct ktr_entry);
}

/** What `check` must be. */
#define KTR_RING_CHECK(entries, cpu, base, start)                                     \
	(0x4b545231u ^ (uint32_t)(entries)*0x9e3779b1u ^ ((cpu) + 1u) * 0x85ebca6bu ^ \
	 (uint32_t)((base)*0x9e3779b97f4a7c15u >> 32) ^                               \
	 (uint32_t)((start)*0xc2b2ae3d27d4eb4fu >> 32))
