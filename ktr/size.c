/*
 * size.c - making rings, changing their size, emptying them, and the accounting.
 *
 * Invariants: a ring changes only inside ktr_port_exchange(), while nobody records; an event keeps
 * its sequence number when it moves; what does not fit is below `base` afterwards and counts as
 * overwritten. Locking: the control lock, but for ktr_stats_get().
 */
#include "ktr/control.h"
#include "ktr/image.h"
#include "ktr/port.h"
#include "ktr/ring.h"

#define STATS_TRIES 1000

static unsigned ktr_entries = KTR_ENTRIES_DEFAULT; /* [control lock] */
static struct ktr_entry
    *size_boot_slots; /* the boot ring's, which cannot be freed [control lock] */

unsigned
ktr_entries_get(void)
{
	return __atomic_load_n(&ktr_entries, __ATOMIC_RELAXED);
}

/* Rings that are to be exchanged: those with slots here. */
struct size_change {
	struct ktr_entry *slots[KTR_PORT_MAXCPU]; /* in: the new ones; out: the old ones */
	uint64_t old_entries[KTR_PORT_MAXCPU];
	unsigned shift;
};

static unsigned
size_shift(unsigned entries)
{
	unsigned shift = 2;
	while ((1u << shift) < entries)
		shift++;
	return shift;
}

static uint64_t
size_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Nobody records. Moves the newest events that fit; unpublished ones stay unpublished. */
static void
size_exchange_ring(unsigned cpu, struct size_change *c)
{
	struct ktr_ring *ring = &ktr_rings[cpu];
	struct ktr_ring next = *ring;
	next.slots = c->slots[cpu];
	next.mask = (1ull << c->shift) - 1;
	next.lap_mul = 1ull << (48 - c->shift);
	next.owned = 1;

	uint64_t tail, head;
	if (!ktr_ring_window(cpu, &tail, &head))
		tail = head = 0;
	uint64_t first = head - tail > next.mask + 1 ? head - (next.mask + 1) : tail;
	next.cleared += first - size_max(tail, ring->encoded < first ? ring->encoded : first);
	next.base = size_max(ring->owned ? ring->base : head, first);
	for (uint64_t seq = first; seq < head; seq++) {
		const struct ktr_entry *from = ktr_ring_slot(ring, seq);
		struct ktr_entry *to = ktr_ring_slot(&next, seq);
		if (from->lap != ktr_ring_lap(ring, seq))
			continue;
		*to = *from;
		to->lap = ktr_ring_lap(&next, seq);
	}
	c->old_entries[cpu] = ring->owned ? ring->mask + 1 : 0;
	c->slots[cpu] = ring->slots;
	ktr_ring_set(cpu, &next);
}

static void
size_exchange(void *arg)
{
	struct size_change *c = arg;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		if (c->slots[cpu] != NULL)
			size_exchange_ring(cpu, c);
	}
	ktr_image_refresh();
}

static bool
size_alloc(struct size_change *c, unsigned cpu)
{
	c->slots[cpu] = ktr_port_alloc(sizeof(struct ktr_entry) << c->shift);
	return c->slots[cpu] != NULL;
}

/* Frees what the change holds: the new slots when it was not made, else the old ones. */
static void
size_free(struct size_change *c, bool made)
{
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		uint64_t entries = made ? c->old_entries[cpu] : 1ull << c->shift;
		if (c->slots[cpu] != NULL && entries != 0 && c->slots[cpu] != size_boot_slots)
			ktr_port_free(c->slots[cpu], entries * sizeof(struct ktr_entry));
		c->slots[cpu] = NULL;
	}
}

static struct size_change size_change; /* [control lock] too big for a stack */

static void
size_begin(unsigned entries)
{
	if (size_boot_slots == NULL)
		size_boot_slots = ktr_rings[0].slots;
	size_change = (struct size_change){.shift = size_shift(entries)};
}

