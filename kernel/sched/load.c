/*
 * load.c - what the clock ticks find: a program or the kernel at work; and how many threads want a
 * CPU, on average. Locking: none; each CPU counts for itself, and CPU 0 makes the averages.
 */
#include "arch/pcpu.h"
#include "arch/trap.h"
#include "kernel/lib/hook.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"

#define LOAD_TICKS 500 /* 5 seconds */

static uint64_t averages[3]; /* atomic, in 1/65536 */

static void
load_tick(void)
{
	/* exp(-5 s / 1, 5 and 15 minutes), in 1/65536 */
	static const uint64_t decay[3] = {60296, 64453, 65173};
	struct pcpu *pc = this_pcpu();

	if (curthread() != pc->idle)
		pc->busy_ticks[!arch_tf_user(pc->timer_tf)]++;
	if (arch_cpu() != 0 || pc->ticks % LOAD_TICKS != 0)
		return;
	for (unsigned i = 0; i < 3; i++) {
		uint64_t now = ((uint64_t)sched_runnable() << 16) * (65536 - decay[i]);

		__atomic_store_n(&averages[i], (averages[i] * decay[i] + now) >> 16,
				 __ATOMIC_RELAXED);
	}
}
HOOK(clock_tick, load_tick);

void
sched_load_average(uint64_t loads[3])
{
	for (unsigned i = 0; i < 3; i++)
		loads[i] = __atomic_load_n(&averages[i], __ATOMIC_RELAXED);
}
