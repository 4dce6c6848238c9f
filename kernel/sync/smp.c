/*
 * smp.c - starting the other CPUs, and work that all of them do.
 *
 * One call is in progress at a time; its turn is waited for with interrupts on, so that two callers
 * never block each other.
 *
 * Locking: call_busy guards `call`; each CPU acknowledges by its pcpu's call_done.
 */
#include "kernel/sync/smp.h"

#include <stdbool.h>

#include "arch/irq.h"
#include "arch/smp.h"
#include "arch/trap.h"
#include "kernel/entry.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/sched_private.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"
#include "ktr/control.h"
#include "ktr/ktr.h"

struct pcpu *pcpus[MAX_CPUS];
unsigned ncpus = 1;

static int ncpus_value = 1;
SYSCTL_INT(hw_ncpu, "hw.ncpu", 0, &ncpus_value, 1, MAX_CPUS, "CPUs that run");

static int maxcpus = MAX_CPUS;
SYSCTL_INT(hw_maxcpus, "hw.maxcpus", SYSCTL_TUN, &maxcpus, 1, MAX_CPUS, "CPUs to use at most");

enum call_mode {
	CALL_RUN,     /* every CPU runs fn */
	CALL_QUIESCE, /* every CPU is seen outside the record text */
	CALL_STOP,    /* the same, and waits there until it is released */
};

static struct {
	enum call_mode mode;
	void (*fn)(void *);
	void *arg;
	uint64_t generation; /* release: pairs with the acquire in run_call() */
	uint64_t released;   /* CPUs that wait in a call up to this one may go on; atomic */
} call;

static bool call_busy;   /* atomic */
static bool stop_wanted; /* atomic: whoever gets an NMI waits while it is true */

#define STOP_WAIT_MS  1000 /* for each CPU, when the machine is to be stopped */
#define START_WAIT_MS 1000

_Static_assert(MAX_CPUS <= 64, "post() keeps a set of CPUs in one word");

/* Stays outside of the record text until it is released; an NMI would enter it again. */
static void
wait_outside(uint64_t g)
{
	bool refused = ktr_port_refuse(true);

	/* release: pairs with the acquire in wait_for() */
	__atomic_store_n(&this_pcpu()->call_done, g, __ATOMIC_RELEASE);
	while (__atomic_load_n(&call.released, __ATOMIC_ACQUIRE) < g)
		arch_relax();
	ktr_port_refuse(refused);
}

/* Takes part in the call in progress, once. Interrupts off. */
static void
run_call(struct arch_trapframe *tf)
{
	struct pcpu *pc = this_pcpu();
	uint64_t g = __atomic_load_n(&call.generation, __ATOMIC_ACQUIRE);
	enum call_mode mode = call.mode; /* once answered, the next call may overwrite it */

	if (pc->call_done == g)
		return;
	if (mode != CALL_RUN && ktr_port_inside(arch_tf_pc(tf))) {
		__atomic_store_n(&pc->call_again, true, __ATOMIC_RELEASE);
		return;
	}
	if (mode == CALL_STOP) {
		wait_outside(g);
		return;
	}
	if (mode == CALL_RUN && call.fn != NULL)
		call.fn(call.arg);
	/* release: pairs with the acquire in wait_for() */
	__atomic_store_n(&pc->call_done, g, __ATOMIC_RELEASE);
}

static bool
takes_part(unsigned n)
{
	return n != arch_cpu() && pcpus[n] != NULL &&
	       __atomic_load_n(&pcpus[n]->online, __ATOMIC_ACQUIRE);
}

/* Waits for a CPU's answer; one that was inside the record text is asked again. */
static void
wait_for(unsigned n, uint64_t g)
{
	while (__atomic_load_n(&pcpus[n]->call_done, __ATOMIC_ACQUIRE) != g) {
		if (__atomic_exchange_n(&pcpus[n]->call_again, false, __ATOMIC_ACQUIRE))
			arch_ipi_send(n, IPI_CALL);
		arch_relax();
	}
}

/* Posts the call and waits until every other CPU has answered. Interrupts off, call_busy ours. */
static void
post(enum call_mode mode, void (*fn)(void *), void *arg)
{
	uint64_t g = call.generation + 1;
	uint64_t asked = 0; /* bit n: CPU n; one that comes up meanwhile takes no part */

	call.mode = mode;
	call.fn = fn;
	call.arg = arg;
	__atomic_store_n(&call.generation, g, __ATOMIC_RELEASE);
	this_pcpu()->call_done = g;
	for (unsigned n = 0; n < ncpus; n++)
		if (takes_part(n)) {
			asked |= 1ul << n;
			CTR2(KTR_SMP, "ipi send: call cpu %u generation %lu", n, g);
			arch_ipi_send(n, IPI_CALL);
		}
	for (; asked != 0; asked &= asked - 1)
		wait_for((unsigned)__builtin_ctzl(asked), g);
}

static void
begin(void)
{
	for (;;) {
		irq_push();
		if (this_pcpu()->locks != 0)
			panic("smp call with %u spin locks held", this_pcpu()->locks);
		if (!__atomic_exchange_n(&call_busy, true, __ATOMIC_ACQUIRE))
			return;
		/* Interrupts are on between two tries: the one before us needs our answer. */
		irq_pop();
		arch_relax();
	}
}

