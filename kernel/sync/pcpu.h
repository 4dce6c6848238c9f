/* pcpu.h - what each CPU owns. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arch/pcpu.h"

#define MAX_CPUS   64
#define PCPU_LOCKS 8 /* spin locks that are remembered; it may hold more */

struct arch_trapframe;
struct spinlock;
struct thread;

/* Whoever changes it from PCPU_STARTING decides: the CPU that comes, or the one that waited long.
 */
enum pcpu_start { PCPU_STARTING, PCPU_CAME, PCPU_REFUSED };

struct pcpu {
	struct arch_pcpu md; /* first: the port finds the whole by it */
	struct thread *idle;
	int irq_depth;                     /* nested irq_push(); touched with interrupts off */
	bool irq_was_on;                   /* state before the outermost irq_push() */
	uint32_t start;                    /* atomic: enum pcpu_start, while it is being started */
	bool online;                       /* takes threads and interprocessor calls */
	bool resched;                      /* atomic: give the CPU away when possible */
	unsigned locks;                    /* spin locks held */
	struct spinlock *held[PCPU_LOCKS]; /* the first of them, by age or nearly so */
	unsigned nmi;                      /* depth of NMI handlers */
	uint64_t nmi_count;                /* NMIs that were not a stop */
	bool nmi_sent;       /* atomic: arch_nmi_send() did; else the machine's operator */
	uint64_t resumed_ns; /* when it last went on after a stop */
	uint64_t tick_ns;    /* time of the next clock tick */
	uint64_t ticks;      /* clock ticks taken */
	/* The CPU that this one watches, its ticks, and for how many of ours they stand
	 * (watchdog.c) */
	unsigned watch_cpu;
	uint64_t watch_ticks, watch_stuck;
	bool watch_wanted;  /* atomic: this CPU is found hung, and is to say so */
	uint64_t call_done; /* generation of the last smp_call run */
	/* Frame of a CPU that smp_stop_others() stopped; NULL while it runs. Atomic. */
	struct arch_trapframe *stopped;
};

extern struct pcpu *pcpus[MAX_CPUS]; /* NULL: no such CPU. Filled before the CPU starts */
extern unsigned ncpus;               /* CPUs that exist */

/* This CPU. Interrupts off. */
static inline struct pcpu *
this_pcpu(void)
{
	return (struct pcpu *)arch_this_pcpu();
}
