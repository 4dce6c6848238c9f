/*
 * ring.h - one ring of events per CPU: writers never wait, readers get an entry whole or not at
 * all.
 *
 * Invariants
 *  - The event with sequence number s of a CPU stands in slot s mod entries of its ring.
 *  - Events below the head are complete. The slots of the next KTR_RING_SPARE events may be
 *    half written, and a reader does not look at them.
 *  - Sequence numbers go on when a ring is resized or cleared; events below `base` are gone. Those
 *    below `start` were cleared; the others are overwritten, and each stream says so.
 *  - recorded = delivered + resident + overwritten, at every moment. Events that were refused are
 *    not recorded; they are counted as suppressed or dropped.
 *
 * Locking: recording takes none. What else changes a log holds the control lock (ktr_port_lock()).
 * Reading an entry needs that lock only against ktr_resize().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ktr_port.h>

#include "ktr/entry.h"
#include "ktr/restart.h"
#include "ktr/site.h"

_Static_assert(KTR_PORT_MAXCPU >= 1 && KTR_PORT_MAXCPU <= 64,
	       "KTR_PORT_MAXCPU must be 1 to 64: masks of CPUs are single 64-bit words");

#if !defined(KTR_BOOT_SHIFT) && defined(KTR_SMALL)
#define KTR_BOOT_SHIFT 6 /* log2 of the boot ring's slots */
#elif !defined(KTR_BOOT_SHIFT)
#define KTR_BOOT_SHIFT 10
#endif
#define KTR_ENTRIES_MIN  4u
#define KTR_ENTRIES_MAX  (1u << 24)
#define KTR_ENTRIES_BOOT (1u << KTR_BOOT_SHIFT)
#ifdef KTR_SMALL
#define KTR_ENTRIES_DEFAULT KTR_ENTRIES_BOOT
#else
#define KTR_ENTRIES_DEFAULT 4096u
#endif

/**
 * Slots that are never readable. A writer orders an event's words before the head that publishes
 * it, but not the head before the next event's words: so the words of the event at `head` and of
 * the one after it may already be visible. See ktr/ring.c.
 */
#define KTR_RING_SPARE 2u

/** What a log does when a ring is full. */
enum ktr_policy {
	KTR_POLICY_RING, /* overwrites the oldest event */
	KTR_POLICY_FILL  /* refuses the new event, and counts it as dropped */
};

/** One CPU of a log: its ring, and the accounts that readers keep of it. */
struct ktr_log_cpu {
	struct ktr_ring *ring; /* NULL or without slots: none. Ports may keep the main log's */
	uint64_t suppressed;   /* events refused; atomic, any context */
	uint64_t dropped;      /* KTR_POLICY_FILL: events for which there was no room; atomic */
	uint32_t printing;     /* 1: an event of this CPU is being printed; atomic */
	uint32_t data_number;  /* of the next long data (ktr/wire.h); atomic */

	/* The accounting stream's. */
	uint32_t moving;  /* odd: cursor and overwritten are being changed */
	uint64_t cursor;  /* number of an event: a sink has all frames of earlier ones; atomic */
	uint64_t encoded; /* number of the first event that is in no frame; atomic */
	uint64_t overwritten; /* of events before cursor: gone before it; others: delivered */
	uint64_t ticks;       /* of the last event before cursor that was delivered; 0: none */
	uint64_t cleared;     /* of overwritten: by ktr_clear() or a smaller ring */
};

/**
 * A log: rings, their accounts, and a policy. ktr_main is the one that trace points record to.
 * Other logs are a consumer's own; ktr_log_record() writes to them.
 */
struct ktr_log {
	const char *name;
	enum ktr_policy policy;
	struct ktr_log *next; /* [control lock] the logs that are open, from ktr_main on */
	struct ktr_log_cpu cpu[KTR_PORT_MAXCPU];
};

extern struct ktr_log ktr_main;

/** CPU 0's ring in the main log before there is memory. */
extern struct ktr_boot_ring {
	struct ktr_ring ring;
	struct ktr_entry slots[KTR_ENTRIES_BOOT];
} ktr_boot_ring;
/** A ring without slots, which refuses every event. */
extern struct ktr_ring ktr_ring_none;

/* A port that keeps the pointers itself starts CPU 0's with &ktr_boot_ring.ring and all others with
 * &ktr_ring_none. */
#ifndef KTR_PORT_RING_OF
#define KTR_PORT_RING_OF(n) ((n) < KTR_PORT_MAXCPU ? &ktr_main.cpu[n].ring : NULL)
#endif

/** The ring of a CPU; NULL: it has none. Any context. */
struct ktr_ring *ktr_log_ring(const struct ktr_log *log, unsigned cpu);

/**
 * Gives a log rings of `entries` slots (rounded up to a power of two, at least KTR_ENTRIES_MIN) on
 * every CPU that has one in the main log. The log must not be ktr_main. May sleep. 0 or
 * -KTR_ENOMEM.
 */
