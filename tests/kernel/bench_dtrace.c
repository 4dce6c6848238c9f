/*
 * bench_dtrace.c - instructions of programs (kernel/dtrace), from the patched no-op of a trace
 * point without parameters to the instruction after it. As in bench_record.c: one CPU under
 * qemu/boot
 * --icount; each row is the difference of two loops, with the program's probe on and off.
 */
#include <stdint.h>

#include "arch/clock.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/event/filter.h"
#include "kernel/ftrace/instance.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/sync/spinlock.h"
#include "ktr/ktr.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/ktr_help.h"
#include "tests/unit/dif_help.h"

#define ROUNDS     10000u
#define HUNDREDTHS 100u
#define RET                         \
	{                           \
		DIF_RET, 0, 0, 0, 0 \
	}

static struct maker m;
static struct dtrace_consumer consumer;

static __attribute__((noipa)) void
dtrace_point(void)
{
	CTR0(KTR_SPARE2, "bench dtrace: here");
}

/* Five frames deeper: with those of the test, eight. */
static __attribute__((noipa)) int
deeper(unsigned depth, uint64_t rounds)
{
	if (depth > 0)
		return deeper(depth - 1, rounds) + 1;
	for (volatile uint64_t left = rounds; left > 0; left--)
		dtrace_point();
	return 0;
}

static uint64_t
take(unsigned depth)
{
	uint64_t begin;

	irq_push();
	begin = arch_clock_read();
	deeper(depth, ROUNDS);
	begin = arch_clock_read() - begin;
	irq_pop();
	return begin;
}

/* Hundredths of instructions of a firing, which took so much longer than without. */
static uint64_t
say(const char *row, uint64_t ticks)
{
	uint64_t per_tick = (1000000000ull + clock_hz() / 2) / clock_hz();
	uint64_t cost = ticks * per_tick * HUNDREDTHS / ROUNDS;

	pr_warn("bench %s %lu.%02lu instructions\n", row, (unsigned long)(cost / HUNDREDTHS),
		(unsigned long)(cost % HUNDREDTHS));
	return cost;
}

/* The row of the program that was made, which is at the point. */
static uint64_t
bench(const char *row, unsigned depth)
{
	uint64_t off, on;
	struct dif_refusal why;
	struct dif_status s;
	const char *error;

	ktr_test_begin(64);
	KT_EQ(dtrace_owner_begin(), 0);
	m.clauses[0].probes = put_string(&m, "ktr:::bench-dtrace");
	m.h.options.bufsize = 4 << 20;
	m.h.options.aggsize = 1 << 20;
	char err[8];

	consumer = (struct dtrace_consumer){0};
	error = load_made(&m, &consumer.d, ncpus, &why);
	if (error != NULL)
		ktest_fail(__FILE__, __LINE__, "%s", error);
	consumer.d.state = DIF_LOADED;
	off = take(depth);
	mutex_lock(&dtrace_lock);
	KT_EQ(dtrace_match(&consumer, NULL, err, sizeof(err)), 0);
	KT_EQ(consumer.nprobes, 1);
	KT_EQ(dtrace_go(&consumer), 0);
	mutex_unlock(&dtrace_lock);
	deeper(depth, 1); /* makes the entry of an aggregation */
	on = take(depth) - off;
	dif_status(&consumer.d, &s);
	KT_EQ(s.completed + s.predicate_false, ROUNDS + 1);
	KT_EQ(s.agg_drops, 0);
	mutex_lock(&dtrace_lock);
	dtrace_unload(&consumer);
	mutex_unlock(&dtrace_lock);
	dtrace_owner_end();
	ktr_test_end();
	return say(row, on);
}

/*
 * The same through tracefs: a trigger, or if `filter` a filter of the event. It may cost five
 * instructions more than D's.
 */
static void
bench_ftrace(const char *row, unsigned depth, const char *text, bool filter, uint64_t of_d)
{
	struct ktr_site *site = NULL;
	struct filter_error error;
	uint64_t off, on;
	char command[64] = "!";

	for (unsigned n = 0; n < ktr_site_count(); n++)
		if (strcmp(ktr_site_get(n)->func, "dtrace_point") == 0 &&
		    ktr_site_get(n)->kind == KTR_SITE_POINT)
			site = ktr_site_get(n);
	ktr_test_begin(64);
	off = take(depth);
	strlcpy(command + 1, text, sizeof(command) - 1);
	mutex_lock(&ftrace_lock);
	if (filter) {
		KT_EQ(event_filter_set(&instance_top, site, text, &error), 0);
		KT_EQ(event_enable(&instance_top, site), 0);
	} else {
		KT_EQ(trigger_store(&instance_top, (uintptr_t)site, command + 1), 0);
	}
	mutex_unlock(&ftrace_lock);
	deeper(depth, 1);
	on = take(depth) - off;
	mutex_lock(&ftrace_lock);
	strlcpy(command + 1, text, sizeof(command) - 1);
	if (filter)
		event_filter_drop(site);
	else
		KT_EQ(trigger_store(&instance_top, (uintptr_t)site, command), 0);
	mutex_unlock(&ftrace_lock);
	ktr_test_end();
	/* a histogram's program looks at its gate first, which pause and continue store */
	KT_LE(say(row, on), of_d + (filter ? 5 : 80) * HUNDREDTHS);
}

