/*
 * ktr_hook_test.c - what a hook sees of the stack, on every kind of probe; hooks that come and go
 * while all CPUs fire.
 */
#include <stddef.h>
#include <stdint.h>

#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sysctl/registry.h"
#include "ktr/control.h"
#include "ktr/hook.h"
#include "ktr/ktr.h"
#include "ktr/sdt.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/ktr_help.h"

SDT_PROVIDER_DEFINE(ktest);
SDT_PROBE_DEFINE_TEXT(ktest, , , hook, "hook", ": n %d", 1, "int");

#define DEPTH 3u

static struct {
	unsigned calls;
	uint64_t args[KTR_SDT_ARGS];
	uintptr_t stack[DEPTH];
} seen;

/* The stack as ktr/hook.h describes it. */
static void
see(const struct ktr_firing *f)
{
	const struct ktr_where where = ktr_firing_where(f);
	const uintptr_t *frame = (const uintptr_t *)where.fp;
	unsigned n = 0;

	if (seen.calls++ > 0)
		return;
	for (unsigned i = 0; i < f->nargs; i++)
		seen.args[i] = f->args[i];
	seen.stack[n++] = where.pc;
	if (where.ret != 0)
		seen.stack[n++] = where.ret;
	for (; n < DEPTH; frame = (const uintptr_t *)frame[0])
		seen.stack[n++] = frame[1];
}

static __attribute__((noipa)) uint64_t
hook_inner(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	CTR2(KTR_SPARE2, "hook test: two %lu %lu", a, b);
	CTR6(KTR_SPARE2, "hook test: six %lu %lu %lu %lu %lu %lu", a, b, c, d, e, f);
	SDT_PROBE1(ktest, , , hook, a);
	return a + f;
}

static __attribute__((noipa)) uint64_t
hook_middle(uint64_t a)
{
	return hook_inner(a, 2, 3, 4, 5, 6) + 1;
}

static __attribute__((noipa)) uint64_t
hook_outer(uint64_t a)
{
	return hook_middle(a) + 1;
}

static bool
stands_in(uintptr_t pc, uint64_t (*fn)(uint64_t))
{
	return pc > (uintptr_t)fn && pc < (uintptr_t)fn + 64;
}

static void
check(int owner, const char *spec)
{
	seen.calls = 0;
	KT_EQ(ktr_select((unsigned)owner, spec, true, NULL, NULL, 0), 1);
	KT_EQ(hook_outer(1), 9);
	KT_EQ(ktr_select((unsigned)owner, spec, false, NULL, NULL, 0), 1);
	KT_EQ(seen.calls, 1);
	KT_ASSERT(seen.stack[0] >= (uintptr_t)hook_inner);
	KT_ASSERT(seen.stack[0] < (uintptr_t)hook_inner + 512);
	KT_ASSERT(stands_in(seen.stack[1], hook_middle));
	KT_ASSERT(stands_in(seen.stack[2], hook_outer));
}

KTEST(ktr_hook_stack)
{
	int owner = ktr_owner_register("test", see);

	ktr_test_begin(64);
	KT_GT(owner, 1);
	check(owner, "hook test: two*");
	KT_EQ(seen.args[1], 2);
	check(owner, "hook test: six*");
	KT_EQ(seen.args[5], 6);
	check(owner, "ktest:::hook");
	KT_EQ(seen.args[0], 1);
	check(owner, "fbt::hook_inner:entry");
	for (unsigned i = 0; i < 6; i++)
		KT_EQ(seen.args[i], i + 1);
	check(owner, "fbt::hook_inner:return");
	KT_EQ(seen.args[0], seen.stack[0] - (uintptr_t)hook_inner);
	KT_EQ(seen.args[1], 7);
	KT_EQ(ktr_owner_unregister((unsigned)owner), 0);
	ktr_test_end();
}

/* kernel/probe/demo.c */
KTEST(ktr_hook_at_a_jump_to_another_function)
{
	int owner = ktr_owner_register("test", see);
	const struct sysctl *s = sysctl_find("debug.fbt.demo");
	char text[16];
	struct sbuf out;

	ktr_test_begin(64);
	KT_GT(owner, 1);
	KT_GT(ktr_select((unsigned)owner, "fbt::demo_get:return", true, NULL, NULL, 0), 0);
	seen.calls = 0;
	sbuf_init(&out, text, sizeof(text));
	sysctl_get_text(s, &out);
	KT_EQ(strcmp(text, "3 is odd"), 0);
	KT_EQ(seen.calls, 1);
	KT_EQ(seen.args[1], (uintptr_t)sbuf_puts);
	KT_GT(seen.args[0], 0);
	/* sysctl_print() calls demo_get(), which is gone. */
	KT_ASSERT(seen.stack[1] > (uintptr_t)sysctl_print);
	KT_ASSERT(seen.stack[1] < (uintptr_t)sysctl_print + 512);
	KT_ASSERT(seen.stack[2] > (uintptr_t)sysctl_get_text);
	KT_ASSERT(seen.stack[2] < (uintptr_t)sysctl_get_text + 512);
	KT_EQ(ktr_owner_unregister((unsigned)owner), 0);
	ktr_test_end();
}

