/*
 * ktr_restart_test.c - a timer interrupt, which records, at each instruction of a record call.
 *
 * The timer is set, and a little later events are recorded: a little later in each round, by one
 * instruction. Under qemu/boot --icount, where an instruction is a nanosecond, the interrupt comes
 * at every instruction of the calls, and is over when the round is; otherwise where and when it
 * likes to. The note at the end says how it was: tests/system/test_restart.py looks at it.
 */
#include <ktr_port.h>

#include "arch/clock.h"
#include "arch/irq.h"
#include "kernel/sched/clock.h"
#include "kernel/sync/spinlock.h"
#include "ktr/ktr.h"
#include "ktr/restart.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/ktr_help.h"

#define ROUNDS   1600u
#define TIMER_NS 1000u
#define ROUND_NS 20000u
#define CLAIM    64u /* bytes, at most */

/* Takes n instructions more than with n = 0: as many no-ops, and loops of sixteen. */
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

static __attribute__((noipa)) void
record_four(uint64_t n)
{
	CTR6(KTR_SPARE2, "test: n %lu a %lu b %lu c %lu d %lu e %lu", n, ~n, n + 1, n + 2, n + 3,
	     n + 4);
	CTR6(KTR_SPARE2, "test: n %lu a %lu b %lu c %lu d %lu e %lu", n + 1, ~(n + 1), n + 2, n + 3,
	     n + 4, n + 5);
	CTR6(KTR_SPARE2, "test: n %lu a %lu b %lu c %lu d %lu e %lu", n + 2, ~(n + 2), n + 3, n + 4,
	     n + 5, n + 6);
	CTR6(KTR_SPARE2, "test: n %lu a %lu b %lu c %lu d %lu e %lu", n + 3, ~(n + 3), n + 4, n + 5,
	     n + 6, n + 7);
}

static struct found {
	uint64_t events;
	uint64_t quiet; /* rounds without an interrupt's events */
	bool inside;    /* an interrupt, of which the end has not come */
	bool hit[CLAIM];
} found;

static void
check_event(unsigned cpu, const struct ktr_entry *e, void *arg)
{
	const struct ktr_site *site = ktr_site_get(e->site);
	const struct ktr_restart *claim;

	(void)arg;
	KT_ASSERT(site != NULL);
	if (site->classes == KTR_SPARE2) {
		KT_EQ(e->args[0], found.events);
		KT_EQ(e->args[1], ~found.events);
		KT_EQ(e->args[5], found.events + 4);
		KT_ASSERT(!found.inside);
		found.events++;
		return;
	}
	/* Before and behind, one class or only a part of its sites may be on. */
	if (cpu != 0 || found.events == 0 || found.events == ROUNDS * 4)
		return;
	found.inside = !found.inside;
	KT_EQ(site->nargs, found.inside ? 4 : 1); /* enter, exit */
	claim = found.inside ? ktr_restart_find(e->args[2]) : NULL;
	if (claim != NULL && e->args[2] != claim->from)
		found.hit[e->args[2] - claim->from] = true;
}

static void
interrupt_records(unsigned i, void *arg)
{
	(void)i;
	(void)arg;
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t begin = ktr_head_seq(ktr_port_head()), end = clock_ns() + ROUND_NS;

		irq_push();
		arch_timer_set(TIMER_NS);
		irq_pop();
		spend(round);
		record_four(round * 4);
		while (clock_ns() < end)
			arch_relax();
		found.quiet += ktr_head_seq(ktr_port_head()) < begin + 4 + 2;
	}
}

KTEST(ktr_ring_claims_begin_again_wherever_an_interrupt_comes)
{
	unsigned hits = 0;

	KT_GT(__stop_ktr_restart - __start_ktr_restart, 0);
	KT_LE(__start_ktr_restart[0].end - __start_ktr_restart[0].from, CLAIM);
	ktr_test_begin(32768);
	found = (struct found){.events = 0};
	ktr_mask_set(KTR_SPARE2 | KTR_INTR);
	ktest_start(1, true, interrupt_records, NULL);
	ktest_join();
	ktr_mask_set(0);
	ktr_test_each(check_event, NULL);
	ktr_test_accounting();
	ktr_test_end();
	KT_EQ(found.events, ROUNDS * 4);
	for (unsigned i = 0; i < CLAIM; i++)
		hits += found.hit[i];
	ktest_note("interrupted at %u instructions of the claim; %lu rounds without an interrupt",
		   hits, found.quiet);
}
