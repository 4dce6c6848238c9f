/* pcpu.h - the data of each CPU. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arch/pcpu.h"

#define MAX_CPUS   64
#define PCPU_LOCKS 8 /* how many held spin locks are remembered; a CPU may hold more */

struct arch_trapframe;
struct spinlock;
struct thread;

/* Settles the race of a late CPU with the thread that waits: who changes PCPU_STARTING wins. */
enum pcpu_start { PCPU_STARTING, PCPU_CAME, PCPU_REFUSED };

struct pcpu {
	struct arch_pcpu md; /* first, so that the port can find the whole structure */
	struct thread *idle;
	int irq_depth;   /* nested irq_push(); touched with interrupts off */
	bool irq_was_on; /* state before the outermost irq_push() */
	uint32_t start;  /* atomic: enum pcpu_start, while it is being started */
	bool online;     /* may be given threads and interprocessor calls */
	union {
		struct {
			bool resched; /* atomic: reschedule as soon as possible */
			bool work;    /* the hooks user_return have something to do */
		};
		uint16_t wanted; /* not 0: one of these, before a return to user mode */
	};
	unsigned locks;                    /* spin locks held */
	struct spinlock *held[PCPU_LOCKS]; /* the first held locks, in about the order of taking */
	unsigned nmi;                      /* depth of NMI handlers */
	uint64_t nmi_count;                /* atomic: NMIs that did not stop this CPU */
	bool nmi_sent;       /* atomic: arch_nmi_send() sent one; if not, the operator did */
	uint64_t resumed_ns; /* when it last resumed after a stop */
	uint64_t tick_ns;    /* time of the next clock tick */
	uint64_t ticks;      /* clock ticks taken */
	uint64_t switches;   /* from one thread to another */
	uint64_t faults, disk_faults; /* atomic: page faults, as of struct usage */
	uint64_t user_ticks; /* time in user mode, up to the last entry; arch_clock_read() */
	struct {             /* up to the last clock tick */
		uint64_t user_ns, system_ns, idle_ns;
	} time;
	uint64_t profile_ns; /* when the timer calls profile_due; at each clock tick, too */
	const struct arch_trapframe *timer_tf; /* what the timer has interrupted */
	/*
	 * For the watchdog: the CPU that this one watches, the ticks it had, and for how many ticks
	 * of this CPU they have not changed.
	 */
	unsigned watch_cpu;
	uint64_t watch_ticks, watch_stuck;
	bool watch_wanted; /* atomic: this CPU was found hung and must enter the debugger */
	uint64_t call_asked, call_done; /* generations of calls (smp.c) */
	uint64_t root;                  /* atomic: the page table that it uses (smp_use_root()) */
	/* atomic: how often a call of this CPU has waited SMP_CALL_LATE_NS, or it had its
	 * interrupts off as long, and did not hang */
	uint64_t late;
	unsigned late_cpu; /* ... and for which CPU the last time */
	/* atomic: trap frame while stop_others() has this CPU stopped; NULL while it runs */
	struct arch_trapframe *stopped;
	uint64_t stop_round; /* atomic: ... and in which stop (stop.c) */
};

extern struct pcpu *pcpus[MAX_CPUS]; /* NULL: no such CPU. Filled before the CPU starts */
extern unsigned ncpus;               /* number of CPUs */

/* This CPU. Interrupts off. */
static inline struct pcpu *
this_pcpu(void)
{
	return (struct pcpu *)arch_this_pcpu();
}
