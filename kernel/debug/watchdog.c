/*
 * watchdog.c - finds hung CPUs. Each CPU watches the next one, in a circle.
 *
 * Time is counted in ticks of the watching CPU: a machine that is stopped, or that its host does
 * not run, has none. An NMI makes the hung CPU enter the debugger itself, so that the operator sees
 * where it hangs. If even the NMI does not arrive, the watching CPU enters the debugger.
 *
 * Locking: only a CPU's timer interrupt uses its watch_… fields, except watch_wanted, which is
 * atomic.
 */
#include "kernel/debug/watchdog.h"

#include "arch/pcpu.h"
#include "arch/smp.h"
#include "kernel/debug/kdb.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/sysctl.h"
#include "kernel/sched/timer.h"
#include "kernel/sync/pcpu.h"
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

/* At each clock tick: checks the next CPU. */
static void
watchdog_tick(void)
{
	struct pcpu *pc = this_pcpu();
	unsigned n = next_cpu(arch_cpu());
	uint64_t ticks = __atomic_load_n(&pcpus[n]->ticks, __ATOMIC_RELAXED);
	uint64_t limit = (uint64_t)seconds * HZ;

	if (n != pc->watch_cpu || ticks != pc->watch_ticks || limit == 0) {
		pc->watch_cpu = n;
		pc->watch_ticks = ticks;
		pc->watch_stuck = 0;
		return;
	}
	if (++pc->watch_stuck == limit) {
		CTR2(KTR_GEN, "watchdog: cpu %u took no timer interrupt for %d s", n, seconds);
		__atomic_store_n(&pcpus[n]->watch_wanted, true, __ATOMIC_RELEASE);
		arch_nmi_send(n);
	} else if (pc->watch_stuck == limit + HZ) {
		pc->watch_stuck = 0; /* report again each time the limit passes */
		if (__atomic_exchange_n(&pcpus[n]->watch_wanted, false, __ATOMIC_ACQ_REL))
			kdb_request("watchdog: a CPU takes neither timer interrupt nor NMI");
	}
}

HOOK(clock_tick, watchdog_tick);

bool
watchdog_hung(void)
{
	return __atomic_exchange_n(&this_pcpu()->watch_wanted, false, __ATOMIC_ACQ_REL);
}