/* kernel/probe/demo.c has a function that ends with a jump. */
static unsigned
calls_of_probes(void)
{
	char text[16];
	struct sbuf out;

	seen.calls = 0;
	sbuf_init(&out, text, sizeof(text));
	sysctl_get_text(sysctl_find("debug.fbt.demo"), &out);
	KT_EQ(strcmp(text, "3 is odd"), 0);
	KT_EQ(hook_outer(1), 9);
	return seen.calls;
}

KTEST(ktr_functions_go_on_at_once_while_all_owners_sleep)
{
	int owner = ktr_owner_register("test", see), other = ktr_owner_register("other", see);
	uint32_t naps = __atomic_load_n(&ktr_functions_naps, __ATOMIC_RELAXED);
	uint64_t cpus = 0;

	ktr_test_begin(64);
	KT_GT(owner, 1);
	KT_GT(other, 1);
	KT_EQ(ktr_select((unsigned)owner, "fbt::hook_*:", true, NULL, NULL, 0), 6);
	KT_GT(ktr_select((unsigned)owner, "fbt::demo_get:return", true, NULL, NULL, 0), 0);
	KT_EQ(calls_of_probes(), 7);
	ktr_hook_sleeps((unsigned)owner, &cpus);
	KT_EQ(calls_of_probes(), 0);
	/* One that is awake is enough. */
	KT_EQ(ktr_select((unsigned)other, "fbt::hook_outer:entry", true, NULL, NULL, 0), 1);
	KT_EQ(calls_of_probes(), 8);
	KT_EQ(ktr_owner_unregister((unsigned)other), 0);
	KT_EQ(calls_of_probes(), 0);
	cpus = 1;
	ktr_functions_look();
	KT_EQ(calls_of_probes(), 7);
	KT_EQ(ktr_functions_naps - naps, 4); /* twice asleep, and awake again */
	KT_EQ(ktr_owner_unregister((unsigned)owner), 0);
	ktr_test_end();
}

static void
set_predicates(unsigned owner, uint64_t number)
{
	for (uint32_t i = 0; i < ktr_site_count(); i++) {
		struct ktr_site *site = ktr_site_get(i);

		if ((site->owners >> owner & 1) != 0 && strcmp(site->func, "hook_outer") != 0)
			KT_EQ(ktr_hook_predicate(site, number), number != 0);
	}
}

KTEST(ktr_functions_do_not_fire_while_their_owners_predicate_is_false)
{
	int owner = ktr_owner_register("test", see), other = ktr_owner_register("other", see);
	uint64_t number = KTR_PREDICATE((unsigned)owner, 7);
	struct thread *t = curthread();

	ktr_test_begin(64);
	KT_GT(owner, 1);
	KT_GT(other, 1);
	KT_EQ(ktr_select((unsigned)owner, "fbt::hook_*:", true, NULL, NULL, 0), 6);
	KT_GT(ktr_select((unsigned)owner, "fbt::demo_get:return", true, NULL, NULL, 0), 0);
	thread_predcache_set(t, number, thread_predcache_changes(t));
	KT_EQ(calls_of_probes(), 7);
	set_predicates((unsigned)owner, number);
	KT_EQ(calls_of_probes(), 2);
	thread_predcache_set(t, number + 256, thread_predcache_changes(t));
	KT_EQ(calls_of_probes(), 7);
	thread_predcache_set(t, number, thread_predcache_changes(t));
	/* Another owner is told of all, and no more is hidden when that one has gone. */
	KT_EQ(ktr_select((unsigned)other, "fbt::hook_inner:", true, NULL, NULL, 0), 2);
	KT_EQ(calls_of_probes(), 2 + 2 * 2);
	KT_EQ(ktr_owner_unregister((unsigned)other), 0);
	KT_EQ(calls_of_probes(), 2);
	set_predicates((unsigned)owner, 0);
	KT_EQ(calls_of_probes(), 7);
	thread_predcache_forget(t);
	KT_EQ(ktr_owner_unregister((unsigned)owner), 0);
	ktr_test_end();
}

static bool going;                 /* atomic */
static uint64_t counted[MAX_CPUS]; /* each CPU its own */

static void
count(const struct ktr_firing *f)
{
	counted[arch_cpu()]++;
}

/* Thread 0 switches; the others fire. */
static void
come_and_go(unsigned i, void *arg)
{
	if (i > 0) {
		while (__atomic_load_n(&going, __ATOMIC_RELAXED))
			KT_EQ(hook_outer(1), 9);
		return;
	}
	for (unsigned round = 0; round < ktest_times(16 / ncpus, 40); round++) {
		int owner = ktr_owner_register("test", count);

		KT_GT(owner, 1);
		KT_GT(ktr_select((unsigned)owner, "hook test:*", true, NULL, NULL, 0), 0);
		KT_EQ(ktr_select((unsigned)owner, "fbt::hook_*:", true, NULL, NULL, 0), 6);
		KT_EQ(hook_outer(1), 9);
		KT_EQ(ktr_owner_unregister((unsigned)owner), 0);
	}
	__atomic_store_n(&going, false, __ATOMIC_RELAXED);
}

KTEST(ktr_hook_come_and_go)
{
	uint64_t all = 0;

	ktr_test_begin(64);
	going = true;
	ktest_start(ncpus > 1 ? ktest_busy_cpus() : 2, false, come_and_go, NULL);
	ktest_join();
	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
		all += counted[cpu];
	KT_GT(all, 0);
	ktr_test_accounting();
	ktr_test_end();
}
