/* smp.h - contract: the other CPUs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_trapframe;
struct pcpu;

enum arch_ipi {
	IPI_RESCHED, /* look at the run queue */
	IPI_CALL,    /* run smp_call's function */
	IPI_COUNT
};

/* CPUs that firmware tells of, boot CPU included; at most max. */
unsigned arch_cpu_probe(unsigned max);
/*
 * Starts CPU n (1..): it runs on the idle stack given and calls entry_secondary(). False when it
 * cannot be started, as entry_wait_online() says. Thread context.
 */
bool arch_cpu_start(unsigned n, struct pcpu *pc, uintptr_t stack_top);
/* Fills the rest of the port's part of a pcpu before its CPU runs; cpu and ktr_ring are set. */
void arch_pcpu_init(struct pcpu *pc);
/* Interrupts one CPU. Any context. */
void arch_ipi_send(unsigned cpu, enum arch_ipi ipi);
/*
 * Makes one CPU, this one too, call entry_nmi(), whether its interrupts are on or not. False: this
 * machine has nothing that reaches a CPU with interrupts off, so that it comes when they are on.
 * Sets the CPU's nmi_sent, for entry_nmi() to tell it from the operator's. Any context.
 */
bool arch_nmi_send(unsigned cpu);
