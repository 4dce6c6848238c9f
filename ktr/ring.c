/*
 * ring.c - recording an event, and reading one back.
 *
 * Recording: head, clock, claim (again when an interrupt or a migration came between: a
 * compare-and-swap finds that out, or who interrupts says it, ktr/restart.h), then the slot of the
 * claimed number: invalidate, fill, publish. The clock is read inside the claim, so
 * slot order is time order on each CPU. The slot is invalidated first because the writer may be
 * late: nested interrupts may have gone round the whole ring meanwhile and published a newer event
 * in this slot, and a reader must not see that one's lap over our words.
 *
 * Whatever is rare shares one test: a claim that goes beyond its CPU's limit takes the slow path.
 *
 * Locking: none. Everything in section .text.ktr_record may run in any context, and is never
 * preempted there by the scheduler. From a claim to the event's publication nothing leaves it; the
 * slow path does so before, to ask, and behind, to print.
 */
#include "ktr/ring.h"

#include "ktr/control.h"
#include "ktr/ktr.h"
#include "ktr/port.h"
#include "ktr/restart.h"

struct ktr_entry ktr_boot_slots[KTR_ENTRIES_BOOT];
/* Where CPUs without a ring record: shared and never read, so that a head word is all they need. */
static struct ktr_entry ktr_no_slots[KTR_ENTRIES_MIN];

_Static_assert(KTR_ENTRIES_MIN == 1u << 2, "lap_mul of the ring of CPUs without one");
_Static_assert(KTR_PORT_MAXCPU <= KTR_HEAD_STEP, "a head word has 6 bits for the CPU");

/* CPU 0 begins otherwise than all, and may be the only one. */
#define EVERY [0 ... KTR_PORT_MAXCPU - 1]
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
struct ktr_ring ktr_rings[KTR_PORT_MAXCPU] = {
    EVERY = {.slots = ktr_no_slots, .mask = KTR_ENTRIES_MIN - 1, .lap_mul = KTR_LAP_MUL(2)},
    [0] = {.slots = ktr_boot_slots,
	   .mask = KTR_ENTRIES_BOOT - 1,
	   .lap_mul = KTR_LAP_MUL(KTR_BOOT_SHIFT),
	   .owned = 1},
};
#pragma GCC diagnostic pop

#ifdef KTR_PORT_CLAIM_NOW
#define LIMIT(cpu) (&KTR_PORT_TURN_OF(cpu)->limit)
#else
#define LIMIT(cpu) (&ktr_rings[cpu].limit)
#endif

void
ktr_ring_set(unsigned cpu, const struct ktr_ring *ring)
{
	struct ktr_ring *to = &ktr_rings[cpu];
	to->slots = ring->slots;
	to->lap_mul = ring->lap_mul;
	/* ktr_stats_get() reads these meanwhile, without the lock */
	__atomic_store_n(&to->mask, ring->mask, __ATOMIC_RELAXED);
	__atomic_store_n(&to->base, ring->base, __ATOMIC_RELAXED);
	__atomic_store_n(&to->cleared, ring->cleared, __ATOMIC_RELAXED);
	__atomic_store_n(&to->owned, ring->owned, __ATOMIC_RELAXED);
	ktr_ring_close(cpu);
}

