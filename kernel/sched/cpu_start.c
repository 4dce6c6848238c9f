/*
 * cpu_start.c - starts the other CPUs, one after the other.
 *
 * Locking: one thread starts them. pcpu.start settles the race between a CPU that starts late and
 * the thread that stops waiting for it.
 */
#include "kernel/sched/cpu_start.h"

#include "arch/irq.h"
#include "arch/smp.h"
#include "kernel/entry.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/sched_private.h"
#include "kernel/sched/thread.h"
#include "kernel/sched/timer.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/smp.h"
#include "ktr/control.h"
#include "ktr/ktr.h"
#include "ktr/ring.h"

#define START_WAIT_MS 1000

SYSCTL_INT(hw_ncpu, "hw.ncpu", 0, &ncpus, 1, MAX_CPUS, "CPUs in use");

static int maxcpus = MAX_CPUS;
SYSCTL_INT(hw_maxcpus, "hw.maxcpus", SYSCTL_TUN, &maxcpus, 1, MAX_CPUS, "CPUs to use at most");

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
		thread_sleep_ns(1000000, 0, "cpustart");
	}
	/* Refuses the CPU, so that it does not join later. If it has just joined, waits for it. */
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
		arch_relax(); /* refused: stay here for ever */
	sched_begin_cpu();
	CTR1(KTR_SMP, "cpu start: cpu %u", arch_cpu());
	timer_init_cpu();
	smp_join();
	sched_idle();
}

unsigned
cpu_count(void)
{
	static unsigned found; /* set on the boot CPU, before others run */

	if (found == 0)
		found = arch_cpu_probe(MAX_CPUS);
	return found < (unsigned)maxcpus ? found : (unsigned)maxcpus;
}

void
cpu_start_all(void)
{
	unsigned count = cpu_count();

	for (unsigned n = 1; n < count; n++) {
		uintptr_t stack;

		pcpus[n] = kzalloc(sizeof(struct pcpu));
		if (pcpus[n] == NULL)
			panic("CPU %u: no memory", n);
		pcpus[n]->md.cpu = n;
		pcpus[n]->md.ktr_ring = &ktr_ring_none;
		arch_pcpu_init(pcpus[n]);
		callout_init_cpu(n);
		stack = sched_prepare_cpu(n);
		if (stack == 0 || ktr_cpu_init(n) != 0)
			panic("CPU %u: no memory for its idle thread and ring", n);
		__atomic_store_n(&ncpus, n + 1, __ATOMIC_RELEASE);
		CTR1(KTR_SMP, "cpu prepare: cpu %u", n);
		if (!arch_cpu_start(n, pcpus[n], stack)) {
			pr_warn(
			    "smp: CPU %u did not start; going on without it and the CPUs after it\n",
			    n);
			ncpus = n;
			break;
		}
	}
	printk("smp: %u CPUs\n", ncpus);
}
