/*
 * clock.c - time since boot, clock ticks, and the one-shot timer behind both ticks and callouts.
 *
 * The timer of a CPU is always set for the earlier of its next tick and its first callout. mult and
 * boot_ticks are written once, by the boot CPU before others run.
 */
#include "kernel/lib/clock.h"

#include "arch/clock.h"
#include "arch/irq.h"
#include "kernel/debug/watchdog.h"
#include "kernel/entry.h"
#include "kernel/lib/sysctl.h"
#include "kernel/sched/sched_private.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"
#include "kernel/trace/flush.h"
#include "ktr/ktr.h"

#define TICK_NS (1000000000ul / HZ)

#define TIMER_MIN_NS 1000ul
#define TIMER_MAX_NS 1000000000ul

static uint64_t boot_ticks, hz = 1;
static uint64_t mult; /* ns per tick, 32 fraction bits */

static int hz_value = HZ;
SYSCTL_INT(kern_hz, "kern.hz", 0, &hz_value, HZ, HZ, "clock ticks a second");

void
clock_note_boot(void)
{
	boot_ticks = arch_clock_read();
}

void
clock_init(void)
{
	arch_clock_init();
	hz = arch_clock_hz();
	mult = (uint64_t)(((unsigned __int128)1000000000 << 32) / hz);
	CTR2(KTR_INIT, "clock_init: hz %lu boot ticks %lu", hz, boot_ticks);
}

uint64_t
clock_ticks_to_ns(uint64_t ticks)
{
	/* A counter read on another CPU may be a little older than the moment that we call boot. */
	return ticks > boot_ticks ? (uint64_t)((unsigned __int128)(ticks - boot_ticks) * mult >> 32)
				  : 0;
}

uint64_t
clock_ns(void)
{
	return clock_ticks_to_ns(arch_clock_read());
}

void
clock_delay_ns(uint64_t ns)
{
	uint64_t end = arch_clock_read() + ns * (arch_clock_hz() / 1000) / 1000000;

	while (arch_clock_read() < end)
		arch_relax();
}

uint64_t
clock_hz(void)
{
	return hz;
}

uint64_t
clock_boot_ticks(void)
{
	return boot_ticks;
}

void
clock_arm(uint64_t deadline_ns)
{
	uint64_t now = clock_ns(), at = this_pcpu()->tick_ns;

	if (deadline_ns < at)
		at = deadline_ns;
	/* Too early does no harm: it is set again. */
	at = at > now + TIMER_MIN_NS ? at - now : TIMER_MIN_NS;
	arch_timer_set(at < TIMER_MAX_NS ? at : TIMER_MAX_NS);
}

void
clock_init_cpu(void)
{
	this_pcpu()->tick_ns = clock_ns() + TICK_NS;
	clock_arm(UINT64_MAX);
}

void
clock_interrupt(void)
{
	struct pcpu *pc = this_pcpu();
	uint64_t now = clock_ns();

	if (now >= pc->tick_ns) {
		/* A CPU that was stopped or starved does not make up for lost ticks. */
		pc->tick_ns += TICK_NS;
		if (pc->tick_ns <= now)
			pc->tick_ns = now + TICK_NS;
		sched_tick();
		ktr_flush_tick();
		watchdog_tick();
	}
	clock_arm(callout_run(now));
}
