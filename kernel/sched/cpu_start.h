/* cpu_start.h - starting the other CPUs. */
#pragma once

/* Starts all that there are and hw.maxcpus allows. Thread context, one thread. */
void cpu_start_all(void);
