/*
 * dtrace_test.c - consumers of probes in the kernel: what their programs see of the place where a
 * probe fires, the law fired = predicate false + completed + faulted + dropped while all CPUs fire,
 * NMIs, and consumers that come and go.
 */
#include <stddef.h>
#include <stdint.h>

#include "arch/irq.h"
#include "arch/mmu.h"
#include "arch/smp.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/mm/kmap.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sched_private.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "ktr/control.h"
#include "ktr/ktr.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/ktr_help.h"
#include "tests/unit/dif_help.h"

#define RET                         \
	{                           \
		DIF_RET, 0, 0, 0, 0 \
	}

static struct maker m;
static struct dtrace_consumer a, b;

static __attribute__((noipa)) uint64_t
dtrace_inner(uint64_t n)
{
	CTR2(KTR_SPARE2, "dtrace test: n %lu twice %lu", n, 2 * n);
	return n + 1;
}

static __attribute__((noipa)) uint64_t
dtrace_outer(uint64_t n)
{
	return dtrace_inner(n) + 1;
}

/* The last clause is at these probes. */
static void
at(const char *probes)
{
	m.clauses[m.h.clauses.count - 1].probes = put_string(&m, probes);
}

static void
start(struct dtrace_consumer *c, unsigned probes)
{
	struct dif_refusal why;
	const char *error;
	char err[8];

	*c = (struct dtrace_consumer){0};
	error = load_made(&m, &c->d, ncpus, &why);
	if (error != NULL)
		ktest_fail(__FILE__, __LINE__, "clause %u instruction %u: %s", why.clause, why.insn,
			   error);
	c->d.state = DIF_LOADED;
	mutex_lock(&dtrace_lock);
	KT_EQ(dtrace_match(c, NULL, err, sizeof(err)), 0);
	KT_EQ(c->nprobes, probes);
	KT_EQ(dtrace_go(c), 0);
	mutex_unlock(&dtrace_lock);
}

static struct dif_status
status(struct dtrace_consumer *c)
{
	struct dif_status s;

	dif_status(&c->d, &s);
	KT_EQ(s.fired, s.predicate_false + s.completed + s.faulted + s.dropped);
	return s;
}

static void
stop(struct dtrace_consumer *c)
{
	mutex_lock(&dtrace_lock);
	dtrace_stop(c, false);
	mutex_unlock(&dtrace_lock);
	status(c);
}

static void
unload(struct dtrace_consumer *c)
{
	mutex_lock(&dtrace_lock);
	dtrace_unload(c);
	mutex_unlock(&dtrace_lock);
}

static void
begin(void)
{
	ktr_test_begin(64);
	make(&m);
	KT_EQ(dtrace_owner_begin(), 0);
}

static void
end(void)
{
	dtrace_owner_end();
	ktr_test_end();
}

static uint64_t
global(const struct dtrace_consumer *c, uint32_t var)
{
	return *(uint64_t *)(c->d.globals + c->d.variables[var].place);
}

static const char *
global_str(const struct dtrace_consumer *c, uint32_t var)
{
	return (const char *)(c->d.globals + c->d.variables[var].place + 8);
}

/* Stores a built-in variable into a new variable. */
static uint32_t
put_builtin(enum dif_builtin what, bool text)
{
	uint32_t var = put_var(&m, DIF_GLOBAL, text ? DIF_STR : DIF_INT, text ? 0 : 8, 0);

	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, what}, {DIF_STV, 0, 1, 0, (int32_t)var}, RET);
	at("fbt::dtrace_inner:entry");
	return var;
}