void
ktr_ring_close(unsigned cpu)
{
	/* Why it is closed is seen by whoever opens it again, or they see it closed: see open(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (ktr_port_head_of(cpu) != NULL)
		__atomic_store_n(LIMIT(cpu), 0, __ATOMIC_RELAXED);
}

/*
 * Words of an entry are written and read while others do the same: each access is a whole word. A
 * port may say that otherwise than by atomics, for which GCC knows no address with an offset.
 */
#ifdef KTR_PORT_PUT
#define PUT(field, value) KTR_PORT_PUT(field, value)
#else
#define PUT(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)
#endif

/*
 * Two neighbours. The second before the first saves a move of the first on x86_64, where the clock
 * takes RDX.
 */
#ifdef KTR_PORT_PUT_PAIR
#define PUT_PAIR(at, first, second) KTR_PORT_PUT_PAIR(at, first, second)
#else
#define PUT_PAIR(at, first, second) (PUT((at)[1], second), PUT((at)[0], first))
#endif

/* Between any two loads of a reader; a hosted port lets writers in here. */
#ifndef KTR_PORT_READ_STEP
#define KTR_PORT_READ_STEP() ((void)0)
#endif

#define UNLIKELY(c) __builtin_expect((c), 0)

#if defined(__GNUC__) && !defined(__clang__)
/*
 * These are leaves: a frame would be three of their forty instructions. For size, the register
 * allocator leaves parameters where they came.
 */
#pragma GCC optimize("Os", "omit-frame-pointer", "optimize-sibling-calls")
#endif

/* Where parameters five and six are. A port may know better than the compiler, which loads them
 * early. */
#ifndef KTR_PORT_STACK_PAIR
#define KTR_PORT_STACK_PAIR(pair) (pair)
#endif

/* Claims a number. False: nothing is claimed, the slow path is wanted; never so when looked at. */
static inline bool
ktr_ring_claim(struct ktr_claim *c, bool looked_at)
{
	const struct ktr_ring *ring;
	uint64_t head, seq;
	do {
		head = ktr_port_head();
		/* The CPU follows from the claim itself. */
		ring = &ktr_rings[ktr_head_cpu(head)];
		if (!looked_at && UNLIKELY(__atomic_load_n(&ring->limit, __ATOMIC_RELAXED) == 0))
			return false;
		c->now = ktr_port_time();
	} while (UNLIKELY(!ktr_port_claim(head, head + KTR_HEAD_STEP)));
	seq = ktr_head_seq(head);
	c->e = ktr_ring_slot(ring, seq);
	c->publish = (uint64_t)ktr_port_tid() << KTR_PUBLISH_TID_SHIFT | ktr_ring_lap(ring, seq);
	return true;
}

#ifdef KTR_PORT_CLAIM_NOW
#define CLAIM(c) KTR_PORT_CLAIM_NOW(c)
#else
#define CLAIM(c) ktr_ring_claim(c, false)
#endif

static inline void
ktr_ring_fill(const struct ktr_claim *c, const struct ktr_site *site, unsigned nargs, uint64_t a1,
	      uint64_t a2, uint64_t a3, uint64_t a4, const volatile struct ktr_pair *more)
{
	struct ktr_entry *e = c->e;
	/* 16 bits of its address / 64, which ktr_ring_read() makes a number. */
	uint32_t site_word =
	    (uint32_t)((uintptr_t)site * ((1u << KTR_PUBLISH_SITE_SHIFT) / sizeof(*site)));

	/* Invalidates: no lap. release: who finds the slot invalid finds a head that says why. */
	__atomic_store_n(&e->publish, site_word, __ATOMIC_RELEASE);
	ktr_port_wmb();
	PUT(e->ticks, c->now);
	if (nargs > 1)
		PUT_PAIR(&e->args[0], a1, a2);
	else if (nargs > 0)
		PUT(e->args[0], a1);
	if (nargs > 3)
		PUT_PAIR(&e->args[2], a3, a4);
	else if (nargs > 2)
		PUT(e->args[2], a3);
	if (nargs > 5)
		PUT_PAIR(&e->args[4], more->a5, more->a6);
	else if (nargs > 4)
		PUT(e->args[4], more->a5);
	/* release: pairs with the acquire in ktr_ring_read() */
	__atomic_store_n(&e->publish, c->publish | site_word, __ATOMIC_RELEASE);
}

/* ---- the slow path ----------------------------------------------------------------------------
 */

/* Are all events of that CPU refused? */
static inline bool
masked_off(unsigned cpu)
{
	return (__atomic_load_n(&ktr_cpumask, __ATOMIC_RELAXED) >> cpu & 1) == 0;
}

/*
 * Lets this CPU's claims be fast until its turn of the ring ends. The thread's events are not
 * refused, or it would not be here; all else that makes them slow is looked at behind: either we
 * see it, or whoever closes the ring does so after us.
 */
static inline void
ktr_ring_open(void)
{
	uint64_t head = ktr_port_head();
	unsigned cpu = ktr_head_cpu(head);
#ifdef KTR_PORT_CLAIM_NOW
	const struct ktr_ring *ring = &ktr_rings[cpu];
	uint64_t seq = ktr_head_seq(head);
	struct ktr_turn turn = {
	    .limit = head + ((ring->mask + 1) - (seq & ring->mask)) * KTR_HEAD_STEP,
	    .bias = (uintptr_t)ktr_ring_slot(ring, seq) - head,
	    .lap = ktr_ring_lap(ring, seq),
	};
	KTR_PORT_TURN(head, &turn);
#else
	__atomic_store_n(LIMIT(cpu), UINT64_MAX, __ATOMIC_RELAXED);
#endif
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (masked_off(cpu) || __atomic_load_n(&ktr_verbose, __ATOMIC_RELAXED) != 0)
		__atomic_store_n(LIMIT(cpu), 0, __ATOMIC_RELAXED);
}

/* Prints what was just recorded, when that is wanted. */
static __attribute__((noinline)) void
ktr_record_print(unsigned cpu, const struct ktr_site *site, const struct ktr_claim *c,
		 unsigned nargs, const uint64_t *a)
{
	int level = __atomic_load_n(&ktr_verbose, __ATOMIC_RELAXED);
	if (level == 0 || __atomic_exchange_n(&ktr_rings[cpu].printing, 1, __ATOMIC_ACQUIRE) != 0)
		return;
	struct ktr_entry e = {.ticks = c->now,
			      .tid = (uint32_t)(c->publish >> KTR_PUBLISH_TID_SHIFT),
			      .site = ktr_site_number(site)};
	for (unsigned i = 0; i < nargs; i++)
		e.args[i] = a[i];
	ktr_port_verbose(cpu, site, &e, level);
	__atomic_store_n(&ktr_rings[cpu].printing, 0, __ATOMIC_RELEASE);
}

static KTR_RECORD_TEXT void
ktr_record_slow(const struct ktr_site *site, unsigned nargs, const uint64_t *a)
{
	/* First: outside of the record text the thread may be switched out, and moved. */
	bool suppressed = ktr_port_suppressed();
	unsigned cpu = ktr_head_cpu(ktr_port_head());
	if (suppressed || masked_off(cpu)) {
		__atomic_fetch_add(&ktr_rings[cpu].suppressed, 1, __ATOMIC_RELAXED);
		return;
	}
	struct ktr_claim c;
	struct ktr_pair more = {a[4], a[5]};
	(void)ktr_ring_claim(&c, true);
	ktr_ring_fill(&c, site, KTR_MAXARGS, a[0], a[1], a[2], a[3], &more);
	ktr_ring_open();
	ktr_record_print(cpu, site, &c, nargs, a);
}

/* One pair a number of parameters; the same signature, so that up to four the slow one is a jump
 * away. */
#define RECORD(n, params, names, list, ...)                     \
	static KTR_RECORD_TEXT void ktr_record##n##_slow params \
	{                                                       \
		uint64_t args[KTR_MAXARGS] = list;              \
		ktr_record_slow(site, n, args);                 \
	}                                                       \
	KTR_RECORD_TEXT void ktr_record##n params               \
	{                                                       \
		struct ktr_claim c;                             \
		if (UNLIKELY(!CLAIM(&c))) {                     \
			ktr_record##n##_slow names;             \
			return;                                 \
		}                                               \
		ktr_ring_fill(&c, site, n, __VA_ARGS__);        \
	}
#define LIST(...)           \
	{                   \
		__VA_ARGS__ \
	}
#define S    const struct ktr_site *site
#define PAIR KTR_PORT_STACK_PAIR(&more)
/* Read only where it is wanted, and where that is a jump. */
#define MORE ((struct ktr_pair){PAIR->a5, PAIR->a6})

/* clang-format off */
RECORD(0, (S), (site), LIST(0), 0, 0, 0, 0, NULL)
RECORD(1, (S, uint64_t a1), (site, a1), LIST(a1), a1, 0, 0, 0, NULL)
RECORD(2, (S, uint64_t a1, uint64_t a2), (site, a1, a2), LIST(a1, a2), a1, a2, 0, 0, NULL)
RECORD(3, (S, uint64_t a1, uint64_t a2, uint64_t a3), (site, a1, a2, a3), LIST(a1, a2, a3),
       a1, a2, a3, 0, NULL)
RECORD(4, (S, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4), (site, a1, a2, a3, a4),
       LIST(a1, a2, a3, a4), a1, a2, a3, a4, NULL)
RECORD(5, (S, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, struct ktr_pair more),
       (site, a1, a2, a3, a4, MORE), LIST(a1, a2, a3, a4, more.a5), a1, a2, a3, a4, PAIR)
RECORD(6, (S, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, struct ktr_pair more),
       (site, a1, a2, a3, a4, MORE), LIST(a1, a2, a3, a4, more.a5, more.a6),
       a1, a2, a3, a4, PAIR)
/* clang-format on */

/* Part of every read. */
inline __attribute__((always_inline)) bool
ktr_ring_window(unsigned cpu, uint64_t *tail, uint64_t *head)
{
	const uint64_t *word = cpu < KTR_PORT_MAXCPU ? ktr_port_head_of(cpu) : NULL;
	if (word == NULL)
		return false;
	const struct ktr_ring *ring = &ktr_rings[cpu];
	uint64_t seq = ktr_head_seq(__atomic_load_n(word, __ATOMIC_ACQUIRE));
	uint64_t entries = __atomic_load_n(&ring->mask, __ATOMIC_RELAXED) + 1;
	uint64_t oldest = seq > entries ? seq - entries : 0;
	bool owned = __atomic_load_n(&ring->owned, __ATOMIC_RELAXED) != 0;
	uint64_t base = owned ? __atomic_load_n(&ring->base, __ATOMIC_RELAXED) : seq;
	*head = seq;
	*tail = oldest > base ? oldest : base;
	return true;
}

/* All but what publishes. */
static void
ktr_entry_copy(struct ktr_entry *to, const struct ktr_entry *from)
{
	KTR_PORT_READ_STEP();
	to->ticks = __atomic_load_n(&from->ticks, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < KTR_MAXARGS; i++) {
		KTR_PORT_READ_STEP();
		to->args[i] = __atomic_load_n(&from->args[i], __ATOMIC_RELAXED);
	}
}

enum ktr_read_status
ktr_ring_read(unsigned cpu, uint64_t seq, struct ktr_entry *entry)
{
	uint64_t tail, head;
	if (!ktr_ring_window(cpu, &tail, &head))
		return KTR_READ_NOCPU;
	if (seq >= head)
		return KTR_READ_FUTURE;
	if (seq < tail)
		return KTR_READ_GONE;

	const struct ktr_ring *ring = &ktr_rings[cpu];
	const struct ktr_entry *e = ktr_ring_slot(ring, seq);
	uint16_t lap = ktr_ring_lap(ring, seq);
	KTR_PORT_READ_STEP();
	/* acquire: pairs with the release in ktr_ring_fill() */
	entry->publish = __atomic_load_n(&e->publish, __ATOMIC_ACQUIRE);
	ktr_entry_copy(entry, e);
	/* The words were read before the lap is looked at again. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	KTR_PORT_READ_STEP();
	/* acquire: pairs with the release that invalidates, so that the head says who did it */
	uint64_t after = __atomic_load_n(&e->publish, __ATOMIC_ACQUIRE);
	bool whole = entry->publish == after && entry->lap == lap;
	KTR_PORT_READ_STEP();
	entry->site =
	    (uint16_t)(entry->site - (uintptr_t)__start_ktr_sites / sizeof(struct ktr_site));
	/* A lap has 15 bits: the head says whether it is this turn or one 32768 later. */
	ktr_ring_window(cpu, &tail, &head);
	if (seq < tail)
		return KTR_READ_GONE;
	return whole ? KTR_READ_OK : KTR_READ_UNPUBLISHED;
}
