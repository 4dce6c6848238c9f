/*
 * size.c - making rings, changing their size, emptying them, and the accounting.
 *
 * Invariants: a CPU's ring changes only inside ktr_port_exchange(), while nobody records; the new
 * ring is complete before the pointer to it is stored; an event keeps its sequence number. Events
 * that do not fit are below `base` afterwards and count as overwritten.
 *
 * Locking: the control lock.
 */
#include "ktr/control.h"
#include "ktr/image.h"
#include "ktr/persist.h"
#include "ktr/port.h"
#include "ktr/ring.h"

#define STATS_TRIES   1000
#define COPY_PASSES   8 /* over the rings, while CPUs record; each has less to copy than the last */
#define EXCHANGE_COPY 4096u /* events of a CPU that are copied while all CPUs wait */

static uint32_t ktr_entries = KTR_ENTRIES_DEFAULT; /* [control lock] */

unsigned
ktr_entries_get(void)
{
	return __atomic_load_n(&ktr_entries, __ATOMIC_RELAXED);
}

static uint64_t
size_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint32_t
round_entries(unsigned entries)
{
	uint32_t n = KTR_ENTRIES_MIN;
	while (n < entries)
		n *= 2;
	return n;
}

static void
ring_set_base(struct ktr_ring *ring, uint64_t base, uint64_t start)
{
	__atomic_store_n(&ring->start, start, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->base, base, __ATOMIC_RELAXED);
	ring->check = KTR_RING_CHECK(ring->entries, ring->cpu, base, start);
}

/* An empty ring; NULL: no memory. The main log's survive a reset, where there is room. */
static struct ktr_ring *
ring_alloc(unsigned cpu, uint32_t entries, bool main)
{
	size_t size = ktr_ring_bytes(entries);
	struct ktr_ring *ring = main ? ktr_persist_alloc(size) : NULL;
	if (ring == NULL)
		ring = ktr_port_alloc(size);
	if (ring == NULL)
		return NULL;
	*ring = (struct ktr_ring){.entries = entries,
				  .cpu = cpu,
				  .check = KTR_RING_CHECK(entries, cpu, 0, 0)};
	return ring;
}

static void
ring_free(struct ktr_ring *ring)
{
	if (ring == NULL || ring->entries == 0 || ring == &ktr_boot_ring.ring)
		return;
	ring->check = 0; /* after a reset it must not pass for a ring in use */
	if (!ktr_persist_free(ring))
		ktr_port_free(ring, ktr_ring_bytes(ring->entries));
}

/* The new rings of the main log before an exchange; the old ones after it, or a closed log's. */
static struct ktr_ring *exchange_rings[KTR_PORT_MAXCPU]; /* [control lock] too big for a stack */

/* [control lock] The new rings have those events below these numbers that are still there. */
static uint64_t exchange_copied[KTR_PORT_MAXCPU];

/*
 * Copies the newest events that fit, and returns the number of the first one. Events may be
 * recorded meanwhile; those that are overwritten by that are below the tail, when the tail is
 * looked at again.
 */
static uint64_t
exchange_copy(unsigned cpu, uint64_t tail, uint64_t head)
{
	const struct ktr_ring *old = *KTR_PORT_RING_OF(cpu), *ring = exchange_rings[cpu];
	uint64_t fit = ring->entries - KTR_RING_SPARE;
	uint64_t first = head - tail > fit ? head - fit : tail;
	for (uint64_t seq = size_max(first, exchange_copied[cpu]); seq < head; seq++) {
		const struct ktr_entry *from = ktr_ring_slot(old, seq);
		struct ktr_entry *to = ktr_ring_slot(ring, seq);
		KTR_PORT_STEP(KTR_HOST_READ);
		to->ticks = __atomic_load_n(&from->ticks, __ATOMIC_RELAXED);
		to->tid = __atomic_load_n(&from->tid, __ATOMIC_RELAXED);
		to->site = __atomic_load_n(&from->site, __ATOMIC_RELAXED);
		for (unsigned i = 0; i < KTR_MAXARGS; i++)
			to->args[i] = __atomic_load_n(&from->args[i], __ATOMIC_RELAXED);
	}
	exchange_copied[cpu] = head;
	return first;
}

