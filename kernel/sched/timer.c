/*
 * timer.c - the one-shot timer of each CPU, for clock ticks and callouts.
 *
 * A CPU's timer is always set for its next tick, its first callout or its next profile, whichever
 * comes first.
 * Locking: none. Only the CPU itself uses its timer and pcpu.tick_ns, with interrupts off.
 */
#include "kernel/sched/timer.h"

#include "arch/clock.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/sysctl.h"
#include "kernel/sched/sched_private.h"
#include "kernel/sync/pcpu.h"

#define TICK_NS (1000000000ul / HZ)

#define TIMER_MIN_NS 1000ul
#define TIMER_MAX_NS 1000000000ul

HOOK_LIST(clock_tick);
HOOK_LIST(profile_due);

static int hz_value = HZ;
SYSCTL_INT(kern_hz, "kern.hz", 0, &hz_value, HZ, HZ, "clock ticks a second");

void
timer_arm(uint64_t deadline_ns)
{
	const struct pcpu *pc = this_pcpu();
	uint64_t now = clock_ns(), at = pc->tick_ns;

	if (pc->profile_ns < at)
		at = pc->profile_ns;
	if (deadline_ns < at)
		at = deadline_ns;
	/* If the timer fires too early, the handler sets it again. */
	at = at > now + TIMER_MIN_NS ? at - now : TIMER_MIN_NS;
	arch_timer_set(at < TIMER_MAX_NS ? at : TIMER_MAX_NS);
}

void
timer_init_cpu(void)
{
	this_pcpu()->tick_ns = clock_ns() + TICK_NS;
	this_pcpu()->profile_ns = UINT64_MAX;
	timer_arm(UINT64_MAX);
}

void
timer_interrupt(const struct arch_trapframe *tf)
{
	struct pcpu *pc = this_pcpu();
	uint64_t now = clock_ns();

	pc->timer_tf = tf;
	if (now >= pc->tick_ns) {
		/* A CPU that was stopped does not catch up on missed ticks. */
		pc->tick_ns += TICK_NS;
		if (pc->tick_ns <= now)
			pc->tick_ns = now + TICK_NS;
		scheduler_tick(now);
		HOOK_RUN(clock_tick);
		pc->profile_ns = 0;
	}
	if (now >= pc->profile_ns)
		HOOK_RUN(profile_due);
	timer_arm(callout_run(now));
}
