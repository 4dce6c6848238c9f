/* cpu_start.h - starting the other CPUs. */
#pragma once

/* The number of CPUs, hw.maxcpus at most. After arch_machine_init(); one caller at a time. */
unsigned cpu_count(void);
/* Starts all CPUs that exist, up to hw.maxcpus. Thread context, one thread. */
void cpu_start_all(void);
