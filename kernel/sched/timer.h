/* timer.h - clock ticks: the beat of the scheduler, and of those who registered for it. */
#pragma once

#include <stdint.h>

#define HZ 100 /* clock ticks a second */

/*
 * HOOK(clock_tick, fn): fn is called at each clock tick of each CPU. Timer interrupt: interrupts
 * are off, and fn must not wait.
 */

/* Starts the ticks of this CPU. Interrupts off. */
void timer_init_cpu(void);
/* The one-shot timer fired. Interrupt context. */
void timer_interrupt(void);
