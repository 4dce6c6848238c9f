/*
 * smp.h - calls on other CPUs. Thread context, interrupts on, no spin lock held: another CPU that
 * waits for that lock with interrupts off would never answer. During early boot with one CPU: any
 * state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * This CPU joins: it takes part in calls, and may be stopped and get threads. Waits for a call in
 * progress, which other threads than the one that starts CPUs may make. Interrupts off.
 */
void smp_join(void);
/* Is n another CPU, and has it joined? Interrupts off. */
bool smp_online(unsigned n);
/* A call that waits so long for one CPU asks it again, and runs the hooks `call_late`. */
#define SMP_CALL_LATE_NS 100000000ull
/* Runs fn on every CPU, with interrupts off. Returns when all have finished. */
void smp_call_all(void (*fn)(void *), void *arg);
/* This CPU uses the page table, by its physical address, from now on. Interrupts off. */
void smp_use_root(uint64_t root);
/*
 * As smp_call_all(), on the CPUs that use the page table: others that use it later see what was
 * changed in it before the call. fn NULL: each of them only passes a memory barrier.
 */
void smp_call_users(uint64_t root, void (*fn)(void *), void *arg);
/* Runs fn on one CPU, which has joined or is this one. Others are not interrupted. */
void smp_call_one(unsigned cpu, void (*fn)(void *), void *arg);
/* Runs fn here; all other CPUs wait with interrupts off. Even events of NMIs are suppressed. */
void smp_stop_run(void (*fn)(void *), void *arg);
/* Handles an interprocessor interrupt; ipi is enum arch_ipi. IPI_RESCHED runs the hooks `resched`.
 */
void smp_ipi(unsigned ipi);
