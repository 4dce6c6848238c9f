/*
 * dtrace_count_test.c - `fbt:::entry { @[probefunc] = count(); }` and the function profiler count
 * the same calls on all CPUs: no more, no fewer. And a program that reads a device's memory.
 */
#include <stdint.h>

#include "arch/mmu.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/lib/string.h"
#include "kernel/mm/boot_info.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/kmap.h"
#include "kernel/probe/funcprof.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/smp.h"
#include "ktr/control.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/ktr_help.h"
#include "tests/unit/dif_help.h"

/* Of each thread. One CPU more is a thread more; in the suite all together do as much as two do. */
static unsigned
rounds(void)
{
	return ktest_times(600 / (ncpus + 1), 300);
}

static struct maker m;
static struct dtrace_consumer consumer;
static uint64_t gate; /* changes while no CPU is in a hook */
static struct mutex contended = MUTEX_INIT("dtrace count");

static void
set_gate(void *value)
{
	gate = *(uint64_t *)value;
}

static void
turn_gate(uint64_t value)
{
	smp_stop_run(set_gate, &value);
}

static void
profile(const struct ktr_firing *f)
{
	if (gate != 0)
		funcprof_count(f);
}

static bool
is_entry(const struct ktr_site *site, void *arg)
{
	return site->kind == KTR_SITE_ENTRY;
}

static void
load_mix(unsigned i, void *arg)
{
	for (unsigned n = 0; n < rounds(); n++) {
		void *p = kmalloc(16 + (n * 37 + i) % 3000),
		     *q = n % 50 == 0 ? kmap_alloc(8192) : NULL;

		mutex_lock(&contended);
		sched_yield();
		mutex_unlock(&contended);
		kfree(p);
		kmap_free(q);
	}
}

/* Calls of a function, or of several of this name, that the profiler has counted. */
static uint64_t
profiled(const char *name)
{
	struct funcprof p;
	const char *of;
	uint64_t hits = 0;

	for (unsigned n = 0; (of = funcprof_get(n, 0, &p)) != NULL; n++)
		for (unsigned cpu = 0; strcmp(of, name) == 0 && cpu < ncpus; cpu++) {
			funcprof_get(n, cpu, &p);
			hits += p.hits;
		}
	return hits;
}

static uint64_t
all_profiled(void)
{
	struct funcprof p;
	uint64_t hits = 0;

	for (unsigned cpu = 0; cpu < ncpus; cpu++)
		for (unsigned n = 0; funcprof_get(n, cpu, &p) != NULL; n++)
			hits += p.hits;
	return hits;
}

#define NAMES 1024u
static struct {
	const char *name;
	uint64_t count;
} counted[NAMES];

/* What the aggregation has of all CPUs, by name. Returns how many names. */
static unsigned
add_up(void)
{
	unsigned names = 0;

	for (unsigned cpu = 0; cpu < ncpus; cpu++) {
		void *table = NULL;
		uint32_t size = dif_agg_take(&consumer.d, cpu, &table);

		for (uint32_t at = 0; at < size;) {
			const struct dif_entry *e = (const void *)((const char *)table + at);
			const char *name = (const char *)(e + 1);
			unsigned n = 0;

			while (n < names && strcmp(counted[n].name, name) != 0)
				n++;
			KT_LT(n, NAMES);
			names += n == names;
			counted[n].name = name; /* the tables stay as they are: nothing fires */
			counted[n].count += *dif_value(e);
			at += (uint32_t)sizeof(*e) + 8u * (e->key_words + e->value_words);
		}
		dif_agg_done(&consumer.d, cpu);
	}
	return names;
}

