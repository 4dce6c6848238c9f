/*
 * smp.c - calls that other CPUs execute.
 *
 * One call is in progress at a time. A caller waits for its turn with interrupts on, so two callers
 * never block each other. In a CPU's pcpu, call_asked is the number of the last call in which it
 * was asked to take part, and call_done that of the last one that it has done, by which it
 * acknowledges.
 *
 * Locking: call_busy guards `call` and call_asked. A CPU joins between calls.
 */
#include "kernel/sync/smp.h"

#include "arch/irq.h"
#include "arch/mmu.h"
#include "arch/smp.h"
#include "kernel/entry.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/panic.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"
#include "ktr/ktr.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(sysinfo);
SDT_PROBE_DEFINE_TEXT(sysinfo, , , xcalls, "xcalls", ": n %d", 1, "int");

struct pcpu *pcpus[MAX_CPUS];
unsigned ncpus = 1;

enum call_mode {
	CALL_RUN,  /* every CPU runs fn */
	CALL_STOP, /* every CPU waits until it is released */
};

HOOK_LIST(resched);
HOOK_LIST(call_late);

static struct {
	enum call_mode mode;
	void (*fn)(void *);
	void *arg;
	uint64_t generation;
	uint64_t released; /* atomic: CPUs waiting in a call up to this generation may continue */
} call;

static bool call_busy; /* atomic */

_Static_assert(MAX_CPUS <= 64, "post() keeps a set of CPUs in one word");

/*
 * Waits in the interrupt handler until the call is released. Events of NMIs are suppressed
 * meanwhile.
 */
static void
wait_released(uint64_t g)
{
	bool suppressed = ktr_port_refuse(KTR_REFUSE_STOP, true);

	/* release: pairs with the acquire in smp_wait() */
	__atomic_store_n(&this_pcpu()->call_done, g, __ATOMIC_RELEASE);
	while (__atomic_load_n(&call.released, __ATOMIC_ACQUIRE) < g)
		arch_relax();
	ktr_port_refuse(KTR_REFUSE_STOP, suppressed);
}

/* Takes part in the call in progress, once. Interrupts off. */
static void
run_call(void)
{
	struct pcpu *pc = this_pcpu();
	uint64_t g = __atomic_load_n(&pc->call_asked, __ATOMIC_ACQUIRE);
	enum call_mode mode = call.mode; /* copy it: after the answer the next call may change it */

	if (pc->call_done == g)
		return;
	if (mode == CALL_STOP) {
		wait_released(g);
		return;
	}
	if (call.fn != NULL)
		call.fn(call.arg);
	/* release: pairs with the acquire in smp_wait() */
	__atomic_store_n(&pc->call_done, g, __ATOMIC_RELEASE);
}

void
smp_join(void)
{
	struct pcpu *pc = this_pcpu();

	while (__atomic_exchange_n(&call_busy, true, __ATOMIC_ACQUIRE))
		arch_relax(); /* the call does not wait for this CPU */
	__atomic_store_n(&pc->online, true, __ATOMIC_RELEASE);
	__atomic_store_n(&call_busy, false, __ATOMIC_RELEASE);
}

bool
smp_online(unsigned n)
{
	return n != arch_cpu() && pcpus[n] != NULL &&
	       __atomic_load_n(&pcpus[n]->online, __ATOMIC_ACQUIRE);
}

/*
 * Waits for a CPU's answer. If it does not come, sends the interrupt again: a lost one must not
 * hang the machine, and a second one is harmless. A CPU that hangs never answers: the watchdog runs
 * from here, since this CPU takes no timer interrupts meanwhile.
 */
static void
smp_wait(unsigned n, uint64_t g)
{
	uint64_t asked = clock_ns();

	while (__atomic_load_n(&pcpus[n]->call_done, __ATOMIC_ACQUIRE) != g) {
		if (clock_ns() - asked > SMP_CALL_LATE_NS) {
			arch_ipi_send(n, IPI_CALL);
			__atomic_add_fetch(&this_pcpu()->late, 1, __ATOMIC_RELAXED);
			this_pcpu()->late_cpu = n;
			HOOK_RUN(call_late);
			asked = clock_ns();
		}
		arch_relax();
	}
}