int ktr_log_open(struct ktr_log *log, unsigned entries);
/**
 * Frees the log's rings. Nobody reads it; events that are recorded meanwhile are refused, if the
 * port can wait (ktr_port_sync()). May sleep.
 */
void ktr_log_close(struct ktr_log *log);

/**
 * Records an event with six parameters in any log. Any context; an event from an NMI that
 * interrupted a record call to the same log, other than the main log, is refused. False: it was
 * refused, and counted.
 */
bool ktr_log_record(struct ktr_log *log, const struct ktr_site *site,
		    const uint64_t args[KTR_MAXARGS]);

/**
 * Records an event with long data, in any log and any context. site's last parameter is a %s, and
 * args has those before it; what it prints is the data up to a zero byte. At most KTR_DATA_MAX
 * bytes are recorded, in entries of their own before the event's. Interrupts are off meanwhile.
 * What is missing when the event is read, because it was too long or has been overwritten, shows as
 * "(cut at N of LENGTH)". False: the event was refused, and counted.
 */
bool ktr_log_record_data(struct ktr_log *log, const struct ktr_site *site,
			 const uint64_t args[KTR_MAXARGS], const void *data, size_t len);

/** The site of the entries that hold parts of long data. */
extern struct ktr_site ktr_data_site;

/** Does an entry, as a read copied it, hold a part of another event's data? */
static inline bool
ktr_entry_is_part(const struct ktr_entry *entry)
{
	return entry->site == ktr_site_number(&ktr_data_site);
}

/**
 * Copies the data of such a parameter, at most `room` bytes, and returns how many. Context as for
 * ktr_data_text().
 */
uint32_t ktr_data_bytes(const struct ktr_log *log, unsigned cpu, uint64_t before, uint64_t word,
			void *buf, uint32_t room);
/**
 * The text of a parameter for which ktr_data_is_word() holds. The event is one of that CPU, and its
 * data stand before number `before`. buf has room for KTR_STRING_MAX; a longer text is cut. Any
 * context; locks as for ktr_log_read().
 */
const char *ktr_data_text(const struct ktr_log *log, unsigned cpu, uint64_t before, uint64_t word,
			  char *buf);

/**
 * The next event of that CPU takes the slow path, which finds out whether events are to be refused
 * or printed. Call it after that has changed. Record calls that are under way on other CPUs may
 * still finish as before, and so may those that interrupt them. Any CPU, any context.
 */
void ktr_ring_close(unsigned cpu);

static inline struct ktr_entry *
ktr_ring_slot(const struct ktr_ring *ring, uint64_t seq)
{
	return &ktr_ring_slots(ring)[seq & (ring->entries - 1)];
}

/** Sequence number of the next event. Any context. */
static inline uint64_t
ktr_ring_head(const struct ktr_ring *ring)
{
	/* acquire: pairs with the fence before the store of the head */
	return __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) / KTR_ENTRY_BYTES;
}

/**
 * Ticks of the first event since boot or ktr_clear(), though it may be overwritten; 0: none has
 * come. Any context; locks as for ktr_log_read().
 */
uint64_t ktr_ring_since(const struct ktr_ring *ring);

/** Sequence number of the oldest event that may be read while that of the next is `head`. */
uint64_t ktr_ring_tail(const struct ktr_ring *ring, uint64_t head);

enum ktr_read_status {
	KTR_READ_OK,     /* the entry is whole */
	KTR_READ_GONE,   /* overwritten, about to be, or cleared */
	KTR_READ_FUTURE, /* not recorded yet */
	KTR_READ_NOCPU   /* no such CPU */
};

/** Sequence numbers [*tail, *head) may be read now. False: no such CPU. Any context. */
bool ktr_log_window(const struct ktr_log *log, unsigned cpu, uint64_t *tail, uint64_t *head);

/**
 * Copies the event seq of a CPU. KTR_READ_OK means that the copy is one event, whole, whatever ran
 * meanwhile. Any context; no lock in the debugger and after a panic, the control lock otherwise.
 */
enum ktr_read_status ktr_log_read(const struct ktr_log *log, unsigned cpu, uint64_t seq,
				  struct ktr_entry *entry);

/**
 * Copies an event that is known to be below the head. False if it is gone; then the copy is
 * worth nothing.
 */
bool ktr_ring_copy(const struct ktr_ring *ring, uint64_t seq, struct ktr_entry *entry);

/** ktr_log_window() for the main log. */
static inline bool
ktr_ring_window(unsigned cpu, uint64_t *tail, uint64_t *head)
{
	return ktr_log_window(&ktr_main, cpu, tail, head);
}

static inline enum ktr_read_status
ktr_ring_read(unsigned cpu, uint64_t seq, struct ktr_entry *entry)
{
	return ktr_log_read(&ktr_main, cpu, seq, entry);
}