/* Makes the new ring the CPU's, with the newest events that fit. Nobody records. */
static void
exchange_ring(unsigned cpu)
{
	struct ktr_ring **at = KTR_PORT_RING_OF(cpu), *old = *at, *ring = exchange_rings[cpu];
	struct ktr_log_cpu *account = &ktr_main.cpu[cpu];
	uint64_t tail, head;
	if (ktr_log_window(&ktr_main, cpu, &tail, &head)) {
		bool many = head - size_max(tail, exchange_copied[cpu]) > EXCHANGE_COPY;
		uint64_t first = exchange_copy(cpu, many ? head - EXCHANGE_COPY : tail, head);
		uint64_t seen = size_max(tail, account->encoded);
		uint64_t cleared = account->cleared + (first > seen ? first - seen : 0);
		/* atomic: the debugger reads it without the lock */
		__atomic_store_n(&account->cleared, cleared, __ATOMIC_RELAXED);
		ring->head = old->head;
		ring->since = ktr_ring_since(old);
		ring_set_base(ring, size_max(old->base, first), old->start);
	}
	/* release: pairs with the acquire in ktr_log_ring() */
	__atomic_store_n(at, ring, __ATOMIC_RELEASE);
	exchange_rings[cpu] = old;
}

static void
exchange_all(void *arg)
{
	(void)arg;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++)
		if (exchange_rings[cpu] != NULL)
			exchange_ring(cpu);
	ktr_image_refresh();
}

/* Copies what is not copied yet. False: nothing was left. */
static bool
exchange_copy_more(void)
{
	bool any = false;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		uint64_t tail, head, before = exchange_copied[cpu];
		if (exchange_rings[cpu] == NULL || !ktr_log_window(&ktr_main, cpu, &tail, &head))
			continue;
		exchange_copy(cpu, tail, head);
		any |= head > size_max(tail, before);
	}
	return any;
}

/*
 * Most events are copied while CPUs record, since CPUs cannot wait while millions are copied. Each
 * pass copies what was recorded during the one before. What is left is copied while CPUs wait: at
 * most EXCHANGE_COPY events of each ring, the newest.
 */
static void
exchange_now(void)
{
	for (unsigned i = 0; i < COPY_PASSES && exchange_copy_more(); i++)
		;
	ktr_port_exchange(exchange_all, NULL);
	ktr_port_sync(); /* an NMI in a CPU that waited may still use the old ring */
}

/* Frees the last one first: a simple allocator can take back what it gave last. */
static void
exchange_free(void)
{
	for (unsigned cpu = KTR_PORT_MAXCPU; cpu-- > 0;) {
		ring_free(exchange_rings[cpu]);
		exchange_rings[cpu] = NULL;
		exchange_copied[cpu] = 0;
	}
}

int
ktr_cpu_init(unsigned cpu)
{
	if (cpu >= KTR_PORT_MAXCPU || KTR_PORT_RING_OF(cpu) == NULL)
		return -KTR_EINVAL;
	ktr_port_lock();
	int error = 0;
	const struct ktr_ring *old = ktr_log_ring(&ktr_main, cpu);
	if (old == NULL || old == &ktr_boot_ring.ring) {
		exchange_rings[cpu] = ring_alloc(cpu, ktr_entries, true);
		if (exchange_rings[cpu] != NULL)
			exchange_now();
		else
			error = -KTR_ENOMEM;
		exchange_free();
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
	uint32_t n = round_entries(entries);
	bool ok = true;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU && ok; cpu++) {
		if (ktr_log_ring(&ktr_main, cpu) == NULL)
			continue;
		exchange_rings[cpu] = ring_alloc(cpu, n, true);
		ok = exchange_rings[cpu] != NULL;
	}
	if (ok) {
		exchange_now();
		__atomic_store_n(&ktr_entries, n, __ATOMIC_RELAXED);
	}
	exchange_free();
	ktr_port_unlock();
	return ok ? 0 : -KTR_ENOMEM;
}

void
ktr_clear(void)
{
	ktr_port_lock();
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++) {
		struct ktr_ring *ring = ktr_log_ring(&ktr_main, cpu);
		struct ktr_log_cpu *account = &ktr_main.cpu[cpu];
		uint64_t tail, head;
		if (!ktr_log_window(&ktr_main, cpu, &tail, &head))
			continue;
		uint64_t seen = size_max(tail, account->encoded);
		uint64_t cleared = account->cleared + (head > seen ? head - seen : 0);
		__atomic_store_n(&account->cleared, cleared, __ATOMIC_RELAXED);
		ring_set_base(ring, head, head);
		__atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with ring_keep_since() */
		__atomic_store_n(&ring->since, 0, __ATOMIC_RELAXED);
	}
	ktr_port_unlock();
}