KTEST(dtrace_place)
{
	uint32_t tid, func, prov, name, exec, caller, pid, cpu, pc, thread;

	begin();
	tid = put_builtin(DIF_B_TID, false);
	func = put_builtin(DIF_B_PROBEFUNC, true);
	prov = put_builtin(DIF_B_PROBEPROV, true);
	name = put_builtin(DIF_B_PROBENAME, true);
	exec = put_builtin(DIF_B_EXECNAME, true);
	caller = put_builtin(DIF_B_CALLER, false);
	pid = put_builtin(DIF_B_PID, false);
	cpu = put_builtin(DIF_B_CPU, false);
	pc = put_builtin(DIF_B_PC, false);
	thread = put_builtin(DIF_B_CURTHREAD, false);
	uint32_t arg = put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	CLAUSE(&m, {DIF_ARG, 1, 0, 0, 1}, {DIF_STV, 0, 1, 0, (int32_t)arg}, RET);
	at("ktr:::dtrace-test");
	/* a word of a structure of the kernel, through two pointers */
	uint32_t word = put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_CURTHREAD},
	       {DIF_LD4, 1, 1, 0, offsetof(struct thread, tid)}, {DIF_STV, 0, 1, 0, (int32_t)word},
	       RET);
	at("fbt::dtrace_inner:entry");
	start(&a, 2);
	KT_EQ(dtrace_outer(21), 23);
	stop(&a);
	KT_EQ(global(&a, tid), curthread()->tid);
	KT_STR_EQ(global_str(&a, func), "dtrace_inner");
	KT_STR_EQ(global_str(&a, prov), "fbt");
	KT_STR_EQ(global_str(&a, name), "entry");
	KT_STR_EQ(global_str(&a, exec), curthread()->name);
	KT_ASSERT(global(&a, caller) > (uintptr_t)dtrace_outer);
	KT_ASSERT(global(&a, caller) < (uintptr_t)dtrace_outer + 64);
	KT_EQ(global(&a, pid), 0);
	KT_LT(global(&a, cpu), ncpus);
	KT_EQ(global(&a, pc), (uintptr_t)dtrace_inner);
	KT_EQ(global(&a, thread), (uintptr_t)curthread());
	KT_EQ(global(&a, arg), 42);
	KT_EQ(global(&a, word), curthread()->tid);
	KT_EQ(status(&a).fired, 12);
	KT_EQ(status(&a).completed, 12);
	unload(&a);
	end();
}

KTEST(dtrace_stack)
{
	static const char *const probes[] = {"fbt::dtrace_inner:entry", "fbt::dtrace_inner:return",
					     "ktr:::dtrace-test"};
	void *piece[2];
	uint32_t size[2];

	begin();
	put_layout(&m, 64);
	for (unsigned i = 0; i < 3; i++) {
		CLAUSE(&m, {DIF_REC, 0, 0, 0, 0}, {DIF_REC_STACK, 0, 0, 0, DIF_PLACE(0, 64)}, RET);
		at(probes[i]);
	}
	start(&a, 3);
	arch_irq_disable();
	KT_EQ(dtrace_outer(21), 23);
	unsigned cpu = arch_cpu();
	arch_irq_enable();
	stop(&a);
	dif_record_take(&a.d, cpu, piece, size);
	KT_EQ(size[0], 3 * 80);
	for (unsigned i = 0; i < 3; i++) {
		const uint64_t *pcs = (const uint64_t *)piece[0] + i * 10 + 2;

		KT_ASSERT(pcs[0] >= (uintptr_t)dtrace_inner);
		KT_ASSERT(pcs[0] < (uintptr_t)dtrace_inner + 256);
		KT_ASSERT(pcs[1] > (uintptr_t)dtrace_outer &&
			  pcs[1] < (uintptr_t)dtrace_outer + 64);
		KT_ASSERT(pcs[2] != 0);
	}
	unload(&a);
	end();
}

