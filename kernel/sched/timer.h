/* timer.h - clock ticks, for the scheduler and for hooks. */
#pragma once

#include <stdint.h>

struct arch_trapframe;

#define HZ 100 /* clock ticks a second */

/*
 * HOOK(clock_tick, fn): each CPU calls fn at each of its clock ticks, in the timer interrupt.
 * Interrupts are off, and fn must not wait.
 */

/*
 * HOOK(profile_due, fn): calls fn at each clock tick, and when this_pcpu()->profile_ns has come,
 * which fn sets anew. As above; this_pcpu()->timer_tf is what was interrupted.
 */

/* Starts the ticks of this CPU. Interrupts off. */
void timer_init_cpu(void);
/* The one-shot timer fired. Interrupt context. */
void timer_interrupt(const struct arch_trapframe *tf);