int
ktr_cpu_init(unsigned cpu)
{
	if (cpu >= KTR_PORT_MAXCPU)
		return -KTR_EINVAL;
	ktr_port_lock();
	size_begin(ktr_entries);
	int error = 0;
	bool has_ring = ktr_rings[cpu].owned && ktr_rings[cpu].slots != size_boot_slots;
	if (!has_ring && size_alloc(&size_change, cpu)) {
		ktr_port_exchange(size_exchange, &size_change);
		size_free(&size_change, true);
	} else if (!has_ring) {
		error = -KTR_ENOMEM;
	}
	ktr_port_unlock();
	return error;
}

int
ktr_resize(unsigned entries)
{
	if (entries < KTR_ENTRIES_MIN || entries > KTR_ENTRIES_MAX)
		return -KTR_EINVAL;
	ktr_port_lock();
	size_begin(entries);
	bool ok = true;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU && ok; cpu++) {
		if (ktr_rings[cpu].owned && ktr_port_head_of(cpu) != NULL)
			ok = size_alloc(&size_change, cpu);
	}
	if (ok) {
		ktr_port_exchange(size_exchange, &size_change);
		__atomic_store_n(&ktr_entries, 1u << size_change.shift, __ATOMIC_RELAXED);
	}
	size_free(&size_change, ok);
	ktr_port_unlock();
	return ok ? 0 : -KTR_ENOMEM;
}

void
ktr_clear(void)
{
	ktr_port_lock();
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		struct ktr_ring *ring = &ktr_rings[cpu];
		uint64_t tail, head;
		if (!ktr_ring_window(cpu, &tail, &head))
			continue;
		uint64_t seen = size_max(tail, ring->encoded);
		uint64_t cleared = ring->cleared + (head > seen ? head - seen : 0);
		__atomic_store_n(&ring->cleared, cleared, __ATOMIC_RELAXED);
		__atomic_store_n(&ring->base, head, __ATOMIC_RELAXED);
	}
	ktr_image_refresh();
	ktr_port_unlock();
}

/*
 * Whatever is read while a stream moves the cursor, the sum is that of one moment: what is not
 * resident, and not counted as lost, was delivered.
 */
static bool
stats_read(const struct ktr_ring *ring, unsigned cpu, struct ktr_stats *stats)
{
	uint64_t tail, head;
	/* Before the head, so that it is not ahead of it. */
	uint64_t cursor = __atomic_load_n(&ring->cursor, __ATOMIC_ACQUIRE);
	uint64_t lost = __atomic_load_n(&ring->overwritten, __ATOMIC_RELAXED);
	uint64_t torn = __atomic_load_n(&ring->torn, __ATOMIC_RELAXED);
	if (!ktr_ring_window(cpu, &tail, &head))
		return false;
	*stats = (struct ktr_stats){
	    .recorded = head,
	    .delivered = cursor - lost - torn,
	    .resident = head - size_max(tail, cursor),
	    .overwritten = lost + (tail > cursor ? tail - cursor : 0),
	    .torn = torn,
	    .suppressed = __atomic_load_n(&ring->suppressed, __ATOMIC_RELAXED),
	    .cleared = __atomic_load_n(&ring->cleared, __ATOMIC_RELAXED),
	};
	return true;
}

bool
ktr_stats_get(unsigned cpu, struct ktr_stats *stats)
{
	if (cpu >= KTR_PORT_MAXCPU)
		return false;
	const struct ktr_ring *ring = &ktr_rings[cpu];
	/* Not for ever: the machine may be stopped in the middle of a change. */
	for (unsigned i = 0; i < STATS_TRIES; i++) {
		uint32_t moving = __atomic_load_n(&ring->moving, __ATOMIC_ACQUIRE);
		if (!stats_read(ring, cpu, stats))
			return false;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (moving % 2 == 0 && __atomic_load_n(&ring->moving, __ATOMIC_RELAXED) == moving)
			break;
	}
	return true;
}
