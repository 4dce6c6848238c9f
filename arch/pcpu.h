/*
 * pcpu.h - contract: data that each CPU reaches without a look-up.
 *
 * struct arch_pcpu is the port's; it starts struct pcpu (kernel/sync/pcpu.h) and has at least
 * `unsigned cpu`, `struct thread *curthread`, `struct ktr_ring *ktr_ring` and `uint64_t ktr_tid`.
 */
#pragma once

#include <stdint.h>

struct thread;
struct arch_pcpu;

/* The current thread: one load, right at any time, also if this thread migrates. Any context. */
static inline struct thread *arch_curthread(void);
static inline void arch_set_curthread(struct thread *t);
/* This CPU's block. Stays true only while interrupts are off. */
static inline struct arch_pcpu *arch_this_pcpu(void);
/* This CPU's number, 0 is the boot CPU. Stays true only while interrupts are off. */
static inline unsigned arch_cpu(void);

#include <md/pcpu.h>
