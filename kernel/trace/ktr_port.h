/*
 * ktr_port.h - what recording an event means in this kernel: ktr's port header (ktr/port.h), over
 * arch/ktr.h.
 *
 * The pointer to a CPU's ring and the id of its thread are in its arch_pcpu. Its events are refused
 * because of the thread (the flush thread) or of the debugger: ktr_port_refused[n], CPU n's own.
 * Locking: none.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arch/clock.h"
#include "arch/irq.h"
#include "arch/ktr.h"
#include "kernel/sync/pcpu.h"
#include "ktr/entry.h"

#define KTR_PORT_MAXCPU MAX_CPUS
#define KTR_PORT_PATCH  1

extern bool ktr_port_refused[KTR_PORT_MAXCPU]; /* the thread that runs there wants no events */

extern const char __ktr_record_start[], __ktr_record_end[];

/* The machine ends: CPUs that are stopped will not go on. Written once, by the last CPU. */
extern bool ktr_port_final;

static inline uint64_t
ktr_port_time(void)
{
	return arch_clock_read();
}

static inline unsigned
ktr_port_cpu(void)
{
	return arch_cpu();
}

static inline uint32_t
ktr_port_tid(void)
{
	return arch_ktr_tid();
}

/* Not irq_push(), which counts and checks: this must work in any context. */
static inline uintptr_t
ktr_port_irq_save(void)
{
	bool on = arch_irq_enabled();

	arch_irq_disable();
	return on;
}

static inline void
ktr_port_irq_restore(uintptr_t on)
{
	if (on)
		arch_irq_enable();
}

#define KTR_PORT_RING_OF(n) ((n) < MAX_CPUS && pcpus[n] != NULL ? &pcpus[n]->md.ktr_ring : NULL)

/* Refuses this CPU's events, those of an NMI too, or no more. Returns what was. Interrupts off. */
static inline bool
ktr_port_refuse(bool refuse)
{
	unsigned cpu = arch_cpu();
	bool before = ktr_port_refused[cpu];

	*(volatile bool *)&ktr_port_refused[cpu] = refuse;
	if (refuse) /* as ktr_ring_close() does for any CPU */
		__atomic_store_n(&arch_this_pcpu()->ktr_ring->limit, 0, __ATOMIC_RELAXED);
	return before;
}

/*
 * What runs on this CPU now: a thread, and whether its events are refused. The scheduler calls it
 * at a switch, interrupts on entry and exit. Interrupts off.
 */
static inline void
ktr_port_set_thread(uint32_t tid, bool refuse)
{
	arch_ktr_set_tid(tid);
	ktr_port_refuse(refuse);
}

/* Is this an address of the record text, in which all restartable sequences are? Any context. */
static inline bool
ktr_port_inside(uintptr_t pc)
{
	return pc >= (uintptr_t)__ktr_record_start && pc < (uintptr_t)__ktr_record_end;
}
