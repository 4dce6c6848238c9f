/*
 * smp.h - work on all CPUs. Thread context, interrupts on, no spin lock held (another CPU that
 * waits for that lock with interrupts off would never answer). Early boot with one CPU: any state.
 */
#pragma once

#include <stdbool.h>

/* This CPU takes part in calls from now on, and may be stopped and be given threads. Interrupts
 * off.
 */
void smp_join(void);
/* Is n another CPU than this one, and has it joined? Interrupts off. */
bool smp_online(unsigned n);
/* Runs fn on every CPU, with interrupts off, and returns when all have. */
void smp_call_all(void (*fn)(void *), void *arg);
/*
 * Runs fn here while all other CPUs wait with interrupts off, and all events are refused, those of
 * NMIs too.
 */
void smp_stop_run(void (*fn)(void *), void *arg);
/* An interprocessor interrupt; ipi is enum arch_ipi. */
void smp_ipi(unsigned ipi);
