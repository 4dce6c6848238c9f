/*
 * ring.c - recording an event, and reading one back.
 *
 * Each CPU has a ring of slots and a head, the number of events that the CPU has recorded (in the
 * code, times 64: the size of a slot). Event n goes to slot n mod entries:
 *
 *	                      n is being written; n+1 may be, too (see below)
 *	                      |
 *	 slots  | n-2 | n-1 |  n  | n+1 | n-6 | n-5 | n-4 | n-3 |      8 entries
 *	                    ^                 ^
 *	              head = n          oldest that may be read
 *
 * To record, a CPU reads its head, reads the clock, fills the slot, and stores head + 1. That one
 * store claims the number and publishes the event. Until then the event does not exist.
 *
 * What if an interrupt, an NMI or another thread of this CPU records in between? Then the first
 * record has filled its slot for nothing: it must begin again with the new head. A port guarantees
 * that in one of two ways.
 *  - The record is a restartable sequence (ktr/restart.h): the exception returns to its beginning.
 *    Nothing is masked, and events from any context are recorded. KTR_PORT_RECORD says so.
 *  - The record runs with interrupts off. An NMI cannot be masked: `busy` tells it that it has
 *    interrupted a record, and its event is refused and counted.
 * In both ways the clock is read after the head and before the store, so slot order is time order.
 *
 * A reader on any CPU copies the slot of event s and then reads the head again. The copy is good if
 * no writer can have begun to overwrite the slot, that is with event s + entries. A writer orders
 * the words of event n before head n + 1 with one store barrier. The same barrier orders head n
 * before the words of event n + 1. It does not order head n before the words of event n, since it
 * stands between them and head n + 1. So a reader that finds a word of event s + entries finds a
 * head of at least s + entries - 1, and it takes the copy only if the head is smaller than that:
 * s > head + 1 - entries. Two slots (KTR_RING_SPARE) are never readable. This holds for a reader
 * that looks at a stopped machine, at a memory dump, or after a reset: the head is all it needs.
 *
 * Everything rare shares one test. When the head has reached `limit`, the record takes the slow
 * path. The limit is where the ring wraps, because there the slot's address changes by more than
 * a step; or 0, when events are to be refused or printed.
 *
 * Locking: none. The functions in section .text.ktr_record may run in any context.
 */
#include "ktr/ring.h"

#include "ktr/control.h"
#include "ktr/ktr.h"
#include "ktr/port.h"

#define UNLIKELY(c) __builtin_expect((c), 0)

/*
 * Words of entries are read and written while others write and read them, each as a whole. Plain
 * volatile accesses do that on every 64-bit machine; atomics would be exchanges on RISC-V (GCC 12).
 */
#if KTR_TSAN_ && !defined(KTR_PORT_PUT)
#define KTR_PORT_PUT(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)
#endif
#ifndef KTR_PORT_PUT
#define KTR_PORT_PUT(field, value) (*(volatile __typeof__(field) *)&(field) = (value))
#endif

#define EVERY [0 ... KTR_PORT_MAXCPU - 1]
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
__extension__ struct ktr_log ktr_main = {
    .name = "main",
    .policy = KTR_POLICY_RING,
    .cpu = {EVERY = {.ring = &ktr_ring_none}, [0] = {.ring = &ktr_boot_ring.ring}},
};
#pragma GCC diagnostic pop

struct ktr_boot_ring ktr_boot_ring;
struct ktr_ring ktr_ring_none;

/*
 * The boot ring is zeroes until it is first looked at, so that it takes no room in the program's
 * file: its first record takes the slow path. Whoever comes here at once has done the same or finds
 * it done: `check` may be ktr_clear()'s by then.
 */
static void
boot_ring_begin(struct ktr_ring *ring)
{
	uint32_t none = 0;
	KTR_PORT_STEP(KTR_HOST_BEGIN);
	__atomic_compare_exchange_n(&ring->check, &none, KTR_RING_CHECK(KTR_ENTRIES_BOOT, 0, 0, 0),
				    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->entries, KTR_ENTRIES_BOOT, __ATOMIC_RELEASE);
}

