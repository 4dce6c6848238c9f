/*
 * pcpu.h - contract: per-CPU data that needs no look-up.
 *
 * The port defines struct arch_pcpu. It is the first member of struct pcpu (kernel/sync/pcpu.h) and
 * has at least `unsigned cpu`, `struct thread *curthread`, `struct ktr_ring *ktr_ring`,
 * `uint64_t ktr_tid` and `bool ktr_in_hook`.
 */
#pragma once

#include <stdint.h>

struct thread;
struct arch_pcpu;

/* The current thread: one load, right even if the thread moves to another CPU. Any context. */
static inline struct thread *arch_curthread(void);
static inline void arch_set_curthread(struct thread *t);
/* This CPU's block. Valid only while interrupts are off. */
static inline struct arch_pcpu *arch_this_pcpu(void);
/* This CPU's number; the boot CPU is 0. Valid only while interrupts are off. */
static inline unsigned arch_cpu(void);

#include <md/pcpu.h>
