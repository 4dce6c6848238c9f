/*
 * ktr_restart_test.c - a timer interrupt, which records an event, at each instruction of a record.
 *
 * Each round sets the timer and records events a little later, in each round by one instruction
 * more: once in the middle of a turn of the ring, once on the slow path. Under qemu/boot --icount,
 * where an instruction is a nanosecond, the interrupt hits every instruction of the calls. Without
 * it, interrupts come at random. The note at the end says which instructions were hit;
 * tests/system/test_restart.py checks it. On the slow path interrupts are off, so they come before
 * or after it.
 */
#include <ktr_port.h>

#include "arch/clock.h"
#include "arch/irq.h"
#include "kernel/lib/clock.h"
#include "kernel/sync/spinlock.h"
#include "ktr/ktr.h"
#include "ktr/restart.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/ktr_help.h"

#define SHIFTS   1600u        /* the largest delay of a round's events, in instructions */
#define ROUNDS   (3 * SHIFTS) /* several passes, since the clock's tick may be many instructions */
#define TIMER_NS 1000u
#define ROUND_NS 20000u
#define BYTES    128u   /* of a sequence, at most */
#define RING     65536u /* all events of the test, and those of 3 minutes of clock ticks */

/* The last sequence is that of ktr_record6(); the first ones are those of the slow path. */
#define SEQUENCES 16u

/* Takes n instructions more than spend(0): loops of sixteen, and single no-ops. */
static __attribute__((noipa)) void
spend(unsigned n)
{
	if ((n & 1) != 0)
		__asm__ volatile("nop");
	if ((n & 2) != 0)
		__asm__ volatile("nop; nop");
	if ((n & 4) != 0)
		__asm__ volatile("nop; nop; nop; nop");
	if ((n & 8) != 0)
		__asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop");
	for (n >>= 4; n > 0; n--)
		__asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop");
}

static bool slow; /* every event of this test takes the slow path */

static inline __attribute__((always_inline)) void
record_one(uint64_t n)
{
	if (slow)
		ktr_ring_close(arch_cpu());
	CTR6(KTR_SPARE2, "test: n %lu a %lu b %lu c %lu d %lu e %lu", n, ~n, n + 1, n + 2, n + 3,
	     n + 4);
}

static __attribute__((noipa)) void
record_four(uint64_t n)
{
	record_one(n);
	record_one(n + 1);
	record_one(n + 2);
	record_one(n + 3);
}

static struct found {
	uint64_t events;
	uint64_t quiet; /* rounds without an interrupt */
	bool inside;    /* an interrupt has begun and not ended */
	bool hit[SEQUENCES][BYTES];
} found;

static void
check_event(unsigned cpu, const struct ktr_entry *e, void *arg)
{
	const struct ktr_site *site = ktr_site_get(e->site);
	const struct ktr_restart *sequence;

	KT_ASSERT(site != NULL);
	if (site->classes == KTR_SPARE2) {
		KT_EQ(e->args[0], found.events);
		KT_EQ(e->args[1], ~found.events);
		KT_EQ(e->args[5], found.events + 4);
		KT_ASSERT(!found.inside);
		found.events++;
		return;
	}
	/* Before and after the rounds, not all sites of a class may be on. */
	if (cpu != 0 || found.events == 0 || found.events == ROUNDS * 4)
		return;
	found.inside = !found.inside;
	KT_EQ(site->nargs, found.inside ? 4 : 1); /* the events for interrupt enter and exit */
	sequence = found.inside ? ktr_restart_find(e->args[2]) : NULL;
	if (sequence != NULL && e->args[2] != sequence->from)
		found.hit[sequence - __start_ktr_restart][e->args[2] - sequence->from] = true;
}

static void
interrupt_records(unsigned i, void *arg)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t begin = ktr_ring_head(ktr_log_ring(&ktr_main, 0)),
			 end = clock_ns() + ROUND_NS;

		irq_push();
		arch_timer_set(TIMER_NS);
		irq_pop();
		spend(round % SHIFTS);
		record_four(round * 4);
		while (clock_ns() < end)
			arch_relax();
		found.quiet += ktr_ring_head(ktr_log_ring(&ktr_main, 0)) < begin + 4 + 2;
	}
}

static unsigned
hits(unsigned sequence)
{
	unsigned n = 0;

	for (unsigned i = 0; i < BYTES; i++)
		n += found.hit[sequence][i];
	return n;
}

static void
interrupt_everywhere(void)
{
	for (const struct ktr_restart *r = __start_ktr_restart; r < __stop_ktr_restart; r++)
		KT_LE(r->end - r->from, BYTES);
	KT_LE(__stop_ktr_restart - __start_ktr_restart, SEQUENCES);
	ktr_test_begin(RING);
	found = (struct found){.events = 0};
	ktr_mask_set(KTR_SPARE2 | KTR_INTR);
	ktest_start(1, true, interrupt_records, NULL);
	ktest_join();
	ktr_mask_set(0);
	ktr_test_each(check_event, NULL);
	ktr_test_accounting();
	ktr_test_end();
	KT_EQ(found.events, ROUNDS * 4);
}

KTEST(ktr_ring_records_begin_again_wherever_an_interrupt_comes)
{
	slow = false;
	interrupt_everywhere();
	ktest_note("interrupted at %u instructions of the record; %lu rounds without an interrupt",
		   hits((unsigned)(__stop_ktr_restart - __start_ktr_restart) - 1), found.quiet);
}

KTEST(ktr_ring_slow_path_is_whole_wherever_an_interrupt_comes)
{
	unsigned n = 0;

	slow = true;
	interrupt_everywhere();
	for (unsigned i = 0; i + 1 < (unsigned)(__stop_ktr_restart - __start_ktr_restart); i++)
		n += hits(i);
	ktest_note(
	    "interrupted at %u instructions of the slow path's sequences; %lu rounds without "
	    "an interrupt",
	    n, found.quiet);
}
