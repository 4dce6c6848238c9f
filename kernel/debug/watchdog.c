/*
 * watchdog.c - finds hung CPUs. Each CPU watches the next one, in a circle.
 *
 * Time is counted in ticks of the watching CPU: a machine that is stopped, or that its host does
 * not run, has none. A CPU that waits for another one's answer to a call (kernel/sync/smp.h) has no
 * ticks: it watches the one that it waits for, and counts as alive. An NMI makes the hung CPU enter
 * the debugger itself, so that the operator sees where it hangs. If even the NMI does not arrive,
 * the watching CPU does so (kdb_alarm()).
 *
 * Locking: a CPU uses its own watch_… fields, with interrupts off; watch_wanted is atomic.
 */
#include "kernel/debug/watchdog.h"

#include "arch/pcpu.h"
#include "arch/smp.h"
#include "kernel/debug/kdb.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/sysctl.h"
#include "kernel/sched/timer.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/smp.h"
#include "ktr/ktr.h"

static int seconds = 5;
SYSCTL_INT(debug_watchdog_seconds, "debug.watchdog.seconds", SYSCTL_WR | SYSCTL_TUN, &seconds, 0,
	   3600, "a CPU without a timer interrupt for so many seconds enters the debugger; 0: off");

/* The next online CPU after self, or self. */
static unsigned
next_cpu(unsigned self)
{
	unsigned n = self;

	do
		n = (n + 1) % MAX_CPUS;
	while (n != self &&
	       (pcpus[n] == NULL || !__atomic_load_n(&pcpus[n]->online, __ATOMIC_ACQUIRE)));
	return n;
}

/* Checks CPU n; the last look was `passed` ticks ago. Interrupts off. */
static void
watchdog_watch(unsigned n, unsigned passed)
{
	struct pcpu *pc = this_pcpu();
	uint64_t ticks = __atomic_load_n(&pcpus[n]->ticks, __ATOMIC_RELAXED) +
			 __atomic_load_n(&pcpus[n]->late, __ATOMIC_RELAXED);
	uint64_t limit = (uint64_t)seconds * HZ, before = pc->watch_stuck;

	if (n != pc->watch_cpu || ticks != pc->watch_ticks || limit == 0) {
		pc->watch_cpu = n;
		pc->watch_ticks = ticks;
		pc->watch_stuck = 0;
		return;
	}
	pc->watch_stuck += passed;
	if (before < limit && pc->watch_stuck >= limit) {
		/* the thread that waits may be the flush thread, whose events are refused */
		bool lifted = ktr_port_lift();

		CTR2(KTR_GEN, "watchdog: cpu %u took no timer interrupt for %d s", n, seconds);
		ktr_port_restore(lifted);
		__atomic_store_n(&pcpus[n]->watch_wanted, true, __ATOMIC_RELEASE);
		arch_nmi_send(n);
	} else if (pc->watch_stuck >= limit + HZ) {
		pc->watch_stuck = 0; /* report again each time the limit passes */
		if (__atomic_exchange_n(&pcpus[n]->watch_wanted, false, __ATOMIC_ACQ_REL))
			kdb_alarm(NULL, "watchdog: a CPU takes neither timer interrupt nor NMI");
	}
}

static void
watchdog_tick(void)
{
	watchdog_watch(next_cpu(arch_cpu()), 1);
}

HOOK(clock_tick, watchdog_tick);

/* This CPU waits with interrupts off for another one's answer. */
static void
watchdog_late(void)
{
	watchdog_watch(this_pcpu()->late_cpu, SMP_CALL_LATE_NS / (1000000000 / HZ));
}

HOOK(call_late, watchdog_late);

bool
watchdog_hung(void)
{
	return __atomic_exchange_n(&this_pcpu()->watch_wanted, false, __ATOMIC_ACQ_REL);
}
