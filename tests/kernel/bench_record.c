/*
 * bench_record.c - instructions of trace points and context switches. Run it under qemu/boot
 * --icount, where the clock counts instructions: with one CPU, as tests/bench/run does, or with up
 * to eight, as tests/bench/growth.py.
 *
 * Each row is the difference between a loop with the measured code and the same loop without it,
 * with interrupts off. It is measured twice, and the results must agree to within the clock's tick,
 * which may be several instructions. A row is printed as `bench NAME VALUE UNIT`.
 *
 * QEMU's clock counts the instructions of all CPUs. A clock tick of another CPU takes 1,800 of
 * them. So a loop is run several times, and the least counts: that of a time without such a tick.
 */
#include <stddef.h>
#include <stdint.h>

#include "arch/clock.h"
#include "arch/irq.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/probe/kprobe.h"
#include "kernel/sched/sched.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"
#include "ktr/control.h"
#include "ktr/ktr.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/ktr_help.h"

/* A turn of the ring: its first event takes the slow path, which is included. */
#define ROUNDS     ((uint64_t)KTR_ENTRIES_DEFAULT)
#define TIMES      40
#define SWITCHES   (4ull * KTR_ENTRIES_DEFAULT)
#define HUNDREDTHS 100ull

/* How far two measurements may differ: by the clock's tick. */
#define CLOCK_HUNDREDTHS 1

/* Hundredths of an instruction for one of n rounds that took so many ticks. */
static uint64_t
each_of(uint64_t ticks, uint64_t n)
{
	/* x86_64's rate is measured and not exact; the true rates divide a nanosecond evenly. */
	uint64_t insn_per_tick = (1000000000ull + clock_hz() / 2) / clock_hz();

	return (ticks * insn_per_tick * HUNDREDTHS + n / 2) / n;
}

static uint64_t
apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void
print_row(const char *name, uint64_t hundredths)
{
	pr_warn("bench %s %lu.%02lu instructions\n", name, (unsigned long)(hundredths / HUNDREDTHS),
		(unsigned long)(hundredths % HUNDREDTHS));
}

/*
 * The counter is in memory, so that at most four values are in registers. Otherwise the loop would
 * measure a caller that has to save registers around the call, instead of the trace point.
 */
#define REPEAT(n) for (volatile uint64_t left = (n); left > 0; left--)

static __attribute__((noipa)) void
loop_empty(uint64_t n)
{
	REPEAT(n)
	{
	}
}

static __attribute__((noipa)) void
loop_ctr0(uint64_t n)
{
	REPEAT(n)
	{
		CTR0(KTR_SPARE2, "bench: no parameter");
	}
}

static __attribute__((noipa)) void
loop_ctr1(uint64_t n, uint64_t a)
{
	REPEAT(n)
	{
		CTR1(KTR_SPARE2, "bench: a %lu", a);
	}
}

static __attribute__((noipa)) void
loop_ctr3(uint64_t n, uint64_t a, uint64_t b, uint64_t c)
{
	REPEAT(n)
	{
		CTR3(KTR_SPARE2, "bench: a %lu b %lu c %lu", a, b, c);
	}
}

static __attribute__((noipa)) void
loop_ctr6(uint64_t n, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	REPEAT(n)
	{
		CTR6(KTR_SPARE2, "bench: a %lu b %lu c %lu d %lu e %lu f %lu", a, b, c, d, c, b);
	}
}

static __attribute__((noipa)) void
loop_ctr6_constants(uint64_t n, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	REPEAT(n)
	{
		CTR6(KTR_SPARE2, "bench: a %lu b %lu c %lu d %lu e %d f %d", a, b, c, d, 7, 8);
	}
}

enum loop { EMPTY, LOOP_CTR0, LOOP_CTR1, LOOP_CTR3, LOOP_CTR6, LOOP_CTR6_CONSTANTS };

static uint64_t
loop_takes(unsigned loop)
{
	uint64_t start = arch_clock_read();

	switch ((enum loop)loop) {
	case EMPTY:
		loop_empty(ROUNDS);
		break;
	case LOOP_CTR0:
		loop_ctr0(ROUNDS);
		break;
	case LOOP_CTR1:
		loop_ctr1(ROUNDS, 2);
		break;
	case LOOP_CTR3:
		loop_ctr3(ROUNDS, 2, 3, 4);
		break;
	case LOOP_CTR6:
		loop_ctr6(ROUNDS, 2, 3, 4, 5);
		break;
	case LOOP_CTR6_CONSTANTS:
		loop_ctr6_constants(ROUNDS, 2, 3, 4, 5);
		break;
	}
	return arch_clock_read() - start;
}

/* The least ticks of several runs. */
static uint64_t
least_of(uint64_t (*takes)(unsigned), unsigned what)
{
	uint64_t least = UINT64_MAX;

	irq_push();
	for (unsigned i = 0; i < TIMES; i++) {
		uint64_t ticks = takes(what);

		least = ticks < least ? ticks : least;
	}
	irq_pop();
	return least;
}

static uint64_t
more_than_empty(enum loop loop)
{
	uint64_t empty = least_of(loop_takes, EMPTY), full = least_of(loop_takes, loop);

	return each_of(full - empty, ROUNDS);
}

