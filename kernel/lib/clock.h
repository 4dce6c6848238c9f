/* clock.h - time since boot. Any context, also NMI, unless said. */
#pragma once

#include <stdint.h>

/* Monotonic, agreed between CPUs; 0 at boot. */
uint64_t clock_ns(void);
/* Raw ticks of the architecture's counter (arch_clock_read()) as nanoseconds since boot. */
uint64_t clock_ticks_to_ns(uint64_t ticks);
/* Spins; for hardware that needs a moment. */
void clock_delay_ns(uint64_t ns);
/* Ticks a second, 0 before clock_init(); and the counter's value at clock_ns() == 0. */
uint64_t clock_hz(void);
uint64_t clock_boot_ticks(void);

/* Time begins here: before the first event. Boot CPU. */
void clock_note_boot(void);
/* Finds out how fast the counter runs; before, clock_ns() means nothing. Boot CPU. */
void clock_init(void);