/*
 * Asks the other CPUs among `cpus`, and waits until they have answered. Interrupts off; call_busy
 * held.
 */
static void
smp_post(uint64_t cpus, enum call_mode mode, void (*fn)(void *), void *arg)
{
	uint64_t g = ++call.generation;
	unsigned count = 0;
	uint64_t asked = 0; /* bit n: CPU n was asked; CPUs that join later take no part */

	call.mode = mode;
	call.fn = fn;
	call.arg = arg;
	for (unsigned n = 0; n < ncpus; n++)
		if ((cpus >> n & 1) != 0 && smp_online(n)) {
			asked |= 1ul << n;
			count++;
			/* release: pairs with the acquire in run_call() */
			__atomic_store_n(&pcpus[n]->call_asked, g, __ATOMIC_RELEASE);
			CTR2(KTR_SMP, "ipi send: call cpu %u generation %lu", n, g);
			arch_ipi_send(n, IPI_CALL);
		}
	if (count != 0)
		SDT_PROBE1(sysinfo, , , xcalls, count);
	for (; asked != 0; asked &= asked - 1)
		smp_wait((unsigned)__builtin_ctzl(asked), g);
}

static void
smp_call_begin(void)
{
	for (;;) {
		irq_push();
		if (this_pcpu()->locks != 0)
			panic("smp call with %u spin locks held", this_pcpu()->locks);
		if (!__atomic_exchange_n(&call_busy, true, __ATOMIC_ACQUIRE))
			return;
		/*
		 * Interrupts are on between attempts, since the call in progress needs our answer.
		 */
		irq_pop();
		arch_relax();
	}
}

static void
smp_call_end(void)
{
	__atomic_store_n(&call_busy, false, __ATOMIC_RELEASE);
	irq_pop();
}

static void
smp_call(uint64_t cpus, void (*fn)(void *), void *arg)
{
	smp_call_begin();
	smp_post(cpus, CALL_RUN, fn, arg);
	if (fn != NULL && (cpus >> arch_cpu() & 1) != 0)
		fn(arg);
	smp_call_end();
}

void
smp_call_all(void (*fn)(void *), void *arg)
{
	smp_call(UINT64_MAX, fn, arg);
}

void
smp_use_root(uint64_t root)
{
	struct pcpu *pc = this_pcpu();

	if (pc->root == root)
		return;
	__atomic_store_n(&pc->root, root, __ATOMIC_RELAXED);
	/* pairs with smp_call_users(), which sees the one or has changed the other */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	arch_mmu_switch(root);
}

void
smp_call_users(uint64_t root, void (*fn)(void *), void *arg)
{
	uint64_t cpus = 0;

	/* in one section: on a CPU to which this thread comes later, another of its program may
	 * run */
	irq_push();
	if (fn != NULL)
		fn(arg);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (unsigned n = 0; n < ncpus; n++)
		if (n != arch_cpu() && pcpus[n] != NULL &&
		    __atomic_load_n(&pcpus[n]->root, __ATOMIC_RELAXED) == root)
			cpus |= 1ull << n;
	irq_pop();
	if (cpus != 0)
		smp_call(cpus, fn, arg);
}

void
smp_call_one(unsigned cpu, void (*fn)(void *), void *arg)
{
	smp_call(1ull << cpu, fn, arg);
}

void
smp_stop_run(void (*fn)(void *), void *arg)
{
	bool suppressed;

	smp_call_begin();
	smp_post(UINT64_MAX, CALL_STOP, NULL, NULL);
	suppressed = ktr_port_refuse(KTR_REFUSE_STOP, true);
	fn(arg);
	ktr_port_refuse(KTR_REFUSE_STOP, suppressed);
	__atomic_store_n(&call.released, call.generation, __ATOMIC_RELEASE);
	smp_call_end();
}

void
entry_sync_cpus(void)
{
	smp_call_all(NULL, NULL); /* the return from the interrupt serialises the CPU */
}

void
smp_ipi(unsigned ipi)
{
	if (ipi == IPI_CALL)
		run_call();
	else /* entry_interrupt() checks resched */
		HOOK_RUN(resched);
}