static void
bench_loop(const char *name, enum loop loop, uint64_t mask)
{
	uint64_t first, again;

	ktr_test_begin(KTR_ENTRIES_DEFAULT);
	ktr_mask_set(mask);
	first = more_than_empty(loop);
	again = more_than_empty(loop);
	KT_LE(apart(again, first), CLOCK_HUNDREDTHS);
	ktr_test_end();
	print_row(name, first);
}

KTEST(bench_site_off)
{
	bench_loop("site_off", LOOP_CTR0, 0);
	bench_loop("site_off6", LOOP_CTR6, 0);
}

KTEST(bench_site_on)
{
	bench_loop("ctr0", LOOP_CTR0, KTR_SPARE2);
	bench_loop("ctr1", LOOP_CTR1, KTR_SPARE2);
	bench_loop("ctr3", LOOP_CTR3, KTR_SPARE2);
	bench_loop("ctr6", LOOP_CTR6, KTR_SPARE2);
	bench_loop("ctr6_constants", LOOP_CTR6_CONSTANTS, KTR_SPARE2);
}

static __attribute__((noipa)) uint64_t
bench_callee(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	return a + b + c + d + e + f;
}

static __attribute__((noipa)) void
bench_point(uint64_t a, uint64_t b)
{
	CTR2(KTR_SPARE2, "bench: hooked a %lu b %lu", a, b);
}

static uint64_t
calls_take(unsigned what)
{
	uint64_t start = arch_clock_read();

	REPEAT(ROUNDS)
	{
		bench_callee(1, 2, 3, 4, 5, 6);
		bench_point(1, 2);
	}
	return arch_clock_read() - start;
}

/* One round's cost, for that owner. */
static void
bench_probe(const char *row, const char *probe, unsigned owner)
{
	uint64_t off, first, again;

	ktr_test_begin(KTR_ENTRIES_DEFAULT);
	off = least_of(calls_take, 0);
	KT_EQ(ktr_select(owner, probe, true, NULL, NULL, 0), 1);
	first = each_of(least_of(calls_take, 0) - off, ROUNDS);
	again = each_of(least_of(calls_take, 0) - off, ROUNDS);
	ktr_select(owner, probe, false, NULL, NULL, 0);
	KT_LE(apart(again, first), CLOCK_HUNDREDTHS);
	ktr_test_end();
	print_row(row, first);
}

KTEST(bench_fbt)
{
	bench_probe("fbt_entry", "fbt:kernel:bench_callee:entry", KTR_OWNER_COMMAND);
	bench_probe("fbt_return", "fbt:kernel:bench_callee:return", KTR_OWNER_COMMAND);
}

KTEST(bench_kprobe)
{
	char err[128];

	/* After the no-op at the entry, which has five bytes or four. */
	if (kprobe_add("p:bench bench_callee+5 a=%sp b=$stack", KPROBE_KERNEL, err, sizeof(err)) !=
	    0)
		KT_EQ(kprobe_add("p:bench bench_callee+4 a=%sp b=$stack", KPROBE_KERNEL, err,
				 sizeof(err)),
		      0);
	bench_probe("kprobe", "kprobe:::bench", KTR_OWNER_COMMAND);
	KT_EQ(kprobe_del("bench", KPROBE_KERNEL, err, sizeof(err)), 0);
}

static void
do_nothing(const struct ktr_firing *f)
{
}

KTEST(bench_hook)
{
	int owner = ktr_owner_register("bench", do_nothing);

	KT_GT(owner, 0);
	bench_probe("hook_fbt", "fbt:kernel:bench_callee:entry", (unsigned)owner);
	bench_probe("hook_ctr", "bench: hooked*", (unsigned)owner);
	KT_EQ(ktr_owner_unregister((unsigned)owner), 0);
}

static bool partner_runs, measured; /* atomic */
static uint64_t switch_cost;        /* hundredths */

/* Thread 0 measures; thread 1 takes turns with it. Interrupts are off, so no other thread runs. */
static void
take_turns(unsigned i, void *arg)
{
	uint64_t start;

	arch_irq_disable();
	if (i == 0) {
		while (!__atomic_load_n(&partner_runs, __ATOMIC_RELAXED))
			sched_yield();
		start = arch_clock_read();
		for (uint64_t n = 0; n < SWITCHES / 2; n++)
			sched_yield();
		switch_cost = each_of(arch_clock_read() - start, SWITCHES);
		__atomic_store_n(&measured, true, __ATOMIC_RELAXED);
	} else {
		__atomic_store_n(&partner_runs, true, __ATOMIC_RELAXED);
		while (!__atomic_load_n(&measured, __ATOMIC_RELAXED))
			sched_yield();
	}
	arch_irq_enable();
}

static uint64_t
measure_switch(uint64_t mask)
{
	ktr_test_begin(KTR_ENTRIES_DEFAULT);
	partner_runs = measured = false;
	ktr_mask_set(mask);
	ktest_start(2, false, take_turns, NULL);
	ktest_join();
	ktr_test_end();
	return switch_cost;
}

KTEST(bench_context_switch)
{
	uint64_t off, on;

	if (ncpus != 1)
		ktest_skip("two threads take turns on one CPU");
	off = measure_switch(0);
	KT_LE(apart(measure_switch(0), off), CLOCK_HUNDREDTHS);
	on = measure_switch(KTR_SCHED);
	KT_LE(apart(measure_switch(KTR_SCHED), on), CLOCK_HUNDREDTHS);
	print_row("switch_off", off);
	print_row("switch_sched", on);
}