int
ktr_log_open(struct ktr_log *log, unsigned entries)
{
	uint32_t n = round_entries(entries);
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++)
		log->cpu[cpu] = (struct ktr_log_cpu){.ring = NULL};
	/* before the log has events: numbers of their sites are not used again from then on */
	ktr_port_lock();
	log->next = ktr_main.next;
	ktr_main.next = log;
	bool ok = true;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU && ok; cpu++) {
		if (ktr_log_ring(&ktr_main, cpu) == NULL)
			continue;
		struct ktr_ring *ring = ring_alloc(cpu, n, false);
		/* release: pairs with the acquire in ktr_log_ring() */
		__atomic_store_n(&log->cpu[cpu].ring, ring, __ATOMIC_RELEASE);
		ok = ring != NULL;
	}
	ktr_port_unlock();
	if (!ok)
		ktr_log_close(log);
	return ok ? 0 : -KTR_ENOMEM;
}

void
ktr_log_close(struct ktr_log *log)
{
	ktr_port_lock();
	for (struct ktr_log *l = &ktr_main; l != NULL; l = l->next)
		if (l->next == log)
			l->next = log->next;
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++)
		exchange_rings[cpu] =
		    __atomic_exchange_n(&log->cpu[cpu].ring, NULL, __ATOMIC_RELAXED);
	ktr_port_sync(); /* a CPU that was recording has ended, and all others are refused */
	exchange_free();
	ktr_port_unlock();
}

/*
 * A stream may move the cursor meanwhile. The equation holds all the same: events that are neither
 * resident nor counted as lost were delivered.
 */
static bool
stats_read(const struct ktr_log *log, unsigned cpu, struct ktr_stats *stats)
{
	const struct ktr_log_cpu *account = &log->cpu[cpu];
	uint64_t tail, head;
	/* Read before the head, so that it is not greater. */
	uint64_t cursor = __atomic_load_n(&account->cursor, __ATOMIC_ACQUIRE);
	uint64_t lost = __atomic_load_n(&account->overwritten, __ATOMIC_RELAXED);
	if (!ktr_log_window(log, cpu, &tail, &head))
		return false;
	uint64_t seen = size_max(cursor, __atomic_load_n(&account->encoded, __ATOMIC_RELAXED));
	uint64_t gone = lost + (tail > seen ? tail - seen : 0);
	uint64_t cleared = __atomic_load_n(&account->cleared, __ATOMIC_RELAXED);
	*stats = (struct ktr_stats){
	    .recorded = head,
	    .delivered = cursor - lost,
	    .resident = head - size_max(tail, cursor),
	    .overwritten = lost + (tail > cursor ? tail - cursor : 0),
	    .suppressed = __atomic_load_n(&account->suppressed, __ATOMIC_RELAXED),
	    .dropped = __atomic_load_n(&account->dropped, __ATOMIC_RELAXED),
	    .cleared = cleared,
	    .lost = gone > cleared ? gone - cleared : 0,
	};
	return true;
}

bool
ktr_log_stats_locked(const struct ktr_log *log, unsigned cpu, struct ktr_stats *stats)
{
	if (cpu >= KTR_PORT_MAXCPU)
		return false;
	const struct ktr_log_cpu *account = &log->cpu[cpu];
	/* Bounded: the machine may have stopped in the middle of a change. */
	for (unsigned i = 0; i < STATS_TRIES; i++) {
		uint32_t moving = __atomic_load_n(&account->moving, __ATOMIC_ACQUIRE);
		if (!stats_read(log, cpu, stats))
			return false;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (moving % 2 == 0 &&
		    __atomic_load_n(&account->moving, __ATOMIC_RELAXED) == moving)
			break;
	}
	return true;
}

bool
ktr_log_stats(const struct ktr_log *log, unsigned cpu, struct ktr_stats *stats)
{
	ktr_port_lock(); /* ktr_resize() frees rings */
	bool found = ktr_log_stats_locked(log, cpu, stats);
	ktr_port_unlock();
	return found;
}

bool
ktr_stats_get(unsigned cpu, struct ktr_stats *stats)
{
	return ktr_log_stats(&ktr_main, cpu, stats);
}