KTEST(dtrace_counts_what_the_profiler_counts)
{
	struct dif_refusal why;
	uint64_t sum = 0;
	char err[8];
	int owner;

	ktr_test_begin(64);
	KT_EQ(dtrace_owner_begin(), 0);
	make(&m);
	memset(counted, 0, sizeof(counted));
	m.h.options.aggsize = 256 << 10;
	put_agg(&m, DIF_COUNT, DIF_K_STR);
	CLAUSE(&m, {DIF_OR | DIF_IMM, 1, 0, 0, (int32_t)(uintptr_t)&gate}, {DIF_LD8, 1, 1, 0, 0},
	       {DIF_JEQ, 0, 1, 0, 4}, {DIF_BUILTIN, 1, 0, 0, DIF_B_PROBEFUNC},
	       {DIF_KEY_STR, 0, 1, 0, 0}, {DIF_AGG, 0, 0, 0, 0}, {DIF_RET, 0, 0, 0, 0},
	       {DIF_RET, 0, 0, 0, 1});
	m.clauses[0].probes = put_string(&m, "fbt:::entry");
	consumer = (struct dtrace_consumer){0};
	KT_ASSERT(load_made(&m, &consumer.d, ncpus, &why) == NULL);
	consumer.d.state = DIF_LOADED;
	mutex_lock(&dtrace_lock);
	KT_EQ(dtrace_match(&consumer, NULL, err, sizeof(err)), 0);
	KT_EQ(dtrace_go(&consumer), 0);
	mutex_unlock(&dtrace_lock);
	KT_EQ(funcprof_start(), 0);
	owner = ktr_owner_register("test", profile);
	KT_GT(owner, 0);
	ktr_select_all((unsigned)owner, is_entry, NULL);

	turn_gate(1);
	ktest_start(ncpus + 1, false, load_mix, NULL);
	ktest_join();
	turn_gate(0);

	KT_EQ(ktr_owner_unregister((unsigned)owner), 0);
	mutex_lock(&dtrace_lock);
	dtrace_stop(&consumer, false);
	mutex_unlock(&dtrace_lock);
	struct dif_status s;
	dif_status(&consumer.d, &s);
	KT_EQ(s.fired, s.predicate_false + s.completed);
	KT_EQ(s.agg_drops, 0);
	KT_EQ(s.completed, all_profiled());
	unsigned names = add_up();
	KT_GT(names, 50);
	for (unsigned n = 0; n < names; n++) {
		sum += counted[n].count;
		if (counted[n].count != profiled(counted[n].name))
			ktest_fail(__FILE__, __LINE__, "%s: counted %lu, profiled %lu",
				   counted[n].name, (unsigned long)counted[n].count,
				   (unsigned long)profiled(counted[n].name));
	}
	KT_EQ(sum, s.completed);
	KT_GE(profiled("kmalloc"), rounds() * (ncpus + 1));
	funcprof_stop();
	mutex_lock(&dtrace_lock);
	dtrace_unload(&consumer);
	mutex_unlock(&dtrace_lock);
	dtrace_owner_end();
	ktr_test_end();
}

/* An address that is mapped, but not to RAM: to read it may have effects, or end in an exception.
 */
KTEST(dtrace_devices_are_not_read)
{
	struct dif_refusal why;
	struct dif_status s;
	uint64_t top = 0;
	char err[8];

	for (unsigned i = 0; i < boot_info.range_count; i++)
		if (boot_info.ranges[i].end > top && boot_info.ranges[i].kind == BOOT_RAM)
			top = boot_info.ranges[i].end;
	uint64_t va = (uintptr_t)kmap_phys(top + (1ul << 30), 4096, MMU_READ);
	KT_NE(va, 0);
	ktr_test_begin(64);
	KT_EQ(dtrace_owner_begin(), 0);
	make(&m);
	CLAUSE(&m, {DIF_OR | DIF_IMM, 1, 0, 0, (int32_t)va},
	       {DIF_HIGH, 1, 0, 0, (int32_t)(va >> 32)}, {DIF_LD4, 2, 1, 0, 16},
	       {DIF_RET, 0, 0, 0, 0});
	m.clauses[0].probes = put_string(&m, "dtrace:::BEGIN");
	consumer = (struct dtrace_consumer){0};
	KT_ASSERT(load_made(&m, &consumer.d, ncpus, &why) == NULL);
	consumer.d.state = DIF_LOADED;
	mutex_lock(&dtrace_lock);
	KT_EQ(dtrace_match(&consumer, NULL, err, sizeof(err)), 0);
	KT_EQ(dtrace_go(&consumer), 0);
	dtrace_stop(&consumer, false);
	mutex_unlock(&dtrace_lock);
	dif_status(&consumer.d, &s);
	KT_EQ(s.fired, 1);
	KT_EQ(s.faulted, 1);
	KT_EQ(s.fault_addr, va + 16);
	mutex_lock(&dtrace_lock);
	dtrace_unload(&consumer);
	mutex_unlock(&dtrace_lock);
	dtrace_owner_end();
	ktr_test_end();
}
