/*
 * load.c - what each CPU has done up to its last clock tick, and how many threads want a CPU, on
 * average. Locking: none; each CPU counts for itself, and CPU 0 makes the averages.
 */
#include "arch/pcpu.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/hook.h"
#include "kernel/sched/sched.h"
#include "kernel/sync/pcpu.h"

#define LOAD_TICKS 500 /* 5 seconds */

static uint64_t averages[3]; /* atomic, in 1/65536 */

/* All that is neither user mode nor the idle thread is the kernel's. A CPU counts from the boot. */
static void
count_time(struct pcpu *pc)
{
	uint64_t idle = sched_idle_ns(arch_cpu()), user = clock_span_ns(pc->user_ticks);
	uint64_t busy = clock_ns() - idle;

	pc->time.idle_ns = idle;
	pc->time.user_ns = user;
	pc->time.system_ns = busy - user;
}

static void
load_tick(void)
{
	/* exp(-5 s / 1, 5 and 15 minutes), in 1/65536 */
	static const uint64_t decay[3] = {60296, 64453, 65173};
	struct pcpu *pc = this_pcpu();

	count_time(pc);
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
