/*
 * flush_thread.c - the flush thread. It works when a timer expires, or when a clock tick finds a
 * ring a quarter full; not for each event. ktr_trace_init() starts it, and all else in
 * kernel/trace.
 *
 * The clock tick reads flags only, since it may not wait for flush.lock. Locking: none; all
 * variables here are atomic.
 */
#include "kernel/lib/clock.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/trace/flush.h"
#include "kernel/trace/trace_private.h"
#include "ktr/ring.h"

#define FLUSH_PERIOD_NS 50000000ull  /* between passes, when no ring fills */
#define FLUSH_WAIT_MIN  1000000ull   /* the first wait for a busy line; it doubles */
#define FLUSH_WAIT_MAX  100000000ull /* the longest one */

static bool sleeping;       /* the thread waits to be woken */
static bool kick;           /* wake it at the next tick */
static uint64_t max_events; /* that are written; 0: no end */

void
flush_set_max(uint64_t events)
{
	__atomic_store_n(&max_events, events, __ATOMIC_RELAXED);
}

uint64_t
flush_max(void)
{
	return __atomic_load_n(&max_events, __ATOMIC_RELAXED);
}

void
flush_kick(void)
{
	__atomic_store_n(&kick, true, __ATOMIC_RELEASE);
}

static void
flush_thread(void *arg)
{
	uint64_t busy_ns = FLUSH_WAIT_MIN;

	for (;;) {
		enum flush_result r;
		uint64_t deadline = DEADLINE_NEVER;

		__atomic_store_n(&kick, false, __ATOMIC_RELEASE);
		r = flush_work();
		if (r == FLUSH_MORE) {
			busy_ns = FLUSH_WAIT_MIN;
			continue;
		}
		if (r == FLUSH_ENDING)
			busy_ns = FLUSH_WAIT_MIN; /* more often, its switches would be more than the
						     line takes */
		if (r == FLUSH_BUSY || r == FLUSH_ENDING) {
			thread_sleep_ns(busy_ns, 0, "ktrline");
			busy_ns = busy_ns * 2 < FLUSH_WAIT_MAX ? busy_ns * 2 : FLUSH_WAIT_MAX;
			continue;
		}
		if (flush_enabled())
			deadline = clock_ns() + FLUSH_PERIOD_NS;
		__atomic_store_n(&sleeping, true, __ATOMIC_RELEASE);
		sleep_on(&sleeping, NULL, "ktrflush", 0, deadline);
		__atomic_store_n(&sleeping, false, __ATOMIC_RELEASE);
	}
}

/* Do events that the stream has not seen fill a quarter of this CPU's ring? */
static bool
flush_watermark(void)
{
	unsigned cpu = arch_cpu();
	const struct ktr_ring *ring = ktr_log_ring(&ktr_main, cpu);
	uint64_t seen = __atomic_load_n(&ktr_main.cpu[cpu].encoded, __ATOMIC_RELAXED);

	return ring != NULL && ktr_ring_head(ring) - seen > ring->entries / 4;
}

/* The clock tick of each CPU: wakes the flush thread when it has something to do. */
static void
flush_tick(void)
{
	if (!__atomic_load_n(&sleeping, __ATOMIC_RELAXED))
		return;
	/* If the thread does not sleep yet, the next tick wakes it. */
	if (__atomic_load_n(&kick, __ATOMIC_RELAXED) || (flush_enabled() && flush_watermark()))
		wakeup(&sleeping);
}

HOOK(clock_tick, flush_tick);

void
ktr_trace_init(void)
{
	struct thread *t = thread_alloc("ktrflush", PRIO_KERN, flush_thread, NULL);
	int error = ktrdev_init();

	trace_info_init();
	if (error < 0)
		pr_warn("ktr: no /dev/ktr (error %d)\n", -error);
	error = trace_prev_init();
	if (error < 0)
		pr_warn("ktr: no /dev/ktr.prev (error %d)\n", -error);
	if (t == NULL)
		panic("ktr: no memory for the flush thread");
	t->ktr_suppress = true;
	wake_up_new_task(t);
}