/* Addresses that a program must not read: nothing is touched, and each is counted. */
KTEST(dtrace_bad_addresses)
{
	static const uint64_t bad[] = {0,
				       0x1000,
				       ARCH_USER_END - 8,
				       ARCH_USER_END,
				       0x7fffffffffffffff,
				       0x8000000000000000,
				       ARCH_DIRECT_BASE - 8,
				       ARCH_DIRECT_BASE + (1ul << 45),
				       ARCH_VMALLOC_END - 4096,
				       ARCH_VMALLOC_BASE,
				       (uint64_t)-8,
				       (uint64_t)-1};
	enum { N = sizeof(bad) / sizeof(bad[0]) };

	begin();
	for (unsigned i = 0; i < N; i++) {
		CLAUSE(&m, {DIF_OR | DIF_IMM, 1, 0, 0, (int32_t)bad[i]},
		       {DIF_HIGH, 1, 0, 0, (int32_t)(bad[i] >> 32)}, {DIF_LD8, 2, 1, 0, 0}, RET);
		at("fbt::dtrace_inner:entry");
	}
	/* the guard page below this thread's stack */
	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_CURTHREAD},
	       {DIF_LD8, 1, 1, 0, offsetof(struct thread, kstack)}, {DIF_LD8, 2, 1, 0, -8}, RET);
	at("fbt::dtrace_inner:entry");
	/* the ERROR probe fires for each */
	uint32_t errors = put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	CLAUSE(&m, {DIF_LDV, 1, 0, 0, (int32_t)errors}, {DIF_ARG, 2, 0, 0, 4},
	       {DIF_ADD, 1, 1, 2, 0}, {DIF_STV, 0, 1, 0, (int32_t)errors}, RET);
	at("dtrace:::ERROR");
	start(&a, 2);
	KT_EQ(dtrace_outer(21), 23);
	stop(&a);
	KT_EQ(status(&a).faulted, N + 1);
	KT_EQ(status(&a).completed, N + 1);
	KT_EQ(global(&a, errors), (N + 1) * DIF_FAULT_BADADDR);
	unload(&a);
	end();
}

#define CALLS 2000u

static void
call(unsigned i, void *arg)
{
	for (unsigned n = 0; n < CALLS; n++)
		KT_EQ(dtrace_outer(n + i), n + i + 2);
}

/* The sum of an aggregation without keys over all CPUs. */
static uint64_t
total(struct dtrace_consumer *c, uint32_t agg)
{
	uint64_t sum = 0;

	for (unsigned cpu = 0; cpu < c->d.cpus; cpu++) {
		void *entries = NULL;
		uint32_t size = dif_agg_take(&c->d, cpu, &entries);

		for (uint32_t off = 0; off < size;) {
			const struct dif_entry *e = (const void *)((const char *)entries + off);
			const uint64_t *w = (const uint64_t *)(e + 1) + e->key_words;

			if (e->agg == agg)
				sum += w[0];
			off += (uint32_t)sizeof(*e) + 8u * (e->key_words + e->value_words);
		}
		dif_agg_done(&c->d, cpu);
	}
	return sum;
}

/* A consumer that counts all, and one whose buffers are full soon. */
KTEST(dtrace_law)
{
	begin();
	m.h.options.aggsize = 1 << 20;
	uint32_t count = put_agg(&m, DIF_COUNT, 0);
	uint32_t by_arg = put_agg(&m, DIF_COUNT, DIF_K_INT);
	CLAUSE(&m, {DIF_AGG, 0, 0, 0, (int32_t)count}, RET);
	at("fbt::dtrace_inner:entry");
	CLAUSE(&m, {DIF_ARG, 1, 0, 0, 0}, {DIF_KEY, 0, 1, 0, 0},
	       {DIF_AGG, 0, 0, 0, (int32_t)by_arg}, RET);
	at("fbt::dtrace_inner:entry");
	start(&a, 1);
	make(&m);
	m.h.options.bufsize = 1024;
	put_layout(&m, 8);
	CLAUSE(&m, {DIF_ARG, 1, 0, 0, 1}, {DIF_AND | DIF_IMM, 1, 1, 0, 3}, {DIF_JEQ, 0, 1, 0, 1},
	       {DIF_RET, 0, 0, 0, 1}, {DIF_REC, 0, 0, 0, 0}, {DIF_REC8, 0, 1, 0, 0}, RET);
	at("fbt::dtrace_inner:return");
	CLAUSE(&m, {DIF_LD1, 1, 0, 0, 0}, RET);
	at("ktr:::dtrace-test");
	start(&b, 2);
	ktest_start(ncpus + 1, false, call, NULL);
	ktest_join();
	stop(&a);
	stop(&b);
	KT_EQ(status(&a).fired, 2ul * CALLS * (ncpus + 1));
	KT_EQ(status(&a).completed, 2ul * CALLS * (ncpus + 1));
	KT_EQ(status(&b).fired, 2ul * CALLS * (ncpus + 1));
	KT_EQ(status(&b).faulted, 1ul * CALLS * (ncpus + 1));
	KT_GT(status(&b).dropped, 0);
	KT_GT(status(&b).predicate_false, 0);
	KT_EQ(status(&b).dropped, status(&b).buf_drops);
	/* by_arg and count have one word each: both were added */
	KT_EQ(total(&a, count), 1ul * CALLS * (ncpus + 1));
	dtrace_outer(1); /* nobody counts any more */
	KT_EQ(status(&a).fired, 2ul * CALLS * (ncpus + 1));
	unload(&a);
	unload(&b);
	end();
}