KTEST(bench_dtrace)
{
	make(&m);
	CLAUSE(&m, RET);
	bench("dtrace_nothing", 0);

	make(&m);
	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_PID}, {DIF_OR | DIF_IMM, 2, 0, 0, 1234},
	       {DIF_JNE, 0, 1, 2, 1}, RET, {DIF_RET, 0, 0, 0, 1});
	bench_ftrace("ftrace_false", 0, "common_pid == 1234", true, bench("dtrace_false", 0));
	bench_ftrace("ftrace_true", 0, "common_pid != 1234", true, 133 * HUNDREDTHS);

	make(&m);
	put_agg(&m, DIF_COUNT, 0);
	CLAUSE(&m, {DIF_AGG, 0, 0, 0, 0}, RET);
	bench("dtrace_count", 0);

	make(&m);
	put_agg(&m, DIF_COUNT, DIF_K_INT);
	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_PID}, {DIF_KEY, 0, 1, 0, 0}, {DIF_AGG, 0, 0, 0, 0},
	       RET);
	bench("dtrace_count_pid", 0);

	make(&m);
	put_agg(&m, DIF_COUNT, DIF_KEYS_AND(DIF_K_STR, DIF_K_STR));
	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_EXECNAME}, {DIF_BUILTIN, 2, 0, 0, DIF_B_PROBEFUNC},
	       {DIF_KEY_STR, 0, 1, 0, 0}, {DIF_KEY_STR, 0, 2, 0, 0}, {DIF_AGG, 0, 0, 0, 0}, RET);
	bench("dtrace_count_names", 0);

	make(&m);
	put_agg(&m, DIF_COUNT, DIF_KEYS_AND(DIF_K_STR, DIF_K_INT));
	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_EXECNAME}, {DIF_BUILTIN, 2, 0, 0, DIF_B_TID},
	       {DIF_KEY_STR, 0, 1, 0, 0}, {DIF_KEY, 0, 2, 0, 0}, {DIF_AGG, 0, 0, 0, 0}, RET);
	bench_ftrace("ftrace_two_keys", 0, "hist:keys=comm,common_pid", false,
		     bench("dtrace_count_two", 0));

	make(&m);
	put_agg(&m, DIF_COUNT, DIF_K_STACK);
	CLAUSE(&m, {DIF_KEY_STACK, 0, 0, 0, 8}, {DIF_AGG, 0, 0, 0, 0}, RET);
	bench("dtrace_count_stack", 8);

	make(&m);
	put_agg(&m, DIF_COUNT, DIF_K_STACK);
	CLAUSE(&m, {DIF_KEY_STACK, 0, 0, 0, 16}, {DIF_AGG, 0, 0, 0, 0}, RET);
	bench_ftrace("ftrace_stack16", 8, "hist:keys=stacktrace", false,
		     bench("dtrace_count_stack16", 8));

	make(&m);
	put_layout(&m, 64);
	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_CURTHREAD}, {DIF_REC, 0, 0, 0, 0},
	       {DIF_REC_MEM, 0, 1, 0, DIF_PLACE(0, 64)}, RET);
	bench("dtrace_record64", 0);

	make(&m);
	put_agg(&m, DIF_COUNT, DIF_K_STR);
	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_PROBEFUNC}, {DIF_KEY_STR, 0, 1, 0, 0},
	       {DIF_AGG, 0, 0, 0, 0}, RET);
	bench("dtrace_count_func", 0);

	make(&m);
	put_layout(&m, 8 + 256);
	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_PID}, {DIF_BUILTIN, 2, 0, 0, DIF_B_EXECNAME},
	       {DIF_REC, 0, 0, 0, 0}, {DIF_REC8, 0, 1, 0, 0},
	       {DIF_REC_STR, 0, 2, 0, DIF_PLACE(8, 256)}, RET);
	bench("dtrace_printf", 0);
}