struct ktr_ring *
ktr_log_ring(const struct ktr_log *log, unsigned cpu)
{
	struct ktr_ring *const *at = log == &ktr_main        ? KTR_PORT_RING_OF(cpu)
				     : cpu < KTR_PORT_MAXCPU ? &log->cpu[cpu].ring
							     : NULL;
	/* acquire: pairs with the release in ktr/size.c */
	struct ktr_ring *ring = at != NULL ? __atomic_load_n(at, __ATOMIC_ACQUIRE) : NULL;
	if (ring == &ktr_boot_ring.ring && __atomic_load_n(&ring->entries, __ATOMIC_ACQUIRE) == 0)
		boot_ring_begin(ring);
	return ring != NULL && ring->entries != 0 ? ring : NULL;
}

void
ktr_ring_close(unsigned cpu)
{
	struct ktr_ring *ring = ktr_log_ring(&ktr_main, cpu);
	/* ring_open() sees the reason to close; or ring_open() comes first, and this store undoes
	 * it. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (ring != NULL)
		__atomic_store_n(&ring->limit, 0, __ATOMIC_RELAXED);
}

#if defined(__GNUC__) && !defined(__clang__)
/*
 * The record functions are leaves, and a frame would be three of their twenty instructions.
 * Compiled for size, they leave the parameters in the registers in which they came.
 */
#pragma GCC optimize("Os", "omit-frame-pointer", "optimize-sibling-calls")
#endif

/* ---- a record with interrupts off ---- */

/* Refuses the events of NMIs, and of signal handlers, before anything that they change is read. */
static inline void
ring_busy(struct ktr_ring *ring)
{
	KTR_PORT_PUT(ring->busy, 1);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	KTR_PORT_STEP(KTR_HOST_BEGIN);
}

/* False: nothing is recorded, the slow path must look. Interrupts off. */
static inline bool
ring_record(struct ktr_ring *ring, unsigned n, const struct ktr_site *site, uint64_t a1,
	    uint64_t a2, uint64_t a3, uint64_t a4, struct ktr_pair more)
{
	if (UNLIKELY(ring->busy))
		return false;
	ring_busy(ring);
	uint64_t head = ring->head;
	bool room = head < __atomic_load_n(&ring->limit, __ATOMIC_RELAXED);
	if (room) {
		struct ktr_entry *e = (struct ktr_entry *)(uintptr_t)(ring->bias + head);
		KTR_PORT_PUT(e->ticks, ktr_port_time());
		KTR_PORT_PUT(e->tid, ktr_port_tid());
		KTR_PORT_PUT(e->site, (uint32_t)(uintptr_t)site);
		if (n > 0)
			KTR_PORT_PUT(e->args[0], a1);
		if (n > 1)
			KTR_PORT_PUT(e->args[1], a2);
		if (n > 2)
			KTR_PORT_PUT(e->args[2], a3);
		if (n > 3)
			KTR_PORT_PUT(e->args[3], a4);
		if (n > 4)
			KTR_PORT_PUT(e->args[4], more.a5);
		if (n > 5)
			KTR_PORT_PUT(e->args[5], more.a6);
		/* Others see the event before its head, and that before the event after next. */
		__atomic_thread_fence(__ATOMIC_RELEASE);
		KTR_PORT_STEP(KTR_HOST_PUBLISH);
		KTR_PORT_PUT(ring->head, head + KTR_ENTRY_BYTES);
	}
	KTR_PORT_PUT(ring->busy, 0);
	return room;
}

/* Says where the next events go, unless the head has moved. Interrupts off. */
static inline void
ring_set_turn(const struct ktr_log *log, struct ktr_ring *ring, uint64_t head, uint64_t bias,
	      uint64_t limit)
{
#ifdef KTR_PORT_TURN
	if (log == &ktr_main) {
		KTR_PORT_TURN(ring, head, bias, limit);
		return;
	}
#else
	(void)log;
#endif
	ring_busy(ring);
	if (ring->head == head) {
		KTR_PORT_PUT(ring->bias, bias);
		KTR_PORT_PUT(ring->limit, limit);
	}
	KTR_PORT_PUT(ring->busy, 0);
}

#ifndef KTR_PORT_RECORD
#ifndef KTR_PORT_THIS_RING
#define KTR_PORT_THIS_RING() (*KTR_PORT_RING_OF(ktr_port_cpu()))
#endif

static inline bool
ring_record_masked(unsigned n, const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3,
		   uint64_t a4, struct ktr_pair more)
{
	uintptr_t irq = ktr_port_irq_save();
	bool done = ring_record(KTR_PORT_THIS_RING(), n, site, a1, a2, a3, a4, more);
	ktr_port_irq_restore(irq);
	return done;
}
#define KTR_PORT_RECORD ring_record_masked
#endif

/* ---- the slow path ---- */

/* Are the events of this thread refused, or in the main log those of this CPU? */
static inline bool
ring_refuses(const struct ktr_log *log, unsigned cpu)
{
	return (log == &ktr_main &&
		(__atomic_load_n(&ktr_cpumask, __ATOMIC_RELAXED) >> cpu & 1) == 0) ||
	       ktr_port_suppressed();
}

static inline bool
ring_prints(const struct ktr_log *log)
{
	return log == &ktr_main && __atomic_load_n(&ktr_verbose, __ATOMIC_RELAXED) != 0;
}

/* The sequence number up to which records need not come here again; seq: there is no room. */
static inline uint64_t
ring_limit(const struct ktr_log *log, const struct ktr_ring *ring, uint64_t seq)
{
	uint64_t limit = (seq | (ring->entries - 1)) + 1;
	if (ring_prints(log))
		return seq + 1;
	if (log->policy == KTR_POLICY_FILL) {
		/* acquire: the reader has read what stood in the slots that it gives back */
		uint64_t full = __atomic_load_n(&log->cpu[ring->cpu].cursor, __ATOMIC_ACQUIRE) +
				ring->entries - KTR_RING_SPARE;
		return full < limit ? full : limit;
	}
	return limit;
}

/*
 * Keeps the time of the log's first event. This comes before the event is overwritten, since the
 * ring wraps at least once in `entries` events. Interrupts off.
 */
static inline void
ring_keep_since(struct ktr_ring *ring, uint64_t seq)
{
	uint64_t start = __atomic_load_n(&ring->start, __ATOMIC_RELAXED);
	if (__atomic_load_n(&ring->since, __ATOMIC_RELAXED) != 0 || seq <= start)
		return;
	__atomic_store_n(&ring->since, ktr_ring_slot(ring, start)->ticks, __ATOMIC_RELAXED);
	/* Either this CPU sees that ktr_clear() came meanwhile, or ktr_clear() stores 0 later. Nor
	 * does the slot change before `since` is seen. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&ring->start, __ATOMIC_RELAXED) != start)
		__atomic_store_n(&ring->since, 0, __ATOMIC_RELAXED);
}

/*
 * Makes way for this CPU's next record. Its ring; NULL: the event is refused, and counted.
 * Interrupts off.
 */
static inline struct ktr_ring *
ring_open(struct ktr_log *log, unsigned cpu)
{
	struct ktr_ring *ring = ktr_log_ring(log, cpu);
	struct ktr_log_cpu *account = &log->cpu[cpu];
	if (ring == NULL || ring->busy || ring_refuses(log, cpu)) {
		__atomic_fetch_add(&account->suppressed, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	uint64_t head = ring->head, seq = head / KTR_ENTRY_BYTES;
	uint64_t limit = ring_limit(log, ring, seq);
	if (limit <= seq) {
		__atomic_fetch_add(&account->dropped, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	ring_keep_since(ring, seq);
	ring_set_turn(log, ring, head, (uintptr_t)ktr_ring_slot(ring, seq) - head,
		      limit * KTR_ENTRY_BYTES);
	/* Another CPU may have closed the ring meanwhile. If it did so before the turn was set, its
	 * reason is seen below. If after, the ring stays closed. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (ring_refuses(log, cpu) || ring_limit(log, ring, seq) < limit)
		__atomic_store_n(&ring->limit, 0, __ATOMIC_RELAXED);
	return ring;
}

/* Prints an event that was just recorded. Parts of long data are no events. */
static __attribute__((noinline)) void
ktr_record_print(unsigned cpu, const struct ktr_site *site, const uint64_t args[KTR_MAXARGS])
{
	struct ktr_log_cpu *account = &ktr_main.cpu[cpu];
	int level = __atomic_load_n(&ktr_verbose, __ATOMIC_RELAXED);
	if (level == 0 || site == &ktr_data_site ||
	    __atomic_exchange_n(&account->printing, 1, __ATOMIC_ACQUIRE) != 0)
		return;
	struct ktr_entry e = {.ticks = ktr_port_time(),
			      .tid = ktr_port_tid(),
			      .site = ktr_site_number(site)};
	for (unsigned i = 0; i < site->nargs; i++)
		e.args[i] = args[i];
	ktr_port_verbose(cpu, site, &e, level);
	__atomic_store_n(&account->printing, 0, __ATOMIC_RELEASE);
}

/* Makes way and records, as often as it takes. False: the event is refused. */
static KTR_RECORD_TEXT bool
ktr_record_slow(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		struct ktr_pair more)
{
	uintptr_t irq = ktr_port_irq_save();
	unsigned cpu = ktr_port_cpu();
	bool recorded = false;
	while (!recorded && ring_open(&ktr_main, cpu) != NULL)
		recorded = KTR_PORT_RECORD(6, site, a1, a2, a3, a4, more);
	ktr_port_irq_restore(irq);
	if (recorded && ring_prints(&ktr_main))
		ktr_record_print(cpu, site, (uint64_t[]){a1, a2, a3, a4, more.a5, more.a6});
	return recorded;
}

bool
ktr_log_record(struct ktr_log *log, const struct ktr_site *site, const uint64_t a[KTR_MAXARGS])
{
	struct ktr_pair more = {a[4], a[5]};
	if (log == &ktr_main)
		return ktr_record_slow(site, a[0], a[1], a[2], a[3], more);
	uintptr_t irq = ktr_port_irq_save();
	unsigned cpu = ktr_port_cpu();
	struct ktr_ring *ring;
	bool recorded = false;
	while (!recorded && (ring = ring_open(log, cpu)) != NULL)
		recorded = ring_record(ring, KTR_MAXARGS, site, a[0], a[1], a[2], a[3], more);
	ktr_port_irq_restore(irq);
	return recorded;
}

/* Up to four parameters: a jump away from the record functions, with nothing on the stack. */
static KTR_RECORD_TEXT void
ktr_record_slow4(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4)
{
	ktr_record_slow(site, a1, a2, a3, a4, (struct ktr_pair){0, 0});
}

/* ---- the record functions ---- */

#define NO_PAIR ((struct ktr_pair){0, 0})
/* The last two parameters, for ports where only the slow path wants them. */
#ifndef KTR_PORT_PAIR
#define KTR_PORT_PAIR(more) ((struct ktr_pair){(more).a5, (more).a6})
#endif

KTR_RECORD_TEXT void
ktr_record0(const struct ktr_site *site)
{
	if (UNLIKELY(!KTR_PORT_RECORD(0, site, 0, 0, 0, 0, NO_PAIR)))
		ktr_record_slow4(site, 0, 0, 0, 0);
}

KTR_RECORD_TEXT void
ktr_record1(const struct ktr_site *site, uint64_t a1)
{
	if (UNLIKELY(!KTR_PORT_RECORD(1, site, a1, 0, 0, 0, NO_PAIR)))
		ktr_record_slow4(site, a1, 0, 0, 0);
}

KTR_RECORD_TEXT void
ktr_record2(const struct ktr_site *site, uint64_t a1, uint64_t a2)
{
	if (UNLIKELY(!KTR_PORT_RECORD(2, site, a1, a2, 0, 0, NO_PAIR)))
		ktr_record_slow4(site, a1, a2, 0, 0);
}

KTR_RECORD_TEXT void
ktr_record3(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3)
{
	if (UNLIKELY(!KTR_PORT_RECORD(3, site, a1, a2, a3, 0, NO_PAIR)))
		ktr_record_slow4(site, a1, a2, a3, 0);
}

KTR_RECORD_TEXT void
ktr_record4(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4)
{
	if (UNLIKELY(!KTR_PORT_RECORD(4, site, a1, a2, a3, a4, NO_PAIR)))
		ktr_record_slow4(site, a1, a2, a3, a4);
}

KTR_RECORD_TEXT void
ktr_record5(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
	    struct ktr_pair more)
{
	if (UNLIKELY(!KTR_PORT_RECORD(5, site, a1, a2, a3, a4, more)))
		ktr_record_slow(site, a1, a2, a3, a4, KTR_PORT_PAIR(more));
}

KTR_RECORD_TEXT void
ktr_record6(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
	    struct ktr_pair more)
{
	if (UNLIKELY(!KTR_PORT_RECORD(6, site, a1, a2, a3, a4, more)))
		ktr_record_slow(site, a1, a2, a3, a4, KTR_PORT_PAIR(more));
}

/* ---- reading ---- */

/* Part of every read. */
inline __attribute__((always_inline)) uint64_t
ktr_ring_tail(const struct ktr_ring *ring, uint64_t head)
{
	uint64_t base = __atomic_load_n(&ring->base, __ATOMIC_RELAXED);
	uint64_t readable = ring->entries - KTR_RING_SPARE;
	uint64_t oldest = head > readable ? head - readable : 0;
	return oldest > base ? oldest : base;
}

uint64_t
ktr_ring_since(const struct ktr_ring *ring)
{
	uint64_t start = __atomic_load_n(&ring->start, __ATOMIC_RELAXED), kept;
	if (ktr_ring_head(ring) <= start)
		return 0;
	uint64_t ticks = __atomic_load_n(&ktr_ring_slot(ring, start)->ticks, __ATOMIC_RELAXED);
	/* If the slot was overwritten, somebody has kept the time: pairs with ring_keep_since(). */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	kept = __atomic_load_n(&ring->since, __ATOMIC_RELAXED);
	return kept != 0 ? kept : ticks;
}

bool
ktr_log_window(const struct ktr_log *log, unsigned cpu, uint64_t *tail, uint64_t *head)
{
	const struct ktr_ring *ring = ktr_log_ring(log, cpu);
	if (ring == NULL)
		return false;
	*head = ktr_ring_head(ring);
	*tail = ktr_ring_tail(ring, *head);
	return true;
}

bool
ktr_ring_copy(const struct ktr_ring *ring, uint64_t seq, struct ktr_entry *to)
{
	const struct ktr_entry *from = ktr_ring_slot(ring, seq);
	KTR_PORT_STEP(KTR_HOST_READ);
	to->ticks = __atomic_load_n(&from->ticks, __ATOMIC_RELAXED);
	KTR_PORT_STEP(KTR_HOST_READ);
	to->tid = __atomic_load_n(&from->tid, __ATOMIC_RELAXED);
	KTR_PORT_STEP(KTR_HOST_READ);
	to->site = ktr_site_number_of(__atomic_load_n(&from->site, __ATOMIC_RELAXED));
#pragma GCC unroll 6 /* also when compiled for size: this is on each event's way out */
	for (unsigned i = 0; i < KTR_MAXARGS; i++) {
		KTR_PORT_STEP(KTR_HOST_READ);
		to->args[i] = __atomic_load_n(&from->args[i], __ATOMIC_RELAXED);
	}
	/* The words were read before the head is: pairs with the writer's fence. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	KTR_PORT_STEP(KTR_HOST_READ);
	return seq >= ktr_ring_tail(ring, ktr_ring_head(ring));
}

enum ktr_read_status
ktr_log_read(const struct ktr_log *log, unsigned cpu, uint64_t seq, struct ktr_entry *entry)
{
	const struct ktr_ring *ring = ktr_log_ring(log, cpu);
	if (ring == NULL)
		return KTR_READ_NOCPU;
	if (seq >= ktr_ring_head(ring))
		return KTR_READ_FUTURE;
	return ktr_ring_copy(ring, seq, entry) ? KTR_READ_OK : KTR_READ_GONE;
}