static bool
nmis_came(void *arg)
{
	return __atomic_load_n(&pcpus[0]->nmi_count, __ATOMIC_ACQUIRE) >= *(uint64_t *)arg;
}

/* A program runs in an NMI. */
KTEST(dtrace_nmi)
{
	uint64_t want = pcpus[0]->nmi_count;

	begin();
	uint32_t level = put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	uint32_t count = put_agg(&m, DIF_COUNT, 0);
	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_IPL}, {DIF_STV, 0, 1, 0, (int32_t)level},
	       {DIF_AGG, 0, 0, 0, (int32_t)count}, RET);
	at("ktr:::nmi");
	start(&a, 1);
	for (unsigned i = 0; i < 10; i++) {
		want++;
		if (!arch_nmi_send(0)) {
			stop(&a);
			unload(&a);
			end();
			ktest_skip("this machine sends no NMI");
		}
		KT_ASSERT(ktest_wait(nmis_came, &want));
	}
	stop(&a);
	KT_EQ(status(&a).fired + dtrace_refused(), 10);
	KT_EQ(total(&a, count), status(&a).completed);
	KT_EQ(global(&a, level), 2);
	unload(&a);
	end();
}

static bool going; /* atomic */

/* Those of a tid that nobody has, or of that thread's. */
#define OF_THREAD(tid, ...)                                                               \
	CLAUSE(&m, {DIF_BUILTIN, 1, 0, 0, DIF_B_TID}, {DIF_OR | DIF_IMM, 2, 0, 0, (tid)}, \
	       {DIF_JEQ, 0, 1, 2, 1}, {DIF_RET, 0, 0, 0, 1}, __VA_ARGS__)
#define NOBODY 0x7fffffff

/* How many programs of `a` n calls of dtrace_outer() run. */
static uint64_t
runs(unsigned n)
{
	uint64_t before = status(&a).fired;

	for (unsigned i = 0; i < n; i++)
		dtrace_outer(i);
	return status(&a).fired - before;
}

KTEST(dtrace_predicates_are_cached_while_a_function_has_one_clause)
{
	int other = ktr_owner_register("other", NULL);

	begin();
	OF_THREAD(NOBODY, RET);
	at("fbt::dtrace_inner:entry");
	OF_THREAD(NOBODY, {DIF_OR | DIF_IMM, 3, 0, 0, 1}, RET);
	at("fbt::dtrace_inner:return");
	start(&a, 2);
	KT_EQ(runs(3), 1); /* both are the same predicate */
	KT_EQ(runs(3), 0);
	thread_rename(curthread(), curthread()->name);
	KT_EQ(runs(3), 1);
	make(&m);
	OF_THREAD((int32_t)curthread()->tid, RET);
	at("fbt::dtrace_inner:entry");
	start(&b, 1);
	KT_EQ(runs(3), 3); /* the entries */
	KT_EQ(status(&b).completed, 3);
	stop(&b);
	unload(&b);
	KT_EQ(runs(3), 0);
	KT_EQ(ktr_select((unsigned)other, "fbt::dtrace_inner:", true, NULL, NULL, 0), 2);
	KT_EQ(runs(3), 6);
	KT_EQ(ktr_owner_unregister((unsigned)other), 0);
	KT_EQ(runs(3), 0);
	stop(&a);
	unload(&a);
	make(&m);
	OF_THREAD((int32_t)curthread()->tid, RET);
	at("fbt::dtrace_inner:entry");
	thread_predcache_forget(curthread());
	start(&a, 1);
	KT_EQ(runs(3), 3);
	KT_EQ(curthread()->predcache, 0);
	stop(&a);
	unload(&a);
	end();
}

