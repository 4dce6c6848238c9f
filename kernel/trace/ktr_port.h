/*
 * ktr_port.h - what recording an event means in this kernel: ktr's port header (ktr/port.h), over
 * arch/ktr.h.
 *
 * The head word and the ident of a CPU are in its arch_pcpu. Bit 31 of the ident, which leads
 * recording to its slow path, is set while the CPU's events are to be refused or looked at: because
 * of the thread (the flush thread), of the CPU (masked off, verbose), or of the debugger. Locking:
 * ktr_port_refused[n] is CPU n's own; ktr_port_slow_cpus is written under ktr's control lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arch/clock.h"
#include "arch/ktr.h"
#include "kernel/sched/pcpu.h"

#define KTR_PORT_MAXCPU     MAX_CPUS
#define KTR_PORT_PATCH      1
#define KTR_PORT_IDENT_SLOW 0x80000000u

extern uint64_t ktr_port_slow_cpus;            /* atomic; bit N: CPU N always takes the slow path */
extern bool ktr_port_refused[KTR_PORT_MAXCPU]; /* the thread that runs there wants no events */

extern const char __ktr_record_start[], __ktr_record_end[];

/* The machine ends: CPUs that are stopped will not go on. Written once, by the last CPU. */
extern bool ktr_port_final;

static inline uint64_t
ktr_port_time(void)
{
	return arch_clock_read();
}

static inline uint64_t
ktr_port_head(void)
{
	return arch_ktr_head();
}

static inline uint64_t *
ktr_port_head_of(unsigned cpu)
{
	return cpu < MAX_CPUS && pcpus[cpu] != NULL ? &pcpus[cpu]->md.ktr_head : NULL;
}

static inline uint32_t
ktr_port_ident(void)
{
	return arch_ktr_ident();
}

static inline void
ktr_port_wmb(void)
{
	arch_ktr_wmb();
}

/*
 * What runs on this CPU now: a thread, and whether its events are refused. The scheduler calls it
 * at a switch, interrupts on entry and exit. Interrupts off.
 */
static inline void
ktr_port_set_ident(uint32_t tid, bool refuse)
{
	unsigned cpu = arch_cpu();
	bool slow =
	    refuse || (__atomic_load_n(&ktr_port_slow_cpus, __ATOMIC_RELAXED) >> cpu & 1) != 0;

	ktr_port_refused[cpu] = refuse;
	arch_ktr_set_ident(tid | (slow ? KTR_PORT_IDENT_SLOW : 0));
}

/* Refuses this CPU's events, those of an NMI too, or no more. Returns what was. Interrupts off. */
static inline bool
ktr_port_refuse(bool refuse)
{
	bool before = ktr_port_refused[arch_cpu()];

	ktr_port_set_ident(ktr_port_ident() & ~KTR_PORT_IDENT_SLOW, refuse);
	return before;
}

/* Is this an address of the record text, where no thread is ever switched out? Any context. */
static inline bool
ktr_port_inside(uintptr_t pc)
{
	return pc >= (uintptr_t)__ktr_record_start && pc < (uintptr_t)__ktr_record_end;
}
