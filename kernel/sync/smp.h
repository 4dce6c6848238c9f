/*
 * smp.h - work on all CPUs. Thread context, interrupts on, no spin lock held (another CPU that
 * waits for that lock with interrupts off would never answer). Early boot with one CPU: any state.
 */
#pragma once

#include <stdbool.h>

struct arch_trapframe;

/* Starts the other CPUs. */
void smp_init(void);
/* Runs fn on every CPU, with interrupts off, and returns when all have. */
void smp_call_all(void (*fn)(void *), void *arg);
/*
 * Runs fn here while all other CPUs wait with interrupts off, none of them having been interrupted
 * inside the record text [__ktr_record_start, __ktr_record_end).
 */
void smp_stop_run(void (*fn)(void *), void *arg);
/*
 * Returns when every recorder that was inside the record text has left it.
 * Rests on the scheduler, which never preempts a thread there.
 */
void smp_ktr_quiesce(void);
/*
 * Stops all other CPUs, wherever they are, also with interrupts off where arch_nmi_send() reaches
 * them; waits a second for each and returns how many stopped. Interrupts off, any context. Their
 * frames are then in pcpu's `stopped`.
 */
unsigned smp_stop_others(void);
void smp_resume_others(void);
/* NMI: this CPU is wanted to stop, did so, and goes on now. False: it is not. */
bool smp_stopped(struct arch_trapframe *tf);
/* An interprocessor interrupt; ipi is enum arch_ipi; tf is what it interrupted. */
void smp_ipi(unsigned ipi, struct arch_trapframe *tf);
