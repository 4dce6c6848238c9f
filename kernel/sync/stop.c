/*
 * stop.c - stops the machine by a non-maskable interrupt.
 *
 * Locking: stop.owner is the lock, taken by compare-and-swap. The owner writes the other fields of
 * `stop`. A test may stop the others without claiming the machine. Each stop has a number. So
 * whoever claims the machine while it is being released gets a stop of its own: it counts no CPU
 * that is just leaving the last one, whose owner waits for none that comes to the new one.
 */
#include "kernel/sync/stop.h"

#include <stddef.h>

#include "arch/irq.h"
#include "arch/ktr.h"
#include "arch/smp.h"
#include "kernel/lib/clock.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/smp.h"

/*
 * Waits for each CPU. The host may not run a CPU for seconds. One that ignores interrupts, and gets
 * no NMI, never stops.
 */
#define STOP_WAIT_NMI_MS 10000
#define STOP_WAIT_MS     3000

struct stop stop = {.owner = STOP_NOBODY};

static uint64_t stop_round; /* atomic; odd: a CPU that gets an NMI stops until it changes */
static bool in_hook;        /* the owner was in a hook (ktr/hook.h) when it claimed; the owner's */

bool
stop_active(void)
{
	return __atomic_load_n(&stop.owner, __ATOMIC_RELAXED) != STOP_NOBODY;
}

bool
stop_inside(void)
{
	bool on = arch_irq_enabled(), inside;

	arch_irq_disable(); /* stay on this CPU during the comparison */
	inside = __atomic_load_n(&stop.owner, __ATOMIC_RELAXED) == (int)arch_cpu();
	if (on)
		arch_irq_enable();
	return inside;
}

bool
stop_panicked(void)
{
	return __atomic_load_n(&stop.panicked, __ATOMIC_ACQUIRE);
}

bool
stop_must_not_wait(void)
{
	return stop_active() && stop_inside() && (stop.command || stop_panicked());
}

void
stop_claim(struct arch_trapframe *tf)
{
	int none = STOP_NOBODY;

	while (!__atomic_compare_exchange_n(&stop.owner, &none, (int)arch_cpu(), false,
					    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		none = STOP_NOBODY;
		/* No NMI can come inside an NMI handler: stop here if the owner asks. */
		if (tf == NULL || !stop_here(tf))
			arch_relax();
	}
	/* A hook may wait for another one's lock, which a CPU that is stopped may hold. */
	in_hook = *ARCH_KTR_IN_HOOK();
	*ARCH_KTR_IN_HOOK() = true;
}

static bool
stop_has(unsigned n, uint64_t round)
{
	return __atomic_load_n(&pcpus[n]->stop_round, __ATOMIC_ACQUIRE) == round &&
	       __atomic_load_n(&pcpus[n]->stopped, __ATOMIC_ACQUIRE) != NULL;
}

static void
stop_end_round(uint64_t round)
{
	__atomic_compare_exchange_n(&stop_round, &(uint64_t){round}, round + 1, false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	for (unsigned n = 0; n < ncpus; n++)
		while (pcpus[n] != NULL && stop_has(n, round))
			arch_relax();
}

void
stop_release(void)
{
	uint64_t round = __atomic_load_n(&stop_round, __ATOMIC_RELAXED);

	if (!in_hook) /* a single step may have left this set */
		*ARCH_KTR_IN_HOOK() = false;
	/* first: a CPU that resumes must find the machine free */
	__atomic_store_n(&stop.owner, STOP_NOBODY, __ATOMIC_RELEASE);
	if (round % 2 != 0)
		stop_end_round(round);
	this_pcpu()->resumed_ns = clock_ns();
}

unsigned
stop_others(void)
{
	uint64_t round = (__atomic_load_n(&stop_round, __ATOMIC_RELAXED) + 1) | 1;
	unsigned stopped = 0, wait_ms = STOP_WAIT_MS;

	__atomic_store_n(&stop_round, round, __ATOMIC_RELEASE);
	for (unsigned n = 0; n < ncpus; n++)
		if (smp_online(n) && arch_nmi_send(n))
			wait_ms = STOP_WAIT_NMI_MS;
	for (unsigned n = 0; n < ncpus; n++)
		for (unsigned i = 0; smp_online(n) && i < wait_ms; i++) {
			if (stop_has(n, round)) {
				stopped++;
				break;
			}
			clock_delay_ns(1000000);
		}
	return stopped;
}

void
stop_resume_others(void)
{
	stop_end_round(__atomic_load_n(&stop_round, __ATOMIC_RELAXED));
}

bool
stop_here(struct arch_trapframe *tf)
{
	struct pcpu *pc = this_pcpu();
	uint64_t round = __atomic_load_n(&stop_round, __ATOMIC_ACQUIRE);

	if (round % 2 == 0)
		return false;
	__atomic_store_n(&pc->stopped, tf, __ATOMIC_RELAXED);
	while (round % 2 != 0) {
		/* release: a CPU that finds the round finds the trap frame */
		__atomic_store_n(&pc->stop_round, round, __ATOMIC_RELEASE);
		while (__atomic_load_n(&stop_round, __ATOMIC_ACQUIRE) == round)
			arch_relax();
		round = __atomic_load_n(&stop_round, __ATOMIC_ACQUIRE);
	}
	pc->resumed_ns = clock_ns();
	__atomic_store_n(&pc->stopped, NULL, __ATOMIC_RELEASE);
	return true;
}