static void
change_tid(void *arg)
{
	struct thread *t = curthread();

	thread_predcache_set(t, 7, thread_predcache_changes(t));
	KT_EQ(t->predcache, 7);
	thread_change_tid(TID_MAX);
	KT_EQ(t->predcache, 0);
	__atomic_store_n((bool *)arg, true, __ATOMIC_RELEASE);
}

KTEST(dtrace_predicates_are_asked_again_after_a_change)
{
	static struct proc p;
	static struct thread first, second;
	static struct lwp lwp;
	struct thread *t = curthread();
	uint32_t changes = thread_predcache_changes(t);
	bool done = false;

	/* The first thread's name is also the process's, for which others have asked. */
	p.first.thread = &first;
	lwp.thread = &second;
	first.proc = second.proc = &p;
	first.tid = second.tid = t->tid;
	list_init(&p.lwps);
	list_append(&p.lwps, &p.first.sibling);
	list_append(&p.lwps, &lwp.sibling);
	thread_predcache_set(&first, 7, 0);
	thread_predcache_set(&second, 7, 0);
	spin_lock(&proc_lock);
	proc_rename(&lwp, t->name);
	KT_EQ(first.predcache, 7);
	KT_EQ(second.predcache, 0);
	thread_predcache_set(&second, 7, thread_predcache_changes(&second));
	KT_EQ(second.predcache, 7);
	proc_rename(&p.first, t->name);
	spin_unlock(&proc_lock);
	KT_EQ(first.predcache, 0);
	KT_EQ(second.predcache, 0);
	/* A change meanwhile. */
	thread_predcache_forget(t);
	thread_predcache_set(t, 7, changes);
	KT_EQ(t->predcache, 0);
	KT_NE(thread_create("test", PRIO_KERN, change_tid, &done), NULL);
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void
come_and_go(unsigned i, void *arg)
{
	if (i > 0) {
		while (__atomic_load_n(&going, __ATOMIC_RELAXED))
			dtrace_outer(1);
		return;
	}
	for (unsigned n = 0; n < ktest_times(ncpus == 1 ? 6 : 2, 6); n++) {
		start(&b, 3);
		dtrace_outer(n);
		if (n % 2 == 0)
			stop(&b);
		unload(&b);
	}
	__atomic_store_n(&going, false, __ATOMIC_RELAXED);
}

/* One consumer is always there; another one comes and goes. */
KTEST(dtrace_come_and_go)
{
	begin();
	put_layout(&m, 40);
	uint32_t var = put_var(&m, DIF_SELF, DIF_INT, 8, 0);
	CLAUSE(&m, {DIF_ARG, 1, 0, 0, 0}, {DIF_STV, 0, 1, 0, (int32_t)var},
	       {DIF_LDV, 2, 0, 0, (int32_t)var}, {DIF_REC, 0, 0, 0, 0}, {DIF_REC8, 0, 2, 0, 0},
	       {DIF_REC_STACK, 0, 0, 0, DIF_PLACE(8, 32)}, RET);
	m.h.options.policy = DIF_RING;
	at("fbt::dtrace_inner:,ktr:::dtrace-test");
	start(&a, 3);
	going = true;
	ktest_start(ncpus > 1 ? ktest_busy_cpus() : 2, false, come_and_go, NULL);
	ktest_join();
	stop(&a);
	KT_GT(status(&a).completed, 0);
	KT_EQ(status(&a).dropped, 0);
	unload(&a);
	end();
}

KTEST(dtrace_exit_and_end)
{
	begin();
	uint32_t ran = put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	uint32_t ended = put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
	CLAUSE(&m, {DIF_OR | DIF_IMM, 1, 0, 0, 7}, {DIF_STV, 0, 1, 0, (int32_t)ran},
	       {DIF_EXIT, 0, 1, 0, 0}, RET);
	at("dtrace:::BEGIN");
	CLAUSE(&m, {DIF_STV, 0, 0, 0, (int32_t)ran}, RET);
	at("dtrace:::BEGIN");
	CLAUSE(&m, {DIF_OR | DIF_IMM, 1, 0, 0, 9}, {DIF_STV, 0, 1, 0, (int32_t)ended}, RET);
	at("dtrace:::END");
	CLAUSE(&m, {DIF_STV, 0, 0, 0, (int32_t)ran}, RET);
	at("fbt::dtrace_inner:entry");
	start(&a, 3);
	KT_EQ(a.d.state, DIF_DRAINING);
	dtrace_outer(1);
	KT_EQ(global(&a, ran), 7);
	KT_EQ(global(&a, ended), 0);
	stop(&a);
	KT_EQ(global(&a, ran), 7);
	KT_EQ(global(&a, ended), 9);
	KT_EQ(status(&a).exit_status, 7);
	KT_EQ(status(&a).fired, 2);
	KT_EQ(a.d.state, DIF_STOPPED);
	unload(&a);
	end();
}

/* Of a file, by whatever way it comes. */
KTEST(dtrace_image_of_the_kernels_own_kind_is_refused)
{
	struct dif_load l = {0};
	uint32_t size;
	uint8_t *image;

	begin();
	m.h.flags = DIF_KERNEL;
	CLAUSE(&m, {DIF_UPCALL, 0, 0, 0, 0}, RET);
	at("fbt::dtrace_inner:entry");
	image = make_image(&m, &size);
	KT_ASSERT(image != NULL);
	a = (struct dtrace_consumer){0};
	mutex_lock(&dtrace_lock);
	KT_EQ(dtrace_consumer_load(&a, &l, image, size), -EINVAL);
	mutex_unlock(&dtrace_lock);
	KT_STR_EQ(l.error, "no such flag");
	KT_EQ(a.d.state, DIF_EMPTY);
	dif_port_free(image);
	end();
}

static unsigned upcalls;

static void
fire_again(const struct ktr_firing *f, int32_t imm, const uint64_t *args)
{
	struct ktr_firing mine = {.site = f->site, .args = f->args, .nargs = f->nargs};

	mine.where = ktr_firing_where(f);
	if (++upcalls < 20)
		dtrace_fire_within(&mine);
}

/* Each fires the next one. Four may be within another. */
KTEST(dtrace_firings_within_too_many_are_refused_and_counted)
{
	uint64_t refused;

	begin();
	m.h.flags = DIF_KERNEL;
	CLAUSE(&m, {DIF_UPCALL, 0, 0, 0, 0}, RET);
	at("fbt::dtrace_inner:entry");
	start(&a, 1);
	a.upcall = fire_again;
	upcalls = 0;
	refused = dtrace_refused();
	dtrace_inner(1);
	KT_EQ(upcalls, 5);
	KT_EQ(dtrace_refused() - refused, 1);
	stop(&a);
	KT_EQ(status(&a).fired, 5);
	unload(&a);
	end();
}

/* Each may stand any number of times. */
#define MOST_PARTS 3u
static const struct dif_insn parts[][MOST_PARTS] = {
    {{DIF_SDIV, 3, 3, 2, 0}, {DIF_HIGH, 3, 0, 0, 1}, {DIF_EXT, 3, 3, 0, 4}},
    {{DIF_SCMP, 3, 1, 4, 0}},
    {{DIF_JNE, 0, 3, 2, 0}},
    {{DIF_OR | DIF_IMM, 3, 0, 0, 5}, {DIF_JEQ, 0, 2, 3, 0}},
    {{DIF_LD8, 3, 1, 0, 0}},
    {{DIF_LDS2, 3, 4, 0, 0}},
    {{DIF_ST4, 0, 5, 2, 0}},
    {{DIF_ARG, 3, 0, 0, 0}, {DIF_AGG, 0, 0, 0, 3}, {DIF_REC4, 0, 2, 0, 0}},
    {{DIF_BUILTIN, 3, 0, 0, DIF_B_PID}},
    {{DIF_BUILTIN, 3, 0, 0, DIF_B_TIMESTAMP}},
    {{DIF_CALL, 3, 4, 0, DIF_SUB_STRLEN}},
    {{DIF_KEY, 0, 2, 0, 0}, {DIF_AGG, 0, 0, 0, 0}},
    {{DIF_KEY_STR, 0, 1, 0, 0}, {DIF_AGG, 0, 2, 0, 1}},
    {{DIF_KEY_STR, 0, 4, 0, 0}, {DIF_AGG, 0, 2, 0, 1}},
    {{DIF_KEY_STACK, 0, 0, 0, 2}, {DIF_AGG, 0, 2, 0, 2}},
    {{DIF_LDV, 3, 0, 0, 0}, {DIF_REC, 0, 0, 0, 0}},
    {{DIF_STV, 0, 2, 0, 0}, {DIF_LDV, 3, 0, 0, 1}, {DIF_STV, 0, 2, 0, 1}},
    {{DIF_REC_STR, 0, 4, 0, DIF_PLACE(0, 8)}, {DIF_REC_MEM, 0, 1, 0, DIF_PLACE(0, 64)}},
    {{DIF_REC_MEM, 0, 4, 0, DIF_PLACE(0, 4)}, {DIF_REC_STACK, 0, 0, 0, DIF_PLACE(0, 16)}},
};

/* Operations call each other by jumps: a long program takes no more stack than a short one. */
KTEST(dtrace_long)
{
	struct dif_insn code[] = {
	    {DIF_BUILTIN, 1, 0, 0, DIF_B_CURTHREAD}, {DIF_OR | DIF_IMM, 2, 0, 0, 8},
	    {DIF_OR | DIF_IMM, 3, 0, 0, 7},          {DIF_STRING, 4, 0, 0, 0},
	    {DIF_CALL, 5, 2, 0, DIF_SUB_ALLOCA},     {DIF_REC, 0, 0, 0, 0},
	};

	if (ncpus != 1)
		ktest_skip("one CPU is enough");
	for (unsigned n = 0; n < sizeof(parts) / sizeof(parts[0]); n++) {
		begin();
		m.h.options.bufsize = 1 << 20;
		m.h.options.strsize = m.h.options.scratch = 64;
		put_agg(&m, DIF_COUNT, DIF_K_INT);
		put_agg(&m, DIF_SUM, DIF_K_STR);
		put_agg(&m, DIF_MAX, DIF_K_STACK);
		put_agg(&m, DIF_COUNT, 0);
		put_var(&m, DIF_GLOBAL, DIF_INT, 8, 0);
		put_var(&m, DIF_SELF, DIF_INT, 8, 0);
		put_layout(&m, 64);
		code[3].imm = (int32_t)put_string(&m, "text");
		put_clause(&m, code, sizeof(code) / sizeof(code[0]));
		while (m.h.code.count < 500 * MOST_PARTS)
			for (unsigned i = 0; i < MOST_PARTS && parts[n][i].op != DIF_RET; i++)
				m.code[m.h.code.count++] = parts[n][i];
		m.code[m.h.code.count++] = (struct dif_insn)RET;
		m.clauses[0].length = m.h.code.count;
		at("fbt::dtrace_inner:entry");
		start(&a, 1);
		dtrace_outer(1);
		dtrace_outer(1);
		stop(&a);
		KT_EQ(status(&a).completed, 2);
		unload(&a);
		end();
	}
}
