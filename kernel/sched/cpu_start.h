/* cpu_start.h - starting the other CPUs. */
#pragma once

/* Starts all CPUs that exist, up to hw.maxcpus. Thread context, one thread. */
void cpu_start_all(void);
