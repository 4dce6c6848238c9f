/* smp.h - contract: the other CPUs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pcpu;

enum arch_ipi {
	IPI_RESCHED, /* check the run queue */
	IPI_CALL,    /* run smp_call's function */
	IPI_COUNT
};

/* Number of CPUs that firmware reports, with the boot CPU; at most max. */
unsigned arch_cpu_probe(unsigned max);
/*
 * Starts CPU n (from 1), which calls entry_secondary() on the given idle stack. False:
 * the machine does not start it, or entry_wait_online() gave it up. Thread context.
 */
bool arch_cpu_start(unsigned n, struct pcpu *pc, uintptr_t stack_top);
/* Fills the rest of the port's part of a pcpu (cpu and ktr_ring are set) before its CPU runs. */
void arch_pcpu_init(struct pcpu *pc);
/* Interrupts one CPU. Any context. */
void arch_ipi_send(unsigned cpu, enum arch_ipi ipi);
/*
 * Makes a CPU, perhaps this one, call entry_nmi(), even with its interrupts off. False: this
 * machine cannot do that, and the call comes when interrupts are on. Sets the CPU's nmi_sent, so
 * that entry_nmi() can tell it from the operator's NMI. Any context.
 */
bool arch_nmi_send(unsigned cpu);