static void
end(void)
{
	__atomic_store_n(&call_busy, false, __ATOMIC_RELEASE);
	irq_pop();
}

void
smp_call_all(void (*fn)(void *), void *arg)
{
	begin();
	post(CALL_RUN, fn, arg);
	if (fn != NULL)
		fn(arg);
	end();
}

void
smp_stop_run(void (*fn)(void *), void *arg)
{
	bool refused;

	begin();
	post(CALL_STOP, NULL, NULL);
	refused = ktr_port_refuse(true);
	fn(arg);
	ktr_port_refuse(refused);
	__atomic_store_n(&call.released, call.generation, __ATOMIC_RELEASE);
	end();
}

void
smp_ktr_quiesce(void)
{
	begin();
	post(CALL_QUIESCE, NULL, NULL);
	end();
}

unsigned
smp_stop_others(void)
{
	unsigned stopped = 0;

	__atomic_store_n(&stop_wanted, true, __ATOMIC_RELEASE);
	for (unsigned n = 0; n < ncpus; n++)
		if (takes_part(n))
			arch_nmi_send(n);
	for (unsigned n = 0; n < ncpus; n++)
		for (unsigned i = 0; takes_part(n) && i < STOP_WAIT_MS; i++) {
			if (__atomic_load_n(&pcpus[n]->stopped, __ATOMIC_ACQUIRE) != NULL) {
				stopped++;
				break;
			}
			clock_delay_ns(1000000);
		}
	return stopped;
}

void
smp_resume_others(void)
{
	__atomic_store_n(&stop_wanted, false, __ATOMIC_RELEASE);
	for (unsigned n = 0; n < ncpus; n++)
		while (pcpus[n] != NULL &&
		       __atomic_load_n(&pcpus[n]->stopped, __ATOMIC_ACQUIRE) != NULL)
			arch_relax();
}

bool
smp_stopped(struct arch_trapframe *tf)
{
	struct pcpu *pc = this_pcpu();

	if (!__atomic_load_n(&stop_wanted, __ATOMIC_ACQUIRE))
		return false;
	__atomic_store_n(&pc->stopped, tf, __ATOMIC_RELEASE);
	while (__atomic_load_n(&stop_wanted, __ATOMIC_ACQUIRE))
		arch_relax();
	pc->resumed_ns = clock_ns();
	__atomic_store_n(&pc->stopped, NULL, __ATOMIC_RELEASE);
	return true;
}

void
entry_sync_cpus(void)
{
	smp_call_all(NULL, NULL); /* the return from the interrupt serialises */
}

void
smp_ipi(unsigned ipi, struct arch_trapframe *tf)
{
	if (ipi == IPI_CALL)
		run_call(tf);
	/* IPI_RESCHED: entry_interrupt() looks at resched. */
}

static bool
start_decide(struct pcpu *pc, uint32_t outcome)
{
	uint32_t starting = PCPU_STARTING;

	return __atomic_compare_exchange_n(&pc->start, &starting, outcome, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

bool
entry_wait_online(struct pcpu *pc)
{
	for (unsigned i = 0; i < START_WAIT_MS; i++) {
		if (__atomic_load_n(&pc->online, __ATOMIC_ACQUIRE))
			return true;
		clock_delay_ns(1000000);
	}
	/* It must not turn up later, when nobody counts with it. */
	if (start_decide(pc, PCPU_REFUSED))
		return false;
	while (!__atomic_load_n(&pc->online, __ATOMIC_ACQUIRE))
		arch_relax();
	return true;
}

void
entry_secondary(void)
{
	struct pcpu *pc = this_pcpu();

	while (!start_decide(pc, PCPU_CAME))
		arch_relax(); /* for ever */
	sched_set_thread(curthread());
	CTR1(KTR_SMP, "cpu start: cpu %u", arch_cpu());
	clock_init_cpu();
	pc->call_done = call.generation;
	__atomic_store_n(&pc->online, true, __ATOMIC_RELEASE);
	sched_idle();
}

void
smp_init(void)
{
	unsigned found = arch_cpu_probe(MAX_CPUS);

	for (unsigned n = 1; n < found && n < (unsigned)maxcpus; n++) {
		uintptr_t stack;

		pcpus[n] = kzalloc(sizeof(struct pcpu));
		if (pcpus[n] == NULL)
			panic("CPU %u: no memory", n);
		pcpus[n]->md.cpu = n;
		pcpus[n]->md.ktr_head = n; /* ktr/ring.h */
		arch_pcpu_init(pcpus[n]);
		callout_init_cpu(n);
		stack = sched_prepare_cpu(n);
		if (stack == 0 || ktr_cpu_init(n) != 0)
			panic("CPU %u: no memory for its idle thread and ring", n);
		__atomic_store_n(&ncpus, n + 1, __ATOMIC_RELEASE);
		CTR1(KTR_SMP, "cpu prepare: cpu %u", n);
		if (!arch_cpu_start(n, pcpus[n], stack)) {
			warnk("smp: CPU %u did not start, going on without it and those after it\n",
			      n);
			ncpus = n;
			break;
		}
	}
	ncpus_value = (int)ncpus;
	printk("smp: %u CPUs\n", ncpus);
}
